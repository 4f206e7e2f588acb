import { RawNumber } from './json.ts';

/**
 * JSON with the keys of every object in code unit order and no spaces, so that equal values have equal texts whatever
 * order they were read in. Fields that are undefined are left out. For hashing and comparing, not for the wire.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (value instanceof RawNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const record = value as Record<string, unknown>;
  let text = '';
  for (const key of Object.keys(record).sort()) {
    const field = record[key];
    if (field === undefined) continue;
    text += `${text === '' ? '{' : ','}${JSON.stringify(key)}:${canonicalJson(field)}`;
  }
  return text === '' ? '{}' : `${text}}`;
}
