import { GANG_GATE } from '../api/marks.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyOf } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { PODS } from '../kube/resource.ts';
import { SCHEDULER_NAME, SECOND_SCHEDULER } from './installation.ts';
import type { ManifestObject } from './manifests.ts';
import type { Viewer } from './viewer.ts';

/** Pods that are named. */
const MOST_NAMED = 5;

/**
 * Pods without a node that nobody lets go any more once these objects are gone: those of the second scheduler, where it is among them, and
 * those at the gate of gangs. Throws CliError.
 */
export async function podsThatWait(host: Viewer, objects: readonly ManifestObject[]): Promise<Pod[]> {
  const hasScheduler = objects.some(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === SECOND_SCHEDULER,
  );
  const pods = await host.list<Pod>(PODS, { fieldSelector: 'spec.nodeName=' });
  return pods.filter((pod) => {
    const { schedulerName, schedulingGates = [] } = pod.spec;
    if (isFinished(pod) || pod.metadata.deletionTimestamp !== undefined) return false;
    const isGated = schedulingGates.some(({ name }) => name === GANG_GATE);
    return isGated || (hasScheduler && schedulerName === SCHEDULER_NAME);
  });
}

/** The first of them; apart those that nobody makes anew. */
export function waitingInWords(pods: readonly Pod[]): string {
  const alone = pods.filter((pod) => controllerOf(pod) === undefined);
  const made = pods.filter((pod) => !alone.includes(pod));
  return [
    ...(made.length === 0 ? [] : [firstOf(made)]),
    ...(alone.length === 0 ? [] : [`without a controller, so that nobody makes others: ${firstOf(alone)}`]),
  ].join('; ');
}

function firstOf(pods: readonly Pod[]): string {
  const more = pods.length - MOST_NAMED;
  return [...pods.slice(0, MOST_NAMED).map(keyOf), ...(more > 0 ? [`${String(more)} more`] : [])].join(', ');
}
