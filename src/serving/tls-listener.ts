import { constants } from 'node:crypto';
import type { Server } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import { checkKeyed, type KeyedCertificate } from '../kube/keyed-certificate.ts';
import type { ClientTrust } from './client-trust.ts';

export const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * The TLS side of an HTTPS server: what it shows and whom it trusts, looked at anew for each connection, so that
 * both may change while others are open.
 */
export class TlsListener {
  readonly #certificate: () => KeyedCertificate;
  readonly #trust: ClientTrust | undefined;
  readonly #monotonic: () => number;
  readonly #onUnusable: (error: unknown) => void;
  #applied: { cert: string; key: string; generation: number };
  #changedAt = Number.NEGATIVE_INFINITY;

  constructor(o: {
    certificate: () => KeyedCertificate;
    /** Undefined: no client is asked for a certificate. */
    trust: ClientTrust | undefined;
    monotonic: () => number;
    /** A certificate that cannot be used; the one before stays in use. */
    onUnusable: (error: unknown) => void;
  }) {
    this.#certificate = o.certificate;
    this.#trust = o.trust;
    this.#monotonic = o.monotonic;
    this.#onUnusable = o.onUnusable;
    this.#applied = this.#wanted();
  }

  /** For createServer. Throws when the first certificate cannot be used. */
  options(): SecureContextOptions {
    checkKeyed(this.#applied);
    return this.#contextOptions();
  }

  /** To be called when a connection was accepted and its handshake has not begun. */
  refresh(server: Server): void {
    const next = this.#wanted();
    const before = this.#applied;
    if (next.cert === before.cert && next.key === before.key && next.generation === before.generation) return;
    this.#applied = next;
    try {
      checkKeyed(this.#applied);
      server.setSecureContext(this.#contextOptions());
      if (next.generation !== before.generation) this.#changedAt = this.#monotonic();
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

  #wanted(): { cert: string; key: string; generation: number } {
    const { cert, key } = this.#certificate();
    return { cert, key, generation: this.#trust?.current().generation ?? 0 };
  }

  #contextOptions(): SecureContextOptions {
    return {
      cert: this.#applied.cert,
      key: this.#applied.key,
      // Always a list: without one Node would trust every public authority to name our clients.
      ca: [...(this.#trust?.current().pem ?? [])],
      minVersion: 'TLSv1.2',
      // A resumed session would carry an old verdict about the client's certificate.
      secureOptions: constants.SSL_OP_NO_TICKET,
    };
  }
}
