import { LOCAL } from '../../api/cluster-tiers.ts';
import { MIRRORED_CONDITION } from '../../api/marks.ts';
import { isFinished } from '../../api/pod-phase.ts';
import { memberOfNode } from '../../api/provider-id.ts';
import { holdsResources, podRequests } from '../../capacity/pod-requests.ts';
import { addTo, parseAmounts, type Amounts } from '../../kube/amounts.ts';
import { conditionOf, isReady } from '../../kube/conditions.ts';
import type { Node, Pod } from '../../kube/core-v1.ts';
import { clusterSummaries, roomOf, type ClusterSummary } from '../cluster-summary.ts';
import type { Overview } from '../overview.ts';
import type { PageFacts } from './page-facts.ts';
import { podsBy, type PlaceOf } from './pod-places.ts';
import type { Fill, PlaceView, PodCounts } from './view.ts';

/** The cluster itself, then its members by name, each with what is there and what it has room for. */
export function placeViews(facts: PageFacts, place: PlaceOf, movesPaused: Overview['movesPaused']): PlaceView[] {
  const { members = [], nodes, pods, namespace } = facts;
  const byPlace = pods === undefined ? undefined : podsBy(pods, place);
  // Pods of one namespace do not say what a place has left.
  const asked = namespace === '' ? byPlace : undefined;
  const summaries = clusterSummaries({ members, nodes, pods: undefined });
  return [
    local(nodes, byPlace?.get(LOCAL) ?? (byPlace === undefined ? undefined : []), asked !== undefined),
    ...summaries.map((one) => ({
      ...member(one, byPlace, asked),
      movesPaused: movesPaused.find(({ cluster }) => cluster === one.name)?.message ?? '',
    })),
  ];
}

type PodsByPlace = ReadonlyMap<string, readonly Pod[]> | undefined;

function member(summary: ClusterSummary, byPlace: PodsByPlace, asked: PodsByPlace): Omit<PlaceView, 'movesPaused'> {
  const { name, ready, cordoned, version, region, provider, nodes, offered, reason, message } = summary;
  const its = byPlace === undefined ? undefined : (byPlace.get(name) ?? []);
  return {
    name,
    isLocal: false,
    state: ready === 'True' ? (cordoned ? 'cordoned' : 'ready') : ready === 'False' ? 'notReady' : 'unknown',
    why: reason === '' ? '' : `${reason}: ${message}`,
    version,
    region,
    provider,
    nodes,
    ...(offered === null || asked === undefined
      ? { cpu: null, memory: null }
      : fills(requestsOf(asked.get(name) ?? []), offered)),
    pods: its === undefined ? null : counts(its),
  };
}

function local(nodes: readonly Node[] | undefined, pods: readonly Pod[] | undefined, knowsAll: boolean): PlaceView {
  const own = nodes?.filter((node) => memberOfNode(node) === undefined);
  const ready = own?.filter(isReady) ?? [];
  const offered = new Map<string, bigint>();
  for (const { status } of ready) addTo(offered, parseAmounts(status?.allocatable));
  const isKnown = own !== undefined && pods !== undefined && knowsAll;
  return {
    name: LOCAL,
    isLocal: true,
    state: own === undefined ? 'unknown' : own.length > 0 && ready.length === 0 ? 'notReady' : 'ready',
    why:
      own === undefined || ready.length === own.length
        ? ''
        : `${own.length - ready.length} of ${own.length} nodes are not ready`,
    movesPaused: '',
    version: newest((own ?? []).map(({ status }) => status?.nodeInfo?.kubeletVersion ?? '')),
    region: null,
    provider: null,
    nodes: own === undefined ? null : { ready: ready.length, wanted: own.length },
    ...(isKnown ? fills(requestsOf(pods), roomOf(offered)) : { cpu: null, memory: null }),
    pods: own === undefined || pods === undefined ? null : counts(pods),
  };
}

function newest(versions: readonly string[]): string | null {
  return versions.toSorted().at(-1) ?? null;
}

function requestsOf(pods: readonly Pod[]): Amounts {
  const sum = new Map<string, bigint>();
  for (const pod of pods.filter(holdsResources)) addTo(sum, podRequests(pod));
  return sum;
}

function fills(asked: Amounts, offered: { cpu: number; memory: number }): { cpu: Fill; memory: Fill } {
  const sum = roomOf(asked);
  return {
    cpu: { asked: sum.cpu, offered: offered.cpu },
    memory: { asked: sum.memory, offered: offered.memory },
  };
}

function counts(pods: readonly Pod[]): PodCounts {
  const found: PodCounts = { running: 0, starting: 0, held: 0, leaving: 0 };
  for (const pod of pods) {
    if (isFinished(pod)) continue;
    if (pod.metadata.deletionTimestamp !== undefined) found.leaving += 1;
    else if (pod.status?.phase === 'Running') found.running += 1;
    else found.starting += 1;
    if (isHeld(pod)) found.held += 1;
  }
  return found;
}

function isHeld(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp === undefined && conditionOf(pod, MIRRORED_CONDITION)?.status === 'False';
}
