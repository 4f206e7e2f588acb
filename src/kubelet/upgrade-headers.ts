/** Header lines in the flat form of Node's `rawHeaders`: name, value, name, value… Repeats and order are kept. */
export type RawHeaders = readonly string[];

const REQUEST_HEADERS: ReadonlySet<string> = new Set([
  'upgrade',
  'x-stream-protocol-version',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
]);

const RESPONSE_HEADERS: ReadonlySet<string> = new Set([
  'upgrade',
  'x-stream-protocol-version',
  'x-accepted-stream-protocol-versions',
  'sec-websocket-accept',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
]);

/** Kubernetes lets browsers carry a bearer token as if it were a subprotocol; it is a credential, not a protocol. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';

/**
 * The header lines of a stream request that go on to the member. An allow-list: credentials, cookies, impersonation
 * and front-proxy headers have no way through, and what the caller named in `Connection` belongs to his hop alone.
 * `own` is what we add: host, credentials.
 */
export function requestHeaders(raw: RawHeaders, method: string, own: Readonly<Record<string, string>>): string[] {
  const headers = [...pairsOf(own), 'Connection', 'Upgrade', ...allowed(raw, REQUEST_HEADERS, hopByHop(raw))];
  if (method !== 'GET') {
    // Without it Node would announce a chunked body, and the end of that body would be read as stream bytes.
    headers.push('Content-Length', '0');
  }
  return headers;
}

/** The header lines of the member's 101 that go back to the caller. */
export function switchingHeaders(raw: RawHeaders): string[] {
  return ['Connection', 'Upgrade', ...allowed(raw, RESPONSE_HEADERS, hopByHop(raw))];
}

/** The header lines of a refusal that go back, apart from those about its body. */
export function refusalHeaders(raw: RawHeaders): (readonly [string, string])[] {
  const kept = pairs(raw).filter(([name]) => {
    const lower = name.toLowerCase();
    return lower === 'x-accepted-stream-protocol-versions' || lower === 'retry-after';
  });
  return kept;
}

function allowed(raw: RawHeaders, names: ReadonlySet<string>, dropped: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (const [name, value] of pairs(raw)) {
    const lower = name.toLowerCase();
    if (!names.has(lower) || dropped.has(lower)) {
      continue;
    }
    const clean = lower === 'sec-websocket-protocol' ? withoutToken(value) : value;
    if (clean !== '') {
      kept.push(name, clean);
    }
  }
  return kept;
}

function hopByHop(raw: RawHeaders): ReadonlySet<string> {
  const named = new Set<string>();
  for (const [name, value] of pairs(raw)) {
    if (name.toLowerCase() === 'connection') {
      for (const token of value.split(',')) {
        named.add(token.trim().toLowerCase());
      }
    }
  }
  named.delete('upgrade');
  return named;
}

function withoutToken(value: string): string {
  return value
    .split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '' && !protocol.startsWith(TOKEN_PROTOCOL))
    .join(', ');
}

function pairs(raw: RawHeaders): [string, string][] {
  const out: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    out.push([raw[at] ?? '', raw[at + 1] ?? '']);
  }
  return out;
}

function pairsOf(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flat();
}
