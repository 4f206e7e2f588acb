import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { KeyedCertificate, NodeAddresses, ServingCertificates } from './certificates.ts';
import { checkKeyed, renewalTime } from './certificates.ts';
import type { SigningApi } from './signing-request.ts';
import { createSigningRequest, readSigningRequest } from './signing-request.ts';
import { newServingRequest, selfSigned } from './serving-key.ts';
import { describeError, isNotFound } from '../kube/errors.ts';

const SIGNER = 'kubernetes.io/kubelet-serving';
const STAND_IN_LIFE_MS = 30 * 24 * 3_600_000;
/** Kubernetes forgets requests that nobody answered after 24 h; ask again before that. */
const PATIENCE_MS = 12 * 3_600_000;
const SLOWEST_POLL_MS = 30_000;
const SLOWEST_RETRY_MS = 300_000;
const LONGEST_SLEEP_MS = 24 * 3_600_000;

export interface CsrCertificatesOptions {
  readonly host: SigningApi;
  readonly node: NodeAddresses;
  readonly logger: Logger;
  readonly clock: () => number;
  /** Milliseconds between the first looks at an open request and before the first retry; both grow. Default 1,000. */
  readonly firstPollMs?: number;
}

/**
 * A serving certificate from the host's signer kubernetes.io/kubelet-serving, renewed at 70 % of its life. Somebody
 * has to approve the requests (Kubernetes itself never does); until the first one is issued a self-signed certificate
 * stands in, so the port answers wherever the API server does not verify.
 */
export class CsrCertificates implements ServingCertificates {
  readonly #o: CsrCertificatesOptions;
  #current: KeyedCertificate;
  #issued = false;

  private constructor(o: CsrCertificatesOptions, standIn: KeyedCertificate) {
    this.#o = o;
    this.#current = standIn;
  }

  static async create(o: CsrCertificatesOptions): Promise<CsrCertificates> {
    return new CsrCertificates(o, await selfSigned(o.node, o.clock(), STAND_IN_LIFE_MS));
  }

  current(): KeyedCertificate {
    return this.#current;
  }

  /** Whether the certificate in use came from the signer. */
  get issued(): boolean {
    return this.#issued;
  }

  async run(signal: AbortSignal): Promise<void> {
    const first = this.#o.firstPollMs ?? 1000;
    let retryMs = first;
    while (!signal.aborted) {
      const wait = this.#issued ? renewalTime(checkKeyed(this.#current)) - this.#o.clock() : 0;
      if (wait > 0) {
        await sleep(Math.min(wait, LONGEST_SLEEP_MS), signal);
        continue;
      }
      try {
        this.#current = await this.#obtain(signal);
        this.#issued = true;
        retryMs = first;
        this.#o.logger.info({ node: this.#o.node.nodeName }, 'kubelet serving certificate issued');
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        this.#o.logger.warn(
          { node: this.#o.node.nodeName, error: describeError(error), retryInMs: retryMs },
          `no kubelet serving certificate from ${SIGNER}: ${this.#issued ? 'the old one' : 'a self-signed one'} is in use`,
        );
        await sleep(retryMs, signal);
        retryMs = Math.min(retryMs * 2, SLOWEST_RETRY_MS);
      }
    }
  }

  async #obtain(signal: AbortSignal): Promise<KeyedCertificate> {
    const { host, node, logger, clock } = this.#o;
    const { key, request } = await newServingRequest(node);
    const name = await createSigningRequest(host, { node: node.nodeName, signer: SIGNER, request }, signal);
    logger.info(
      { node: node.nodeName, request: name },
      `waiting for the serving certificate; to approve it: kubectl certificate approve ${name}`,
    );
    const deadline = clock() + PATIENCE_MS;
    let pollMs = this.#o.firstPollMs ?? 1000;
    while (clock() < deadline) {
      await sleep(pollMs, signal);
      signal.throwIfAborted();
      pollMs = Math.min(pollMs * 1.5, SLOWEST_POLL_MS);
      const state = await readSigningRequest(host, name, signal).catch((error: unknown) => {
        // A host that cannot be reached for a moment does not make the request void.
        if (isNotFound(error)) {
          throw new Error(`the certificate signing request ${name} was deleted`, { cause: error });
        }
        return { kind: 'open' as const };
      });
      if (state.kind === 'refused') {
        throw new Error(`the certificate signing request ${name} was ${state.why}`);
      }
      if (state.kind === 'issued') {
        const issued = { cert: state.certificate, key };
        checkKeyed(issued);
        return issued;
      }
    }
    throw new Error(`nobody approved the certificate signing request ${name} within ${PATIENCE_MS / 3_600_000} h`);
  }
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
