import type { JsonRecord } from '../kube/json-fields.ts';
import { isPod } from './edit-containers.ts';
import { formatPointer, parsePointer } from './json-pointer.ts';
import { OverrideError } from './override-error.ts';

/** How far down a workload its pod is: CronJob, then all others. */
const TEMPLATES = [
  ['spec', 'jobTemplate', 'spec', 'template'],
  ['spec', 'template'],
];

/** Fields of the specs of workloads. No pod has them, and an API server would drop them without a word. */
const WORKLOAD_FIELDS = new Set([
  'backoffLimit',
  'backoffLimitPerIndex',
  'completionMode',
  'completions',
  'concurrencyPolicy',
  'failedJobsHistoryLimit',
  'jobTemplate',
  'manualSelector',
  'maxFailedIndexes',
  'minReadySeconds',
  'ordinals',
  'parallelism',
  'paused',
  'persistentVolumeClaimRetentionPolicy',
  'podFailurePolicy',
  'podManagementPolicy',
  'podReplacementPolicy',
  'progressDeadlineSeconds',
  'replicas',
  'revisionHistoryLimit',
  'schedule',
  'selector',
  'serviceName',
  'startingDeadlineSeconds',
  'strategy',
  'successPolicy',
  'successfulJobsHistoryLimit',
  'suspend',
  'template',
  'timeZone',
  'ttlSecondsAfterFinished',
  'updateStrategy',
  'volumeClaimTemplates',
]);

/** What an object is and where it runs is not for policies; of metadata only labels and annotations are. */
const FORBIDDEN_FIELDS = new Set(['apiVersion', 'kind', 'status']);
const METADATA_MAPS = new Set(['labels', 'annotations']);

/**
 * The path that a policy's path means in this object. Policies that were written for workloads name fields of the pod
 * below the workload's template; a pod is all we ever render.
 *
 * @throws OverrideError when the path is no pointer, or leads to what policies may not change or a pod does not have.
 */
export function objectPath(object: JsonRecord, pointer: string): string {
  const written = parsePointer(pointer);
  if (written === undefined || written.length === 0) {
    throw new OverrideError(pointer, 'the path is not a JSON Pointer into the object');
  }
  const segments = isPod(object) ? podSegments(written) : written;
  const [top = '', second = ''] = segments;
  if (FORBIDDEN_FIELDS.has(top) || (top === 'metadata' && !METADATA_MAPS.has(second))) {
    throw new OverrideError(pointer, 'policies may not change what an object is');
  }
  if (isPod(object) && top === 'spec' && WORKLOAD_FIELDS.has(second)) {
    throw new OverrideError(pointer, 'that is a field of workloads, and it is the pod that is rendered for a member');
  }
  return segments === written ? pointer : formatPointer(segments);
}

function podSegments(segments: readonly string[]): readonly string[] {
  const template = TEMPLATES.find((prefix) => prefix.every((part, index) => segments[index] === part));
  const rest = template === undefined ? segments : segments.slice(template.length);
  return rest.length === 0 ? segments : rest;
}
