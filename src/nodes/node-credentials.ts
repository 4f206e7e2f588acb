import { fingerprintOf, type Credentials } from '../kube/access.ts';
import { CredentialsError } from '../kube/errors.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';

/** Whom a virtual node speaks as at the moment. */
export type Speaker = { as: 'node'; certificate: KeyedCertificate } | { as: 'manager' } | { as: 'nobody'; why: string };

const NO_HEADERS: Record<string, string> = {};

/**
 * Credentials that may change between requests: the node's certificate, or the manager's own. Connections are made
 * anew at a change; what is under way on the old ones goes on.
 */
export class NodeCredentials implements Credentials {
  readonly #manager: Credentials;
  readonly #speaker: () => Speaker;
  readonly #refused: () => void;
  #fingerprint: { of: KeyedCertificate; text: string } | undefined;

  /** `refused` is called when the API server does not accept the certificate. */
  constructor(manager: Credentials, speaker: () => Speaker, refused: () => void) {
    this.#manager = manager;
    this.#speaker = speaker;
    this.#refused = refused;
  }

  async headers(force?: boolean): Promise<Record<string, string>> {
    const speaker = this.#speaker();
    if (speaker.as === 'nobody') throw new CredentialsError('NoCredentials', speaker.why);
    if (speaker.as === 'manager') return await this.#manager.headers(force);
    if (force === true) this.#refused();
    return NO_HEADERS;
  }

  tls(): { cert?: string; key?: string } {
    const speaker = this.#speaker();
    if (speaker.as === 'node') return { ...speaker.certificate };
    return speaker.as === 'manager' ? this.#manager.tls() : {};
  }

  fingerprint(): string {
    const speaker = this.#speaker();
    if (speaker.as !== 'node') return speaker.as === 'manager' ? this.#manager.fingerprint() : '';
    const { certificate } = speaker;
    if (this.#fingerprint?.of !== certificate) {
      this.#fingerprint = { of: certificate, text: fingerprintOf(certificate.cert, certificate.key) };
    }
    return this.#fingerprint.text;
  }
}
