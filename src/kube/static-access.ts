import { authorizationHeaders, fingerprintOf, type Access, type ClusterEndpoint, type Credentials } from './access.ts';

/** Access from values already in hand: PEM strings and a token. Nothing is read again later. */
export function staticAccess(o: {
  endpoint: ClusterEndpoint;
  token?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
}): Access {
  return { endpoint: o.endpoint, credentials: new StaticCredentials(o) };
}

class StaticCredentials implements Credentials {
  readonly #headers: Promise<Record<string, string>>;
  readonly #tls: { cert?: string; key?: string };
  readonly #fingerprint: string;

  constructor(o: { token?: string | undefined; cert?: string | undefined; key?: string | undefined }) {
    this.#headers = Promise.resolve(authorizationHeaders({ token: o.token }));
    this.#tls = {
      ...(o.cert === undefined ? {} : { cert: o.cert }),
      ...(o.key === undefined ? {} : { key: o.key }),
    };
    this.#fingerprint = fingerprintOf(o.cert, o.key);
  }

  headers(): Promise<Record<string, string>> {
    return this.#headers;
  }

  tls(): { cert?: string; key?: string } {
    return this.#tls;
  }

  fingerprint(): string {
    return this.#fingerprint;
  }
}
