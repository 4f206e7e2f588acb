import PQueue from 'p-queue';
import { childSignal } from '../../kube/child-signal.ts';
import { pause } from '../../kube/timers.ts';
import { UsageRefused } from './member-kubelets.ts';
import { uidOf, type UsageTarget } from './usage-target.ts';

export interface NodeReadingsOptions<T> {
  /** Reads one node of the member, for these pods on it. */
  read: (node: string, targets: readonly UsageTarget[], signal: AbortSignal) => Promise<T>;
  /** Told of each read. */
  onRead: (result: 'ok' | 'refused' | 'failed', seconds: number, error: unknown) => void;
  /** How long a reading that could not be renewed may stand in, in ms. */
  keepMs: number;
  /** ms */
  /** In ms. */
  monotonic: () => number;
  /** Ends everything. */
  signal: AbortSignal;
}

interface NodeState<T> {
  value: T | undefined;
  takenAt: number;
  /** Of the pods that the value may tell of. */
  uids: ReadonlySet<string>;
  failed: boolean;
  refusedUntil: number;
  reading: Promise<void> | undefined;
}

/** What is known of one node: a value, perhaps of some time ago, and whether the last read failed or was refused. */
export type NodeReading<T> = Readonly<Pick<NodeState<T>, 'value' | 'uids' | 'failed'>> & { readonly refused: boolean };

/** One reading serves every scraper for so long, in ms; a pod that is new since then shortens it. */
const FRESH_MS = 5000;
const FRESH_FOR_NEW_PODS_MS = 1000;
const REFUSED_MS = 60_000;
/** Deadlines of one node and of a whole scrape, in ms: scrapers wait for ten seconds. */
const NODE_MS = 6000;
const ALL_MS = 8000;
const CONCURRENCY = 8;

/** Readings of the member's nodes that run our pods: fetched side by side, shared, kept for a while when one is silent. */
export class NodeReadings<T> {
  readonly #o: NodeReadingsOptions<T>;
  readonly #queue = new PQueue({ concurrency: CONCURRENCY });
  readonly #nodes = new Map<string, NodeState<T>>();

  constructor(options: NodeReadingsOptions<T>) {
    this.#o = options;
  }

  /** Brings the nodes up to date as far as that is possible in 8 s. Never rejects. */
  async refresh(wanted: ReadonlyMap<string, readonly UsageTarget[]>): Promise<void> {
    for (const [node, { reading }] of this.#nodes) {
      if (!wanted.has(node) && reading === undefined) this.#nodes.delete(node);
    }
    const reading = [...wanted].map(([node, targets]) => this.#refreshNode(node, targets));
    const done = childSignal(this.#o.signal);
    await Promise.race([Promise.all(reading).then(() => done.abort()), pause(ALL_MS, done.signal)]);
    done.release();
  }

  of(node: string): NodeReading<T> | undefined {
    const state = this.#nodes.get(node);
    if (state === undefined) return undefined;
    const now = this.#o.monotonic();
    const { value, uids, failed, takenAt, refusedUntil } = state;
    const usable = now - takenAt <= this.#o.keepMs ? value : undefined;
    return {
      value: usable,
      uids,
      failed: failed || (usable === undefined && refusedUntil <= now),
      refused: refusedUntil > now,
    };
  }

  /** Drops all values. */
  clear(): void {
    for (const state of this.#nodes.values()) state.value = undefined;
  }

  /** Resolves when no read is under way. */
  async idle(): Promise<void> {
    await this.#queue.onIdle();
  }

  async #refreshNode(node: string, targets: readonly UsageTarget[]): Promise<void> {
    const state = this.#stateOf(node);
    const now = this.#o.monotonic();
    if (state.refusedUntil > now) return;
    if (state.value !== undefined) {
      const age = now - state.takenAt;
      const hasNew = targets.some((target) => !state.uids.has(uidOf(target)));
      if (age < (hasNew ? FRESH_FOR_NEW_PODS_MS : FRESH_MS)) return;
    }
    state.reading ??= this.#queue
      .add(() => this.#read(node, state, targets))
      .finally(() => {
        state.reading = undefined;
      });
    await state.reading;
  }

  async #read(node: string, state: NodeState<T>, targets: readonly UsageTarget[]): Promise<void> {
    const { read, monotonic, onRead, signal } = this.#o;
    const began = monotonic();
    const limited = childSignal(signal);
    const timer = setTimeout(() => limited.abort(), NODE_MS);
    try {
      state.value = await read(node, targets, limited.signal);
      state.takenAt = began;
      state.uids = new Set(targets.map(uidOf));
      state.failed = false;
      onRead('ok', (monotonic() - began) / 1000, undefined);
    } catch (error) {
      if (signal.aborted) return;
      const refused = error instanceof UsageRefused;
      if (refused) {
        state.refusedUntil = monotonic() + REFUSED_MS;
        state.value = undefined;
      }
      state.failed = !refused;
      onRead(refused ? 'refused' : 'failed', (monotonic() - began) / 1000, error);
    } finally {
      clearTimeout(timer);
      limited.release();
    }
  }

  #stateOf(node: string): NodeState<T> {
    let state = this.#nodes.get(node);
    if (state === undefined) {
      const never = Number.NEGATIVE_INFINITY;
      state = {
        value: undefined,
        takenAt: never,
        uids: new Set(),
        failed: false,
        refusedUntil: never,
        reading: undefined,
      };
      this.#nodes.set(node, state);
    }
    return state;
  }
}
