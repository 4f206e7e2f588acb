import type { Logger } from 'pino';
import { parsePlacementScore, PLACEMENT_SCORES, type PlacementScore } from '../api/placement-score.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { identifying } from '../kube/object.ts';
import type { Signals, SignalsNow } from '../placement/signals.ts';
import { signalsAt } from '../placement/signals.ts';

export interface ScoreCacheOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  /** Wall clock in ms. */
  clock: () => number;
}

/** What programs outside say about clusters. While that cannot be read, they say nothing; nobody waits for it. */
export class ScoreCache {
  readonly #clock: () => number;
  readonly #informer: Informer<PlacementScore>;
  #now: SignalsNow | undefined;

  constructor({ host, logger, metrics, clock }: ScoreCacheOptions) {
    this.#clock = clock;
    this.#informer = new Informer<PlacementScore>({
      client: host,
      resource: PLACEMENT_SCORES,
      transform: (raw) => {
        const parsed = parsePlacementScore({ ...raw, metadata: identifying(raw.metadata) });
        if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
        return parsed.score;
      },
      logger,
      metrics,
    });
  }

  /** Calls the handler after a score came, changed or went. Returns what ends that. */
  on(handler: () => void): () => void {
    return this.#informer.on({ added: handler, updated: handler, deleted: handler });
  }

  async run(signal: AbortSignal): Promise<void> {
    const off = this.on(() => (this.#now = undefined));
    await this.#informer.run(signal);
    off();
  }

  /** Those that count now. */
  signals(): Signals {
    const now = this.#clock();
    if (this.#now === undefined || this.#now.until <= now) this.#now = signalsAt(this.#informer.values(), now);
    return this.#now.signals;
  }
}
