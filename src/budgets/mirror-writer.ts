import { isAlreadyExists } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { BudgetMemory } from './budget-memory.ts';
import type { BudgetMetrics } from './budget-metrics.ts';
import type { CopiesInNamespace } from './covered-pods.ts';
import { wantedFloor } from './floor.ts';
import type { HostBudget } from './host-budget.ts';
import type { MirrorStore } from './mirror-store.ts';
import { mirroredBudget, type MirroredBudget, otherName } from './mirrored-budget.ts';

export interface MirrorWriterOptions {
  readonly hostId: string;
  /** Name of the MemberCluster. */
  readonly member: string;
  /** The member may evict more once that has been so for so long, in ms. */
  readonly settleMs: number;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: BudgetMetrics;
}

/** One namespace of the member, and the copies there that a budget of the host covers. */
interface Place {
  readonly namespace: string;
  readonly copies: CopiesInNamespace;
  /** So many of them may be evicted now. */
  readonly evictable: number;
  readonly memory: BudgetMemory;
  /** Monotonic, in ms. */
  readonly now: number;
}

/** Writes the budgets in one member: narrower ones at once, wider ones once that has been so for a while. */
export class MirrorWriter {
  readonly #o: MirrorWriterOptions;
  /** Budgets of the host whose name somebody else has in the member. */
  readonly #taken = new Set<string>();

  constructor(options: MirrorWriterOptions) {
    this.#o = options;
  }

  /** Brings the budget in one namespace of the member up to date. Returns after how long to look again, in ms. */
  async keep(mirrors: MirrorStore, budget: HostBudget, at: Place, signal: AbortSignal): Promise<number> {
    const { namespace, copies, evictable, memory, now } = at;
    const [mirror, ...more] = mirrors.of(budget.key).filter((one) => one.namespace === namespace);
    for (const one of more) await this.remove(mirrors, one, signal);
    const current = mirror === undefined || mirror.minAvailable < 0 ? undefined : mirror.minAvailable;
    const { uids, healthy } = copies;
    const floor = wantedFloor({ copies: uids.size, healthy, evictable, isMet: budget.isMet, current });
    const widerMs = memory.lasting(`wider in ${namespace}`, floor.when === 'later', now);
    const isDue = floor.when === 'later' && widerMs >= this.#o.settleMs;
    const isIncomplete =
      mirror !== undefined &&
      (mirror.unhealthyPodEvictionPolicy !== budget.unhealthyPodEvictionPolicy ||
        [...uids].some((uid) => !mirror.uids.has(uid)));
    if (floor.when === 'now' || isDue || isIncomplete) {
      const before = current ?? 0;
      const kept = evictable > 0 ? before : Math.max(before, uids.size);
      const minAvailable = floor.when === 'now' || isDue ? floor.minAvailable : kept;
      await this.#put(mirrors, budget, mirror, { namespace, uids, minAvailable }, signal);
      return floor.when === 'later' && !isDue ? this.#o.settleMs - widerMs : Infinity;
    }
    return floor.when === 'later' ? this.#o.settleMs - widerMs : Infinity;
  }

  async #put(
    mirrors: MirrorStore,
    budget: HostBudget,
    mirror: MirroredBudget | undefined,
    wanted: { namespace: string; uids: ReadonlySet<string>; minAvailable: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { hostId, member } = this.#o;
    const { namespace } = wanted;
    const place = `${namespace}/${budget.key}`;
    const other = otherName(budget, hostId, member);
    const name = mirror?.name ?? (this.#taken.has(place) ? other : budget.name);
    const made = mirroredBudget({ budget, hostId, member, name, ...wanted });
    this.#count();
    if (mirror !== undefined) {
      const { uid, resourceVersion } = mirror;
      await mirrors.replace({ ...made, metadata: { ...made.metadata, uid, resourceVersion } }, signal);
      return;
    }
    try {
      await mirrors.create(made, signal);
    } catch (error) {
      if (!isAlreadyExists(error) || name === other) throw error;
      if ((await mirrors.isOurs(budget.key, { namespace, name }, signal)) !== false) throw error;
      this.#taken.add(place);
      this.#recordTaken(budget, namespace, other);
      await mirrors.create({ ...made, metadata: { ...made.metadata, name: other } }, signal);
    }
  }

  #recordTaken({ namespace, name, uid }: HostBudget, memberNamespace: string, other: string): void {
    const { events, member } = this.#o;
    const object = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace, name, uid };
    const message =
      `Cluster "${member}" has a PodDisruptionBudget ${memberNamespace}/${name} of its own, which stays as it is. ` +
      `This one is called ${other} there. A pod that both cover cannot be evicted there at all.`;
    events.record(object, 'Warning', 'BudgetNameTaken', message);
  }

  /** All that stand for one budget of the host. */
  async removeAll(mirrors: MirrorStore, hostKey: string, signal: AbortSignal): Promise<void> {
    for (const mirror of mirrors.of(hostKey)) await this.remove(mirrors, mirror, signal);
  }

  async remove(mirrors: MirrorStore, mirror: MirroredBudget, signal: AbortSignal): Promise<void> {
    this.#count();
    await mirrors.remove(mirror, signal);
  }

  #count(): void {
    const { metrics, member } = this.#o;
    metrics.writes.inc({ member, object: 'mirror' });
  }
}
