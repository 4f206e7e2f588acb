import { readFile } from 'node:fs/promises';
import { authorizationHeaders, fingerprintOf, type Access, type ClusterEndpoint, type Credentials } from './access.ts';
import { monotonic } from './clock.ts';
import { CredentialsError } from './errors.ts';
import { isKeyPair } from './key-pair.ts';
import type { Proxy } from './proxy.ts';

/** A value in hand, or the file that holds it. */
export type Source = { data: string } | { file: string };

export interface FileAccessOptions {
  server: string;
  serverName?: string | undefined;
  insecureSkipTlsVerify?: boolean | undefined;
  proxy?: Proxy | undefined;
  ca?: Source | undefined;
  cert?: Source | undefined;
  key?: Source | undefined;
  token?: Source | undefined;
  username?: string | undefined;
  password?: string | undefined;
  impersonate?: string | undefined;
  /** Milliseconds, monotonic. */
  monotonic?: () => number;
}

/** Files are looked at again when older than this. Service account tokens live an hour, so there is ample room. */
const RECHECK_MS = 10_000;

/**
 * Access from a kubeconfig or from a pod's service account, where any part may be a file that somebody rotates.
 * Files are read again every ten seconds of use and at once after a 401. Throws {@link CredentialsError} when a file
 * cannot be read now; later on, a file that cannot be read or does not fit its partner leaves the last good one.
 */
export async function fileAccess(options: FileAccessOptions): Promise<Access> {
  const files = new FileAccess(options);
  await files.load();
  return { endpoint: files.endpoint, credentials: files };
}

interface Material {
  ca: string | undefined;
  cert: string | undefined;
  key: string | undefined;
  token: string | undefined;
}

class FileAccess implements Credentials {
  readonly endpoint: ClusterEndpoint;
  readonly #options: FileAccessOptions;
  readonly #monotonic: () => number;
  readonly #hasFiles: boolean;
  #material: Material = { ca: undefined, cert: undefined, key: undefined, token: undefined };
  #headers: Promise<Record<string, string>> = Promise.resolve({});
  #tls: { cert?: string; key?: string } = {};
  #fingerprint = '';
  #checkedAt = -Infinity;
  #refreshing: Promise<Record<string, string>> | undefined;

  constructor(options: FileAccessOptions) {
    this.#options = options;
    this.#monotonic = options.monotonic ?? monotonic;
    const { ca, cert, key, token } = options;
    this.#hasFiles = [ca, cert, key, token].some((source) => source !== undefined && 'file' in source);
    const material = () => this.#material;
    this.endpoint = {
      server: options.server,
      serverName: options.serverName,
      insecureSkipTlsVerify: options.insecureSkipTlsVerify,
      proxy: options.proxy,
      get ca() {
        return material().ca;
      },
    };
  }

  headers(force = false): Promise<Record<string, string>> {
    if (!this.#hasFiles || (!force && this.#monotonic() - this.#checkedAt < RECHECK_MS)) {
      return this.#headers;
    }
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  tls(): { cert?: string; key?: string } {
    return this.#tls;
  }

  fingerprint(): string {
    return this.#fingerprint;
  }

  async load(): Promise<void> {
    const { ca, cert, key, token } = this.#options;
    const [newCa, newCert, newKey, newToken] = await Promise.all([ca, cert, key, token].map(read));
    this.#checkedAt = this.#monotonic();
    this.#accept({ ca: newCa, cert: newCert, key: newKey, token: newToken?.trim() });
  }

  async #refresh(): Promise<Record<string, string>> {
    try {
      await this.load();
    } catch (e) {
      if (!(e instanceof CredentialsError)) {
        throw e;
      }
      this.#checkedAt = this.#monotonic();
    }
    return this.#headers;
  }

  #accept(next: Material): void {
    const last = this.#material;
    // Two files cannot be replaced at one moment: what does not fit together is looked at again later.
    if (next.cert !== undefined && next.key !== undefined && (next.cert !== last.cert || next.key !== last.key)) {
      if (!isKeyPair(next.cert, next.key)) {
        throw new CredentialsError('InvalidClientCertificate', 'the client certificate and its key do not fit');
      }
    }
    this.#material = next;
    if (next.cert !== last.cert || next.key !== last.key) {
      this.#tls = {
        ...(next.cert === undefined ? {} : { cert: next.cert }),
        ...(next.key === undefined ? {} : { key: next.key }),
      };
      this.#fingerprint = fingerprintOf(next.cert, next.key);
    }
    const { username, password, impersonate } = this.#options;
    this.#headers = Promise.resolve(authorizationHeaders({ token: next.token, username, password, impersonate }));
  }
}

async function read(source: Source | undefined): Promise<string | undefined> {
  if (source === undefined) {
    return undefined;
  }
  if ('data' in source) {
    return source.data;
  }
  try {
    return await readFile(source.file, 'utf8');
  } catch (e) {
    const code = e instanceof Error && 'code' in e ? String(e.code) : 'unknown error';
    throw new CredentialsError('FileUnreadable', `credentials file ${source.file} cannot be read: ${code}`);
  }
}
