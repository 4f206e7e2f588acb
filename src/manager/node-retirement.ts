import type { Logger } from 'pino';
import { MEMBER_LABEL } from '../api/marks.ts';
import { isNodeNameOf } from '../api/member-cluster.ts';
import { memberOfNode } from '../api/provider-id.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isForbidden } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { NODES } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { list } from '../kube/verbs.ts';
import { POOL_ANNOTATION, poolOfText } from '../nodes/node-marks.ts';
import type { NodeRefusal } from '../nodes/node-standing.ts';
import { VIRTUAL_NODE_INDEX } from '../pods/pod-indexes.ts';
import type { BoundPods } from './bound-pods.ts';
import { OPEN_CREATION_MS } from '../pods/unanswered-creation.ts';
import { retirementAdvice, retirementInWords, type RetiringNode } from '../members/retiring-node.ts';
import type { UndeletedList } from '../members/undeleted-in-words.ts';

/** Poll interval of retiring virtual nodes (ms). */
const LOOK_MS = 2_000;
/** How long a virtual node must be empty before its Node is removed: a pod may have been bound just before the cordon (ms). */
const SETTLE_MS = 5_000;
/** The same while a creation without an answer may still be carried out (ms). */
const EMPTY_MS = OPEN_CREATION_MS;
/** A member may put any label on its pods: more names at a time than it can have pools are not believed. */
const MAX_FOUND = 16;

/** A virtual node at work, as far as its retirement goes. */
export interface Retiree {
  bound: Pick<BoundPods, 'remains' | 'size'>;
  /** Copies that were told to end, and do not go. */
  undeleted(): UndeletedList;
  /** Time until no pending creation in the member can take effect any more (ms). */
  creationsOpenMs(): number;
  /** Removes the Node, if it is ours and has no pods; false: not yet. */
  removeNode(signal: AbortSignal): Promise<boolean>;
  /** Removes the Node of a member that was given up, with its pods; false: not yet. */
  giveUpNode(signal: AbortSignal): Promise<boolean>;
}

export interface NodeRetirementOptions {
  /** With the manager's own identity. */
  host: KubeClient;
  member: string;
  /** With {@link VIRTUAL_NODE_INDEX}. */
  memberPods: Pick<Informer<Pod>, 'hasSynced' | 'indexValues' | 'byIndex'>;
  isWanted: (nodeName: string) => boolean;
  /** Whether another MemberCluster wants a virtual node of that name. */
  othersWant: (nodeName: string) => boolean;
  /** Why nothing may be done for the name, if somebody else has it. */
  refusalOf: (nodeName: string) => NodeRefusal | undefined;
  /** Virtual nodes at work, wanted or not, by name; undefined: not begun yet. A list of its own each time. */
  running: () => readonly [string, Retiree | undefined][];
  /** Begins to serve a virtual node that a former process left behind; `pool`: as its Node says, if there is one. */
  serve: (nodeName: string, pool: Record<string, string> | undefined) => void;
  /** Stops it: nothing is left on it. */
  drop: (nodeName: string) => void;
  mayWrite: () => boolean;
  /** The administrator's word that nothing runs in the member any more. */
  givenUp: () => boolean;
  event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  logger: Logger;
  /** Monotonic ms. */
  monotonic?: () => number;
}

/** What has been seen of one that retires; times are monotonic ms. */
interface Retirement {
  emptySince?: number;
  /** The same, with pods of DaemonSets. */
  bareSince?: number;
  isTold?: true;
  /** Its Node is gone. */
  isRemoved?: true;
}

/**
 * The end of virtual nodes that are not wanted any more, because pools were renamed, added or removed, or the member leaves: finds those
 * that former processes left behind, says what keeps one, and removes it when nothing is on it.
 */
export class NodeRetirement {
  readonly #o: NodeRetirementOptions;
  readonly #monotonic: () => number;
  readonly #seen = new Map<string, Retirement>();
  /** Names on copies in the member that are those of other MemberClusters. */
  readonly #others = new Set<string>();
  #hostAsked = false;
  #memberAsked = false;

  constructor(options: NodeRetirementOptions) {
    this.#o = options;
    this.#monotonic = options.monotonic ?? monotonic;
  }

  /** Virtual nodes of former processes that have a Node are served. */
  get nodesKnown(): boolean {
    return this.#hostAsked;
  }

  /** Those of which only copies in the member are left, too. */
  get allKnown(): boolean {
    return this.#hostAsked && this.#memberAsked;
  }

  /** Those that retire now. */
  retiring(): RetiringNode[] {
    return [...this.#retirees()].map(([name, one]) => {
      const refusal = this.#o.refusalOf(name);
      if (refusal === undefined) {
        const undeleted = one?.undeleted();
        const isHeldUp = undeleted !== undefined && undeleted.count > 0;
        return { name, pods: one?.bound.remains()?.pods, ...(isHeldUp ? { undeleted } : {}) };
      }
      return { name, pods: this.#copiesOf(name), taken: refusal.why };
    });
  }

  /** One that is wanted again, and is not later on, retires anew. */
  specChanged(): void {
    for (const name of this.#seen.keys()) if (this.#o.isWanted(name)) this.#seen.delete(name);
  }

  /** Works until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (!this.#hostAsked) await this.#askHost(signal);
      this.#askMember();
      for (const [name, one] of this.#retirees()) {
        const refusal = this.#o.refusalOf(name);
        if (refusal !== undefined) this.#lookTaken(name, refusal);
        else if (one !== undefined) await this.#look(name, one, signal);
      }
      await pause(LOOK_MS, signal);
    }
  }

  /** Somebody else has the name: what is left of it in the member stays, and people are told. */
  #lookTaken(name: string, refusal: NodeRefusal): void {
    const { drop, memberPods } = this.#o;
    const pods = this.#copiesOf(name);
    // Two MemberClusters may stand for one cluster, whose pods tell of the virtual nodes of both.
    if (refusal.isVirtual || (pods === 0 && memberPods.hasSynced) || this.#o.givenUp()) {
      if (refusal.isVirtual) this.#others.add(name);
      this.#seen.delete(name);
      drop(name);
    } else if (pods > 0) {
      this.#recordOnce({ name, pods, taken: refusal.why });
    }
  }

  #copiesOf(name: string): number {
    return this.#o.memberPods.byIndex(VIRTUAL_NODE_INDEX, name).length;
  }

  #seenOf(name: string): Retirement {
    const seen = this.#seen.get(name) ?? {};
    this.#seen.set(name, seen);
    return seen;
  }

  #recordOnce(one: RetiringNode): void {
    const seen = this.#seenOf(one.name);
    if (seen.isTold === true) return;
    seen.isTold = true;
    this.#o.event('Warning', 'VirtualNodeRetiring', `${retirementInWords(one)}. ${retirementAdvice([one])}`);
  }

  *#retirees(): Generator<[string, Retiree | undefined]> {
    for (const [name, one] of this.#o.running()) if (!this.#o.isWanted(name)) yield [name, one];
  }

  async #askHost(signal: AbortSignal): Promise<void> {
    const { host, member, logger } = this.#o;
    try {
      const { items } = await list<Node>(host, NODES, { labelSelector: `${MEMBER_LABEL}=${member}`, signal });
      for (const node of items) {
        if (memberOfNode(node) !== member) continue;
        this.#found(node.metadata.name, poolOfText(node.metadata.annotations?.[POOL_ANNOTATION] ?? ''));
      }
      this.#hostAsked = true;
    } catch (error) {
      if (signal.aborted) return;
      const unable = 'virtual nodes that are not wanted any more cannot be looked for';
      logger.warn(`${unable}: ${describeError(error)}`);
      // Rights of an older version: the copies in the member tell of most.
      this.#hostAsked = isForbidden(error);
    }
  }

  /** At each look: a copy may come to life after its virtual node was given up. */
  #askMember(): void {
    const { memberPods } = this.#o;
    if (!memberPods.hasSynced) return;
    let names = 0;
    for (const name of memberPods.indexValues(VIRTUAL_NODE_INDEX)) {
      names += 1;
      if (names > MAX_FOUND) break;
      if (!this.#others.has(name) && [...this.#retirees()].length < MAX_FOUND) this.#found(name, undefined);
    }
    this.#memberAsked = true;
  }

  #found(name: string, pool: Record<string, string> | undefined): void {
    const { member, isWanted, othersWant, running, serve, logger } = this.#o;
    if (isWanted(name) || othersWant(name) || !isNodeNameOf(member, name)) return;
    if (running().some(([known]) => known === name)) return;
    logger.warn({ node: name }, 'a virtual node that is not wanted any more is served until it is empty');
    serve(name, pool);
  }

  async #look(name: string, one: Retiree, signal: AbortSignal): Promise<void> {
    const { mayWrite, event } = this.#o;
    if (this.#o.givenUp()) {
      await this.#giveUp(name, one, signal);
      return;
    }
    const remains = one.bound.remains();
    if (remains === undefined || !mayWrite()) return;
    const seen = this.#seenOf(name);
    if (remains.pods > 0 || remains.daemonPods > 0) delete seen.bareSince;
    if (remains.pods > 0) {
      delete seen.emptySince;
      this.#recordOnce({ name, pods: remains.pods });
      return;
    }
    const emptyForMs = one.creationsOpenMs() > 0 ? EMPTY_MS : SETTLE_MS;
    const now = this.#monotonic();
    if (remains.daemonPods === 0) seen.bareSince ??= now;
    seen.emptySince ??= now;
    if (now - seen.emptySince < emptyForMs) return;
    if (!(await this.#removeOnce(name, seen, one.removeNode.bind(one), signal))) return;
    // Pods of DaemonSets go with the Node, and their copies have to be ended.
    if (seen.bareSince === undefined || this.#monotonic() - seen.bareSince < emptyForMs) return;
    event('Normal', 'VirtualNodeRemoved', `Virtual node ${name} was not wanted any more and is removed: it was empty.`);
    this.#end(name);
  }

  /** Kubernetes removes the pods of a Node that is gone. */
  async #giveUp(name: string, one: Retiree, signal: AbortSignal): Promise<void> {
    if (!(await this.#removeOnce(name, this.#seenOf(name), one.giveUpNode.bind(one), signal))) return;
    if (one.bound.size !== 0) return;
    this.#o.event('Normal', 'VirtualNodeRemoved', `Virtual node ${name} of the member that was given up is removed.`);
    this.#end(name);
  }

  /** Removes its Node, if that was not done before; false: not yet, or the virtual node was wanted meanwhile. */
  async #removeOnce(
    name: string,
    seen: Retirement,
    remove: (signal: AbortSignal) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      if (seen.isRemoved !== true && !(await remove(signal))) return false;
      seen.isRemoved = true;
      return this.#seen.get(name) === seen;
    } catch (error) {
      if (!signal.aborted) {
        this.#o.logger.warn({ node: name }, `the Node is not removed yet: ${describeError(error)}`);
      }
      return false;
    }
  }

  #end(name: string): void {
    this.#seen.delete(name);
    this.#o.drop(name);
  }
}
