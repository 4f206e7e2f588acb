import { LRUCache } from 'lru-cache';
import type { Pod } from '../api/wire.ts';
import { stillAvoided } from '../placement/avoided.ts';
import type { Avoided } from '../placement/avoided.ts';
import type { Decision, Plan } from '../placement/choice.ts';
import type { OwnerChain, TypedObject, WorkloadIdentity } from '../placement/owner-chain.ts';
import type { Selection } from '../placement/policy-selection.ts';

export type Rules = NonNullable<Selection['chosen']>;

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
  plannedAt: number;
  last: { made: Made; at: number } | undefined;
  avoided: readonly Avoided[];
}

/** Workloads whose pods came lately; those that are left out are known from their WorkloadPlacement again. */
const MAX_WORKLOADS = 20_000;

/** What decisions about workloads leave behind, by UID of the workload. */
export class WorkloadBook {
  readonly #memories = new LRUCache<string, WorkloadMemory>({ max: MAX_WORKLOADS });
  readonly #clock: () => number;
  readonly #handlers = new Set<(workload: TypedObject) => void>();
  readonly #onProblem: (chain: OwnerChain, problem: string) => void;

  constructor(o: { clock: () => number; onAnnotationProblem: (chain: OwnerChain, problem: string) => void }) {
    this.#clock = o.clock;
    this.#onProblem = o.onAnnotationProblem;
  }

  /** Calls the handler after something about a workload was remembered. */
  on(handler: (workload: TypedObject) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  plan({ metadata }: TypedObject): Plan | undefined {
    return this.#memories.get(metadata.uid ?? '')?.plan;
  }

  avoided({ metadata }: TypedObject): readonly Avoided[] {
    return stillAvoided(this.#memories.get(metadata.uid ?? '')?.avoided ?? [], this.#clock());
  }

  memory({ metadata }: TypedObject): WorkloadMemory | undefined {
    return this.#memories.get(metadata.uid ?? '');
  }

  decided(made: Made): void {
    const { object } = made.identity;
    const memory = this.#of(object);
    const now = this.#clock();
    memory.plan = made.decision.plan;
    memory.plannedAt = now;
    memory.last = { made, at: now };
    this.#tell(object);
  }

  annotationProblem(chain: OwnerChain, problem: string): void {
    this.#onProblem(chain, problem);
  }

  #of({ metadata }: TypedObject): WorkloadMemory {
    const { uid = '' } = metadata;
    let memory = this.#memories.get(uid);
    if (memory === undefined) {
      memory = { plan: undefined, plannedAt: 0, last: undefined, avoided: [] };
      this.#memories.set(uid, memory);
    }
    return memory;
  }

  #tell(workload: TypedObject): void {
    for (const handler of this.#handlers) handler(workload);
  }
}
