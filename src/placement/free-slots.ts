import { formatAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';

/**
 * What is missing for a pod, for people: `no node has 4 cpu free (largest free slot 2 cpu)`. The slot is the free part of
 * one node, by resource; undefined when no node can be used at all. Where every single resource is there, only not on the
 * same node, it says so.
 */
export function shortageInWords(requests: Amounts, largestSlot: Amounts | undefined): string {
  if (largestSlot === undefined) return 'no node can be used';
  const missing = [...requests]
    .filter(([name, wanted]) => wanted > (largestSlot.get(name) ?? 0n))
    .map(([name]) => name);
  const wanted = formatAmounts(requests);
  if (missing.length === 0) {
    const all = Object.entries(wanted).filter(([name]) => name !== 'pods');
    return `no single node has ${all.map(([name, amount]) => `${amount} ${name}`).join(' and ')} free`;
  }
  const free = formatAmounts(largestSlot);
  const parts = missing.toSorted().map((name) => {
    if (name === 'pods') return 'no node may run another pod';
    return `no node has ${wanted[name] ?? '0'} ${name} free (largest free slot ${free[name] ?? '0'} ${name})`;
  });
  return parts.join(', ');
}
