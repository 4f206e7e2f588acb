import { MEMBER_LABEL } from '../../../src/api/marks.ts';
import { HERE, TIERS, WAITS } from '../crowded.ts';
import { isGated } from '../host-scheduler.ts';
import { asPod } from '../pod-shapes.ts';
import type { SchedulingJudge } from '../preempting/evictions.ts';
import { fitsBehind, isRuled, isSettled, memberOf, ruleOf } from '../room.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram, type SimProcess } from '../sim-process.ts';
import type { World } from '../world.ts';
import { DivisionOracle } from './division-oracle.ts';
import type { Report } from './report.ts';

/** Whoever answers knows by then what happened, in ms. */
const KNOWN_MS = 3_000;
/** Of room that the Node itself shows already. */
const SEEN_MS = 700;
/** And of a process that has just begun to work for a member, all that is in it. */
const BEGUN_MS = 60_000;
/** What was nominated to a place may be given room for so long, in ms: see src/scheduler/nominees.ts. */
const HELD_MS = 20_000;
/** Times of pods are told in whole seconds. */
const ROUNDED_MS = 1_500;

/**
 * Pods go where there truly is room, and as soon as their rules have it; and others are evicted only where that makes room, and no
 * more of them than needed. Judged where nothing is under way, so that everybody can know all that counts.
 */
export class RoomOracle implements SchedulingJudge {
  readonly #world: World;
  readonly #report: Report;
  readonly #division: DivisionOracle;
  /** When pods of a cluster changed last, in ms, by its name. */
  readonly #changedAt = new Map<string, number>();
  /** When pods were seen last that were nominated to a node, or may have been told one in vain, in ms, by their UIDs. */
  readonly #nominatedAt = new Map<string, number>();
  /** Since when pods could be scheduled, by UID. */
  readonly #freeSince = new Map<string, number>();
  /** When a process wrote something first, by its name. */
  readonly #begun = new Map<string, number>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
    this.#division = new DivisionOracle(world, report);
  }

  changed(change: Change): void {
    const { object, previous, cluster, at, by, type } = change;
    if (isOfProgram(by) && !this.#begun.has(by)) this.#begun.set(by, at);
    if (object['kind'] !== 'Pod') return;
    const { uid } = object.metadata;
    if (cluster !== this.#world.host) {
      this.#changedAt.set(cluster.name, at);
      return;
    }
    this.#division.changed(change);
    const isFreed = previous === undefined ? type === 'ADDED' : isGated(previous) && !isGated(object);
    if (isFreed && !isGated(object)) this.#freeSince.set(uid, at);
    const member = memberOf(this.#world, asPod(object).spec.nodeName ?? '');
    if (member !== undefined) this.#changedAt.set(member, at);
    const isNominee =
      asPod(object).status?.nominatedNodeName !== undefined && asPod(object).spec.nodeName === undefined;
    if (isNominee || asPod(previous ?? object).status?.nominatedNodeName !== undefined) this.#nominatedAt.set(uid, at);
  }

  placed(pod: SimObject, nodes: readonly string[], passing: readonly string[], by: SimProcess | undefined): void {
    if (by === undefined || !isRuled(this.#world, pod)) return;
    this.#inItsCluster(pod, nodes);
    const isNew = this.#isNew(by);
    for (const node of nodes) {
      const member = memberOf(this.#world, node);
      if (member === undefined) continue;
      if (!isNew && this.#isKnown(member) && !fitsBehind(this.#world, pod, node))
        this.#report('room', `${pod.metadata.name} may go to ${node}, where no node of ${member} has room for it`);
    }
    this.#tiers(pod, nodes, passing, isNew);
    if (!isNew && !this.#othersWereNominated(pod) && !this.#othersAreNominated(pod))
      this.#division.placed(pod, nodes, passing, (member) => this.#isKnown(member, SEEN_MS));
  }

  /** A place that it was told in vain is held for it for a while. */
  unanswered(pod: SimObject): void {
    this.#nominatedAt.set(pod.metadata.uid, this.#world.loop.now);
    this.#division.unanswered(pod);
  }

  evicts(pod: SimObject, node: string, victims: readonly string[], by: SimProcess | undefined): void {
    if (by === undefined || !isRuled(this.#world, pod)) return;
    this.#inItsCluster(pod, [node]);
    this.#inItsTurn(pod, [node], this.#isNew(by));
    this.#onlyLower(pod, victims);
    const member = memberOf(this.#world, node);
    if (member === undefined || this.#isNew(by) || !this.#isKnown(member)) return;
    if (this.#othersAreNominated(pod) || this.#othersWereNominated(pod)) return;
    const { name } = pod.metadata;
    if (!fitsBehind(this.#world, pod, node, new Set(victims))) {
      this.#report(
        'preemption',
        `${String(victims.length)} pods have to leave ${node} for ${name}, which does not fit then`,
      );
    }
    for (const spared of victims) {
      const others = new Set(victims.filter((one) => one !== spared));
      if (!fitsBehind(this.#world, pod, node, others)) continue;
      this.#report('preemption', `${String(victims.length)} pods have to leave ${node} for ${name}, fewer would do`);
      return;
    }
  }

  #inItsCluster(pod: SimObject, nodes: readonly string[]): void {
    const isHere = ruleOf(this.#world, pod) === HERE;
    const wrong = nodes.find((node) => this.#isReal(node) !== isHere);
    const where = isHere ? 'has to stay in the host' : 'has to be in a member';
    if (wrong !== undefined) this.#report('room', `${pod.metadata.name} ${where}, and may go to ${wrong}`);
  }

  #onlyLower(pod: SimObject, victims: readonly string[]): void {
    const { name } = pod.metadata;
    for (const victim of this.#world.host.list('/api/v1/pods')) {
      if (!victims.includes(victim.metadata.uid)) continue;
      if ((asPod(victim).spec.priority ?? 0) >= (asPod(pod).spec.priority ?? 0))
        this.#report('preemption', `${victim.metadata.name} has to leave for ${name}, which is no more important`);
    }
  }

  /** By rules of tiers a pod goes to the first one that has room, and to the next one only after it has waited. */
  #tiers(pod: SimObject, nodes: readonly string[], passing: readonly string[], isNew: boolean): void {
    if (isNew || !this.#inItsTurn(pod, nodes, isNew)) return;
    const { name } = pod.metadata;
    const [first] = TIERS;
    if (WAITS[ruleOf(this.#world, pod) ?? ''] === undefined) return;
    if (nodes.every((node) => memberOf(this.#world, node) === first)) return;
    if (!this.#isKnown(first) || this.#othersWereNominated(pod) || this.#othersAreNominated(pod)) return;
    const better = passing.find((node) => memberOf(this.#world, node) === first && fitsBehind(this.#world, pod, node));
    if (better !== undefined)
      this.#report('tiers', `${name} may go to ${nodes.join()}, though there is room for it on ${better}`);
  }

  /** False: it has not waited for the first tier as long as its rule has it. */
  #inItsTurn(pod: SimObject, nodes: readonly string[], isNew: boolean): boolean {
    const waitMs = WAITS[ruleOf(this.#world, pod) ?? ''];
    const [first] = TIERS;
    if (isNew || waitMs === undefined || nodes.every((node) => memberOf(this.#world, node) === first)) return true;
    const { now } = this.#world.loop;
    const { name, uid } = pod.metadata;
    const waited = now - (this.#freeSince.get(uid) ?? now);
    if (waited >= waitMs - ROUNDED_MS) return true;
    this.#report(
      'tiers',
      `${name} is to wait for room in ${first}, and may have ${nodes.join()} after ${String(Math.round(waited))} ms`,
    );
    return false;
  }

  #isReal(node: string): boolean {
    const found = this.#world.host.get(`/api/v1/nodes/${node}`);
    return found !== undefined && found.metadata.labels?.[MEMBER_LABEL] === undefined;
  }

  #isNew({ name }: SimProcess): boolean {
    return this.#world.loop.now - (this.#begun.get(name) ?? this.#world.loop.now) < BEGUN_MS;
  }

  /** Nothing is under way there, and has not been for long enough. */
  #isKnown(member: string, forMs = KNOWN_MS): boolean {
    const since = this.#changedAt.get(member) ?? Number.NEGATIVE_INFINITY;
    return this.#world.loop.now - since > forMs && isSettled(this.#world, member);
  }

  #othersWereNominated({ metadata }: SimObject): boolean {
    const since = this.#world.loop.now - HELD_MS;
    return [...this.#nominatedAt].some(([uid, at]) => at > since && uid !== metadata.uid);
  }

  #othersAreNominated({ metadata }: SimObject): boolean {
    return this.#world.host
      .list('/api/v1/pods')
      .some(
        (pod) =>
          pod.metadata.uid !== metadata.uid &&
          asPod(pod).spec.nodeName === undefined &&
          asPod(pod).status?.nominatedNodeName !== undefined,
      );
  }
}
