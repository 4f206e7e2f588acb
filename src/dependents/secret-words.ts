import type { KubeObject } from '../kube/object.ts';

/** Shorter values are words that any message may hold by chance. */
const SHORTEST = 4;

/**
 * Text about a write of `object` that is fit for logs and users: whatever the other side said, no value of a Secret is
 * repeated, neither as base64 nor decoded.
 */
export function withoutSecretValues(text: string, object: KubeObject | undefined): string {
  if (object === undefined) return text;
  let clean = text;
  for (const field of ['data', 'stringData'] as const) {
    const values: unknown = field in object ? (object as unknown as Record<string, unknown>)[field] : undefined;
    if (typeof values !== 'object' || values === null) continue;
    for (const value of Object.values(values)) {
      if (typeof value !== 'string') continue;
      clean = hide(clean, value);
      if (field === 'data') clean = hide(clean, Buffer.from(value, 'base64').toString());
    }
  }
  return clean;
}

function hide(text: string, value: string): string {
  return value.length < SHORTEST ? text : text.replaceAll(value, () => '(hidden)');
}
