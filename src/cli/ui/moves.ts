import { releasedFrom } from '../../api/released.ts';
import { parseWorkloadMigration } from '../../api/workload-migration.ts';
import { parseWorkloadRebalancer } from '../../api/workload-rebalancer.ts';
import type { WorkloadPlacement } from '../../api/workload-placement.ts';
import { conditionOf } from '../../kube/conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { keyFor, keyOf } from '../../kube/object.ts';
import { clusterInWords } from '../../api/cluster.ts';
import { isUnderWay } from '../../placement/migrating.ts';
import { eventTime } from '../why/pod-facts.ts';
import type { PageFacts } from './page-facts.ts';
import type { PlaceOf } from './pod-places.ts';
import type { MoveView, NewsView } from './view.ts';

/** What is on its way: pods that are evicted, pods that wait for another one in their place, workloads that are rebalanced or migrated. */
export function movesUnderWay({ pods = [], rebalancers = [], migrations = [] }: PageFacts, place: PlaceOf): MoveView[] {
  const found = pods.flatMap((pod): MoveView[] => {
    const { deletionTimestamp = null } = pod.metadata;
    const disrupted = conditionOf(pod, 'DisruptionTarget');
    const move = { what: keyOf(pod), isPod: true, pods: 1, from: place(pod) };
    if (deletionTimestamp !== null && disrupted?.status === 'True') {
      const { reason = '', message = '' } = disrupted;
      return [{ ...move, state: 'leaving', says: words(reason, message), since: deletionTimestamp }];
    }
    const released = deletionTimestamp === null ? releasedFrom(pod) : undefined;
    if (released === undefined) return [];
    const says =
      released.lost === true
        ? 'It waits for its member, which was lost: onHeal says then whether it stays, or the pod that came in its place.'
        : 'It runs on until another pod is Ready in its place.';
    return [{ ...move, state: 'replacing', says, since: released.at }];
  });
  return newestFirst([...found, ...rebalancers.flatMap(rebalanced), ...migrations.flatMap(migrated)]);
}

function rebalanced(raw: KubeObject): MoveView[] {
  const parsed = parseWorkloadRebalancer(raw);
  if (!('rebalancer' in parsed)) return [];
  const { metadata, spec, status = {} } = parsed.rebalancer;
  if (status.finishTime !== undefined || spec.dryRun) return [];
  const done = new Set(
    (status.observedWorkloads ?? []).filter(({ result }) => result !== undefined).map((one) => key(one.workload)),
  );
  return spec.workloads
    .filter((one) => !done.has(key(one)))
    .map((one) => ({
      state: 'rebalancing',
      what: key(one),
      isPod: false,
      pods: 0,
      from: '',
      says: `WorkloadRebalancer ${metadata.name} looks at it; one pod moves at a time.`,
      since: metadata.creationTimestamp ?? null,
    }));
}

function migrated(raw: KubeObject): MoveView[] {
  const parsed = parseWorkloadMigration(raw);
  if (!('migration' in parsed)) return [];
  const { metadata, spec, status = {} } = parsed.migration;
  if (!isUnderWay(parsed.migration)) return [];
  const where = spec.to === undefined ? 'elsewhere' : `to ${clusterInWords(spec.to)}`;
  return (status.workloads ?? [])
    .filter(({ reason, waiting, moving }) => reason !== 'LeftBehind' && waiting + moving > 0)
    .map(({ workload, pods, moved, waiting, moving, message = '' }) => ({
      state: 'migrating',
      what: `${metadata.namespace ?? ''}/${workload.kind}/${workload.name}`,
      isPod: false,
      pods: waiting + moving,
      from: spec.from,
      says: `WorkloadMigration ${metadata.name} moves it ${where}: ${moved} of ${pods} have left. ${message}`.trim(),
      since: metadata.creationTimestamp ?? null,
    }));
}

const key = ({ namespace, kind, name }: { namespace: string; kind: string; name: string }): string =>
  `${namespace}/${kind}/${name}`;

/** What was moved lately, as WorkloadPlacements remember it. */
export function movesOf({ metadata, spec: { workload }, status = {} }: WorkloadPlacement): MoveView[] {
  const what = keyFor(metadata.namespace, `${workload.kind}/${workload.name}`);
  return newestFirst(
    (status.moves ?? []).map(({ from, count, last, strategy, message }) => ({
      state: 'moved',
      what,
      isPod: false,
      pods: count,
      from,
      says: words(strategy, message),
      since: last,
    })),
  );
}

export function newestFirst<T extends { since: string | null }>(moves: readonly T[]): T[] {
  return moves.toSorted((a, b) => ((a.since ?? '') < (b.since ?? '') ? 1 : -1));
}

/** What happened to members, the newest first. */
export function news({ events }: PageFacts): NewsView[] | null {
  if (events === undefined) return null;
  return events
    .map((event) => ({
      cluster: event.involvedObject.name ?? '',
      reason: event.reason ?? '',
      says: event.message ?? '',
      isWarning: event.type === 'Warning',
      at: eventTime(event) === '' ? null : eventTime(event),
    }))
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1));
}

function words(reason: string, message: string): string {
  return reason === '' || message === '' ? `${reason}${message}` : `${reason}: ${message}`;
}
