import { commonSequence } from './common-sequence.ts';
import type { CostedPod } from './costed-pod.ts';

/** A pod and the place in the order of removal that it takes. */
export interface CostPlace {
  readonly pod: CostedPod;
  /** Number of the run of pods of one cluster it belongs to; pods of a band may have the same cost. */
  readonly band: number;
}

/** Far more than there are pods of one controller. */
const MAX_BANDS = 2 ** 20;

/**
 * Who takes which place in the order of removal, and the indexes of those that can keep what they have. Of two ways the one
 * that keeps more: in the sequence that the order and the costs have in common, which holds wherever pods came or went; or
 * cluster by cluster in the order of their costs, for an order that is another one.
 */
export function costPlaces(
  order: readonly string[],
  pods: readonly CostedPod[],
): { places: CostPlace[]; kept: ReadonlySet<number> } {
  const bands = bandsOf(order);
  const facts = {
    order,
    bands,
    known: pods.filter(({ cost }) => cost !== undefined).toSorted((a, b) => costOf(a) - costOf(b) || byUid(a, b)),
    fresh: byCluster(pods.filter(({ cost }) => cost === undefined).toSorted(byUid)),
  };
  const ways = [inSequence(facts), byRank(facts)].filter((way) => way !== undefined);
  const [first = { places: [], kept: new Set<number>() }, second] = ways.map((way) => {
    const places = way.flatMap((pod, index) => (pod === undefined ? [] : [{ pod, band: bands[index] ?? 0 }]));
    return { places, kept: keepMost(places) };
  });
  return second === undefined || first.kept.size >= second.kept.size ? first : second;
}

interface Facts {
  readonly order: readonly string[];
  readonly bands: readonly number[];
  /** Those that have a cost, the lowest first. */
  readonly known: readonly CostedPod[];
  /** Those that have none yet, by cluster. */
  readonly fresh: Pods;
}

type Pods = ReadonlyMap<string, readonly CostedPod[]>;
/** The pod of each place. */
type Way = (CostedPod | undefined)[];

function inSequence({ order, bands, known, fresh }: Facts): Way | undefined {
  // From the end: pods come and go at the front, where there is room for numbers, and the last places need none.
  const costed = order.slice(0, order.length - silentPlaces({ order, bands, known, fresh })).toReversed();
  const fromEnd = known.toReversed();
  const pairs = commonSequence(
    costed,
    fromEnd.map(({ cluster }) => cluster),
  );
  if (pairs === undefined) return undefined;
  const way: Way = order.map(() => undefined);
  for (const [place, index] of pairs) way[costed.length - 1 - place] = fromEnd[index];
  const seated = new Set(way);
  const left = byCluster(known.filter((pod) => !seated.has(pod)));
  const waiting = queues(order, (cluster) => [...(left.get(cluster) ?? []), ...(fresh.get(cluster) ?? [])]);
  for (let index = order.length - 1; index >= 0; index -= 1) way[index] ??= waiting.get(order[index] ?? '')?.pop();
  return way;
}

/** Those without a cost take the first places, so that the others need not move up, but for those that are fine without. */
function byRank(facts: Facts): Way {
  const { order, known, fresh } = facts;
  const silent = silentPlaces(facts);
  const costed = byCluster(known);
  const waiting = queues(order, (cluster) => {
    const own = fresh.get(cluster) ?? [];
    const fine = cluster === order.at(-1) ? silent : 0;
    return [...own.slice(fine), ...(costed.get(cluster) ?? []), ...own.slice(0, fine)].toReversed();
  });
  return order.map((cluster) => waiting.get(cluster)?.pop());
}

/** How many pods of the last band need no cost: none counts as 0, and what is above goes later still. */
function silentPlaces({ order, bands, known, fresh }: Facts): number {
  const last = order.at(-1) ?? '';
  const size = bands.length - bands.indexOf(bands.at(-1) ?? 0);
  const atTop = known.filter(({ cluster, cost = 0 }) => cluster === last && cost >= 0).length;
  return Math.max(0, Math.min(size - atTop, fresh.get(last)?.length ?? 0));
}

/** The number of the run of equal names that each belongs to. */
function bandsOf(order: readonly string[]): number[] {
  let band = 0;
  return order.map((cluster, index) => (index > 0 && cluster !== order[index - 1] ? (band += 1) : band));
}

/**
 * Indexes of the most pods that can stay as they are: costs rise from band to band and do not fall within one. That is the
 * longest non-decreasing sequence once equal costs of different bands are made to fall.
 */
function keepMost(places: readonly CostPlace[]): Set<number> {
  const keys = places.map(({ pod, band }) => costOf(pod) * MAX_BANDS - band);
  const key = (index: number): number => keys[index] ?? 0;
  const ends: number[] = [];
  const before: (number | undefined)[] = [];
  for (const index of keys.keys()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (key(ends[middle] ?? 0) <= key(index)) low = middle + 1;
      else high = middle;
    }
    before[index] = low === 0 ? undefined : ends[low - 1];
    ends[low] = index;
  }
  const kept = new Set<number>();
  for (let index = ends.at(-1); index !== undefined; index = before[index]) kept.add(index);
  return kept;
}

function queues(order: readonly string[], of: (cluster: string) => CostedPod[]): Map<string, CostedPod[]> {
  return new Map([...new Set(order)].map((cluster) => [cluster, of(cluster)]));
}

function byCluster(pods: readonly CostedPod[]): Map<string, CostedPod[]> {
  const all = new Map<string, CostedPod[]>();
  for (const pod of pods) {
    const own = all.get(pod.cluster);
    if (own === undefined) all.set(pod.cluster, [pod]);
    else own.push(pod);
  }
  return all;
}

const costOf = ({ cost = 0 }: CostedPod): number => cost;
const byUid = (a: CostedPod, b: CostedPod): number => (a.uid < b.uid ? -1 : 1);
