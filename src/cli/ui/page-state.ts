import { timestamp } from '../../kube/timestamps.ts';
import { LOCAL } from '../../api/cluster-tiers.ts';
import { overview } from '../overview.ts';
import { movesOf, movesUnderWay, newestFirst, news } from './moves.ts';
import type { History } from './history.ts';
import type { PageFacts } from './page-facts.ts';
import { placeViews } from './places.ts';
import { placeOf, type PlaceOf } from './pod-places.ts';
import { safetyViews } from './safety.ts';
import type { PageState, WorkloadDetail } from './view.ts';
import { podViews, workloadsOf, type Workload } from './workloads.ts';

/** Of one list; people search in longer ones with kubectl. */
const MOST_WORKLOADS = 200;
const MOST_MOVES = 50;
const MOST_NEWS = 30;
const MOST_PODS = 200;

/** One look, worked out. */
export interface Look {
  state: PageState;
  workloads: readonly Workload[];
  place: PlaceOf;
}

/** What the page shows of these facts. @param now wall clock in ms. */
export function lookAt(facts: PageFacts, history: History, now: number): Look {
  const { context, namespace, members, nodes, pods, missing } = facts;
  const place = placeOf(facts);
  const workloads = workloadsOf(facts, place, history.keys());
  const inMembers = pods?.filter((pod) => !['', LOCAL].includes(place(pod)));
  const unbound = pods?.filter(({ spec, status }) => (spec.nodeName ?? '') === '' && status?.phase === 'Pending');
  const found = overview(
    { ...facts, fleet: { members: members ?? [], nodes, pods: inMembers }, unbound, stays: undefined },
    now,
  );
  const state: PageState = {
    at: timestamp(now),
    context,
    namespace,
    missing: [...missing],
    trouble: '',
    managers:
      found.managers?.map((one) => ({
        name: one.name,
        members: one.members.length,
        components: one.components,
      })) ?? null,
    places: placeViews(facts, place, found.movesPaused),
    safety: safetyViews(found, {
      all: pods,
      workloads,
      knowsMembers: members !== undefined,
      knowsPlacements: facts.placements !== undefined,
    }),
    underWay: movesUnderWay(facts, place).slice(0, MOST_MOVES),
    lately: newestFirst(
      workloads.flatMap(({ placement }) => (placement === undefined ? [] : movesOf(placement))),
    ).slice(0, MOST_MOVES),
    news: news(facts)?.slice(0, MOST_NEWS) ?? null,
    workloads:
      pods === undefined && facts.placements === undefined
        ? null
        : workloads.slice(0, MOST_WORKLOADS).map(({ view }) => view),
    moreWorkloads: Math.max(0, workloads.length - MOST_WORKLOADS),
  };
  return { state, workloads, place };
}

/** One workload close up; undefined: there is none of that key. */
export function closeUp(
  { state: { at }, workloads, place }: Look,
  history: History,
  key: string,
): WorkloadDetail | undefined {
  const found = workloads.find(({ view }) => view.key === key);
  if (found === undefined) return undefined;
  const { view, pods, placement } = found;
  const { clusters = [], lastDecision, avoided = [] } = placement?.status ?? {};
  return {
    at,
    workload: view,
    targets: clusters.flatMap(({ name, target }) => (target === undefined ? [] : [{ cluster: name, pods: target }])),
    history: [...(history.get(key) ?? [])],
    pods: podViews(pods, place).slice(0, MOST_PODS),
    morePods: Math.max(0, pods.length - MOST_PODS),
    decision: lastDecision === undefined ? null : { at: lastDecision.time, says: lastDecision.message },
    avoided: avoided.map(({ cluster, reason, message, until }) => ({ cluster, says: `${reason}: ${message}`, until })),
    moves: placement === undefined ? [] : movesOf(placement),
  };
}
