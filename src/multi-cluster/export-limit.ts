import type { KubeObject } from '../kube/object.ts';
import { keyOf } from '../kube/object.ts';

/** Keys of those that may be exported when there are more than `most`: the oldest ones, which no later one pushes out. */
export function oldestExports(found: Iterable<KubeObject>, most: number): Set<string> {
  const ordered = [...found].toSorted((a, b) => {
    const [timeA, timeB] = [a, b].map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') || 0);
    return (timeA ?? 0) - (timeB ?? 0) || ((a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1);
  });
  return new Set(ordered.slice(0, most).map((one) => keyOf(one)));
}
