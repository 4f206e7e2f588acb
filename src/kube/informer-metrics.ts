import { Counter, Gauge, type Registry } from 'prom-client';

interface Labels {
  cluster: string;
  resource: string;
}

interface Watched {
  readonly size: number;
  staleMs(): number;
}

/** Health of the caches. One instance a registry; informers report to it by cluster and resource. */
export class InformerMetrics {
  readonly events: Counter<'cluster' | 'resource' | 'outcome'>;
  readonly lists: Counter<'cluster' | 'resource' | 'method'>;
  /** Answers that were not believed. */
  readonly refused: Counter<'cluster' | 'resource' | 'reason'>;
  /** An older state that turned out to be the truth. */
  readonly turnedBack: Counter<'cluster' | 'resource'>;
  /** Watches that ended, by what ended them. */
  readonly watches: Counter<'cluster' | 'resource' | 'end'>;
  /** Differences that a list found after the first one: what watches had not delivered. */
  readonly missed: Counter<'cluster' | 'resource'>;
  readonly handlerErrors: Counter<'cluster' | 'resource'>;
  /** Objects that became unusable. */
  readonly unusable: Counter<'cluster' | 'resource'>;
  readonly #watched = new Map<Watched, Labels>();

  constructor(registry: Registry) {
    const registers = [registry];
    const labels = ['cluster', 'resource'] as const;
    this.events = new Counter({
      name: 'kube_informer_events_total',
      help: 'Watch events by what became of them: applied, duplicate, stale, inferred (another object of that name was deleted, so everything is listed again), unusable (not what the API promises, or the transform failed).',
      labelNames: [...labels, 'outcome'],
      registers,
    });
    this.lists = new Counter({
      name: 'kube_informer_lists_total',
      help: 'Complete reads of a collection, by method: stream (WatchList) or pages.',
      labelNames: [...labels, 'method'],
      registers,
    });
    this.refused = new Counter({
      name: 'kube_informer_lists_refused_total',
      help: 'Answers that were not believed: backward (older than what is known), empty (asked again, or objects are there all the same), malformed, disorder (watch events out of order), limit (more than there is memory for).',
      labelNames: [...labels, 'reason'],
      registers,
    });
    this.turnedBack = new Counter({
      name: 'kube_informer_turned_back_total',
      help: 'Times an older state was believed after a minute: restored from a backup, or what was seen before was not true.',
      labelNames: labels,
      registers,
    });
    this.watches = new Counter({
      name: 'kube_informer_watches_total',
      help: 'Watches that ended: closed (by the server, in time), silent, expired (410), failed.',
      labelNames: [...labels, 'end'],
      registers,
    });
    this.missed = new Counter({
      name: 'kube_informer_missed_changes_total',
      help: 'Changes found by a list that watches had not delivered.',
      labelNames: labels,
      registers,
    });
    this.handlerErrors = new Counter({
      name: 'kube_informer_handler_errors_total',
      help: 'Errors thrown by handlers, transforms and indexes.',
      labelNames: labels,
      registers,
    });
    this.unusable = new Counter({
      name: 'kube_informer_unusable_objects_total',
      help: 'Objects left out because they are not what the API promises, such as a label that is no string; what was known of them stays.',
      labelNames: labels,
      registers,
    });
    const watched = this.#watched;
    const sizes = new Gauge({
      name: 'kube_informer_objects',
      help: 'Objects in the cache.',
      labelNames: labels,
      registers,
      collect() {
        sizes.reset();
        for (const [informer, of] of watched) {
          sizes.inc(of, informer.size);
        }
      },
    });
    const staleness = new Gauge({
      name: 'kube_informer_stale_seconds',
      help: 'Time since the watch last proved to be alive (the worst, where several watch one collection): at most 40 in peace.',
      labelNames: labels,
      registers,
      collect() {
        staleness.reset();
        const worst = new Map<string, number>();
        for (const [informer, of] of watched) {
          const key = `${of.cluster}/${of.resource}`;
          const seconds = Math.max(informer.staleMs() / 1000, worst.get(key) ?? 0);
          worst.set(key, seconds);
          staleness.set(of, seconds);
        }
      },
    });
  }

  /** Shows the informer in the gauges until the returned function is called. */
  watch(labels: Labels, informer: Watched): () => void {
    this.#watched.set(informer, labels);
    return () => {
      this.#watched.delete(informer);
    };
  }
}
