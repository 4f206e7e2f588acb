import type { Outcome } from './report.ts';

/** Specs that are not run at all, and why. */
export interface LeftOut {
  /** A regular expression over the spec's name, as ginkgo reads it. */
  pattern: string;
  reason: string;
}

export interface Comparison {
  /** Passed on both. */
  passed: string[];
  /** Passed on the member and not through the virtual node: what must not be. */
  broken: Outcome[];
  /** Failed on the member, passed through the virtual node. */
  better: string[];
  /** Failed on both. */
  failed: { direct: Outcome; virtual: Outcome }[];
  /** Skipped itself on the member or on both. */
  skipped: Outcome[];
  /** Passed at a second attempt, on either side. */
  unsteady: { name: string; where: 'the member' | 'the virtual node' }[];
}

/** Holds a run through a virtual node against one on the member itself. All lists are sorted by name. */
export function compare(direct: ReadonlyMap<string, Outcome>, virtual: ReadonlyMap<string, Outcome>): Comparison {
  const result: Comparison = { passed: [], broken: [], better: [], failed: [], skipped: [], unsteady: [] };
  const names = [...new Set([...direct.keys(), ...virtual.keys()])].sort();
  for (const name of names) {
    const on = direct.get(name) ?? missing(name);
    const through = virtual.get(name) ?? missing(name);
    for (const [outcome, where] of [
      [on, 'the member'],
      [through, 'the virtual node'],
    ] as const) {
      if (outcome.state === 'passed' && outcome.attempts > 1) result.unsteady.push({ name, where });
    }
    if (on.state === 'passed') {
      if (through.state === 'passed') result.passed.push(name);
      else result.broken.push(through);
    } else if (through.state === 'passed') {
      result.better.push(name);
    } else if (on.state === 'skipped' && through.state === 'skipped') {
      result.skipped.push(on);
    } else {
      result.failed.push({ direct: on, virtual: through });
    }
  }
  return result;
}

/** A spec that one run has and the other has not was cut off: never a success. */
function missing(name: string): Outcome {
  return { name, state: 'failed', message: 'it did not run', attempts: 0, seconds: 0 };
}
