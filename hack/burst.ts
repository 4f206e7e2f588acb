import type { BurstHistory, Moment } from './burst-history.ts';
import type { BurstLab } from './burst-lab.ts';
import { BurstStage } from './burst-stage.ts';

/** Thousandths of a core: little enough for two pods, and more than twenty like to have. */
const [CALM, BUSY] = [900, 18_000];

/** A burst from beginning to end; revisions are those of {@link Moment}. */
export interface Burst {
  history: BurstHistory;
  /** Up to here two pods ran in peace. */
  calm: number;
  /** Up to here the workload grew. */
  grown: number;
}

/**
 * Puts load on the two pods that there are, waits until the autoscaler has twenty of them, takes the load away and waits until
 * two are left.
 *
 * @param tell gets a line for every change as it comes.
 * @param whileGrown what happens in between; after it twenty have to be left.
 */
export async function runBurst(
  lab: BurstLab,
  tell: (line: string) => void,
  whileGrown: (stage: BurstStage) => Promise<void> = () => Promise.resolve(),
): Promise<Burst> {
  const stage = new BurstStage(lab, tell);
  const reach = async (replicas: number): Promise<number> =>
    await stage.reach(`${replicas} pods are wanted, and run`, ({ wanted, ready, ...is }) => {
      return wanted === replicas && ready === replicas && is.local + is.a + is.b + is.waiting === replicas;
    });
  try {
    stage.work(CALM);
    const calm = await reach(2);
    stage.work(BUSY);
    const grown = await reach(20);
    await whileGrown(stage);
    stage.work(CALM);
    await reach(2);
    return { history: stage.history, calm, grown };
  } finally {
    await stage.end();
  }
}

/** Where so many replicas belong: ten fill the host, three more are allowed in `a`, and `b` has the rest. */
export function placesOf(replicas: number): Pick<Moment, 'local' | 'a' | 'b'> {
  const local = Math.min(replicas, 10);
  const a = Math.min(replicas - local, 3);
  return { local, a, b: replicas - local - a };
}
