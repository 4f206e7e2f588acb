import { BURST_LABEL } from '../placement/namespace-burst.ts';
import { GANG_GATE, GANG_LABEL, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import { entryOf, type JsonRecord, listOf, recordOf } from '../pods/translate-json.ts';
import type { PatchStep } from './patch-step.ts';
import { splitConstraints } from './split-constraints.ts';
import { asksForVirtualNode, type IsVirtualNode } from './virtual-node-choice.ts';

export interface PodDefaultSettings {
  /** Scheduler for pods that asked for none; undefined: the one they have. */
  readonly schedulerName: string | undefined;
  readonly isVirtualNode: IsVirtualNode;
  /** Open node constraints to virtual nodes and hold the member to them, see {@link splitConstraints}. */
  readonly splitConstraints: boolean;
}

const DEFAULT_SCHEDULER = 'default-scheduler';
const STATIC_ANNOTATIONS = ['kubernetes.io/config.mirror', 'kubernetes.io/config.source'];

/**
 * What a pod gets when it is created and may leave the host. `optedIn`: its namespace lets its pods burst. Empty for
 * pods that are none of our business, and for those that have it all. The policies in manifests/admission do the same;
 * whichever comes second finds nothing to do.
 */
export function podDefaults(pod: unknown, optedIn: boolean, settings: PodDefaultSettings): PatchStep[] {
  const metadata = recordOf(recordOf(pod)?.['metadata']);
  const spec = recordOf(recordOf(pod)?.['spec']);
  if (spec === undefined || isUntouched(metadata, spec)) return [];
  const bursts = optedIn && entryOf(recordOf(metadata?.['labels']), BURST_LABEL) !== 'disabled';
  const concerned = bursts || asksForVirtualNode(spec, settings.isVirtualNode);
  const named = concerned || namesOurTaint(spec);
  return [
    ...(concerned ? toleration(spec) : []),
    ...(named ? gate(metadata, spec) : []),
    ...(named ? scheduler(spec, settings) : []),
    ...(named && settings.splitConstraints ? splitConstraints(metadata, spec) : []),
  ];
}

/** Bound by its creator, by a DaemonSet, or by a kubelet: nobody is to choose a node for it. */
function isUntouched(metadata: JsonRecord | undefined, spec: JsonRecord): boolean {
  const annotations = recordOf(metadata?.['annotations']) ?? {};
  const owners = listOf(metadata?.['ownerReferences']).map(recordOf);
  return (
    (spec['nodeName'] ?? '') !== '' ||
    owners.some((owner) => owner?.['kind'] === 'DaemonSet' && owner['controller'] === true) ||
    STATIC_ANNOTATIONS.some((key) => Object.hasOwn(annotations, key))
  );
}

function toleration(spec: JsonRecord): PatchStep[] {
  if (listOf(spec['tolerations']).some(tolerates)) return [];
  // Not of PreferNoSchedule: where an administrator chose that, pods are to prefer other nodes.
  const value = { key: VIRTUAL_NODE_TAINT, operator: 'Exists', effect: 'NoSchedule' };
  return append(spec, 'tolerations', value);
}

function tolerates(item: unknown): boolean {
  const { key, operator, value = '', effect = '' } = recordOf(item) ?? {};
  if (key !== VIRTUAL_NODE_TAINT || (effect !== '' && effect !== 'NoSchedule')) return false;
  return operator === 'Exists' || value === '';
}

function namesOurTaint(spec: JsonRecord): boolean {
  return listOf(spec['tolerations']).some((item) => recordOf(item)?.['key'] === VIRTUAL_NODE_TAINT);
}

function gate(metadata: JsonRecord | undefined, spec: JsonRecord): PatchStep[] {
  if (entryOf(recordOf(metadata?.['labels']), GANG_LABEL) === undefined) return [];
  if (listOf(spec['schedulingGates']).some((item) => recordOf(item)?.['name'] === GANG_GATE)) return [];
  return append(spec, 'schedulingGates', { name: GANG_GATE });
}

function scheduler(spec: JsonRecord, { schedulerName }: PodDefaultSettings): PatchStep[] {
  const asked = spec['schedulerName'] ?? DEFAULT_SCHEDULER;
  if (schedulerName === undefined || schedulerName === asked || asked !== DEFAULT_SCHEDULER) return [];
  return [{ op: 'add', path: '/spec/schedulerName', value: schedulerName }];
}

function append(spec: JsonRecord, field: string, value: unknown): PatchStep[] {
  const path = `/spec/${field}`;
  return listOf(spec[field]).length === 0
    ? [{ op: 'add', path, value: [value] }]
    : [{ op: 'add', path: `${path}/-`, value }];
}
