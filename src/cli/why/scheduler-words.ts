import type { PlaceWords } from './explanation.ts';

/** What kube-scheduler says of a pod that it finds no node for, taken apart. */
export interface SchedulerWords {
  /** What Spillway told it of clusters, each once. Empty where it was not asked, or had nothing against any node. */
  clusters: PlaceWords[];
  /** What the scheduler itself found, such as `2 Insufficient cpu`. */
  own: string[];
}

/**
 * Takes apart `0/4 nodes are available: 1 member east: no node has 16 cpu free, 2 Insufficient cpu. preemption: …`. The words of
 * Spillway hold commas and numbers of their own, so a part begins only where a count and one of the known beginnings stand.
 */
export function schedulerWords(message: string): SchedulerWords {
  const colon = message.indexOf(': ');
  const body = (colon < 0 ? message : message.slice(colon + 2)).replace(
    /\.? (?:no new claims to deallocate|preemption: ).*$/s,
    '',
  );
  const parts = body
    .replace(/\.$/, '')
    .split(/, (?=\d+ (?:member [a-z0-9-]+: |local: |node\(s\)|Insufficient |Too many |[A-Z]))/);
  const clusters = new Map<string, PlaceWords>();
  const own: string[] = [];
  for (const part of parts) {
    const words = /^\d+ (?:member ([a-z0-9-]+)|(local)): (.*)$/s.exec(part);
    const cluster = words?.[1] ?? words?.[2];
    if (cluster === undefined) own.push(part);
    else clusters.set(cluster, { cluster, says: words?.[3] ?? '' });
  }
  return { clusters: [...clusters.values()], own: own.filter((one) => one !== '') };
}

/** The same of a decision, as a WorkloadPlacement has it: `member east: seat 3 of 5; local: no node has 4 cpu free`. */
export function decisionWords(message: string): PlaceWords[] {
  return message.split(/; (?=member [a-z0-9-]+: |local: )/).flatMap((part) => {
    const words = /^(?:member ([a-z0-9-]+)|(local)): (.*)$/s.exec(part);
    const cluster = words?.[1] ?? words?.[2];
    return cluster === undefined ? [] : [{ cluster, says: words?.[3] ?? '' }];
  });
}
