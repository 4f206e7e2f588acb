import { BurstHistory, type Moment } from './burst-history.ts';
import type { BurstLab } from './burst-lab.ts';
import { BurstLoad } from './burst-load.ts';
import { GiveUp, until } from './until.ts';

/** What is seen and done of the Deployment of a burst while it lasts. */
export class BurstStage {
  readonly history = new BurstHistory();
  readonly #load: BurstLoad;
  readonly #tell: (line: string) => void;
  readonly #began = Date.now();
  readonly #stop = new AbortController();
  readonly #work: Promise<unknown>;
  #told = 0;
  #lost: unknown;

  /** @param tell gets a line for every change as it comes. */
  constructor({ host }: BurstLab, tell: (line: string) => void) {
    this.#load = new BurstLoad(host, 'shop', 'web');
    this.#tell = tell;
    tell(row(['second', 'wanted', 'ready', 'local', 'a', 'b', 'waiting']));
    const { history } = this;
    const { signal } = this.#stop;
    const following = Promise.all([
      host.api.follow('/apis/apps/v1/namespaces/shop/deployments', signal, (event) => history.deployment(event)),
      host.api.follow('/api/v1/namespaces/shop/pods', signal, (event) => history.pod(event)),
    ]).catch((error: unknown) => (this.#lost = error));
    this.#work = Promise.all([following, this.#load.run(signal)]);
  }

  /** Gives the pods so much work in all, in thousandths of a core. */
  work(millicores: number): void {
    this.#load.millicores = millicores;
    this.say(`${(millicores / 1000).toFixed(1)} cores of work`);
  }

  /** A line between the lines of the table. */
  say(what: string): void {
    this.#tell(`-- ${what}`);
  }

  /** Waits for it, at most four minutes. Returns the revision at which it was so, see {@link Moment}. */
  async reach(what: string, isSo: (now: Moment) => boolean): Promise<number> {
    const look = (): number | undefined => {
      if (this.#lost !== undefined) throw new GiveUp('a watch of the host has ended', { cause: this.#lost });
      const { now } = this.history;
      this.#tellOf(now);
      return isSo(now) ? now.revision : undefined;
    };
    return await until(what, look, { timeoutMs: 240_000, intervalMs: 250 });
  }

  /** A watch has ended: what is seen is old. */
  get isBlind(): boolean {
    return this.#lost !== undefined;
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.#work;
  }

  /** Each moment once, a line each; what changed within one look makes one line. */
  #tellOf({ revision, at, wanted, ready, local, a, b, waiting }: Moment): void {
    if (revision <= this.#told) return;
    this.#told = revision;
    this.#tell(row([Math.round((at - this.#began) / 1000), wanted, ready, local, a, b, waiting]));
  }
}

function row(cells: readonly (string | number)[]): string {
  return cells.map((cell) => String(cell).padStart(8)).join('');
}
