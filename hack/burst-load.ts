import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { USAGE_ANNOTATIONS } from './kwok.ts';

/** A pod uses no more than this, in thousandths of a core, however much there is to do: most of a node of the host. */
const MOST_A_POD = 4_500;
/** Between two looks at who shares the work, in ms. */
const SHARED_EVERY_MS = 500;

interface PodList {
  items: {
    metadata: { name: string; annotations?: Record<string, string>; deletionTimestamp?: string };
    status?: { conditions?: { type: string; status: string }[] };
  }[];
}

/**
 * Work for the pods of an app, as a load balancer would hand it out: the ready ones share it evenly. kwok's nodes measure what
 * a pod says that it uses, so each share is written to its pod; from there on everything is as with real ones.
 */
export class BurstLoad {
  /** Work in all, in thousandths of a core. */
  millicores = 0;
  readonly #host: Cluster;
  readonly #pods: string;
  readonly #selector: string;

  constructor(host: Cluster, namespace: string, app: string) {
    this.#host = host;
    this.#pods = `/api/v1/namespaces/${namespace}/pods`;
    this.#selector = encodeURIComponent(`app=${app}`);
  }

  /** Shares until the signal aborts. Never rejects: a pod may be gone when its share is written. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#share().catch(() => undefined);
      await sleep(SHARED_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #share(): Promise<void> {
    const list = (await this.#host.api.call('GET', `${this.#pods}?labelSelector=${this.#selector}`)) as PodList;
    const ready = list.items.filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined &&
        status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
    );
    const share = `${Math.min(MOST_A_POD, Math.floor(this.millicores / Math.max(1, ready.length)))}m`;
    const annotations = { [USAGE_ANNOTATIONS.cpu]: share };
    const late = ready.filter(({ metadata }) => metadata.annotations?.[USAGE_ANNOTATIONS.cpu] !== share);
    await Promise.all(
      late.map(async ({ metadata }) => {
        await this.#host.api.call('PATCH', `${this.#pods}/${metadata.name}`, { metadata: { annotations } });
      }),
    );
  }
}
