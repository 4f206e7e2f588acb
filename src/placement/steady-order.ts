import type { CostedPod } from './costed-pod.ts';

/** Of the pods that a cluster is to have at a size, and of those that it is to have lost by then. */
const SLACK = 1 / 50;
const LATER_SLACK = 1 / 20;

/** So few pods can be given new costs whenever one comes, and with few of them a pod more or less may empty a cluster. */
export const EXACT_UP_TO = 20;

/**
 * An order of removal in which as many pods as possible stay in the order that their costs give them, and at every size each
 * cluster still has its exact number of pods, but for one, or one in fifty, or one in twenty of those that it has lost by then.
 * For divisions by room: their exact order is another one after every pod that came, the more so the further ahead, and what
 * matters of it is that pods go in proportion. Up to 20 pods keep the exact order. With `strict`, for policies with tiers or
 * spread constraints, what the exact order empties first is empty as soon, and where it keeps a last pod one stays.
 *
 * @param exact the cluster of each pod, the first to go first; as many of each as there are pods.
 */
export function steadyOrder(exact: readonly string[], pods: readonly CostedPod[], strict: boolean): readonly string[] {
  if (exact.length <= EXACT_UP_TO) return exact;
  const waiting = new Waiting(exact, pods);
  // At the size that was come to, from nothing upwards.
  const all = new Map<string, number>();
  for (const cluster of exact) all.set(cluster, (all.get(cluster) ?? 0) + 1);
  const [ideal, placed] = [new Map<string, number>(), new Map<string, number>()];
  const surplus = (cluster: string): number => (placed.get(cluster) ?? 0) - (ideal.get(cluster) ?? 0);
  const mayHaveMore = (cluster: string): boolean =>
    (!strict || ideal.has(cluster)) && surplus(cluster) < slack(cluster);
  const slack = (cluster: string): number => {
    const own = ideal.get(cluster) ?? 0;
    return 1 + Math.floor(own * SLACK + ((all.get(cluster) ?? 0) - own) * LATER_SLACK);
  };
  const order: string[] = [];
  for (const due of exact.toReversed()) {
    ideal.set(due, (ideal.get(due) ?? 0) + 1);
    const isOverdue = surplus(due) < (strict && ideal.get(due) === 1 ? 0 : -slack(due));
    const next = waiting.next();
    const usual = next !== undefined && mayHaveMore(next) ? next : undefined;
    const behind = [due, ...ideal.keys()].filter((name) => surplus(name) < 0);
    const fresh = usual !== undefined && surplus(usual) < 0 ? undefined : behind.find((name) => waiting.hasFresh(name));
    const cluster = isOverdue ? due : (fresh ?? usual ?? behind[0] ?? due);
    waiting.take(cluster);
    placed.set(cluster, (placed.get(cluster) ?? 0) + 1);
    order.push(cluster);
  }
  return order.toReversed();
}

/** Pods that have no place yet. */
class Waiting {
  readonly #last: string | undefined;
  /** Those with costs, the highest first; undefined where one was taken out of turn. */
  readonly #costed: (CostedPod | undefined)[];
  /** Where those of each cluster are in that list, the lowest cost at the end. */
  readonly #places = new Map<string, number[]>();
  /** How many have no cost yet, by cluster. */
  readonly #fresh = new Map<string, number>();
  #turn = 0;
  /** Only pods of the cluster that comes last were taken: of these, those without a cost, which counts as 0, are in place. */
  #isLastBand = true;

  constructor(exact: readonly string[], pods: readonly CostedPod[]) {
    this.#last = exact.at(-1);
    const known = pods.filter(({ cost }) => cost !== undefined);
    this.#costed = known.toSorted((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || (a.uid < b.uid ? 1 : -1));
    for (const [index, pod] of this.#costed.entries()) {
      const own = this.#places.get(pod?.cluster ?? '') ?? [];
      own.push(index);
      this.#places.set(pod?.cluster ?? '', own);
    }
    for (const { cost, cluster } of pods) {
      if (cost === undefined) this.#fresh.set(cluster, (this.#fresh.get(cluster) ?? 0) + 1);
    }
  }

  /** The cluster of the pod whose turn it is by its cost. */
  next(): string | undefined {
    while (this.#turn < this.#costed.length && this.#costed[this.#turn] === undefined) this.#turn += 1;
    const costed = this.#costed[this.#turn];
    return this.#hasSilent(costed) ? this.#last : costed?.cluster;
  }

  /** Whether there are pods of the cluster that have no cost yet. */
  hasFresh(cluster: string): boolean {
    return (this.#fresh.get(cluster) ?? 0) > 0;
  }

  /** One of the cluster: that whose turn it is, or one that has no cost yet, or the one that was to go first. */
  take(cluster: string): void {
    const isNext = this.next() === cluster;
    const costed = this.#costed[this.#turn];
    const fresh = this.#fresh.get(cluster) ?? 0;
    if (isNext && !this.#hasSilent(costed)) this.#remove(this.#turn);
    else if (fresh > 0) this.#fresh.set(cluster, fresh - 1);
    else this.#remove(this.#farthest(cluster));
    if (cluster !== this.#last) this.#isLastBand = false;
  }

  #hasSilent(costed: CostedPod | undefined): boolean {
    const isAbove = costed === undefined || (costed.cost ?? 0) < 0;
    return this.#isLastBand && isAbove && (this.#fresh.get(this.#last ?? '') ?? 0) > 0;
  }

  #remove(index: number | undefined): void {
    if (index !== undefined) this.#costed[index] = undefined;
  }

  #farthest(cluster: string): number | undefined {
    const places = this.#places.get(cluster) ?? [];
    let index = places.pop();
    while (index !== undefined && this.#costed[index] === undefined) index = places.pop();
    return index;
  }
}
