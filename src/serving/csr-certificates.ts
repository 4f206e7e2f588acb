import type { Logger } from 'pino';
import { IssuedCertificate } from '../kube/issued-certificate.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import type { SigningApi } from '../kube/signing-request.ts';
import type { NodeAddresses, ServingCertificates } from './certificates.ts';
import { newServingRequest, selfSigned } from './serving-key.ts';

const STAND_IN_LIFE_MS = 30 * 24 * 3_600_000;

export interface CsrCertificatesOptions {
  readonly host: SigningApi;
  readonly node: NodeAddresses;
  /** Of the requests. */
  readonly labels?: Readonly<Record<string, string>>;
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
  readonly #standIn: KeyedCertificate;
  readonly #certificate: IssuedCertificate;
  /** Even one that has ended says more than a self-signed one. */
  #newest: KeyedCertificate | undefined;

  private constructor(
    { host, node, labels, logger, clock, firstPollMs = 1000 }: CsrCertificatesOptions,
    standIn: KeyedCertificate,
  ) {
    this.#standIn = standIn;
    this.#certificate = new IssuedCertificate({
      host,
      what: 'kubelet serving certificate',
      node: node.nodeName,
      signing: {
        signer: 'kubernetes.io/kubelet-serving',
        usages: ['digital signature', 'server auth'],
        ...(labels === undefined ? {} : { labels }),
      },
      newRequest: () => newServingRequest(node),
      hint: (request) => `to approve it: kubectl certificate approve ${request}`,
      meanwhile: 'a self-signed one',
      logger,
      clock,
      firstPollMs,
    });
  }

  static async create(o: CsrCertificatesOptions): Promise<CsrCertificates> {
    return new CsrCertificates(o, await selfSigned(o.node, o.clock(), STAND_IN_LIFE_MS));
  }

  current(): KeyedCertificate {
    this.#newest = this.#certificate.current() ?? this.#newest;
    return this.#newest ?? this.#standIn;
  }

  /** Whether the certificate in use came from the signer. */
  get issued(): boolean {
    return this.current() !== this.#standIn;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#certificate.run(signal);
  }
}
