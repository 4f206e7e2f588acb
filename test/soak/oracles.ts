import type { Cluster as LiveCluster } from '../../hack/cluster.ts';
import type { Cluster } from '../../src/api/cluster.ts';
import { LOCAL } from '../../src/api/cluster-tiers.ts';
import { GANG_GATE, GANG_LABEL, GANG_SIZE_ANNOTATION, UID_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Room } from '../../src/placement/candidates.ts';
import type { PlacementFacts } from '../../src/placement/decision.ts';
import type { Tier } from '../../src/placement/compiled-placement.ts';
import { placeInWords } from '../../src/placement/placement-report.ts';
import { placementFor } from '../../src/placement/gang-order.ts';
import { nextPlace, refreshPlan } from '../../src/placement/next-place.ts';
import { replicasOf, revisionOf, rolloutOf, type TypedObject, workloadOf } from '../../src/placement/owner-chain.ts';
import { ofRevision } from '../../src/placement/workload.ts';
import { isReady } from '../fixtures/live-pods.ts';
import type { History, Life } from './history.ts';
import { CHEATS } from './lab.ts';
import { Rooms } from './rooms.ts';
import { chainOf, factsOf, isFinished, isOfDaemonSet, placeOf, type State } from './state.ts';
import { NAMESPACES } from './workloads.ts';

/** What is not as it should be, in words, and how much was looked at. */
export interface Verdict {
  readonly wrong: string[];
  readonly looked: number;
}

const nameOf = ({ metadata }: { metadata: { namespace?: string; name: string } }): string =>
  `${metadata.namespace ?? ''}/${metadata.name}`;
const inWords = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .filter(([, count]) => count > 0)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');

/** Every pod without a node has a reason that holds by the real nodes and the pure functions, and every other one runs. */
export function waiting(state: State): Verdict {
  const rooms = new Rooms(state);
  const there = state.pods.filter((pod) => pod.metadata.deletionTimestamp === undefined && !isFinished(pod));
  const wrong = there.flatMap((pod) => {
    const why = pod.spec.nodeName === undefined ? whyItNeedNotWait(state, rooms, pod) : whyItShouldRun(state, pod);
    return why === undefined ? [] : [`${nameOf(pod)} ${why}`];
  });
  return { wrong, looked: there.filter(({ spec }) => spec.nodeName === undefined).length };
}

function whyItShouldRun(state: State, { metadata, spec, status }: Pod): string | undefined {
  if (status?.phase === 'Running') return undefined;
  const cluster = placeOf(state, spec.nodeName ?? '');
  const place = state.clusters.find(({ name }) => name === cluster);
  const mirrored = status?.conditions?.find(({ type }) => type === 'spillway.dev/Mirrored');
  // What a tenant asked of the member's nodes goes beyond what the pod itself tolerates.
  const isRefused = metadata.namespace === CHEATS && mirrored?.reason === 'InvalidMemberConstraints';
  if (place?.unavailable !== undefined || isRefused) return undefined;
  const copy = inWordsOfMember(state, cluster, metadata.uid);
  return `is ${status?.phase ?? 'nothing'} on ${spec.nodeName ?? ''}: ${mirrored?.reason ?? ''} ${mirrored?.message ?? ''}; ${copy}`;
}

/** What becomes of its copy, as the member tells it. */
function inWordsOfMember({ inMembers }: State, member: string, uid = ''): string {
  const { pods = [] } = inMembers.get(member) ?? {};
  const copy = pods.find(({ metadata }) => metadata.labels?.[UID_LABEL] === uid);
  if (copy === undefined) return 'no copy is there';
  const { spec, status, metadata } = copy;
  const told = status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? 'nothing was told';
  const since = metadata.creationTimestamp ?? '';
  return `its copy of ${since} is ${status?.phase ?? 'nothing'} on ${spec.nodeName ?? 'no node'}: ${told}`;
}

function whyItNeedNotWait(state: State, rooms: Rooms, pod: Pod): string | undefined {
  const room = rooms.forPod(pod);
  const fits = (cluster: string): number => room.get(cluster)?.fits ?? 0;
  if ((pod.spec.schedulingGates ?? []).some(({ name }) => name === GANG_GATE)) return gangWaits(state, pod, fits);
  const facts = factsOf(state, pod, room);
  if (facts === undefined) {
    return fits(LOCAL) > 0 ? `waits though ${fits(LOCAL)} such pods fit on the host` : undefined;
  }
  const { allowed } = nextPlace({ ...facts, placement: placementFor(pod, facts) });
  if (allowed.length === 0) return undefined;
  const told = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? 'nothing was told';
  return `waits though it may go to ${allowed.map((place) => `${place.cluster} (${placeInWords(place)}; ${fits(place.cluster)} fit)`).join()}: ${told}`;
}

function gangWaits(state: State, pod: Pod, fits: (cluster: string) => number): string | undefined {
  const gang = state.pods.filter(
    ({ metadata }) =>
      metadata.namespace === pod.metadata.namespace &&
      metadata.deletionTimestamp === undefined &&
      metadata.labels?.[GANG_LABEL] === pod.metadata.labels?.[GANG_LABEL],
  );
  const size = Number(pod.metadata.annotations?.[GANG_SIZE_ANNOTATION]);
  if (gang.length < size) return undefined;
  const places = gang.flatMap(({ spec }) => (spec.nodeName === undefined ? [] : placeOf(state, spec.nodeName)));
  const [at] = places;
  if (at !== undefined) {
    // Those that have their place may be where there is no room for the others.
    const left = gang.length - places.length;
    const isUsable = state.clusters.some(({ name, unavailable }) => name === at && unavailable === undefined);
    const isLate = isUsable && fits(at) >= left;
    return isLate ? `waits at the gate though others of its gang are in ${at}, with room for ${fits(at)}` : undefined;
  }
  const place = state.clusters.find(({ name, unavailable }) => unavailable === undefined && fits(name) >= size);
  return place === undefined ? undefined : `waits at the gate though ${place.name} has room for ${fits(place.name)}`;
}

/** Every workload has as many pods as it wants, be it that some wait: what is not there is in no wrong place. */
export function whole(state: State): Verdict {
  const there = new Map<string, Pod[]>();
  for (const pod of state.pods) {
    if (pod.metadata.deletionTimestamp !== undefined || isFinished(pod)) continue;
    const [, ...owners] = chainOf(state, pod);
    for (const { metadata } of owners) there.set(metadata.uid ?? '', [...(there.get(metadata.uid ?? '') ?? []), pod]);
  }
  const wanting = [...state.owners.values()].filter(
    ({ kind, metadata }) =>
      WHOLE_KINDS.includes(kind) &&
      WHOLE_NAMESPACES.has(metadata.namespace ?? '') &&
      !('deletionTimestamp' in metadata),
  );
  const wrong = wanting.flatMap((object) => {
    const own = there.get(object.metadata.uid ?? '') ?? [];
    const wanted = replicasOf(object) ?? 0;
    if (own.length >= wanted || (comesInTurn(object) && own.some((pod) => !isReady(pod)))) return [];
    return [`${object.kind} ${nameOf(object)} has ${own.length} pods of ${wanted}`];
  });
  return { wrong, looked: wanting.length };
}

/** Of tenants who cheat a quota holds pods back. */
const WHOLE_NAMESPACES = new Set(Object.keys(NAMESPACES));
const WHOLE_KINDS = ['Deployment', 'ReplicaSet', 'StatefulSet', 'ReplicationController'];

/** It makes its next pod when the last one is Ready. */
function comesInTurn(object: TypedObject): boolean {
  const { spec } = object as { spec?: { podManagementPolicy?: string } };
  return object.kind === 'StatefulSet' && spec?.podManagementPolicy !== 'Parallel';
}

/** A workload, or a pod without one, and the facts of one of its pods of the current revision. */
interface Divided {
  readonly object: TypedObject;
  readonly pod: Pod;
  readonly replicas: number;
  readonly facts: PlacementFacts;
  /** Pods of the revision without a place. */
  readonly open: number;
  /** All that are there, of whatever revision. */
  readonly own: readonly Pod[];
}

function* dividedIn(state: State): Generator<Divided> {
  const samples = new Map<string, Pod>();
  const rollout = (pod: Pod): number => rolloutOf(chainOf(state, pod)[1] ?? pod);
  const there = state.pods.filter((pod) => pod.metadata.deletionTimestamp === undefined && !isFinished(pod));
  for (const pod of there) {
    const uid = workloadOf(chainOf(state, pod)).object.metadata.uid ?? '';
    const known = samples.get(uid);
    if (known === undefined || rollout(pod) > rollout(known)) samples.set(uid, pod);
  }
  for (const pod of samples.values()) {
    const { object, replicas: wanted } = workloadOf(chainOf(state, pod));
    const facts = factsOf(state, pod, new Map());
    if (facts === undefined || isOfDaemonSet(state, object.metadata.uid)) continue;
    // A made-up owner asks for no number of pods, and its pod is under rules all the same.
    const replicas = wanted ?? 1;
    const own = there.filter((one) => workloadOf(chainOf(state, one)).object.metadata.uid === object.metadata.uid);
    const open = own.filter((one) => one.spec.nodeName === undefined && revisionOf(one) === revisionOf(pod)).length;
    yield { object, pod, replicas, facts, open, own };
  }
}

/** `looked`: workloads whose pods were compared, of those `divisible` that could be in a wrong place at all. */
export interface DivisionVerdict extends Verdict {
  readonly divisible: number;
  /** Plans of fixed numbers that were compared. */
  readonly plans: number;
  /** Divisions by room that were worked out from what the nodes have. */
  readonly byRoom: number;
}

/**
 * Where pods are is what the division says, worked out from nothing. `disturbed`: workloads, by UID, whose pods came while rules or
 * clusters were others, and are not moved for that; of these only the plan is compared. `changed`: those divided by room of which
 * it is not known any more what room there was; these are only where their own WorkloadPlacement says. `dividedOtherwise`: those that got pods while
 * clusters were others. Preferences without `rebalance` keep what they gave then, through roll-outs, too: their own plan counts.
 */
export function divisions(
  state: State,
  disturbed: ReadonlyMap<string, string>,
  changed: ReadonlySet<string>,
  dividedOtherwise: ReadonlySet<string>,
): DivisionVerdict {
  const rooms = new Rooms(state);
  const wrong: string[] = [];
  let [divisible, looked, plans, byRoom] = [0, 0, 0, 0];
  for (const { object, pod, replicas, facts, open, own } of dividedIn(state)) {
    if (!canBeWrong(facts, replicas)) continue;
    divisible += 1;
    const { division } = facts.placement;
    const isFixed = division.kind === 'static' || (division.kind === 'preferences' && division.waitWhenFull);
    const here = ofRevision(facts.workload.pods, facts.pod.revision);
    const told = state.placements.get(facts.workload.uid ?? '')?.status;
    const targets = new Map((told?.clusters ?? []).map(({ name, target = 0 }) => [name, target]));
    const about = `${object.kind} ${nameOf(object)} of ${replicas}`;
    if (isFixed) {
      plans += 1;
      const plan = inWords(refreshPlan(facts).targets ?? new Map());
      if (inWords(targets) !== plan)
        wrong.push(`${about}: its WorkloadPlacement says ${inWords(targets)}, not ${plan}`);
    }
    if (disturbed.has(object.metadata.uid ?? '')) continue;
    looked += 1;
    wrong.push(...outside(facts, here).map((what) => `${about}: ${what}`));
    if (division.kind === 'none')
      wrong.push(...tooManyInTier(facts, here, replicas).map((what) => `${about}: ${what}`));
    else if (isFixed) {
      const keeps =
        division.kind === 'preferences' && !division.rebalance && dividedOtherwise.has(object.metadata.uid ?? '');
      const remembered = keeps ? facts.remembered : undefined;
      const bare = { ...facts, workload: { ...facts.workload, pods: new Map() }, remembered };
      const exact = refreshPlan(bare).targets ?? new Map<string, number>();
      const isOver = [...here].some(([name, count]) => count > (exact.get(name) ?? 0));
      const { time = '', message = '' } = told?.lastDecision ?? {};
      if (isOver)
        wrong.push(
          `${about}, ${open} waiting: ${inWords(here)}, not ${inWords(exact)}; decided ${time}: ${message}; ${own.map(inShort).join(', ')}`,
        );
    } else if (open === 0) {
      if (inWords(here) !== inWords(targets))
        wrong.push(`${about}: ${inWords(here)}, and it was to be ${inWords(targets)}`);
      if (changed.has(object.metadata.uid ?? '')) continue;
      byRoom += 1;
      const exact = inWords(byRoomFromNothing(facts, rooms.forPod(pod), here));
      if (inWords(here) !== exact) wrong.push(`${about}: ${inWords(here)}, and by the room of the nodes ${exact}`);
    }
  }
  return { wrong, looked, divisible, plans, byRoom };
}

/** Which revision it is of, where it is, and since when. */
function inShort(pod: Pod): string {
  const { metadata, spec, status } = pod;
  const bound = status?.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime ?? '';
  return `${revisionOf(pod) ?? ''} on ${spec.nodeName ?? 'no node'} (made ${metadata.creationTimestamp ?? ''}, bound ${bound})`;
}

/** Whether a pod of it could be where it must not: what may be anywhere, in any number, is in no wrong place. */
function canBeWrong({ placement, clusters }: PlacementFacts, replicas: number): boolean {
  const [{ tiers }] = placement.groups;
  const isLimited = tiers.some(({ max }) => max(replicas) < replicas);
  return placement.division.kind !== 'none' || isLimited || clusters.some((cluster) => isOutside(tiers, cluster));
}

const isOutside = (tiers: readonly Tier[], cluster: Cluster): boolean =>
  tiers.every(({ whyNot }) => whyNot(cluster) !== undefined);

/** Pods where no tier of the policy lets them be. */
function outside({ placement, clusters }: PlacementFacts, here: ReadonlyMap<string, number>): string[] {
  const [{ tiers }] = placement.groups;
  return clusters
    .filter((cluster) => (here.get(cluster.name) ?? 0) > 0 && isOutside(tiers, cluster))
    .map(({ name }) => `${here.get(name) ?? 0} in ${name}, which its policy does not name`);
}

/** The division by the room that was there before its own pods came, as nobody else takes of what they ask for. */
function byRoomFromNothing(
  facts: PlacementFacts,
  rooms: ReadonlyMap<string, Room>,
  here: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const before = [...rooms].map(
    ([name, room]) => [name, { ...room, fits: (room.fits ?? 0) + (here.get(name) ?? 0) }] as const,
  );
  const workload = { ...facts.workload, pods: new Map() };
  const bare = { ...facts, workload, rooms: new Map(before), remembered: undefined, avoided: [] };
  return nextPlace(bare).plan.targets ?? new Map<string, number>();
}

function tooManyInTier(
  { placement, clusters }: PlacementFacts,
  here: ReadonlyMap<string, number>,
  replicas: number,
): string[] {
  const [group] = placement.groups;
  return group.tiers.flatMap(({ max }, index) => {
    const own = clusters.filter(
      (cluster) => group.tiers.findIndex(({ whyNot }) => whyNot(cluster) === undefined) === index,
    );
    const count = own.reduce((sum, { name }) => sum + (here.get(name) ?? 0), 0);
    return count > max(replicas) ? [`${count} in tier ${index}, which may have ${max(replicas)}`] : [];
  });
}

const PREEMPTED_BY = /^Preempted by (?:a )?pod ([0-9a-f-]{36}) on node (\S+)/;

/** Victims of the scheduler, by the UID of the pod that they made way for. Events go after ten minutes, so they are collected. */
export async function collectPreemptions(host: LiveCluster, known: Map<string, Set<string>>): Promise<void> {
  const path = `/api/v1/events?fieldSelector=${encodeURIComponent('reason=Preempted')}`;
  const { items } = (await host.api.call('GET', path)) as {
    items: { involvedObject: { uid?: string }; message?: string }[];
  };
  for (const { involvedObject, message = '' } of items) {
    const [, uid] = PREEMPTED_BY.exec(message) ?? [];
    if (uid === undefined) throw new Error(`what does this say? ${message}`);
    known.set(uid, (known.get(uid) ?? new Set()).add(involvedObject.uid ?? ''));
  }
}

/**
 * Each eviction brought something: the more important pod is bound, or the pod that came instead is, elsewhere. `backAt`: when the member that
 * was lost meanwhile was back. `behind`: pods that others made way for behind virtual nodes.
 */
export function evictions(
  state: State,
  { lives }: History,
  preemptions: ReadonlyMap<string, ReadonlySet<string>>,
  { since, backAt }: { since: number; backAt: number | undefined },
): Verdict & { moves: number; behind: number } {
  const wrong: string[] = [];
  for (const [uid, victims] of preemptions) {
    const life = lives.get(uid);
    if (life === undefined) wrong.push(`pods were evicted for ${uid}, which never was`);
    else if (life.node === undefined && !life.gone)
      wrong.push(`${victims.size} pods were evicted for ${life.namespace}/${life.name}, which waits all the same`);
    for (const victim of victims) {
      const { priority = 0, namespace = '', name = '' } = lives.get(victim) ?? {};
      if (life !== undefined && priority >= life.priority)
        wrong.push(`${namespace}/${name} was evicted for ${life.name}, which is no more important`);
    }
  }
  const moved = [...lives.values()].filter(({ disrupted }) => disrupted?.reason === 'EvictionByEvictionAPI');
  const open = new Set(
    state.pods
      .filter(({ spec, metadata }) => spec.nodeName === undefined && metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid),
  );
  // A gang that gives back what it has gains nothing by that, and others change again later.
  const lately = moved.filter(({ disrupted, namespace }) => (disrupted?.at ?? 0) >= since && namespace !== 'gangs');
  for (const life of lately) {
    const { namespace, name, node, owner } = life;
    const at = life.disrupted?.at ?? 0;
    // Any pod of the workload that waited before may have taken the place.
    const isFilled = [...lives.values()].some((other) => other.owner === owner && (other.boundAt ?? 0) >= at);
    if (owner !== undefined && open.has(owner) && !isFilled)
      wrong.push(`${namespace}/${name} was moved out of ${node ?? ''}, and another one waits`);
    // Who moves a pod right before its member is back cannot know that its place is open again.
    if (backAt !== undefined && Math.abs(at - backAt) < 10_000) continue;
    const back = [...lives.values()].find((other) => isBack(state, life, other));
    if (back !== undefined)
      wrong.push(`${namespace}/${name} was moved out of ${node ?? ''}, and ${back.name} came there`);
  }
  const isBehind = (uid: string): boolean => {
    const node = lives.get(uid)?.node;
    return node !== undefined && placeOf(state, node) !== LOCAL;
  };
  const behind = [...preemptions.keys()].filter(isBehind).length;
  return { wrong, looked: preemptions.size, moves: moved.length, behind };
}

/** Whether the other was made in place of the one that was moved, while that was still going on, and went to the same cluster. */
function isBack(state: State, moved: Life, { owner, createdAt, node }: Life): boolean {
  const at = moved.disrupted?.at ?? 0;
  const isNext = owner !== undefined && owner === moved.owner && createdAt >= at - 1_000 && createdAt < at + 3_000;
  return isNext && node !== undefined && placeOf(state, node) === placeOf(state, moved.node ?? '');
}

/** No pod that has to stay on the host ever left it, whatever a tenant wrote. */
export function escapes(state: State, { lives }: History): Verdict {
  const bound = [...lives.values()].filter(
    ({ namespace, node, owner }) =>
      (namespace === CHEATS || namespace === 'home') && node !== undefined && !isOfDaemonSet(state, owner),
  );
  const wrong = bound
    .filter(({ node }) => placeOf(state, node ?? '') !== LOCAL)
    .map(({ namespace, name, node }) => `${namespace}/${name} went to ${node ?? ''}`);
  return { wrong, looked: bound.length };
}
