import type { Pod } from '../kube/core-v1.ts';

/** As the API server wrote it: in seconds, so that the texts compare as the times do. */
export function madeAt({ metadata }: Pod): string {
  return metadata.creationTimestamp ?? '';
}

/** The youngest first. */
export function byYouth(a: Pod, b: Pod): number {
  return madeAt(b).localeCompare(madeAt(a)) || (a.metadata.name < b.metadata.name ? -1 : 1);
}
