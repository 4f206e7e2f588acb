import { CredentialsError } from './errors.ts';

/** A proxy that makes connections for others: by HTTP CONNECT (RFC 9110), or SOCKS5 (RFC 1928). */
export interface Proxy {
  readonly protocol: 'connect' | 'socks5';
  /** The way to the proxy itself is TLS. */
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  readonly user: { readonly name: string; readonly password: string } | undefined;
}

/** SOCKS5 resolves names at the proxy here, as in client-go, whatever it is called. */
const SCHEMES: Record<string, Pick<Proxy, 'protocol' | 'secure' | 'port'>> = {
  'http:': { protocol: 'connect', secure: false, port: 80 },
  'https:': { protocol: 'connect', secure: true, port: 443 },
  'socks5:': { protocol: 'socks5', secure: false, port: 1080 },
  'socks5h:': { protocol: 'socks5', secure: false, port: 1080 },
};

/** What SOCKS5 has room for (RFC 1929), in bytes. */
const LONGEST_SECRET = 255;

/** Reads a kubeconfig's `proxy-url`. Throws {@link CredentialsError}, which never quotes the URL: it may hold a password. */
export function parseProxyUrl(text: string): Proxy {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = url === undefined ? undefined : schemeOf(url.protocol);
  if (url === undefined || scheme === undefined) {
    throw invalid('must be a URL that begins with http://, https://, socks5:// or socks5h://');
  }
  if (url.hostname === '') throw invalid('names no host');
  if (!['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '') {
    throw invalid('must not have a path, a query or a fragment');
  }
  return {
    protocol: scheme.protocol,
    secure: scheme.secure,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? scheme.port : Number(url.port),
    user: userIn(url),
  };
}

/** For people: without the user. */
export function proxyInWords({ protocol, secure, host, port }: Proxy): string {
  const scheme = protocol === 'socks5' ? 'socks5' : secure ? 'https' : 'http';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** What {@link parseProxyUrl} reads as this proxy, the user included. */
export function proxyUrl(proxy: Proxy): string {
  const { user } = proxy;
  const who = user === undefined ? '' : `${encodeURIComponent(user.name)}:${encodeURIComponent(user.password)}@`;
  return proxyInWords(proxy).replace('://', () => `://${who}`);
}

function schemeOf(protocol: string): (typeof SCHEMES)[string] | undefined {
  return Object.hasOwn(SCHEMES, protocol) ? SCHEMES[protocol] : undefined;
}

function userIn({ username, password }: URL): Proxy['user'] {
  if (username === '' && password === '') return undefined;
  const user = { name: decoded(username), password: decoded(password) };
  if (user.name === '' || Object.values(user).some((part) => Buffer.byteLength(part) > LONGEST_SECRET)) {
    throw invalid(`must have a user and a password of at most ${LONGEST_SECRET} bytes each, or neither`);
  }
  return user;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalid('has a user or password in which a % begins no escape sequence; write %25 for it');
  }
}

function invalid(what: string): CredentialsError {
  return new CredentialsError('InvalidProxy', `cluster.proxy-url ${what}`);
}
