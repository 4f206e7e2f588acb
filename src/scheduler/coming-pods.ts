import { asOwned } from '../api/released.ts';
import { isActive } from '../api/pod-phase.ts';
import { unscheduledOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { Expiries } from '../kube/expiries.ts';
import { keyOf, splitKey } from '../kube/object.ts';
import { controllerKeyOf, controllerOf, controllerOrOwnKeyOf, ownerKeyOf } from '../kube/owner-references.ts';
import { makesNoMore, replicasOf, revisionOf } from '../placement/owner-chain.ts';
import { NEXT_POD_WAIT_MS } from '../placement/next-pod-wait.ts';
import { makesWay, needsNode } from './coming-pod.ts';
import type { HostView } from './host-view.ts';
import { nextPod } from './next-of-set.ts';

/** Groups of pods without a node that are seen to, those that came last: about each it is asked where its pods may go. */
const MOST_GROUPS = 128;

/** A pod that needs a place: it has no node yet, or is as its controller is about to make it. */
export interface ComingPod {
  readonly pod: Pod;
  /** In monotonic ms. */
  readonly since: number;
  /** In monotonic ms: from then on it waits although it seems to fit. */
  readonly until: number;
}

/** Those that are alike: of one controller, revision and shape, and instead of pods of one virtual node. */
export interface ComingGroup {
  readonly key: string;
  /** The node of those that make way for them; undefined: they are there, and have none. */
  readonly from: string | undefined;
  /** By UID; of those that make way where they are not made yet. Of those without a node the same map as long as there are any. */
  readonly pods: ReadonlyMap<string, ComingPod>;
}

interface GoingPod {
  readonly pod: Pod;
  /** In monotonic ms: since when it {@link ends}, or was released. */
  readonly since: number;
  /** It is being deleted, or is gone; others are released, and that is all. */
  readonly ends: boolean;
  readonly key: string;
}

/** Pods of one controller that make way, or have made way. */
interface Going {
  /** By UID, the one that began last comes last. */
  readonly pods: Map<string, GoingPod>;
  /** UIDs of those that are released, and its own by their references still. */
  readonly had: Set<string>;
}

/** A pod that was released, and beside which its controller cannot make another one, nor beside others of its own. */
export interface StuckPod {
  readonly pod: Pod;
  /** Of those that its controller lacks so many come before the one in its place, instead of pods that went. */
  readonly comeBefore: number;
}

export interface ComingPodsOptions {
  view: Pick<HostView, 'onPod' | 'pods' | 'owners' | 'seats' | 'waits' | 'nodes' | 'namespaceLabels'>;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/**
 * Pods of the host that need a place next, by what the caches show: those without a node, and those that controllers make instead of pods in
 * members which end or are released. Of a controller as many as it has fewer than it asks for. Kept up with every event, so that
 * a question looks at these pods only.
 */
export class ComingPods {
  readonly #o: ComingPodsOptions;
  /** Without a node, by group and UID. */
  readonly #waiting = new Map<string, Map<string, ComingPod>>();
  /** By UID. */
  readonly #groupOf = new Map<string, string>();
  /** By key of the controller. */
  readonly #going = new Map<string, Going>();
  /** Keys of {@link #going} by UID of the pod: it may lose its controller before it is gone. */
  readonly #controllerOf = new Map<string, string>();
  /** Those of {@link #going} that are not there any more. */
  readonly #gone = new Expiries<{ controller: string; uid: string }>();
  /** Those of {@link #waiting} that no scheduler speaks of, by UID. */
  readonly #silent = new Expiries<string>();
  readonly #shapes = new WeakMap<object, number>();
  #shapesSeen = 0;

  constructor(options: ComingPodsOptions) {
    this.#o = options;
    options.view.onPod({ changed: (pod) => this.#set(pod), gone: (pod) => this.#left(pod) });
  }

  /**
   * `sent`: pods that were told to make way a moment ago, which the caches may not show yet. `stuck`: without those that its controller cannot
   * make as long as others that it released stay.
   */
  groups(sent: readonly Pod[], stuck?: StuckPod): ComingGroup[] {
    this.#expire();
    const groups: ComingGroup[] = [];
    const told = new Set(sent.map(({ metadata }) => metadata.uid));
    for (const [key, pods] of [...this.#waiting].slice(-MOST_GROUPS)) groups.push({ key, from: undefined, pods });
    const next = new Map<string, { from: string; pods: Map<string, ComingPod> }>();
    const add = (goingKey: string, going: Pod, since: number): void => {
      const made = nextPod(going, this.#o.view);
      const pod = 'unknown' in made ? going : made;
      const key = `${goingKey} ${revisionOf(pod) ?? ''}`;
      const found = next.get(key) ?? { from: going.spec.nodeName ?? '', pods: new Map<string, ComingPod>() };
      next.set(key, found);
      found.pods.set(going.metadata.uid ?? '', { pod, since, until: Infinity });
    };
    for (const [controller, { pods }] of this.#going) {
      const own = stuck !== undefined && controllerOrOwnKeyOf(stuck.pod) === controller ? stuck : undefined;
      const missing = own?.comeBefore ?? this.#missing(controller) ?? 0;
      if (missing <= 0) continue;
      // The last ones: of a lost member, pods may end for as long as it does not answer, and have others in their places.
      const goes = ({ pod, ends }: GoingPod): boolean => ends || told.has(pod.metadata.uid);
      const awaited = [...pods.values()].filter((one) => this.#isAwaited(one) && (own === undefined || goes(one)));
      for (const one of awaited.slice(-missing)) add(one.key, one.pod, one.since);
    }
    for (const pod of sent) if (!this.#isShown(pod)) add(this.#keyOf(pod), pod, this.#o.monotonic());
    for (const [key, { from, pods }] of next) groups.push({ key, from, pods });
    return groups;
  }

  #set(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    const { nominatedNodeName } = pod.status ?? {};
    // One that is nominated to a node of the host counts as if it were there.
    const isThere = nominatedNodeName !== undefined && this.#o.view.nodes.memberOf(nominatedNodeName) === undefined;
    this.#setWaiting(uid, needsNode(pod) && !isThere ? pod : undefined);
    const owned = asOwned(pod);
    const controller = controllerKeyOf(owned);
    // Of pods on nodes of the host the caches keep no more than what they take there, and nobody moves these.
    const goes = makesWay(pod) && this.#o.view.nodes.memberOf(pod.spec.nodeName ?? '') !== undefined;
    const before = this.#controllerOf.get(uid);
    if (before !== undefined && (before !== controller || !goes)) this.#forget(before, uid);
    if (controller === undefined || !goes) return;
    this.#controllerOf.set(uid, controller);
    const going = this.#going.get(controller) ?? { pods: new Map(), had: new Set() };
    this.#going.set(controller, going);
    this.#goes(going, { pod: owned, key: this.#keyOf(owned), ends: pod.metadata.deletionTimestamp !== undefined });
    if (isActive(pod) && controllerOf(pod) !== undefined) going.had.add(uid);
    else going.had.delete(uid);
  }

  /** One that was released some time ago, and ends now, is waited for anew. */
  #goes({ pods }: Going, one: Omit<GoingPod, 'since'>): void {
    const { uid = '' } = one.pod.metadata;
    const before = pods.get(uid);
    const hasBegun = before?.ends !== one.ends;
    if (hasBegun) pods.delete(uid);
    pods.set(uid, { ...one, since: hasBegun ? this.#o.monotonic() : before.since });
  }

  #setWaiting(uid: string, pod: Pod | undefined): void {
    const before = this.#groupOf.get(uid);
    const known = before === undefined ? undefined : this.#waiting.get(before);
    const since = known?.get(uid)?.since ?? this.#o.monotonic();
    known?.delete(uid);
    if (before !== undefined && known?.size === 0) this.#waiting.delete(before);
    this.#groupOf.delete(uid);
    this.#silent.delete(uid);
    if (pod === undefined) return;
    const now = this.#o.monotonic();
    const until = now + this.#seenToForMs(pod);
    if (unscheduledOf(pod) === undefined) {
      if (until <= now) return;
      this.#silent.set(uid, uid, until);
    }
    const key = this.#keyOf(pod);
    const group = this.#waiting.get(key) ?? new Map<string, ComingPod>();
    this.#waiting.set(key, group.set(uid, { pod, since, until }));
    this.#groupOf.set(uid, key);
  }

  /**
   * As long as the next pod of one that is gone is waited for. A pod that got no node in all that time, as schedulers refuse it, or none speaks of it, does
   * not get one of those that it seems to fit on; its scheduler may not be there. It is seen to where it begins to fit (room-beside.ts).
   */
  #seenToForMs(pod: Pod): number {
    const now = this.#o.clock();
    const since = Date.parse(unscheduledOf(pod)?.lastTransitionTime ?? '');
    // Of a pod that had gates that time may be older than its wait.
    const forMs = Math.min(this.#o.view.waits.waitedMs(pod, now), Number.isNaN(since) ? Infinity : now - since);
    return NEXT_POD_WAIT_MS - forMs;
  }

  #left(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    this.#setWaiting(uid, undefined);
    const controller = this.#controllerOf.get(uid);
    const going = controller === undefined ? undefined : this.#going.get(controller);
    const known = going?.pods.get(uid);
    if (controller === undefined || going === undefined || known === undefined) return;
    this.#goes(going, { ...known, ends: true });
    going.had.delete(uid);
    this.#gone.set(uid, { controller, uid }, this.#o.monotonic() + NEXT_POD_WAIT_MS);
    this.#expire();
  }

  #expire(): void {
    const now = this.#o.monotonic();
    for (const { controller, uid } of this.#gone.takeEnded(now)) this.#forget(controller, uid);
    for (const uid of this.#silent.takeEnded(now)) this.#setWaiting(uid, undefined);
  }

  #forget(controller: string, uid: string): void {
    this.#controllerOf.delete(uid);
    const going = this.#going.get(controller);
    if (going?.pods.delete(uid) !== true) return;
    going.had.delete(uid);
    if (going.pods.size === 0) this.#going.delete(controller);
    this.#gone.delete(uid);
  }

  /** How many more pods the controller has yet to make; undefined: nobody knows how many it asks for. */
  #missing(controller: string): number | undefined {
    const { owners, seats } = this.#o.view;
    const owner = owners.byUid(splitKey(controller).name);
    if (owner === undefined || ownerKeyOf(owner) !== controller) return undefined;
    if (makesNoMore(owner)) return 0;
    const wanted = replicasOf(owner);
    if (wanted === undefined) return undefined;
    return wanted - seats.size(controller) + (this.#going.get(controller)?.had.size ?? 0);
  }

  /** Whether the caches show what became of a pod that was told to make way: it is counted by what they show then. */
  #isShown(pod: Pod): boolean {
    const { uid = '' } = pod.metadata;
    const controller = controllerKeyOf(pod) ?? '';
    const missing = this.#missing(controller);
    if (missing === undefined) return false;
    const going = this.#going.get(controller)?.pods;
    if (going?.has(uid) === true) return true;
    const cached = this.#o.view.pods.get(keyOf(pod));
    const isThere = cached?.metadata.uid === uid && isActive(cached);
    return !isThere && missing <= (going?.size ?? 0);
  }

  /**
   * Not one that should be gone long ago: in a member that does not answer pods may end for days. Nor one that was released long ago: something
   * keeps its controller from making another one beside it.
   */
  #isAwaited({ pod: { metadata }, since }: GoingPod): boolean {
    const graceMs = (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
    return this.#o.monotonic() - since < graceMs + NEXT_POD_WAIT_MS;
  }

  #keyOf(pod: Pod): string {
    const { containers, nodeName = '' } = pod.spec;
    let shape = this.#shapes.get(containers);
    if (shape === undefined) this.#shapes.set(containers, (shape = this.#shapesSeen += 1));
    return `${controllerOrOwnKeyOf(pod)} ${revisionOf(pod) ?? ''} ${String(shape)} ${nodeName}`;
  }
}
