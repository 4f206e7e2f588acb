import { parseAmounts } from '../kube/amounts.ts';
import type { ResourceList } from '../kube/core-v1.ts';
import { roomOf } from './cluster-summary.ts';

/** Cores with one figure behind the point, rounded down: what is shown as free is free. */
export function cores(cpu: number): string {
  return cpu >= 100 ? String(Math.floor(cpu)) : String(Math.floor(cpu * 10) / 10);
}

const UNITS = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/** Bytes in the largest binary unit that leaves three figures, rounded down. */
export function bytes(amount: number): string {
  let [value, unit] = [amount, 0];
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value >= 10 || unit === 0 ? Math.floor(value) : Math.floor(value * 10) / 10}${UNITS[unit] ?? ''}`;
}

/** What a member offers, as part of a sentence. */
export function roomInWords(allocatable: ResourceList | undefined): string {
  const { cpu, memory } = roomOf(parseAmounts(allocatable));
  return `${cores(cpu)} CPUs, ${bytes(memory)} of memory, ${String(allocatable?.['pods'] ?? 0)} pods`;
}
