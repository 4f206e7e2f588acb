import { jsonEqual } from '../kube/json-equal.ts';
import type { CompiledPolicy } from '../placement/policy-selection.ts';

/** For how long a policy that went may come back (ms): one that is made anew (`kubectl replace --force`, a tool that syncs) is gone for a moment. */
const BACK_MS = 60_000;

interface Gone {
  readonly policy: CompiledPolicy;
  /** Monotonic ms. */
  readonly at: number;
}

/**
 * Policies in use as they were until they were deleted, chose other objects, or could not be used any more, less than a minute ago. No former process is known to have
 * seen any: after a restart what is there counts.
 */
export class GonePolicies {
  readonly #monotonic: () => number;
  #gone: readonly Gone[] = [];

  /** `monotonic` in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** `now`: what it is by now, if it is in use. */
  changed(before: CompiledPolicy | undefined, now: CompiledPolicy | undefined): void {
    if (before === undefined || (now !== undefined && chooseAlike(before, now))) return;
    this.#gone = [...this.#lately(), { policy: before, at: this.#monotonic() }];
  }

  get policies(): readonly CompiledPolicy[] {
    if (this.#gone.length > 0) this.#gone = this.#lately();
    return this.#gone.map(({ policy }) => policy);
  }

  #lately(): readonly Gone[] {
    return this.#gone.filter(({ at }) => this.#monotonic() - at < BACK_MS);
  }
}

function chooseAlike(a: CompiledPolicy, b: CompiledPolicy): boolean {
  return jsonEqual(a.policy.spec.resourceSelectors, b.policy.spec.resourceSelectors);
}
