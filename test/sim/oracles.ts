import { HOST_LABEL } from '../../src/api/marks.ts';
import type { Kubelets, Run } from './kubelets.ts';
import { AskingOracle } from './oracles/asking-oracle.ts';
import { BoundsOracle } from './oracles/bounds-oracle.ts';
import { CopiesOracle } from './oracles/copies-oracle.ts';
import { CostOracle } from './oracles/cost-oracle.ts';
import { DataOracle } from './oracles/data-oracle.ts';
import { FailedOracle } from './oracles/failed-oracle.ts';
import { FencingOracle } from './oracles/fencing-oracle.ts';
import { GangOracle } from './oracles/gang-oracle.ts';
import { HealOracle } from './oracles/heal-oracle.ts';
import { IdentityOracle } from './oracles/identity-oracle.ts';
import { MissingOracle } from './oracles/missing-oracle.ts';
import { MoverOracle } from './oracles/mover-oracle.ts';
import { MovesOracle } from './oracles/moves-oracle.ts';
import { NodeOracle } from './oracles/node-oracle.ts';
import { OptInOracle } from './oracles/opt-in-oracle.ts';
import { OversoldOracle } from './oracles/oversold-oracle.ts';
import { ReleasesOracle } from './oracles/releases-oracle.ts';
import { ReportOracle } from './oracles/report-oracle.ts';
import { RoomOracle } from './oracles/room-oracle.ts';
import { ResidenceOracle } from './oracles/residence-oracle.ts';
import { StateOracle } from './oracles/state-oracle.ts';
import { judgeStatus } from './oracles/status-oracle.ts';
import { VainWritesOracle } from './oracles/vain-writes-oracle.ts';
import { asPod, exitCodes, hostUidOf, isFinal, mustRunOnce, phaseOf } from './pod-shapes.ts';
import type { Change, SimObject } from './sim-cluster.ts';
import type { Call } from './sim-pool.ts';
import { isOfProgram, placeOf, type SimProcess } from './sim-process.ts';
import type { World } from './world.ts';

/** Something happened that must never happen. */
export interface Violation {
  readonly oracle: string;
  readonly what: string;
  readonly at: number;
}

/** What nothing but a member says, and of conditions that are not its own. */
export const SAID_BY_MEMBER = 'is what the member says (uid=nobody)';

/** Host pods by UID, with all that was ever true of them. */
interface HostPod {
  path: string;
  object: SimObject;
  gone: boolean;
  /** Who removed it. */
  by: string;
  /** When it was made, in ms. */
  since: number;
}

/** A request is carried out, or given up, by then, in ms. */
const STRAGGLING_MS = 60_000;

/**
 * Judges from the outside: by what API servers stored and what kubelets ran, at the moment of each change. What the program
 * believes or counts plays no part.
 */
export class Oracles {
  readonly violations: Violation[] = [];
  readonly hostPods = new Map<string, HostPod>();
  readonly residence: ResidenceOracle;
  readonly state: StateOracle;
  readonly room: RoomOracle;
  readonly #world: World;
  readonly #kubelets: ReadonlyMap<string, Kubelets>;
  readonly #identities = new Map<string, string>();
  /** By member, when its Lease was renewed last, and since when it has been without a break, in ms. */
  readonly #leases = new Map<string, { at: number; unbrokenSince: number }>();
  /** What processes have ever been told all pods of: `process origin`. */
  readonly #listed = new Set<string>();
  /** UID of the host pod that last had that path. */
  readonly #latest = new Map<string, string>();
  /** UIDs of host pods that have had a copy. */
  readonly #copied = new Set<string>();
  /** By UID of the copy, who made it and when, in ms. */
  readonly #makers = new Map<string, { by: string; at: number }>();
  /** By UID of the copy, when it became again what it was when its cluster was saved, in ms. */
  readonly #restored = new Map<string, number>();
  readonly #asking: AskingOracle;
  readonly #identity: IdentityOracle;
  readonly #nodes: NodeOracle;
  readonly #fencing: FencingOracle;
  readonly #missing: MissingOracle;
  readonly #copies: CopiesOracle;
  readonly #gangs: GangOracle;
  readonly #moves: MovesOracle;
  readonly #mover: MoverOracle;
  readonly #releases: ReleasesOracle;
  readonly #heal: HealOracle;
  readonly #costs: CostOracle;
  readonly #oversold: OversoldOracle;
  readonly #reports: ReportOracle;
  readonly #bounds: BoundsOracle;
  readonly #optIn: OptInOracle;
  readonly #vainWrites: VainWritesOracle;
  readonly #failed: FailedOracle;
  readonly #data: DataOracle;

  constructor(world: World, kubelets: ReadonlyMap<string, Kubelets>) {
    this.#world = world;
    this.#kubelets = kubelets;
    const report = (oracle: string, what: string): void => this.#violated(oracle, what);
    this.#asking = new AskingOracle(world, report);
    this.#identity = new IdentityOracle(world, report);
    this.#nodes = new NodeOracle(world, report);
    this.#fencing = new FencingOracle(world, report);
    this.#missing = new MissingOracle(report);
    this.#copies = new CopiesOracle(world, report);
    this.#gangs = new GangOracle();
    this.#moves = new MovesOracle(world, report, {
      isOutOfService: (node) => this.#fencing.isOutOfService(node),
      ranWhole: (uid, at) => this.#gangs.ranWhole(uid, at),
    });
    this.#mover = new MoverOracle(world, report);
    this.#releases = new ReleasesOracle(world, report, (node) => this.#fencing.isOutOfService(node));
    this.#heal = new HealOracle(world, report);
    this.residence = new ResidenceOracle(world, report);
    this.state = new StateOracle(world, report);
    this.room = new RoomOracle(world, report);
    this.#costs = new CostOracle(report);
    this.#oversold = new OversoldOracle(world, report);
    this.#reports = new ReportOracle(report);
    this.#bounds = new BoundsOracle(world, report);
    this.#optIn = new OptInOracle(world, report);
    this.#vainWrites = new VainWritesOracle(world, report);
    this.#failed = new FailedOracle(report);
    this.#data = new DataOracle(world, report);
    world.onVainWrite = (cluster, call) => this.#vainWrites.changedNothing(cluster, call);
  }

  /** From now on an administrator lets all go that is kept. */
  deletionsConfirmed(): void {
    this.#missing.confirmed = true;
  }

  changed(change: Change): void {
    this.#nodes.changed(change);
    this.#fencing.changed(change);
    this.#copies.changed(change);
    this.#moves.changed(change, (uid) => this.#copied.has(uid));
    this.#mover.changed(change);
    this.#releases.changed(change);
    this.#heal.changed(change);
    this.#optIn.changed(change);
    this.#data.changed(change);
    if (this.#world.isCrowded) {
      this.room.changed(change);
      this.#oversold.changed(change);
      if (change.cluster === this.#world.host) {
        this.#costs.changed(change);
        this.#reports.changed(change);
      }
    }
    if (change.cluster === this.#world.host) this.#inHost(change);
    else this.#inMember(change);
  }

  /** Whether a process has begun to work for a host, which it keeps to from then on. */
  knowsHost({ name }: SimProcess): boolean {
    return this.#identity.wasTold(name, this.#world.host.origin);
  }

  /** A process gets an answer, or a piece of one. */
  received(call: Call, text: string): void {
    this.#identity.received(call, text);
    this.#fencing.received(call);
    this.#vainWrites.received(call, text);
    this.#failed.received(call);
    const { origin, outgoing, owner, path, query } = call;
    if (origin === this.#world.host.origin) this.#asking.received(call, text);
    if (origin === this.#world.host.origin) this.#missing.received(call, text);
    if (owner === undefined || outgoing.method !== 'GET' || path !== '/api/v1/pods') return;
    const isWhole = query.includes('watch=')
      ? text.includes('k8s.io/initial-events-end')
      : text !== '' && !text.includes('"continue":"') && !query.includes('metadata.name');
    if (isWhole) this.#listed.add(`${owner.name} ${origin}`);
  }

  /** Who has never been told of all pods knows too little to begin, change or end one. */
  #knowsPods({ origin, outgoing, owner }: Call): boolean {
    const known = (where: string): boolean => this.#listed.has(`${owner?.name} ${where}`);
    if (!/\/pods(\/|\?|$)/.test(outgoing.path)) return true;
    const { host } = this.#world;
    if (origin !== host.origin) return known(origin) && known(host.origin);
    return outgoing.method !== 'DELETE' || known(host.origin);
  }

  /** A request leaves a process: the last moment at which it could have known better. */
  sent(call: Call): void {
    const { origin, outgoing, owner } = call;
    this.#asking.sent(call);
    this.#fencing.sent(call);
    this.#mover.sent(call);
    this.#vainWrites.sent(call);
    this.#failed.sent(call);
    if (owner === undefined || outgoing.method === 'GET') return;
    this.#identity.sent(call);
    if (!this.#knowsPods(call)) {
      this.#violated('I7', `${owner.name} sends ${outgoing.method} ${origin}${outgoing.path} before it knows all pods`);
    }
    for (const [name, cluster] of this.#world.members) {
      if (cluster.origin !== origin) continue;
      const lease = this.#world.host.get(
        `/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/spillway-member-${name}`,
      );
      const holder = (lease?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity;
      const own = this.#identities.get(owner.place);
      if (holder !== undefined && holder !== '' && holder !== own) {
        this.#violated(
          'fencing',
          `${owner.name} sends ${outgoing.method} ${outgoing.path} to ${name}, which ${holder} holds`,
        );
      }
    }
  }

  programEnded(name: string, failure: unknown): void {
    const text = failure instanceof Error ? (failure.stack ?? failure.message) : String(failure);
    this.#violated('alive', `${name} ended by itself: ${text}`);
  }

  #inHost(change: Change): void {
    const { object, previous, type, path, by } = change;
    if (object['kind'] === 'Lease' && isOfProgram(by) && path.includes('spillway-member-')) {
      this.#renewed(change);
      const { holderIdentity } = object['spec'] as { holderIdentity?: string };
      if (type !== 'DELETED' && holderIdentity !== undefined && holderIdentity !== '') {
        this.#identities.set(placeOf(by), holderIdentity);
      }
    }
    if (object['kind'] === 'MemberCluster') {
      const pods = this.#world.members.get(object.metadata.name)?.list('/api/v1/pods') ?? [];
      this.#missing.memberCluster(change, (uid) => this.#isMissing(uid), pods);
    }
    if (object['kind'] !== 'Pod') return;
    const { uid } = object.metadata;
    const { since = change.at } = this.hostPods.get(uid) ?? {};
    this.hostPods.set(uid, { path, object, gone: type === 'DELETED', by, since });
    if (type === 'ADDED') this.#latest.set(path, uid);
    if (!isOfProgram(by)) return;
    if (type === 'DELETED') this.#removed(change);
    else if (previous !== undefined) this.#told(object, previous, by);
  }

  /** Who has not renewed a Lease for half of its time may have stopped acting for the member, and begun anew. */
  #renewed({ path, object, at }: Change): void {
    const { leaseDurationSeconds = 0 } = object['spec'] as { leaseDurationSeconds?: number };
    const member = path.slice(path.indexOf('spillway-member-') + 'spillway-member-'.length);
    const before = this.#leases.get(member);
    const isUnbroken = before !== undefined && at - before.at < leaseDurationSeconds * 500;
    this.#leases.set(member, { at, unbrokenSince: isUnbroken ? before.unbrokenSince : at });
  }

  /** A host pod was removed by the program. */
  #removed({ object, by, previous }: Change): void {
    const { uid, name } = object.metadata;
    if (previous?.metadata.deletionTimestamp === undefined) {
      this.#violated('I9', `${by} removes host pod ${name}, which nobody deleted`);
    }
    for (const copy of this.#copiesOf(uid)) {
      if (!isFinal(copy.object) && !this.#isStraggler(copy.object, by) && !this.#fencing.removes(object, by)) {
        this.#violated('I9', `${by} removes host pod ${name} while its copy is in ${copy.cluster}`);
      }
    }
  }

  /** The program wrote a host pod. */
  #told(object: SimObject, previous: SimObject, by: string): void {
    const { uid, name } = object.metadata;
    judgeStatus(object, previous, (oracle, what) => this.#violated(oracle, what));
    for (const { type, message } of asPod(object).status?.conditions ?? []) {
      if (message === SAID_BY_MEMBER)
        this.#violated('own-conditions', `host pod ${name} has ${type} as its member says it`);
    }
    if (isFinal(previous)) {
      if (phaseOf(object) !== phaseOf(previous) || String(exitCodes(object)) !== String(exitCodes(previous))) {
        this.#violated('I4', `host pod ${name} was ${phaseOf(previous)} and is ${phaseOf(object)}`);
      }
      return;
    }
    if (!isFinal(object)) return;
    if (phaseOf(object) === 'Failed') this.#failed.failed(object, previous, by, this.#copied.has(uid));
    const runs = this.runsOf(uid);
    if (phaseOf(object) === 'Succeeded' && !runs.some(({ exitCode }) => exitCode === 0)) {
      this.#violated('I5', `host pod ${name} is shown as Succeeded, which no kubelet said`);
    }
    if (exitCodes(object).includes(0) && !runs.some(({ exitCode }) => exitCode === 0)) {
      this.#violated('I5', `host pod ${name} shows exit code 0, which no kubelet said`);
    }
    for (const copy of this.#copiesOf(uid)) {
      const lives = !isFinal(copy.object) && copy.object.metadata.deletionTimestamp === undefined;
      const { nodeName = '' } = asPod(object).spec;
      const isOut = object.metadata.deletionTimestamp !== undefined && this.#fencing.isOutOfService(nodeName);
      if (lives && !isOut && !this.#isStraggler(copy.object, by) && !this.#isJustRestored(copy.object)) {
        this.#violated('I9', `host pod ${name} is shown as ${phaseOf(object)} while its copy lives in ${copy.cluster}`);
      }
    }
  }

  #inMember(change: Change): void {
    const { object, previous, type, by, cluster, path } = change;
    if (isOfProgram(by) && object['kind'] !== 'Namespace') {
      const marked = (previous ?? object).metadata.labels?.[HOST_LABEL];
      if (marked === undefined) this.#violated('I15', `${by} touches ${path} in ${cluster.name}, which is not ours`);
    }
    if (object['kind'] !== 'Pod') return;
    const uid = hostUidOf(object);
    if (uid === undefined) return;
    if (by === 'restore') this.#restored.set(object.metadata.uid, change.at);
    if (isOfProgram(by) && type !== 'DELETED') this.#nodes.copied(this.hostPods.get(uid)?.object, by);
    if (type === 'ADDED') {
      const hostPod = this.hostPods.get(uid);
      // Who acts for the member anew may not know of creations under way, where to run twice does no harm.
      const knew = hostPod?.by === by && hostPod.since >= (this.#leases.get(cluster.name)?.unbrokenSince ?? 0);
      // What is left by docs/invariants.md: the first of two creations, of which the second one was answered, comes last.
      const isFirst = !this.#copied.has(uid);
      this.#copied.add(uid);
      this.#makers.set(object.metadata.uid, { by, at: change.at });
      if (isOfProgram(by) && hostPod !== undefined) this.#bounds.made(change, hostPod.object);
      if (isOfProgram(by))
        this.#fencing.makes(change, hostPod?.since ?? 0, this.#kubelets.get(cluster.name)?.onSince ?? 0);
      const isEnded = this.#fencing.isOutOfService(asPod(hostPod?.object ?? object).spec.nodeName ?? '');
      if (isFirst && !isEnded && hostPod?.gone === true && isOfProgram(hostPod.by) && (knew || mustRunOnce(object))) {
        this.#violated(
          'ghost',
          `${by} makes ${object.metadata.name} in ${cluster.name} for a host pod that ${hostPod.by} removed`,
        );
      }
      const copies = this.#copiesOf(uid).filter((copy) => !isFinal(copy.object));
      // What a former process sent for a pod that may run twice nobody knows, when the mapping was edited since.
      const isElsewhere = new Set(copies.map((copy) => copy.object.metadata.namespace)).size === copies.length;
      if (copies.length > 1 && (mustRunOnce(object) || !isElsewhere)) {
        const places = copies.map((copy) => `${copy.cluster}:${copy.object.metadata.name}`).join(' and ');
        this.#violated('I6', `host pod ${object.metadata.name} has copies in ${places}`);
      }
    }
    const asked =
      type === 'DELETED' ||
      (object.metadata.deletionTimestamp !== undefined && previous?.metadata.deletionTimestamp === undefined);
    if (asked && isOfProgram(by)) this.#deletes(change, uid);
  }

  /** The program deletes a pod in a member. */
  #deletes(change: Change, uid: string): void {
    const { by, object, cluster } = change;
    const hostPod = this.hostPods.get(uid);
    // Of two copies, which only an edited namespace mapping brings about, one is ended by rule.
    const isSecond = this.#copiesOf(uid).some(
      (copy) =>
        copy.object.metadata.uid !== object.metadata.uid && copy.object.metadata.deletionTimestamp === undefined,
    );
    const may =
      hostPod !== undefined &&
      (isSecond || hostPod.gone || hostPod.object.metadata.deletionTimestamp !== undefined || isFinal(hostPod.object));
    if (!may)
      this.#violated('I1', `${by} deletes ${object.metadata.name} in ${cluster.name} although its host pod is well`);
    this.#missing.deletes(change, (one) => this.#isMissing(one), cluster.list('/api/v1/pods'));
  }

  /** Whether nothing but its absence says that the host pod is gone, as would that another pod had its name since. */
  #isMissing(uid: string): boolean {
    const hostPod = this.hostPods.get(uid);
    return (
      hostPod?.gone === true &&
      !this.#fencing.isWrittenDown(uid) &&
      this.#world.host.get(hostPod.path) === undefined &&
      this.#latest.get(hostPod.path) === uid
    );
  }

  /** A kubelet started the containers of a pod. */
  started(run: Run, object: SimObject): void {
    if (run.hostUid === undefined) return;
    const hostPod = this.hostPods.get(run.hostUid);
    if (hostPod !== undefined) this.#gangs.started(run, hostPod.object);
    const others = this.runsOf(run.hostUid).filter((other) => other !== run);
    const beside = others.find(({ endedAt }) => endedAt === undefined);
    if (beside !== undefined && (beside.cluster !== run.cluster || mustRunOnce(object))) {
      this.#violated('I6', `${run.name} runs in ${run.cluster} while it still runs in ${beside.cluster}`);
    } else if (others.length > 0 && mustRunOnce(object)) {
      const policy = asPod(object).spec.restartPolicy ?? 'Always';
      this.#violated(
        'once',
        `${run.name} (restartPolicy ${policy}) runs a second time for one host pod, in ${run.cluster}`,
      );
    }
  }

  /** What a former life sent for a pod that may run twice nobody knows; what was decided before it came may arrive after it. */
  #isStraggler(copy: SimObject, by: string): boolean {
    const maker = this.#makers.get(copy.metadata.uid);
    if (maker === undefined || maker.by === by || mustRunOnce(copy)) return false;
    return this.#world.loop.now - maker.at < STRAGGLING_MS;
  }

  /** What it said before is on its way to the host. */
  #isJustRestored({ metadata: { uid } }: SimObject): boolean {
    return this.#world.loop.now - (this.#restored.get(uid) ?? Number.NEGATIVE_INFINITY) < STRAGGLING_MS;
  }

  runsOf(hostUid: string): Run[] {
    return [...this.#kubelets.values()].flatMap((kubelets) => kubelets.byHostUid.get(hostUid) ?? []);
  }

  #copiesOf(hostUid: string): { cluster: string; object: SimObject }[] {
    const found: { cluster: string; object: SimObject }[] = [];
    for (const cluster of this.#world.members.values()) {
      for (const object of cluster.list('/api/v1/pods')) {
        if (hostUidOf(object) === hostUid) found.push({ cluster: cluster.name, object });
      }
    }
    return found;
  }

  #violated(oracle: string, what: string): void {
    this.violations.push({ oracle, what, at: this.#world.loop.now });
  }
}
