import { createHash } from 'node:crypto';
import type { Proxy } from './proxy.ts';

/** Where an API server is and how to know it. A value may change between requests where it comes from a file. */
export interface ClusterEndpoint {
  /** `https://host:port[/prefix]`; plain http is for tests and sockets on the same machine. */
  readonly server: string;
  /** PEM bundle; without it Node's own trust store decides. */
  readonly ca?: string | undefined;
  /** Name to expect in the server's certificate (and to send as SNI) instead of the host in `server`. */
  readonly serverName?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  /** What makes the connections to it; without, they are made straight. */
  readonly proxy?: Proxy | undefined;
}

/** Who we are. `tls` and `fingerprint` are read after `headers` has resolved. */
export interface Credentials {
  /** Headers for each request. `force`: the last ones were refused with 401, so look again. */
  headers(force?: boolean): Promise<Record<string, string>>;
  tls(): { cert?: string; key?: string };
  /** Changes when the bytes of the client certificate or key change: connections must then be made anew. */
  fingerprint(): string;
}

export interface Access {
  endpoint: ClusterEndpoint;
  credentials: Credentials;
}

export function fingerprintOf(cert: string | undefined, key: string | undefined): string {
  if (cert === undefined && key === undefined) {
    return '';
  }
  return createHash('sha256')
    .update(cert ?? '')
    .update('\0')
    .update(key ?? '')
    .digest('hex');
}

export function authorizationHeaders(o: {
  token?: string | undefined;
  username?: string | undefined;
  password?: string | undefined;
  impersonate?: string | undefined;
}): Record<string, string> {
  const headers: Record<string, string> = {};
  if (o.token !== undefined && o.token !== '') {
    headers['authorization'] = `Bearer ${o.token}`;
  } else if (o.username !== undefined && o.username !== '') {
    headers['authorization'] = `Basic ${Buffer.from(`${o.username}:${o.password ?? ''}`).toString('base64')}`;
  }
  if (o.impersonate !== undefined && o.impersonate !== '') {
    headers['impersonate-user'] = o.impersonate;
  }
  return headers;
}
