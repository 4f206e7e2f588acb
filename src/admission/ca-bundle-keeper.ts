import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import { describeError, isNotFound } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import { get, patch } from '../kube/verbs.ts';

const MUTATING_WEBHOOKS = resourceOf(
  'admissionregistration.k8s.io/v1',
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  false,
);

interface WebhookConfiguration extends KubeObject {
  webhooks?: { name: string; clientConfig?: { caBundle?: string } }[];
}

/** Between two looks at the configuration, and before another try, in ms. */
const PERIOD_MS = 60_000;
const RETRY_MS = 5_000;

export interface CaBundleKeeperOptions {
  host: KubeClient;
  /** Name of the MutatingWebhookConfiguration. */
  configuration: string;
  /** PEM; undefined while it is not known. */
  bundle: () => string | undefined;
  logger: Logger;
}

/**
 * Tells the API server whom to trust: keeps `caBundle` of every webhook in our configuration as it should be, also when the
 * configuration is applied anew without it. Writes only what differs.
 */
export class CaBundleKeeper {
  readonly #o: CaBundleKeeperOptions;
  readonly #wakeUp = new AutoResetEvent();
  #complained = '';

  constructor(options: CaBundleKeeperOptions) {
    this.#o = options;
  }

  /** The bundle has changed. */
  trigger(): void {
    this.#wakeUp.set();
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let wait = PERIOD_MS;
      try {
        await this.#look(signal);
        this.#complained = '';
      } catch (error) {
        wait = RETRY_MS;
        if (!signal.aborted) this.#complain(error);
      }
      await this.#wakeUp.wait(signal, wait);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { host, configuration, bundle, logger } = this.#o;
    const pem = bundle();
    if (pem === undefined) return;
    const caBundle = Buffer.from(pem).toString('base64');
    const ref = { name: configuration };
    const { metadata, webhooks = [] } = await get<WebhookConfiguration>(host, MUTATING_WEBHOOKS, ref, { signal });
    const wrong = webhooks.flatMap(({ clientConfig }, index) => (clientConfig?.caBundle === caBundle ? [] : [index]));
    if (wrong.length === 0) return;
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
      ...wrong.map((index) => ({
        op: 'add',
        path: `/webhooks/${String(index)}/clientConfig/caBundle`,
        value: caBundle,
      })),
    ];
    await patch(host, MUTATING_WEBHOOKS, ref, steps, { type: 'json', fieldManager: 'spillway' }, { signal });
    logger.info({ configuration }, 'the API server was told which certificate the webhook has');
  }

  #complain(error: unknown): void {
    const { configuration, logger } = this.#o;
    const words = isNotFound(error)
      ? `there is no MutatingWebhookConfiguration ${configuration}, so the API server does not ask about pods: apply manifests/admission/webhook.yaml`
      : `MutatingWebhookConfiguration ${configuration} cannot be kept: ${describeError(error)}`;
    if (words !== this.#complained) logger.warn(words);
    this.#complained = words;
  }
}
