import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { checkKeyed, renewalTime, type KeyedCertificate } from '../kube/keyed-certificate.ts';
import type { NodeAddresses, ServingCertificates } from './certificates.ts';
import { selfSigned } from './serving-key.ts';

const LIFE_MS = 365 * 24 * 3_600_000;
/** setTimeout counts in 32 bits. */
const LONGEST_SLEEP_MS = 24 * 3_600_000;

/**
 * A serving certificate that nobody vouches for. Enough where the host's API server does not verify kubelets (it does
 * so only with --kubelet-certificate-authority); then anybody between it and us can read the streams.
 */
export class SelfSignedCertificates implements ServingCertificates {
  readonly #node: NodeAddresses;
  readonly #logger: Logger;
  readonly #clock: () => number;
  #current: KeyedCertificate;

  private constructor(o: SelfSignedOptions, current: KeyedCertificate) {
    this.#node = o.node;
    this.#logger = o.logger;
    this.#clock = o.clock;
    this.#current = current;
  }

  static async create(o: SelfSignedOptions): Promise<SelfSignedCertificates> {
    o.logger.warn(
      { node: o.node.nodeName },
      'SELF-SIGNED kubelet serving certificate: the API server cannot tell this virtual node from an impostor. ' +
        'Give certificate files or use the signer kubernetes.io/kubelet-serving in any cluster that matters',
    );
    return new SelfSignedCertificates(o, await selfSigned(o.node, o.clock(), LIFE_MS));
  }

  current(): KeyedCertificate {
    return this.#current;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wait = renewalTime(checkKeyed(this.#current)) - this.#clock();
      if (wait <= 0) {
        this.#current = await selfSigned(this.#node, this.#clock(), LIFE_MS);
        this.#logger.info({ node: this.#node.nodeName }, 'self-signed kubelet serving certificate renewed');
        continue;
      }
      await delay(Math.min(wait, LONGEST_SLEEP_MS), undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

export interface SelfSignedOptions {
  readonly node: NodeAddresses;
  readonly logger: Logger;
  readonly clock: () => number;
}
