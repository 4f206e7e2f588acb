import type { Pod } from '../kube/core-v1.ts';
import type { Informer } from '../kube/informer.ts';
import { DeletionBreaker } from './deletion-breaker.ts';
import type { OwnCopies } from './own-copies.ts';
import type { PodMetrics } from './pod-metrics.ts';
import type { MemberPort } from './pod-ports.ts';

/** The deletion breaker closes by itself when it has had nothing to hold back for so long, in ms. */
const BREAKER_REST_MS = 300_000;

/** Why member pods are kept although their host pods are gone. */
export type OrphanReason = 'BreakerOpen' | 'HostWentBack';

export interface KeptPodsOptions {
  hostPods: Informer<Pod>;
  member: Pick<MemberPort, 'pods'>;
  nodeName: string;
  copies: Pick<OwnCopies, 'all' | 'hostKeyOf'>;
  /** The deletion breaker was open when a former process ended. */
  breakerOpen?: boolean;
  /** What the deletion breaker has permitted in this process, see {@link DeletionPermits}. */
  permits: Map<string, number>;
  metrics: Pick<PodMetrics, 'kept' | 'breakerOpen'>;
  /** Looks at a host pod's key again. */
  requeue: (key: string) => void;
  /** Told when pods begin or cease to be kept. */
  changed: () => void;
  /** In ms. */
  monotonic: () => number;
}

/** Member pods, by UID, that are kept because the evidence does not suffice to delete them. */
export class KeptPods {
  readonly breaker: DeletionBreaker;
  readonly #o: KeptPodsOptions;
  readonly #kept = new Map<string, { key: string; reason: OrphanReason }>();
  #emptySince: number;

  constructor(options: KeptPodsOptions) {
    const { monotonic, permits, breakerOpen: open = false } = options;
    this.#o = options;
    this.#emptySince = monotonic();
    this.breaker = new DeletionBreaker({ monotonic, open, permits });
    this.#show();
  }

  get list(): { uids: string[]; open: boolean; hostWentBack: boolean } {
    const hostWentBack = [...this.#kept.values()].some(({ reason }) => reason === 'HostWentBack');
    return { uids: [...this.#kept.keys()], open: this.breaker.open, hostWentBack };
  }

  reasonOf(uid: string): OrphanReason | undefined {
    return this.#kept.get(uid)?.reason;
  }

  /** `key` is the host pod's. Returns whether it was not kept for that reason before. */
  keep(uid: string, key: string, reason: OrphanReason): boolean {
    if (this.#kept.get(uid)?.reason === reason) return false;
    this.#kept.set(uid, { key, reason });
    this.#changed();
    return true;
  }

  release(uid: string): void {
    if (!this.#kept.delete(uid)) return;
    this.#emptySince = this.#o.monotonic();
    this.#changed();
  }

  /** What was asked about its deletion counts no more. */
  forget({ metadata: { uid = '' } }: Pod): void {
    this.release(uid);
    this.breaker.forget(uid);
  }

  /** An administrator confirms that those of these member pods which are kept here are to be deleted. */
  confirmDeletions(uids: ReadonlySet<string>): void {
    const confirmed = [...this.#kept].filter(([uid]) => uids.has(uid));
    this.breaker.confirm(confirmed.map(([uid]) => uid));
    for (const [, { key }] of confirmed) this.#o.requeue(key);
    this.#changed();
  }

  /**
   * Closes the breaker when what it held back has resolved itself: the host pods are back, or somebody removed the member
   * pods. Only time counts in which it could have held something back, and nothing waits to be judged. `sees`: this process looks,
   * and may act.
   */
  restBreaker(sees: boolean): void {
    if (!this.breaker.open) return;
    const { member, hostPods, monotonic } = this.#o;
    if (!sees || hostPods.problem !== undefined || member.pods.problem !== undefined || this.#hasOrphans()) {
      this.#emptySince = monotonic();
    } else if (this.#kept.size === 0 && monotonic() - this.#emptySince > BREAKER_REST_MS) {
      this.confirmDeletions(new Set());
    }
  }

  /** Whether there are member pods of this virtual node whose host pods are out of sight. */
  #hasOrphans(): boolean {
    const { hostPods, copies } = this.#o;
    for (const pod of copies.all) {
      const key = pod.metadata.deletionTimestamp === undefined ? copies.hostKeyOf(pod) : undefined;
      if (key !== undefined && hostPods.get(key) === undefined) return true;
    }
    return false;
  }

  #changed(): void {
    this.#show();
    this.#o.changed();
  }

  #show(): void {
    const { metrics, nodeName: node } = this.#o;
    metrics.kept.set({ node }, this.#kept.size);
    metrics.breakerOpen.set({ node }, this.breaker.open ? 1 : 0);
  }
}
