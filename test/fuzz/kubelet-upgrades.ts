import fc from 'fast-check';
import { text } from './inputs.ts';
import { method, parameter, segment } from './kubelet-urls.ts';

/** A request to switch protocols, in the parts that can be wrong one by one. */
export interface Upgrade {
  readonly who: 'admin' | 'nobody';
  readonly method: string;
  readonly path: readonly string[];
  readonly query: readonly string[];
  readonly version: string;
  readonly headers: readonly string[];
  readonly body: string;
}

/** What a member must not get to see, or what decides whether anything reaches it. */
const header = fc.oneof(
  fc.constantFrom(
    'Authorization: Bearer good',
    'Authorization: Bearer bad',
    'Cookie: session=x',
    'X-Remote-User: admin',
    'X-Forwarded-For: 1.2.3.4',
    'Impersonate-User: admin',
    'Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.Z29vZA',
    'Connection: Upgrade, X-Stream-Protocol-Version',
    'Connection: close',
    'Content-Length: 0',
    'Content-Length: 5',
    'Transfer-Encoding: chunked',
    'Expect: 100-continue',
    'Upgrade: websocket',
  ),
  text.map((value) => `X-Stream-Protocol-Version: ${value.slice(0, 2_000)}`),
);

/** Ways to name another pod, container or namespace, or the same one in other words. */
const name = fc.oneof(
  fc.constantFrom('web-0', 'secret-0', 'other', 'ns', 'c', 'sidecar', 'uid-of-web-0', 'uid-of-secret-0', 'exec'),
  fc.constantFrom('attach', 'portForward', '%77eb-0', 'web%2d0', '%2577eb-0', 'web-0%2f..%2fsecret-0', 'WEB-0', '%6es'),
  segment,
);
const port = fc.constantFrom(
  'port=80',
  'port=80,81',
  'port=80%2C81',
  'port=0',
  'port=65536',
  'port=x',
  'port=80%26tty=true',
);

type Change = (upgrade: Upgrade) => Upgrade;
const at = <T>(list: readonly T[], where: number, removed: number, ...added: T[]): T[] =>
  list.toSpliced(where % (list.length + 1), removed, ...added);
const inList = (part: 'path' | 'query' | 'headers', one: fc.Arbitrary<string>): fc.Arbitrary<Change> =>
  fc
    .tuple(fc.nat(9), fc.constantFrom('replace', 'replace', 'replace', 'add', 'remove'), one)
    .map(([where, how, value]): Change => (upgrade) => ({
      ...upgrade,
      [part]: at(upgrade[part], where, how === 'add' ? 0 : 1, ...(how === 'remove' ? [] : [value])),
    }));
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Change>((upgrade) => ({ ...upgrade, who: 'nobody' })) },
  {
    weight: 1,
    arbitrary: method.map((other): Change => (upgrade) => ({ ...upgrade, method: other })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('HTTP/1.0', 'HTTP/2', '').map((version): Change => (upgrade) => ({
      ...upgrade,
      version,
    })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom('Content-Length: 5', 'Transfer-Encoding: chunked')
      .map((framed): Change => (upgrade) => ({
        ...upgrade,
        headers: [...upgrade.headers, framed],
        body: framed.startsWith('C') ? 'hello' : '5\r\nhello\r\n0\r\n\r\n',
      })),
  },
  { weight: 6, arbitrary: inList('path', name) },
  { weight: 3, arbitrary: inList('query', fc.oneof(parameter, port)) },
  { weight: 4, arbitrary: inList('headers', header) },
);

const plain = {
  who: 'admin',
  version: 'HTTP/1.1',
  headers: ['Connection: Upgrade', 'Upgrade: SPDY/3.1', 'X-Stream-Protocol-Version: v4.channel.k8s.io'],
  body: '',
} as const;
const exec = ['command=sh', 'command=-c', 'input=1', 'output=1'];
const valid: readonly Upgrade[] = [
  { ...plain, method: 'POST', path: ['exec', 'ns', 'web-0', 'c'], query: exec },
  { ...plain, method: 'GET', path: ['exec', 'ns', 'web-0', 'uid-of-web-0', 'c'], query: exec },
  { ...plain, method: 'GET', path: ['attach', 'ns', 'secret-0', 'c'], query: ['output=1', 'error=1'] },
  { ...plain, method: 'POST', path: ['portForward', 'ns', 'web-0'], query: ['port=80'] },
  { ...plain, method: 'POST', path: ['portForward', 'ns', 'web-0', 'uid-of-web-0'], query: [] },
];

const [execInWeb] = valid;
const broken = (changes: Partial<Upgrade>): Upgrade[] =>
  execInWeb === undefined ? [] : [{ ...execInWeb, ...changes }];

/** One for each thing that keeps a stream to its pod: always tried. */
export const dangerous: readonly Upgrade[] = [
  ...broken({ who: 'nobody' }),
  ...broken({ path: ['exec', 'other', 'web-0', 'c'] }),
  ...broken({ path: ['exec', 'ns', '%2577eb-0', 'c'] }),
  ...broken({ path: ['exec', 'ns', 'web-0', 'uid-of-secret-0', 'c'] }),
  ...broken({ path: ['exec', 'ns', 'web-0', 'sidecar'] }),
  ...broken({ query: [...exec, 'command=a#b'] }),
  ...broken({ path: ['portForward', 'ns', 'web-0'], query: ['port=x'] }),
  ...broken({ path: ['portForward', 'ns', 'web-0'], query: ['port=65536'] }),
  ...broken({ headers: [...plain.headers, 'Content-Length: 5'], body: 'hello' }),
  ...broken({ headers: [...plain.headers, 'Authorization: Bearer good', 'Cookie: session=x'] }),
  ...broken({
    headers: [
      ...plain.headers,
      'Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.Z29vZA',
    ],
  }),
];

/** Streams to a pod as kubectl asks for them, each with up to two changes: a third of them is as it should be. */
export const upgrade: fc.Arbitrary<Upgrade> = fc
  .tuple(fc.constantFrom(...valid), fc.array(change, { maxLength: 2 }))
  .map(([one, changes]) => changes.reduce((changed, step) => step(changed), one));

export function textOf({ method, path, query, version, headers, body }: Upgrade): string {
  const url = `/${path.join('/')}${query.length === 0 ? '' : `?${query.join('&')}`}`;
  return `${[`${method} ${url} ${version}`, 'Host: node', ...headers].join('\r\n')}\r\n\r\n${body}`;
}
