import { GANG_LABEL, GANG_SIZE_ANNOTATION } from '../../../src/api/marks.ts';
import type { Run } from '../kubelets.ts';
import type { SimObject } from '../sim-cluster.ts';

/** Whoever gives a gang up may have asked about the last of its pods a moment before that one began, in ms. */
const LATE_MS = 60_000;

/** Which pods ran at the same time as all of their gang, by what kubelets did. */
export class GangOracle {
  /** By namespace and name of the gang, what was ever started of it. */
  readonly #runs = new Map<string, Run[]>();
  /** By UID of the host pod: its run, and since when it was one of a whole gang, in ms. */
  readonly #whole = new Map<string, { run: Run; since: number }>();

  started(run: Run, { metadata }: SimObject): void {
    const { labels, annotations, namespace } = metadata;
    const gang = labels?.[GANG_LABEL];
    if (gang === undefined) return;
    const key = `${namespace}/${gang}`;
    const runs = [...(this.#runs.get(key) ?? []), run].filter(({ endedAt }) => endedAt === undefined);
    this.#runs.set(key, runs);
    if (new Set(runs.map(({ hostUid }) => hostUid)).size < Number(annotations?.[GANG_SIZE_ANNOTATION])) return;
    for (const one of runs) {
      const { hostUid } = one;
      if (hostUid !== undefined && this.#whole.get(hostUid)?.run !== one)
        this.#whole.set(hostUid, { run: one, since: run.startedAt });
    }
  }

  /** Whether a host pod still runs, and was one of a whole gang for long enough before that moment that anybody could know it. */
  ranWhole(hostUid: string, at: number): boolean {
    const whole = this.#whole.get(hostUid);
    return whole !== undefined && whole.run.endedAt === undefined && at - whole.since > LATE_MS;
  }
}
