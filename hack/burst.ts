import { BurstHistory, type Moment } from './burst-history.ts';
import type { BurstLab } from './burst-lab.ts';
import { BurstLoad } from './burst-load.ts';
import { GiveUp, until } from './until.ts';

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
 */
export async function runBurst({ host }: BurstLab, tell: (line: string) => void): Promise<Burst> {
  const history = new BurstHistory();
  const load = new BurstLoad(host, 'shop', 'web');
  const stop = new AbortController();
  const { signal } = stop;
  let lost: unknown;
  const following = Promise.all([
    host.api.follow('/apis/apps/v1/namespaces/shop/deployments', signal, (event) => history.deployment(event)),
    host.api.follow('/api/v1/namespaces/shop/pods', signal, (event) => history.pod(event)),
  ]).catch((error: unknown) => (lost = error));
  const telling = new Teller(tell);
  const reach = async (millicores: number, replicas: number): Promise<number> => {
    load.millicores = millicores;
    tell(`-- ${(millicores / 1000).toFixed(1)} cores of work`);
    return await until(
      `${replicas} pods are wanted, and run`,
      () => {
        if (lost !== undefined) throw new GiveUp('a watch of the host has ended', { cause: lost });
        telling.catchUp(history);
        const { wanted, ready, local, a, b, waiting, revision } = history.now;
        const all = local + a + b + waiting;
        return wanted === replicas && ready === replicas && all === replicas ? revision : undefined;
      },
      { timeoutMs: 240_000, intervalMs: 250 },
    );
  };
  const sharing = load.run(signal);
  try {
    const calm = await reach(CALM, 2);
    const grown = await reach(BUSY, 20);
    await reach(CALM, 2);
    return { history, calm, grown };
  } finally {
    stop.abort();
    await Promise.all([following, sharing]);
  }
}

/** Tells of each moment once, a line each. */
class Teller {
  readonly #tell: (line: string) => void;
  readonly #began = Date.now();
  #told = 0;

  constructor(tell: (line: string) => void) {
    this.#tell = tell;
    tell(row(['second', 'wanted', 'ready', 'local', 'a', 'b', 'waiting']));
  }

  /** What changed within one look makes one line. */
  catchUp(history: BurstHistory): void {
    const { revision, at, wanted, ready, local, a, b, waiting } = history.now;
    if (revision <= this.#told) return;
    this.#told = revision;
    this.#tell(row([Math.round((at - this.#began) / 1000), wanted, ready, local, a, b, waiting]));
  }
}

function row(cells: readonly (string | number)[]): string {
  return cells.map((cell) => String(cell).padStart(8)).join('');
}

/** Where so many replicas belong: ten fill the host, three more are allowed in `a`, and `b` has the rest. */
export function placesOf(replicas: number): Pick<Moment, 'local' | 'a' | 'b'> {
  const local = Math.min(replicas, 10);
  const a = Math.min(replicas - local, 3);
  return { local, a, b: replicas - local - a };
}
