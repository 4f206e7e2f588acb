import type { Logger } from 'pino';
import { type Invariants, UNCOUNTED } from '../api/invariants.ts';
import type { Node, Taint } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { isJsonObject, type JsonObject } from '../kube/json-equal.ts';
import { isOlder } from '../kube/resource-version.ts';
import { NODES } from '../kube/resource.ts';
import type { Timers } from '../kube/timers.ts';
import { create, get, patch, remove } from '../kube/verbs.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import type { DesiredNode } from './desired-node.ts';
import { foreignTaintsLost, metadataPatch, newNode } from './node-changes.ts';
import { mayLabelItself } from './node-labels.ts';
import { NodeLease } from './node-lease.ts';
import type { NodeStanding } from './node-standing.ts';
import type { ReportPace } from './report-pace.ts';
import { isOfRoomAlone, nextReport, type ReportTimes, statusPatch } from './status-changes.ts';

export interface NodeKeeperOptions {
  /** With the identity of the node. */
  host: KubeClient;
  /** With an identity that may change labels and taints of virtual nodes, which they may not do themselves. */
  manager: KubeClient;
  name: string;
  /** Told of every Node that is seen; nothing of one is touched that is not ours. */
  standing: NodeStanding;
  /** The Node as it should be now, from whatever is known; asked again at each look. */
  desired: () => DesiredNode;
  /** False once it retires: then no Node is made that was not there. Default: it always is. */
  isWanted?: () => boolean;
  /** Whether pods are on one that retires: then it is made anew when somebody deletes it. Default: there are. */
  isInUse?: () => boolean;
  /** Told of each state of our Node that is seen. */
  seen?: () => void;
  /** That of all virtual nodes of this process, by the same monotonic clock. */
  pace: ReportPace;
  events?: Pick<EventRecorder, 'record'>;
  /** Least time between two reports of facts that changed; 2,000 ms. */
  coalesceMs?: number;
  /** Least time from one report to the next where only little room came or went; 30,000 ms. */
  littleRoomMs?: number;
  /** Longest time between two reports; 300,000 ms. */
  heartbeatMs?: number;
  /** Time between two renewals of the Lease; 10,000 ms, a quarter of its duration. */
  leaseRenewMs?: number;
  leaseSeconds?: number;
  /** How long a name that somebody else had is left to him after his Node is gone; 30,000 ms. */
  freedMs?: number;
  /** Wall clock, for what is told. */
  clock?: () => number;
  /** Milliseconds that no one can set, for all else. */
  monotonic?: () => number;
  timers?: Timers;
  informerMetrics?: InformerMetrics | undefined;
  /** Default: not counted. */
  invariants?: Invariants;
  logger: Logger;
}

const NODE = 'node';
const LEASE = 'lease';
/** A Node of somebody else is looked at again after this time. */
const REFUSED_MS = 60_000;
/** Whoever had the name makes a Node that was deleted anew within moments: it is not taken from him meanwhile. */
const FREED_MS = 30_000;
/** While something is not known yet it is asked for again after this time, without any request. */
const PROVISIONAL_MS = 1_000;
/** So long an answer to a write of ours is believed although the watch does not know the Node. */
const WRITTEN_TRUST_MS = 5_000;
/** In the time of one report. In a burst the facts change with each pod, and mostly nothing comes of it for the Node. */
const LOOKS = 8;

/**
 * Keeps one virtual Node alive: makes it, also when somebody deleted it, renews its Lease, and writes what changed. Only
 * labels, taints and conditions of our own are touched. Ending it leaves everything as it is.
 */
export class NodeKeeper {
  readonly #o: NodeKeeperOptions;
  readonly #clock: () => number;
  readonly #monotonic: () => number;
  readonly #coalesceMs: number;
  readonly #times: ReportTimes;
  readonly #informer: Informer<Node>;
  readonly #queue: WorkQueue;
  readonly #lease: NodeLease;
  /** The newest state of the Node that a write of ours brought back; the watch may be behind. */
  #written: { node: Node; at: number } | undefined;
  /** Our Node as it was before it was deleted. */
  #former: Node | undefined;
  /** A Node that is surely gone although the watch has not said so yet. */
  #goneUid: string | undefined;
  /** The Node that the Lease belongs to. */
  #leasedUid: string | undefined;
  #reportedAt = -Infinity;
  /** From when on the room alone is told again. */
  #roomFrom = -Infinity;
  #lookedAt = -Infinity;
  /** UID of the Node that was made here for the first time. */
  #madeUid: string | undefined;
  /** We removed it ourselves. */
  #removed = false;
  /** Until when a name that was somebody else's is left alone. */
  #leftUntil = -Infinity;
  /** The last refusal that users were told of. */
  #told: string | undefined;
  #failure: string | undefined;

  constructor(options: NodeKeeperOptions) {
    const { host, name, logger, timers, informerMetrics } = options;
    this.#o = options;
    this.#clock = options.clock ?? Date.now;
    this.#monotonic = options.monotonic ?? monotonic;
    this.#coalesceMs = options.coalesceMs ?? 2_000;
    this.#times = { heartbeatMs: options.heartbeatMs ?? 300_000, littleRoomMs: options.littleRoomMs ?? 30_000 };
    this.#lease = new NodeLease(host, name, options.leaseSeconds ?? 40);
    this.#informer = new Informer<Node>({
      client: host,
      resource: NODES,
      fieldSelector: `metadata.name=${name}`,
      logger,
      metrics: informerMetrics,
    });
    this.#queue = new WorkQueue({
      name: `node-${name}`,
      concurrency: 2,
      handler: (key, signal) => (key === LEASE ? this.#renew(signal) : this.#sync(signal)),
      // A host that comes back must hear of us before it gives the node up (50 s; before 1.32: 40 s).
      backoff: { baseMs: 200, maxMs: 7_000 },
      graceMs: 1_000,
      timers,
      logger,
    });
  }

  /** Whether this process made the Node: no other one can have acted for it before. */
  get madeHere(): boolean {
    return this.#madeUid !== undefined && this.#madeUid === this.#current()?.metadata.uid;
  }

  /** Why the Node is not as it should be, in words for people; undefined while all is well. */
  get problem(): string | undefined {
    return this.#o.standing.refusal?.message ?? this.#failure;
  }

  /** All that stand on it, whoever put them there; undefined while there is no Node, or none has been seen. */
  get taints(): readonly Taint[] | undefined {
    const node = this.#current();
    return node === undefined ? undefined : (node.spec?.taints ?? []);
  }

  /** The facts behind the Node changed. Cheap; many calls become one report. */
  trigger(): void {
    this.#queue.addAfter(NODE, this.#dueInMs());
  }

  /**
   * The room behind the Node changed. A pod that ends does so in the member first, and in the host a moment later: between the two
   * its requests are on top of its room, which is nothing to report.
   */
  roomChanged(): void {
    this.#queue.addAfter(NODE, Math.max(this.#dueInMs(), this.#coalesceMs / LOOKS));
  }

  /** Keeps the Node until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const off = this.#informer.on({
      added: (node) => this.#seen(node),
      updated: (node) => this.#seen(node),
      deleted: (node) => this.#deleted(node),
    });
    const running = Promise.all([this.#informer.run(signal), this.#queue.run(signal)]);
    // Aborted before: then the queue is closed too, and the key is not taken.
    await this.#informer.whenSynced(signal).catch(() => undefined);
    this.#queue.add(NODE);
    await running;
    off();
  }

  #dueInMs(): number {
    const due = Math.max(this.#reportedAt + this.#coalesceMs, this.#lookedAt + this.#coalesceMs / LOOKS);
    return due - this.#monotonic();
  }

  /** Whose it is counts at once, whatever else may wait. */
  #seen(node: Node): void {
    if (this.#current()?.metadata.uid === node.metadata.uid) this.#mayTouch(node);
    this.#o.seen?.();
    this.trigger();
  }

  #deleted(node: Node): void {
    const { standing, freedMs = FREED_MS } = this.#o;
    if (standing.refusal === undefined) this.#former = node;
    else this.#leftUntil = this.#monotonic() + freedMs;
    standing.absent();
    if (this.#written?.node.metadata.uid === node.metadata.uid) this.#written = undefined;
    this.#queue.add(NODE, 'high');
  }

  /** The Node as it is, from the watch or from the answer to a write that is newer. */
  #current(): Node | undefined {
    const known = this.#informer.get(this.#o.name);
    const cached = known !== undefined && known.metadata.uid === this.#goneUid ? undefined : known;
    const written = this.#written;
    if (written === undefined) return cached;
    if (cached === undefined) return this.#monotonic() - written.at < WRITTEN_TRUST_MS ? written.node : undefined;
    const behind = isOlder(cached.metadata.resourceVersion, written.node.metadata.resourceVersion);
    return behind ? written.node : cached;
  }

  async #sync(signal: AbortSignal): Promise<void | { requeueAfterMs: number }> {
    // What has not been seen yet is not absent.
    if (!this.#informer.hasSynced) return;
    this.#lookedAt = this.#monotonic();
    try {
      const requeueAfterMs = await this.#bringInLine(this.#o.desired(), signal);
      this.#failure = undefined;
      return { requeueAfterMs };
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) {
        // The Node changed or went while we wrote: what it is now, only the API server knows.
        await this.#look(signal);
        return { requeueAfterMs: 100 };
      }
      this.#failure = `Node ${this.#o.name} could not be written: ${describeError(error)}`;
      throw error;
    }
  }

  /** One pass; answers in how many milliseconds the next is due at the latest. */
  async #bringInLine(desired: DesiredNode, signal: AbortSignal): Promise<number> {
    const left = this.#leftUntil - this.#monotonic();
    if (left > 0 && this.#current() === undefined) return left;
    if (this.#current() === undefined && !this.#makes()) {
      this.#o.standing.vacant();
      return REFUSED_MS;
    }
    let node = this.#current() ?? (await this.#make(desired, signal));
    if (!this.#mayTouch(node)) return REFUSED_MS;
    if (this.#leasedUid !== node.metadata.uid) {
      this.#leasedUid = node.metadata.uid;
      this.#queue.add(LEASE);
    }
    let refused: unknown;
    try {
      node = await this.#mark(node, desired, signal);
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) throw error;
      // One label that the API server will not have must not keep the status from being reported.
      refused = error;
    }
    node = await this.#report(node, desired, signal);
    if (refused !== undefined) throw refused;
    const now = this.#clock();
    const dueMs = isProvisional(desired)
      ? PROVISIONAL_MS
      : Math.max(1_000, nextReport(node, desired, now, this.#times) - now);
    const restMs = this.#roomFrom - this.#monotonic();
    return Math.min(dueMs, desired.changesInMs ?? dueMs, restMs > 0 ? restMs : dueMs);
  }

  /** A Node that retires and that somebody else deleted is made anew as long as there are pods on it. */
  #makes(): boolean {
    const wanted = this.#o.isWanted?.() ?? true;
    if (wanted) this.#removed = false;
    return wanted || (this.#former !== undefined && !this.#removed && this.#o.isInUse?.() !== false);
  }

  /** Removes the Node as it is known here, which has no pods, for good. @throws whatever the API server answers */
  async remove(signal: AbortSignal): Promise<void> {
    const { manager, name, standing } = this.#o;
    const node = this.#current();
    if (node === undefined || !standing.ours) return;
    const { uid, resourceVersion } = node.metadata;
    this.#removed = true;
    try {
      await remove(manager, NODES, { name }, { uid, resourceVersion }, { signal });
    } catch (error) {
      if (isNotFound(error)) return;
      this.#removed = false;
      throw error;
    }
  }

  async #renew(signal: AbortSignal): Promise<{ requeueAfterMs: number }> {
    const node = this.#current();
    if (node === undefined) {
      // The watch should have told of it; this is for the day it did not.
      this.#queue.add(NODE);
    } else if (this.#o.standing.ours) {
      await this.#lease.renew(node, this.#clock(), signal);
    }
    return { requeueAfterMs: this.#o.leaseRenewMs ?? 10_000 };
  }

  async #make(desired: DesiredNode, signal: AbortSignal): Promise<Node> {
    const { host, manager, name, logger } = this.#o;
    const { node, reserved } = bySelf(newNode(desired, this.#former, this.#clock()));
    try {
      const made = this.#remember(await create(host, NODES, node, { signal }));
      if (this.#former === undefined) this.#madeUid = made.metadata.uid;
      logger.info({ node: name, again: this.#former !== undefined }, 'virtual node registered');
      this.#reportedAt = this.#monotonic();
      if (reserved === undefined) return made;
      const body = { metadata: { uid: made.metadata.uid, labels: reserved } };
      return this.#remember(await patch<Node>(manager, NODES, { name }, body, { type: 'merge' }, { signal }));
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return this.#remember(await get<Node>(host, NODES, { name }, { signal }));
    }
  }

  #mayTouch(node: Node): boolean {
    const { events, logger, name, standing } = this.#o;
    const ours = standing.see(node);
    const refusal = standing.refusal?.message;
    if (refusal !== undefined && refusal !== this.#told) {
      logger.error({ node: name }, refusal);
      const subject = { apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid };
      events?.record(subject, 'Warning', 'NodeNameTaken', refusal);
    }
    this.#told = refusal;
    return ours;
  }

  async #mark(node: Node, desired: DesiredNode, signal: AbortSignal): Promise<Node> {
    const body = metadataPatch(node, desired);
    if (body === undefined) return node;
    const lost = foreignTaintsLost(node, body);
    if (lost.length > 0) {
      const invariants = this.#o.invariants ?? UNCOUNTED;
      throw invariants.violated('I12', 'removal of a taint that is not ours', {
        node: node.metadata.name,
        taints: lost,
      });
    }
    const { manager, name } = this.#o;
    const same = forSame(node, body);
    return this.#remember(await patch<Node>(manager, NODES, { name }, same, { type: 'merge' }, { signal }));
  }

  async #report(node: Node, desired: DesiredNode, signal: AbortSignal): Promise<Node> {
    const now = this.#clock();
    const body = statusPatch(node, desired, now, this.#times);
    if (body === undefined) return node;
    const { host, name, pace } = this.#o;
    // What else is to be told does not wait, and takes the room with it.
    if (isOfRoomAlone(node, desired, now, this.#times)) {
      if (this.#monotonic() < this.#roomFrom) return node;
      this.#roomFrom = pace.wrote();
    }
    this.#reportedAt = this.#monotonic();
    const how = { type: 'strategic', subresource: 'status' } as const;
    return this.#remember(await patch<Node>(host, NODES, { name }, forSame(node, body), how, { signal }));
  }

  /** Reads the Node past the cache. */
  async #look(signal: AbortSignal): Promise<void> {
    try {
      this.#mayTouch(this.#remember(await get<Node>(this.#o.host, NODES, { name: this.#o.name }, { signal })));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const gone = this.#current();
      this.#goneUid = gone?.metadata.uid;
      this.#former = gone;
      this.#written = undefined;
    }
  }

  #remember(node: Node): Node {
    this.#written = { node, at: this.#monotonic() };
    return node;
  }
}

/** For this Node only: another one of its name may be anybody's. */
function forSame({ metadata: { uid } }: Node, body: JsonObject): JsonObject {
  const metadata = isJsonObject(body['metadata']) ? body['metadata'] : {};
  return uid === undefined ? body : { ...body, metadata: { ...metadata, uid } };
}

function isProvisional(desired: DesiredNode): boolean {
  return !desired.labelsComplete || desired.allocatable === undefined || desired.undecidedTaints.length > 0;
}

/** The Node as it may make itself, and the labels that somebody else has to put on it. */
function bySelf(node: Node): { node: Node; reserved: Record<string, string> | undefined } {
  const labels = Object.entries(node.metadata.labels ?? {});
  const reserved = labels.filter(([key]) => !mayLabelItself(key));
  if (reserved.length === 0) return { node, reserved: undefined };
  const own = Object.fromEntries(labels.filter(([key]) => mayLabelItself(key)));
  return { node: { ...node, metadata: { ...node.metadata, labels: own } }, reserved: Object.fromEntries(reserved) };
}
