import { jsonEqual } from '../kube/json-equal.ts';
import type { CompiledPolicy } from '../placement/policy-selection.ts';

/** For how long a policy that went may come back (ms): one that is made anew (`kubectl replace --force`, a tool that syncs) is gone for a moment. */
const BACK_MS = 60_000;
/** Most that are kept of one namespace, and of the cluster: each pod is compared with them, and whoever may write policies may write many. */
const MOST = 1_000;

interface Gone {
  readonly policy: CompiledPolicy;
  /** Monotonic ms. */
  readonly at: number;
}

/**
 * Policies in use as they were until they were deleted, chose other objects, or could not be used any more, less than a minute ago. Of one that went more than once
 * the first counts, which was there longest, and the last. No former process is known to have seen any: after a restart what is there counts.
 */
export class GonePolicies {
  readonly #monotonic: () => number;
  /** By namespace; '' for those of the cluster. */
  readonly #gone = new Map<string, readonly Gone[]>();

  /** `monotonic` in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** `now`: what it is by now, if it is in use. */
  changed(before: CompiledPolicy | undefined, now: CompiledPolicy | undefined): void {
    if (before === undefined || (now !== undefined && chooseAlike(before, now))) return;
    const { name, namespace = '' } = before.policy.metadata;
    const known = this.#lately(namespace);
    const [, between] = known.filter(({ policy }) => policy.policy.metadata.name === name);
    const others = known.filter((one) => one !== between);
    this.#gone.set(namespace, [...others, { policy: before, at: this.#monotonic() }].slice(-MOST));
  }

  /** Those that spoke of objects of a namespace, those of the cluster included. */
  inSight(namespace: string): readonly CompiledPolicy[] {
    if (this.#gone.size === 0) return [];
    return [...this.#lately(namespace), ...this.#lately('')].map(({ policy }) => policy);
  }

  #lately(namespace: string): readonly Gone[] {
    const known = this.#gone.get(namespace) ?? [];
    const lately = known.filter(({ at }) => this.#monotonic() - at < BACK_MS);
    if (lately.length === 0) this.#gone.delete(namespace);
    else if (lately.length < known.length) this.#gone.set(namespace, lately);
    return lately;
  }
}

function chooseAlike(a: CompiledPolicy, b: CompiledPolicy): boolean {
  return jsonEqual(a.policy.spec.resourceSelectors, b.policy.spec.resourceSelectors);
}
