import { LRUCache } from 'lru-cache';
import type { WorkloadPlacementStatus } from '../api/workload-placement.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { ownerKeyOf } from '../kube/owner-references.ts';
import { avoid, mergedAvoided, stillAvoided } from '../placement/avoided.ts';
import type { Avoided } from '../placement/avoided.ts';
import type { Decision, Plan } from '../placement/decision.ts';
import type { OwnerChain, TypedObject, WorkloadIdentity } from '../placement/owner-chain.ts';
import { remembered } from '../placement/placement-report.ts';
import { plansAlike } from '../placement/plans-alike.ts';
import type { Rules } from '../placement/policy-selection.ts';

/** A decision about one pod of a workload. */
export interface Made {
  readonly chain: OwnerChain;
  readonly identity: WorkloadIdentity;
  readonly pod: Pod;
  readonly rules: Rules;
  readonly decision: Decision;
}

/** What is remembered of a workload between two of its pods. */
export interface WorkloadMemory {
  plan: Plan | undefined;
  /** Wall clock in ms. */
  plannedAt: number | undefined;
  /** Until when the plan counts as this process made it, in ms of the monotonic clock. */
  ownUntil: number;
  /** In the life of this process. */
  last: { readonly made: Made; readonly at: number } | undefined;
  avoided: readonly Avoided[];
}

export interface WorkloadStateOptions {
  /** What a WorkloadPlacement says of the workload, as another replica or an earlier process left it. */
  stored: (workload: TypedObject) => WorkloadPlacementStatus | undefined;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/**
 * So long a plan counts as this process made it, in ms: until pods have their places and it is stored, as far as they have. From then on
 * what is stored counts, as schedulers may ask another replica. Which of the two is newer their times would not say: clocks differ.
 */
const OWN_PLAN_MS = 30_000;
const NOTHING: WorkloadMemory = {
  plan: undefined,
  plannedAt: undefined,
  ownUntil: -Infinity,
  last: undefined,
  avoided: [],
};

/** Workloads whose pods came lately; the others are known from their WorkloadPlacement again. */
const MAX_WORKLOADS = 20_000;

/** What decisions about workloads leave to the next one, by key of the workload (owner-references.ts). */
export class WorkloadState {
  readonly #o: WorkloadStateOptions;
  readonly #memories = new LRUCache<string, WorkloadMemory>(atMost(MAX_WORKLOADS));
  readonly #handlers = new Set<(workload: TypedObject) => void>();

  constructor(options: WorkloadStateOptions) {
    this.#o = options;
  }

  /** Calls the handler after something about a workload was remembered. Returns what ends that. */
  on(handler: (workload: TypedObject) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  memory(workload: TypedObject): WorkloadMemory {
    const key = ownerKeyOf(workload);
    const known = this.#memories.get(key);
    const status = this.#o.stored(workload);
    if (status?.plannedAt === undefined) return known ?? NOTHING;
    const stored = remembered(status);
    // Each replica sees refusals of its own; one that is over says nothing of when the next began.
    const now = this.#o.clock();
    const avoided = mergedAvoided(stillAvoided(known?.avoided ?? [], now), stillAvoided(stored.avoided, now));
    if (known !== undefined && known.ownUntil > this.#o.monotonic()) return { ...known, avoided };
    return { ...NOTHING, ...known, avoided, plan: stored.plan, plannedAt: Date.parse(status.plannedAt) };
  }

  plan(workload: TypedObject): Plan | undefined {
    return this.memory(workload).plan;
  }

  avoided(workload: TypedObject): readonly Avoided[] {
    return stillAvoided(this.memory(workload).avoided, this.#o.clock());
  }

  decided(made: Made): void {
    const { object } = made.identity;
    this.#remember(object, { ...this.#planned(object, made.decision.plan), last: { made, at: this.#o.clock() } });
  }

  /** The same, by room that is not what it is: its plan is not for those that come next. */
  decidedForNow(made: Made): void {
    this.#remember(made.identity.object, { last: { made, at: this.#o.clock() } });
  }

  /** The plan was worked out anew without a pod that asked. */
  refreshed(workload: TypedObject, plan: Plan): void {
    this.#remember(workload, this.#planned(workload, plan));
  }

  /** One that says the same again does not count for longer: else what others store would not, for as long as pods come. */
  #planned(workload: TypedObject, plan: Plan): Pick<WorkloadMemory, 'plan' | 'plannedAt' | 'ownUntil'> {
    const before = this.memory(workload);
    const ownUntil = plansAlike(before.plan, plan) ? before.ownUntil : this.#o.monotonic() + OWN_PLAN_MS;
    return { plan, plannedAt: this.#o.clock(), ownUntil };
  }

  /** The plan is kept from being stored for so long, in ms: until then it counts as this process made it. That is no news to anybody. */
  notStoredYet(workload: TypedObject, forMs: number): void {
    const key = ownerKeyOf(workload);
    const known = this.#memories.get(key);
    if (known === undefined) return;
    const ownUntil = Math.max(known.ownUntil, this.#o.monotonic() + forMs);
    this.#memories.set(key, { ...known, ownUntil });
  }

  /** A member refused a pod of the workload and is left alone for so long, in ms. */
  refused(workload: TypedObject, refusal: { cluster: string; reason: string; message: string }, forMs: number): void {
    const avoided = avoid(this.memory(workload).avoided, refusal, this.#o.clock(), forMs);
    this.#remember(workload, { avoided });
  }

  #remember(workload: TypedObject, news: Partial<WorkloadMemory>): void {
    this.#memories.set(ownerKeyOf(workload), { ...this.memory(workload), ...news });
    for (const handler of this.#handlers) handler(workload);
  }
}
