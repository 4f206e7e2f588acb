import type { Logger } from 'pino';
import { SERVICE_ACCOUNT_MODE } from '../api/service-account-mode.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { NAMESPACES } from '../kube/resource.ts';

export interface NamespaceModesOptions {
  host: KubeClient;
  logger: Logger;
  metrics: InformerMetrics;
}

/** Namespaces of the host that ask for a service account mode: only those with the label are read. */
export class NamespaceModes {
  readonly #namespaces: Informer<Namespace>;

  constructor({ host, logger, metrics }: NamespaceModesOptions) {
    this.#namespaces = new Informer<Namespace>({
      client: host,
      resource: NAMESPACES,
      labelSelector: SERVICE_ACCOUNT_MODE,
      transform: ({ metadata: { name, uid = '', resourceVersion = '', labels = {} } }) => {
        const mode = labels[SERVICE_ACCOUNT_MODE] ?? '';
        return { metadata: { name, uid, resourceVersion, labels: { [SERVICE_ACCOUNT_MODE]: mode } } };
      },
      logger,
      metrics,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#namespaces.run(signal);
  }

  /** Set until the namespaces have been read, with what keeps them from being read. */
  unknown(): { problem: string | undefined } | undefined {
    return this.#namespaces.hasSynced ? undefined : { problem: this.#namespaces.problem };
  }

  /** What the label of a namespace says, if it has one. */
  labelOf(namespace: string): string | undefined {
    return this.#namespaces.get(namespace)?.metadata.labels?.[SERVICE_ACCOUNT_MODE];
  }

  /** Calls the handler when a label came, changed or went. Returns what ends that. */
  on(handler: () => void): () => void {
    return this.#namespaces.on({ added: handler, updated: handler, deleted: handler });
  }
}
