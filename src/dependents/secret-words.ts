import { fieldsOf } from '../kube/json-fields.ts';
import type { KubeObject } from '../kube/object.ts';

/** Shorter values are words that any message may hold by chance. */
const SHORTEST = 4;

/**
 * Text about a write of `object` that is fit for logs and users: whatever the other side said, no value of a Secret is
 * repeated, neither as base64 nor decoded.
 */
export function withoutSecretValues(text: string, object: KubeObject | undefined): string {
  // The longest first: one may be the beginning of another.
  const values = object === undefined ? [] : valuesOf(object).toSorted((a, b) => b.length - a.length);
  return values.reduce((clean, value) => clean.replaceAll(value, () => '(hidden)'), text);
}

/** As they are sent, and those of `data` decoded, too. */
function valuesOf(object: KubeObject): string[] {
  const found = (['data', 'stringData'] as const).flatMap((field) => {
    const values = fieldsOf(object)[field];
    if (typeof values !== 'object' || values === null) return [];
    const texts = Object.values(values).filter((value) => typeof value === 'string');
    return field === 'data' ? texts.flatMap((text) => [text, Buffer.from(text, 'base64').toString()]) : texts;
  });
  return found.filter(({ length }) => length >= SHORTEST);
}
