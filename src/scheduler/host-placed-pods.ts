import { clusterInWords } from '../api/cluster.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import { TEMPLATE_HASH } from '../api/released.ts';
import type { WorkloadMigration } from '../api/workload-migration.ts';
import { WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import type { Pod } from '../kube/core-v1.ts';
import { splitKey } from '../kube/object.ts';
import { controllerKeyOf, ownerKeyOf } from '../kube/owner-references.ts';
import { pause } from '../kube/timers.ts';
import { avoid } from '../placement/avoided.ts';
import type { Avoided, RefusedThere } from '../placement/avoided.ts';
import { betterPlace } from '../placement/better-place.ts';
import type { BetterPlace, Displacement, PlaceUnknown } from '../placement/better-place.ts';
import type { Migrating } from '../placement/migrating.ts';
import type { Rules } from '../placement/policy-selection.ts';
import { storedMoves } from '../placement/moves.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import type { KeptOwner, TypedObject } from '../placement/owner-chain.ts';
import type {
  ElsewhereQuestion,
  GoingTogether,
  MoveRecord,
  MoveRules,
  NoPlace,
  NoPlaceTogether,
  PlacedMember,
  PlacedPods,
  PlacedPodsHandlers,
  PodRefusal,
  SurgingSet,
} from '../placement/placed-pods.ts';
import { refusalInWords } from '../placement/placement-refusal.ts';
import { successorOf } from '../placement/refused-pod.ts';
import type { SupposedMove } from '../placement/supposed-moves.ts';
import type { StuckPod } from './coming-pods.ts';
import type { HostView } from './host-view.ts';
import { memberRefusal, showsRefusal } from './member-refusals.ts';
import type { MigrationCache } from './migration-cache.ts';
import type { MigrationFit } from './migration-fit.ts';
import type { MemberFit } from './member-fit.ts';
import { nextPod } from './next-of-set.ts';
import { placedMember } from './placed-member.ts';
import type { PlacementQuestions } from './placement-questions.ts';
import type { PlacementStore } from './placement-store.ts';
import type { RoomBeside } from './room-beside.ts';
import { askAboutSuccessor } from './successor-question.ts';
import { whyRulesNotYet, whyRulesUnknown } from './unread-owner.ts';
import { controllersOf } from './workload-view.ts';
import type { WorkloadState } from './workload-state.ts';

/** Pods of DaemonSets are for their nodes, and each Job of a CronJob is a workload of its own. */
const OWN_NO_WORKLOAD: ReadonlySet<string> = new Set(['DaemonSet', 'CronJob']);

/** For the pods that come instead of those that made way to find their places, whatever `avoidFor` says (ms). */
const LEAST_AVOIDED_MS = 120_000;
/** Poll interval while what is stored is read, in ms. */
const SYNC_POLL_MS = 100;
const NOT_COMPLETE = 'the caches are not complete yet';

export interface HostPlacedPodsOptions {
  view: HostView;
  workloads: WorkloadState;
  questions: PlacementQuestions;
  migrations: MigrationCache;
  migrationFit: MigrationFit;
  beside: RoomBeside;
  store: PlacementStore;
  /** Wall clock in ms. */
  clock: () => number;
}

/** Where pods of the host are, and where they could be: what those see who move them. */
export class HostPlacedPods implements PlacedPods {
  readonly #o: HostPlacedPodsOptions;
  /** As of a version of the nodes and members. */
  #members: { readonly version: number; readonly byName: ReadonlyMap<string, PlacedMember> } | undefined;

  constructor(options: HostPlacedPodsOptions) {
    this.#o = options;
  }

  /** What is stored is not waited for where it cannot be read: then moves are held, and each pod says why. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    const { view, store } = this.#o;
    await view.whenSynced(signal);
    const { informer } = store;
    while (!informer.hasSynced && informer.problem === undefined && !signal.aborted) await pause(SYNC_POLL_MS, signal);
  }

  get problem(): string | undefined {
    const { view, store } = this.#o;
    if (view.problem !== undefined || !view.hasSynced) return view.problem ?? NOT_COMPLETE;
    const { problem, hasSynced } = store.informer;
    if (problem === undefined && hasSynced) return undefined;
    return `${WORKLOAD_PLACEMENTS.kind}s, which say what was moved before: ${problem ?? NOT_COMPLETE}`;
  }

  get migrationsProblem(): string | undefined {
    return this.#o.migrations.problem;
  }

  members(): readonly PlacedMember[] {
    return [...this.#known().values()];
  }

  member(name: string): PlacedMember | undefined {
    return this.#known().get(name);
  }

  #known(): ReadonlyMap<string, PlacedMember> {
    const { nodes } = this.#o.view;
    if (this.#members?.version !== nodes.version) {
      const all = nodes.clusters().flatMap((cluster) => placedMember(cluster, nodes) ?? []);
      this.#members = { version: nodes.version, byName: new Map(all.map((one) => [one.name, one])) };
    }
    return this.#members.byName;
  }

  inMember(member: string): readonly Pod[] {
    const { view } = this.#o;
    return view.nodes.everyVirtualNodeOf(member).flatMap((node) => view.podsOn(node));
  }

  /** Controllers of kinds that are not followed own their pods themselves. */
  ofWorkload(key: string): readonly Pod[] {
    const { view } = this.#o;
    const workload = this.workloadByKey(key);
    if (workload === undefined) return view.podsOfKey(key);
    return controllersOf(workload, view).flatMap((controller) => view.podsOf(controller));
  }

  workloadNamed(reference: {
    apiVersion: string;
    kind: string;
    namespace: string;
    name: string;
  }): TypedObject | undefined {
    return OWN_NO_WORKLOAD.has(reference.kind) ? undefined : this.#o.view.owners.named(reference);
  }

  hasRules(pod: Pod): boolean {
    return this.#o.view.selectionOf(pod).chosen !== undefined;
  }

  whyRulesUnknown(pod: Pod): string | undefined {
    return whyRulesUnknown(pod, this.#o.view) ?? this.#whyRulesWent(pod);
  }

  whyRulesNotYet(pod: Pod): string | undefined {
    return whyRulesNotYet(pod, this.#o.view) ?? this.#whyRulesWent(pod);
  }

  /** The policy that it was under went a moment ago: it was deleted, or edited so that it chooses others. */
  #whyRulesWent(pod: Pod): string | undefined {
    const { view } = this.#o;
    const went = view.policies.wentFrom(view.owners.chainOf(pod), view.namespaceLabels(pod.metadata.namespace ?? ''));
    if (went === undefined) return undefined;
    return `${went.kind} ${went.metadata.name} was deleted, or does not choose it any more, less than a minute ago, and may come back`;
  }

  ofController(key: string): readonly Pod[] {
    return this.#o.view.podsOfKey(key);
  }

  surgingSetOf(pod: Pod): SurgingSet | undefined {
    const [, set, above] = this.#o.view.owners.chainOf(pod);
    if (set?.kind !== 'ReplicaSet' || recreates(above)) return undefined;
    const { spec: { replicas = 1, selector } = {} }: KeptOwner = set;
    return selector?.matchLabels?.[TEMPLATE_HASH] === undefined ? undefined : { key: ownerKeyOf(set), replicas };
  }

  workloadKeys(): ReadonlySet<string> {
    const { view } = this.#o;
    const controllers = new Set<string>();
    const found = new Set<string>();
    for (const pod of view.pods.values()) {
      const controller = controllerKeyOf(pod);
      if (controller === undefined || controllers.has(controller)) continue;
      controllers.add(controller);
      found.add(this.workloadKeyOf(pod));
    }
    return found;
  }

  workloadKeyOf(pod: Pod): string {
    return ownerKeyOf(workloadOf(this.#o.view.owners.chainOf(pod)).object);
  }

  clusterOf(nodeName: string): string {
    return this.#o.view.nodes.clusterOf(nodeName);
  }

  showsRefusal(pod: Pod): boolean {
    return showsRefusal(pod);
  }

  refusalOf(pod: Pod): PodRefusal | undefined {
    const found = memberRefusal(pod, this.#o.view);
    if (found === undefined) return undefined;
    const { rules: _, ...refusal } = found;
    return refusal;
  }

  workloadByKey(key: string): TypedObject | undefined {
    const found = this.#o.view.owners.byUid(splitKey(key).name);
    return found !== undefined && ownerKeyOf(found) === key ? found : undefined;
  }

  recordOf(workload: TypedObject): MoveRecord | undefined {
    const found = this.#o.store.get(workload);
    if (found === undefined || found.spec.workload.uid !== workload.metadata.uid) return undefined;
    const { namespace, name, resourceVersion } = found.metadata;
    return { namespace, name, resourceVersion, moves: storedMoves(found.status) };
  }

  avoided(workload: TypedObject): readonly Avoided[] {
    return this.#o.workloads.avoided(workload);
  }

  avoid(pod: Pod, refusal: RefusedThere): void {
    const { view, workloads } = this.#o;
    const { chain, chosen } = view.selectionOf(pod);
    if (chosen === undefined) return;
    workloads.refused(workloadOf(chain).object, refusal, avoidedForMs(chosen));
  }

  rulesOf(pod: Pod): MoveRules {
    const { view } = this.#o;
    const { chain, chosen } = view.selectionOf(pod);
    const { object, replicas } = workloadOf(chain);
    return {
      workload: object,
      replicas,
      failover: chosen?.failover,
      clusterTolerations: chosen?.placement.tolerations ?? [],
    };
  }

  /** Asked as a scheduler would ask about the pod that comes instead, beside all that need a place before it. */
  whyNotElsewhere(live: Pod, from: string, sent: readonly Pod[], more: ElsewhereQuestion = {}): NoPlace | undefined {
    const { view, workloads, clock } = this.#o;
    const { mayStay = false, wouldAvoid = [], comeBefore } = more;
    const stuck = comeBefore === undefined ? undefined : { pod: live, comeBefore };
    const next = nextPod(live, view);
    if ('unknown' in next) return { why: next.unknown, isTaken: false };
    const { chain, chosen } = view.selectionOf(next);
    if (chosen === undefined) return this.#whyNotWithoutRules(next, from, { sent, stuck, mayStay });
    const avoided = wouldAvoid.reduce(
      (all, refusal) => avoid(all, refusal, clock(), avoidedForMs(chosen)),
      workloads.avoided(workloadOf(chain).object),
    );
    const avoidedUntil = avoided.find(({ cluster }) => cluster === from)?.until;
    const successor = { next, formerUid: live.metadata.uid ?? '', chain, rules: chosen };
    const { members, decision } = askAboutSuccessor(this.#o, successor, { avoided, avoidedUntil });
    const { allowed, refusals } = decision;
    const elsewhere = allowed.filter(({ cluster }) => mayStay || cluster !== from);
    const others = refusals.filter(({ cluster }) => cluster !== from).map(refusalInWords);
    if (elsewhere.length === 0) return notNow(others);
    const fits = elsewhere.flatMap(({ cluster }) => {
      const fit = members.get(cluster);
      return fit === undefined || !hasRoom(fit.room.fits) ? [] : [[cluster, fit] as const];
    });
    if (fits.length === 0) return { why: 'it is not known whether there is room elsewhere', isTaken: true };
    return this.#whyTaken(fits, sent, stuck);
  }

  /** Undefined: one of the clusters, which would take it, has room for it beside those that come. */
  #whyTaken(
    fits: readonly (readonly [string, MemberFit])[],
    sent: readonly Pod[],
    stuck: StuckPod | undefined,
  ): NoPlace | undefined {
    const { beside } = this.#o;
    const groups = beside.comingGroups(sent, stuck);
    let isSoon = false;
    for (const [cluster, fit] of fits) {
      const left = beside.left(cluster, fit, groups);
      if (left === 'some') return undefined;
      isSoon ||= left === 'noneForSoon';
    }
    return { why: 'the room elsewhere is for pods that come before it', isTaken: isSoon };
  }

  betterPlace(
    live: Pod,
    from: string,
    counts?: (reason: Displacement) => boolean,
    after: readonly SupposedMove[] = [],
  ): BetterPlace | PlaceUnknown | undefined {
    const { view } = this.#o;
    const next = nextPod(live, view);
    if ('unknown' in next) return next;
    const { chain, chosen } = view.selectionOf(next);
    if (chosen === undefined) return undefined;
    const successor = { next, formerUid: live.metadata.uid ?? '', chain, rules: chosen };
    const { facts, decision } = askAboutSuccessor(this.#o, successor, { after });
    const found = betterPlace(facts, decision, from, counts);
    if (found === undefined) return undefined;
    const fits = facts.rooms.get(found.cluster)?.fits;
    if (fits === undefined)
      return { unknown: `it is not known whether there is room in ${clusterInWords(found.cluster)}` };
    return hasRoom(fits) ? found : undefined;
  }

  /** Where it may go by itself. */
  #whyNotWithoutRules(
    next: Pod,
    from: string,
    { sent, stuck, mayStay }: { sent: readonly Pod[]; stuck: StuckPod | undefined; mayStay: boolean },
  ): NoPlace | undefined {
    const { view, questions, clock } = this.#o;
    const now = clock();
    const pod = successorOf(next, now, now);
    const others: string[] = [];
    const fits: (readonly [string, MemberFit])[] = [];
    for (const cluster of view.nodes.clusters()) {
      const { name } = cluster;
      if (name === from && !mayStay) continue;
      const nodes = questions.openByItself(pod, cluster);
      if (typeof nodes === 'string') {
        others.push(`${name}: ${nodes}`);
        continue;
      }
      const fit = name === LOCAL ? questions.roomIn(pod, name) : questions.room(pod, name, nodes);
      if (hasRoom(fit.room.fits)) fits.push([name, fit]);
      const { impossible, why } = fit.room;
      others.push(`${name}: ${impossible ?? why ?? 'it is not known whether there is room'}`);
    }
    return fits.length === 0 ? notNow(others) : this.#whyTaken(fits, sent, stuck);
  }

  migration(key: string): WorkloadMigration | undefined {
    return this.#o.migrations.get(key);
  }

  migrationKeys(): readonly string[] {
    return this.#o.migrations.keys();
  }

  wayOf(workload: TypedObject): Migrating | undefined {
    return this.#o.migrations.wayOf(workload);
  }

  async whyNotTogether(
    sets: readonly GoingTogether[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, NoPlaceTogether>> {
    return await this.#o.migrationFit.whyNot(sets, signal);
  }

  followMigrations(changed: (key: string) => void): () => void {
    return this.#o.migrations.on(changed);
  }

  follow({ podCame, podChanged, podGone, membersChanged, rulesChanged }: PlacedPodsHandlers): () => void {
    const { view } = this.#o;
    const off = [
      view.pods.on({ added: podCame, updated: podChanged, deleted: podGone }),
      this.followMembers(membersChanged),
      view.policies.on(rulesChanged),
      view.onClusters(rulesChanged),
      view.onVirtualNodes(rulesChanged),
      view.onNamespaceLabels(rulesChanged),
      view.owners.onKinds(rulesChanged),
    ];
    return () => {
      for (const unsubscribe of off) unsubscribe();
    };
  }

  followMembers(changed: () => void): () => void {
    return this.#o.view.nodes.members.on({ added: changed, updated: changed, deleted: changed });
  }
}

/** Its pods are not to run beside those that come instead. */
function recreates(owner: KeptOwner | undefined): boolean {
  return owner?.spec?.strategy?.type === 'Recreate';
}

/** For how long pods under these rules avoid a cluster (ms). */
function avoidedForMs({ placement }: Rules): number {
  return Math.max(LEAST_AVOIDED_MS, placement.avoidForMs);
}

/** What is not known is no place to move a pod to. */
function hasRoom(fits: number | undefined): boolean {
  return fits !== undefined && fits > 0;
}

function notNow(others: readonly string[]): NoPlace {
  return {
    why: `no other cluster takes it now${others.length === 0 ? '' : ` (${others.join('; ')})`}`,
    isTaken: false,
  };
}
