import { cleanText } from '../../kube/clean-text.ts';

/** Of one text, in bytes. */
const LONGEST = 2_000;

/** A document whose texts are all plain and short: what members say stands in it, and a browser is no place for control characters. */
export function plainText<T>(document: T): T {
  return plain(document) as T;
}

function plain(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value, LONGEST);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
}
