import { constants } from 'node:crypto';
import type { Server } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { ServingCertificates } from './certificates.ts';
import { checkKeyed } from '../kube/keyed-certificate.ts';
import type { ClientTrust } from './client-trust.ts';

export const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * The TLS side of a kubelet server: what it shows and whom it trusts, looked at anew for each connection, so that
 * both may change while others are open.
 */
export class TlsListener {
  readonly #certificates: ServingCertificates;
  readonly #trust: ClientTrust;
  readonly #monotonic: () => number;
  readonly #onUnusable: (error: unknown) => void;
  #applied: { cert: string; key: string; generation: number };
  #changedAt = Number.NEGATIVE_INFINITY;

  constructor(o: {
    certificates: ServingCertificates;
    trust: ClientTrust;
    monotonic: () => number;
    /** A certificate that cannot be used; the one before stays in use. */
    onUnusable: (error: unknown) => void;
  }) {
    this.#certificates = o.certificates;
    this.#trust = o.trust;
    this.#monotonic = o.monotonic;
    this.#onUnusable = o.onUnusable;
    this.#applied = { ...o.certificates.current(), generation: o.trust.current().generation };
  }

  /** For createServer. Throws when the first certificate cannot be used. */
  options(): SecureContextOptions {
    checkKeyed(this.#applied);
    return this.#contextOptions();
  }

  /** To be called when a connection was accepted and its handshake has not begun. */
  refresh(server: Server): void {
    const { cert, key } = this.#certificates.current();
    const { generation } = this.#trust.current();
    const before = this.#applied;
    if (cert === before.cert && key === before.key && generation === before.generation) {
      return;
    }
    const trustChanged = generation !== before.generation;
    this.#applied = { cert, key, generation };
    try {
      checkKeyed(this.#applied);
      server.setSecureContext(this.#contextOptions());
      if (trustChanged) {
        this.#changedAt = this.#monotonic();
      }
    } catch (error) {
      this.#applied = before;
      this.#onUnusable(error);
    }
  }

  /**
   * The trust that a handshake which ends now was surely verified against; -1 when it may have begun before the last
   * change.
   */
  handshakeGeneration(): number {
    return this.#monotonic() - this.#changedAt > HANDSHAKE_TIMEOUT_MS ? this.#applied.generation : -1;
  }

  #contextOptions(): SecureContextOptions {
    return {
      cert: this.#applied.cert,
      key: this.#applied.key,
      // Always a list: without one Node would trust every public authority to name our clients.
      ca: [...this.#trust.current().pem],
      minVersion: 'TLSv1.2',
      // A resumed session would carry an old verdict about the client's certificate.
      secureOptions: constants.SSL_OP_NO_TICKET,
    };
  }
}
