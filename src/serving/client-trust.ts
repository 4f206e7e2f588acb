import { X509Certificate } from 'node:crypto';

const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** The authorities that may vouch for client certificates at one moment. */
export interface TrustedAuthorities {
  /** Grows by one with every change of the bundle. */
  readonly generation: number;
  /** PEM, one each; empty means that no client certificate is trusted. */
  readonly pem: readonly string[];
}

const NOBODY: TrustedAuthorities = { generation: 0, pem: [] };

/**
 * Follows a client CA bundle that may change while we serve. OpenSSL verifies at the handshake; connections that are
 * older than the bundle in force are verified again here, so that an authority that was taken out loses its clients
 * at once and one that stays keeps them.
 */
export class ClientTrust {
  readonly #bundle: () => string | undefined;
  readonly #onUnusable: (error: unknown) => void;
  #seen: string | undefined;
  #current = NOBODY;
  #certificates: readonly X509Certificate[] = [];

  /** `onUnusable`: a bundle that cannot be parsed; the one before it stays in force. */
  constructor(bundle: () => string | undefined, onUnusable: (error: unknown) => void) {
    this.#bundle = bundle;
    this.#onUnusable = onUnusable;
  }

  current(): TrustedAuthorities {
    const bundle = this.#bundle();
    if (bundle === this.#seen) {
      return this.#current;
    }
    this.#seen = bundle;
    try {
      const pem = bundle?.match(PEM_BLOCK) ?? [];
      if (bundle !== undefined && pem.length === 0) {
        throw new Error('it holds no PEM certificate');
      }
      this.#certificates = pem.map((block) => new X509Certificate(block));
      this.#current = { generation: this.#current.generation + 1, pem };
    } catch (error) {
      this.#onUnusable(error);
    }
    return this.#current;
  }

  /** Whether an authority of the bundle in force issued this leaf itself; chains are left to the handshake. */
  issued(leaf: X509Certificate): boolean {
    this.current();
    return this.#certificates.some(
      (authority) => authority.ca && leaf.checkIssued(authority) && leaf.verify(authority.publicKey),
    );
  }
}
