import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  ask,
  directoryOf,
  type Kubelet,
  type Keys,
  makeKeys,
  podNamed,
  startKubelet,
  StubMember,
  SWITCHED,
} from '../kubelet/harness.ts';
import { fuzz } from './fuzz.ts';
import { pieces, text } from './inputs.ts';
import { dangerous, textOf, upgrade } from './kubelet-upgrades.ts';
import { method, url } from './kubelet-urls.ts';
import { sendRaw } from './raw-caller.ts';

const header = fc.oneof(
  fc.constantFrom(
    'Connection: Upgrade',
    'Upgrade: SPDY/3.1',
    'Upgrade: websocket',
    'Connection: close',
    'Connection: keep-alive, Upgrade',
    'Content-Length: 0',
    'Content-Length: 5',
    'Content-Length: -1',
    'Transfer-Encoding: chunked',
    'Authorization: Bearer good',
    'Authorization: Bearer bad',
    'Authorization: Basic eDp5',
    'X-Forwarded-For: 1.2.3.4',
    'X-Remote-User: admin',
    'Host: x',
    'Expect: 100-continue',
    ' folded',
    'Sec-WebSocket-Protocol: v5.channel.k8s.io',
  ),
  text.map((value) => `X-Stream-Protocol-Version: ${value.slice(0, 2_000)}`),
  text.map((line) => line.slice(0, 500)),
);
const request = fc
  .tuple(
    method,
    url,
    fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2', ''),
    fc.array(header, { maxLength: 5 }),
    fc.constantFrom('', '', 'hello', '5\r\nhello\r\n0\r\n\r\n'),
  )
  .map(
    ([method, url, version, headers, body]) =>
      `${[`${method} ${url} ${version}`, 'Host: node', ...headers].join('\r\n')}\r\n\r\n${body}`,
  );
const bytes = fc.array(request, { minLength: 1, maxLength: 2 }).map((all) => Buffer.from(all.join(''), 'latin1'));
const connection = fc.tuple(
  bytes.chain(pieces),
  fc.constantFrom('admin', 'admin', 'admin', 'nobody'),
  fc.constantFrom('atOnce', 'whenAnswered'),
);

/** Requests that came through to the member, by what was asked for. */
const reached = { exec: 0, attach: 0, portforward: 0 };
let tried = 0;

let keys: Keys;
let member: StubMember;
let kubelet: Kubelet;
beforeAll(async () => {
  keys = await makeKeys();
  member = await StubMember.start();
  member.script = (socket) => socket.end(SWITCHED);
  // Of pods that are not on this node the directory knows nothing; secret-0 is here, and may not be named by other names.
  kubelet = await startKubelet(keys, directoryOf([podNamed('web-0'), podNamed('secret-0')], member.client));
});
afterAll(async () => {
  await kubelet.server.close(0);
  await member.stop();
});

const send = async (
  who: string,
  parts: readonly Buffer[],
  hangsUp: 'atOnce' | 'whenAnswered',
): ReturnType<typeof sendRaw> =>
  await sendRaw({ port: kubelet.port, keys, client: who === 'admin' ? keys.admin : undefined, hangsUp }, parts);

const HEAD =
  /^(?:GET|POST) (\/prefix\/api\/v1\/namespaces\/member-ns\/pods\/(web-0|secret-0)\/(exec|attach|portforward)(?:\?\S*)?) HTTP\/1\.1\r\n/;

/** What a member got: of a caller who may, about a pod of the node, with our credentials and none of the caller's. */
function checkHead(head: string, who: string, sent: string): { name: string; verb: keyof typeof reached } {
  expect(who === 'admin' || sent.includes('Bearer good')).toBe(true);
  const [, path = '', name = '', verb] = HEAD.exec(head) ?? [];
  if (verb !== 'exec' && verb !== 'attach' && verb !== 'portforward') throw new Error(`it reached ${head}`);
  expect(head.match(/\r\nauthorization: Bearer ours/gi)).toHaveLength(1);
  expect(head).not.toMatch(/Bearer (good|bad)|base64url\.bearer|\r\n(cookie|x-remote-|x-forwarded-|impersonate-)/i);
  const asked = new URL(path, 'https://member');
  expect(asked.hash).toBe('');
  if (verb === 'portforward') expect(asked.search).toMatch(/^(\?ports=\d+(&ports=\d+)*)?$/);
  else expect(asked.searchParams.getAll('container'), head).toEqual(['c']);
  for (const port of asked.searchParams.getAll('ports')) expect(Number(port) >= 1 && Number(port) <= 65_535).toBe(true);
  return { name, verb };
}

/** The path of a request as a strict reader takes it: split first, each part decoded once. */
function partsOf(request: string): string[] {
  const [path = ''] = (request.split(' ')[1] ?? '').split('?');
  const parts = path.slice(1).split('/').map(decodeURIComponent);
  return parts.at(-1) === '' ? parts.slice(0, -1) : parts;
}

describe('a kubelet port', () => {
  fuzz(
    'takes any bytes: answers or ends, and reaches only the pod that was asked for',
    connection,
    { share: 1_500 },
    async ([parts, who, hangsUp]) => {
      member.heads.length = 0;
      const sent = Buffer.concat(parts).toString('latin1');
      await send(who, parts, hangsUp);
      for (const head of member.heads) {
        const { name } = checkHead(head, who, sent);
        expect(
          decodeURIComponent(sent.replaceAll(/%(?![\da-f]{2})/gi, '%25').replaceAll(/%[89a-f][\da-f]/gi, '?')),
        ).toContain(`/ns/${name}`);
      }
    },
  );

  fuzz(
    'leads a stream to the pod and the container that it names, or nowhere',
    upgrade,
    { share: 1_500, examples: dangerous },
    async (one) => {
      member.heads.length = 0;
      const sent = textOf(one);
      await send(one.who, [Buffer.from(sent, 'latin1')], 'whenAnswered');
      tried += 1;
      for (const head of member.heads) {
        const { name, verb } = checkHead(head, one.who, sent);
        const [root = '', namespace, pod, ...rest] = partsOf(sent);
        expect([root.toLowerCase(), namespace, pod]).toEqual([verb, 'ns', name]);
        if (verb !== 'portforward') expect(rest.pop()).toBe('c');
        expect(rest.length === 0 ? [`uid-of-${name}`] : rest).toEqual([`uid-of-${name}`]);
        // The bytes of a body would be read as bytes of the stream.
        expect(one.headers.join('\r\n')).not.toMatch(/^(transfer-encoding|content-length: [^0])/im);
        reached[verb] += 1;
      }
    },
  );

  fuzz(
    'has let streams through to the member, so that the above says something',
    fc.constant(reached),
    { share: 1 },
    (all) => {
      for (const times of Object.values(all)) expect(times).toBeGreaterThanOrEqual(Math.floor(tried / 40));
      expect(all.exec + all.attach + all.portforward).toBeGreaterThanOrEqual(Math.floor(tried / 4));
    },
  );

  fuzz('goes on as before', fc.constant('/healthz'), { share: 1 }, async (path) => {
    expect((await ask(kubelet.port, keys, { path, client: keys.admin })).code).toBe(200);
    expect(kubelet.lines.filter(({ level }) => Number(level) >= 50 || level === 'error')).toEqual([]);
  });
});
