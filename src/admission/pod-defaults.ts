import { missingOutageTolerations, type OutageRule } from '../api/outage-tolerations.ts';
import type { Toleration } from '../kube/core-v1.ts';
import { BURST_LABEL, GANG_GATE, GANG_LABEL, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import { asksForVirtualNode, goesOnlyToVirtualNodes, type IsVirtualNode } from '../api/virtual-node-choice.ts';
import { entryOf, type JsonRecord, listOf, recordOf } from '../kube/json-fields.ts';
import { isDaemonSet } from '../kube/owner-references.ts';
import type { PatchStep } from './patch-step.ts';
import { splitConstraints } from './split-constraints.ts';
import { stayOnHost } from './stay-on-host.ts';

export interface PodDefaultSettings {
  /** Scheduler for pods that asked for none; undefined: the one they have. */
  readonly schedulerName: string | undefined;
  readonly isVirtualNode: IsVirtualNode;
  /** What pods that can go nowhere else tolerate of their virtual node when nobody serves it. */
  readonly outages: OutageRule;
  /** Open node constraints to virtual nodes and hold the member to them, see {@link splitConstraints}. */
  readonly splitConstraints: boolean;
}

const DEFAULT_SCHEDULER = 'default-scheduler';
// Not of PreferNoSchedule: where an administrator chose that, pods are to prefer other nodes.
const VIRTUAL_NODE_TOLERATION = { key: VIRTUAL_NODE_TAINT, operator: 'Exists', effect: 'NoSchedule' };
const STATIC_ANNOTATIONS = ['kubernetes.io/config.mirror', 'kubernetes.io/config.source'];

/**
 * What a pod gets when it is created and may leave the host. `optedIn`: its namespace lets its pods burst. Empty for
 * pods that are none of our business, and for those that have it all. The policies in manifests/admission do the same;
 * whichever comes second finds nothing to do.
 */
export function podDefaults(pod: unknown, optedIn: boolean, settings: PodDefaultSettings): PatchStep[] {
  const parts = partsOf(pod);
  if (parts === undefined || isPlaced(parts)) return [];
  const { metadata, spec } = parts;
  if (isOfDaemonSet(metadata)) return stayOnHost(spec);
  const bursts = optedIn && entryOf(recordOf(metadata['labels']), BURST_LABEL) !== 'disabled';
  const concerned = bursts || asksForVirtualNode(spec, settings.isVirtualNode);
  const named = concerned || namesOurTaint(spec);
  return [
    ...tolerations(spec, concerned, settings),
    ...(named ? gate(metadata, spec) : []),
    ...(named ? scheduler(spec, settings) : []),
    ...(named && settings.splitConstraints ? splitConstraints(metadata, spec) : []),
    ...(concerned ? [] : stayOnHost(spec)),
  ];
}

/** The same for a pod of the cluster itself, which gets nothing and never leaves the host. */
export function systemPodDefaults(pod: unknown): PatchStep[] {
  const parts = partsOf(pod);
  return parts === undefined || isPlaced(parts) ? [] : stayOnHost(parts.spec);
}

interface PodParts {
  readonly metadata: JsonRecord;
  readonly spec: JsonRecord;
}

/** Undefined for what is no pod, so that no patch would fit it: the API server refuses it by itself. */
function partsOf(pod: unknown): PodParts | undefined {
  const metadata = recordOf(recordOf(pod)?.['metadata']);
  const spec = recordOf(recordOf(pod)?.['spec']);
  return metadata === undefined || spec === undefined ? undefined : { metadata, spec };
}

/** Bound by its creator, or by a kubelet: nobody is to choose a node for it. */
function isPlaced({ metadata, spec }: PodParts): boolean {
  const annotations = recordOf(metadata['annotations']) ?? {};
  return (spec['nodeName'] ?? '') !== '' || STATIC_ANNOTATIONS.some((key) => Object.hasOwn(annotations, key));
}

/** So it says; then it names its node. */
function isOfDaemonSet(metadata: JsonRecord): boolean {
  const owners = listOf(metadata['ownerReferences']).map((owner) => recordOf(owner) ?? {});
  return owners.some((owner) => isDaemonSet(owner) && owner['controller'] === true);
}

/** Those of an outage come first, as the first one that matches a taint counts; the order of the others says nothing. */
function tolerations(spec: JsonRecord, concerned: boolean, settings: PodDefaultSettings): PatchStep[] {
  const present = listOf(spec['tolerations']);
  const own = concerned && !present.some(tolerates) ? [VIRTUAL_NODE_TOLERATION] : [];
  const outage = goesOnlyToVirtualNodes(spec, settings.isVirtualNode)
    ? missingOutageTolerations(
        present.map((item) => (recordOf(item) ?? {}) as Toleration),
        settings.outages,
      )
    : [];
  if (outage.length === 0) return own.flatMap((value) => append(spec, 'tolerations', value));
  return [{ op: 'add', path: '/spec/tolerations', value: [...outage, ...present, ...own] }];
}

function tolerates(item: unknown): boolean {
  const { key, operator, value = '', effect = '' } = recordOf(item) ?? {};
  if (key !== VIRTUAL_NODE_TAINT || (effect !== '' && effect !== 'NoSchedule')) return false;
  return operator === 'Exists' || value === '';
}

function namesOurTaint(spec: JsonRecord): boolean {
  return listOf(spec['tolerations']).some((item) => recordOf(item)?.['key'] === VIRTUAL_NODE_TAINT);
}

function gate(metadata: JsonRecord, spec: JsonRecord): PatchStep[] {
  if (entryOf(recordOf(metadata['labels']), GANG_LABEL) === undefined) return [];
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
