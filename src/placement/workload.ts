import type { Counts } from './share.ts';

/** How many pods each cluster has, by revision; pods without one are under the empty text. */
export type PodCounts = ReadonlyMap<string, Counts>;

/** A workload as division sees it. */
export interface Workload {
  readonly uid: string | undefined;
  /** Pods it asks for; undefined when that is not known. */
  readonly replicas: number | undefined;
  /** All its pods that have a place. */
  readonly pods: PodCounts;
}

const NONE: Counts = new Map();

/** Pods of one revision by cluster. */
export function ofRevision(pods: PodCounts, revision: string | undefined): Counts {
  return pods.get(revision ?? '') ?? NONE;
}

/** Pods of all revisions by cluster. */
export function ofAllRevisions(pods: PodCounts): Counts {
  const [only] = pods.size === 1 ? pods.values() : [];
  if (only !== undefined) return only;
  const all = new Map<string, number>();
  for (const counts of pods.values()) {
    for (const [cluster, count] of counts) all.set(cluster, (all.get(cluster) ?? 0) + count);
  }
  return all;
}

/** As they will be when one of the pods has gone. */
export function withoutOne(pods: PodCounts, revision: string | undefined, cluster: string): PodCounts {
  const own = ofRevision(pods, revision);
  const left = Math.max(0, (own.get(cluster) ?? 0) - 1);
  return new Map([...pods, [revision ?? '', new Map([...own, [cluster, left]])]]);
}

/** As they will be when so many more have come. */
export function withMore(pods: PodCounts, revision: string | undefined, cluster: string, more: number): PodCounts {
  const own = ofRevision(pods, revision);
  return new Map([...pods, [revision ?? '', new Map([...own, [cluster, (own.get(cluster) ?? 0) + more]])]]);
}

/** The sum over some clusters only. */
export function sumOver(counts: Counts, names: Iterable<string>): number {
  let all = 0;
  for (const name of names) all += counts.get(name) ?? 0;
  return all;
}
