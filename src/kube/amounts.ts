import type { ResourceList } from './core-v1.ts';
import { formatQuantity, parseQuantity } from './quantity.ts';

/** Amounts by resource name, in 10^-9 units (see Quantity): cheap and exact to add up. */
export type Amounts = ReadonlyMap<string, bigint>;

export const UNIT = 1_000_000_000n;
export const NOTHING: Amounts = new Map();

/** The same few texts ("100m", "128Mi") come again and again; parsing them once saves most of the time. */
const parsed = new Map<string, bigint>();
const MAX_PARSED = 4_096;

/** A resource list as amounts. A quantity that cannot be read counts as nothing: the API server would have refused it. */
export function parseAmounts(list: ResourceList | undefined): Map<string, bigint> {
  const amounts = new Map<string, bigint>();
  for (const [name, quantity] of Object.entries(list ?? {})) amounts.set(name, nanosOf(quantity));
  return amounts;
}

function nanosOf(quantity: string | number): bigint {
  const text = String(quantity);
  let nanos = parsed.get(text);
  if (nanos === undefined) {
    try {
      nanos = parseQuantity(text).nanos;
    } catch {
      nanos = 0n;
    }
    if (parsed.size >= MAX_PARSED) parsed.clear();
    parsed.set(text, nanos);
  }
  return nanos;
}

/** Adds `amounts`, so many times, to `sum`. What comes to zero is dropped, so equal sums are equal maps. */
export function addTo(sum: Map<string, bigint>, amounts: Amounts, times = 1n): void {
  for (const [name, nanos] of amounts) {
    const total = (sum.get(name) ?? 0n) + nanos * times;
    if (total === 0n) sum.delete(name);
    else sum.set(name, total);
  }
}

/** Raises `target` to at least `amounts` for every resource in `amounts`. */
export function raiseTo(target: Map<string, bigint>, amounts: Amounts): void {
  for (const [name, nanos] of amounts) {
    const had = target.get(name);
    if (had === undefined || nanos > had) target.set(name, nanos);
  }
}

/** What is left of `whole` per resource of `whole` after `taken`; never less than nothing. */
export function remainder(whole: Amounts, taken: Amounts): Map<string, bigint> {
  const left = new Map<string, bigint>();
  for (const [name, nanos] of whole) {
    const rest = nanos - (taken.get(name) ?? 0n);
    left.set(name, rest > 0n ? rest : 0n);
  }
  return left;
}

/** Memory-like resources are written with binary suffixes, all others in decimal. Sorted by name. */
export function formatAmounts(amounts: Amounts): Record<string, string> {
  const list: Record<string, string> = {};
  for (const name of [...amounts.keys()].sort()) {
    const binary = name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-');
    list[name] = formatQuantity({ nanos: amounts.get(name) ?? 0n, format: binary ? 'BinarySI' : 'DecimalSI' });
  }
  return list;
}
