import type { PodStatus } from '../kube/core-v1.ts';
import { cleanLines, cleanText } from '../kube/clean-text.ts';

/** As much as a kubelet keeps of the last words of a container, in bytes. */
const MAX_MESSAGE_BYTES = 4_096;
const MAX_REASON_BYTES = 256;
/** What people read is less deep than this; what is deeper stays as it is. */
const MAX_DEPTH = 8;

/**
 * A pod's status as its member says it, with every `reason` and `message` in it made fit for people and terminals of the
 * host: without control characters but line ends, and no longer than a kubelet would have it. The same object when nothing
 * is to do.
 */
export function cleanStatus(status: PodStatus): PodStatus {
  return cleaned(status, 0) as PodStatus;
}

function cleaned(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => cleaned(item, depth + 1));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  let result: Record<string, unknown> | undefined;
  for (const [key, part] of Object.entries(value)) {
    const after = typeof part === 'string' ? cleanWords(key, part) : cleaned(part, depth + 1);
    if (after !== part) (result ??= { ...value })[key] = after;
  }
  return result ?? value;
}

function cleanWords(key: string, text: string): string {
  if (key === 'reason') return cleanText(text, MAX_REASON_BYTES);
  return key === 'message' ? cleanLines(text, MAX_MESSAGE_BYTES) : text;
}
