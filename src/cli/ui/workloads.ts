import { releasedFrom, TEMPLATE_HASH } from '../../api/released.ts';
import { parseWorkloadPlacement, type WorkloadPlacement } from '../../api/workload-placement.ts';
import { isFinished } from '../../api/pod-phase.ts';
import { LOCAL } from '../../api/cluster-tiers.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { keyOf } from '../../kube/object.ts';
import { controllerOf } from '../../kube/owner-references.ts';
import type { PageFacts } from './page-facts.ts';
import { podsBy, type PlaceOf } from './pod-places.ts';
import type { Places, PodView, WorkloadView } from './view.ts';

/** A workload with what is known of it; `placement` where Spillway has written of it. */
export interface Workload {
  view: WorkloadView;
  pods: readonly Pod[];
  placement: WorkloadPlacement | undefined;
}

/**
 * Workloads that Spillway has to do with: those with a pod in a member, those it has written a WorkloadPlacement of, and of those that are
 * `remembered` the ones that have pods still. Those with pods in members come first, the largest of them before the others.
 */
export function workloadsOf(
  { pods = [], placements = [] }: PageFacts,
  place: PlaceOf,
  remembered: Iterable<string> = [],
): Workload[] {
  const byKey = podsBy(
    pods.filter((pod) => !isFinished(pod)),
    keyOfWorkload,
  );
  const written = new Map<string, WorkloadPlacement>();
  for (const raw of placements) {
    const parsed = parseWorkloadPlacement(raw);
    if (parsed === undefined) continue;
    const { kind, name } = parsed.spec.workload;
    written.set(`${parsed.metadata.namespace ?? ''}/${kind}/${name}`, parsed);
  }
  const keys = new Set([
    ...written.keys(),
    ...[...byKey].filter(([, its]) => its.some((pod) => !['', LOCAL].includes(place(pod)))).map(([key]) => key),
    ...[...remembered].filter((key) => byKey.has(key)),
  ]);
  return [...keys]
    .map((key) => workload(key, byKey.get(key) ?? [], written.get(key), place))
    .toSorted((a, b) => away(b.view) - away(a.view) || (a.view.key < b.view.key ? -1 : 1));
}

function workload(
  key: string,
  pods: readonly Pod[],
  placement: WorkloadPlacement | undefined,
  place: PlaceOf,
): Workload {
  const [namespace = '', kind = '', ...rest] = key.split('/');
  const { policy } = placement?.status ?? {};
  const view = {
    key,
    namespace,
    kind,
    name: rest.join('/'),
    policy: policy === undefined ? '' : `${policy.kind} ${policy.name}`,
    ...placesOf(pods, place),
  };
  return { view, pods, placement };
}

function placesOf(pods: readonly Pod[], place: PlaceOf): Places {
  const counts = new Map<string, number>();
  for (const pod of pods) counts.set(place(pod), (counts.get(place(pod)) ?? 0) + 1);
  const waiting = counts.get('') ?? 0;
  counts.delete('');
  const places = [...counts]
    .map(([cluster, count]) => ({ cluster, pods: count }))
    .toSorted((a, b) => (a.cluster === LOCAL || (b.cluster !== LOCAL && a.cluster < b.cluster) ? -1 : 1));
  return { places, waiting };
}

const away = ({ places }: Places): number =>
  places.reduce((sum, { cluster, pods }) => sum + (cluster === LOCAL ? 0 : pods), 0);

/**
 * `namespace/Kind/name` of what a pod belongs to. A ReplicaSet's name is that of its Deployment and the hash that its pods carry, so
 * nothing has to be read for it.
 */
function keyOfWorkload(pod: Pod): string {
  const { namespace = '', labels = {}, name } = pod.metadata;
  const released = releasedFrom(pod);
  const controller = controllerOf(pod);
  const owner =
    released === undefined
      ? controller === undefined
        ? undefined
        : { kind: controller.kind, name: controller.name, hash: labels[TEMPLATE_HASH] }
      : { kind: 'ReplicaSet', name: released.replicaSet, hash: released.hash };
  if (owner === undefined) return `${namespace}/Pod/${name}`;
  const end = `-${owner.hash ?? ''}`;
  return owner.kind === 'ReplicaSet' && owner.hash !== undefined && owner.name.endsWith(end)
    ? `${namespace}/Deployment/${owner.name.slice(0, -end.length)}`
    : `${namespace}/${owner.kind}/${owner.name}`;
}

/** Those without a place come first, then by place and name. */
export function podViews(pods: readonly Pod[], place: PlaceOf): PodView[] {
  return pods
    .map((pod) => ({
      pod: keyOf(pod),
      place: place(pod),
      node: pod.spec.nodeName ?? '',
      phase: pod.metadata.deletionTimestamp === undefined ? (pod.status?.phase ?? 'Pending') : 'Terminating',
      since: pod.metadata.creationTimestamp ?? null,
    }))
    .toSorted((a, b) => (`${a.place}/${a.pod}` < `${b.place}/${b.pod}` ? -1 : 1));
}
