import { once } from 'node:events';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  ask,
  directoryOf,
  type Kubelet,
  type Keys,
  makeKeys,
  open,
  podNamed,
  readAll,
  startKubelet,
  StubMember,
  SWITCHED,
} from '../kubelet/harness.ts';
import { fuzz } from './fuzz.ts';
import { pieces, text } from './inputs.ts';
import { method, url } from './kubelet-urls.ts';

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
const connection = fc.tuple(bytes.chain(pieces), fc.constantFrom('admin', 'admin', 'admin', 'nobody'));

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

describe('a kubelet port', () => {
  fuzz(
    'takes any bytes: answers or ends, and reaches only the pod that was asked for',
    connection,
    { share: 1_500 },
    async ([parts, who]) => {
      member.heads.length = 0;
      const sent = Buffer.concat(parts).toString('latin1');
      const socket = await open(kubelet.port, keys, who === 'admin' ? keys.admin : undefined, '');
      socket.on('error', () => undefined);
      for (const part of parts) socket.write(part);
      socket.end();
      const answer = await Promise.race([
        readAll(socket).catch(() => Buffer.from('broken')),
        once(socket, 'close').then(() => Buffer.from('closed')),
      ]);
      socket.destroy();
      if (answer.length > 0 && !['broken', 'closed'].includes(answer.toString()))
        expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 [1-5]\d\d /);
      for (const head of member.heads) {
        expect(who === 'admin' || sent.includes('Bearer good')).toBe(true);
        const [, name] =
          /^(?:GET|POST) \/prefix\/api\/v1\/namespaces\/member-ns\/pods\/(web-0|secret-0)\/(?:exec|attach|portforward)(?:\?\S*)? HTTP\/1\.1\r\n/.exec(
            head,
          ) ?? [];
        expect(name, head).toBeDefined();
        expect(
          decodeURIComponent(sent.replaceAll(/%(?![\da-f]{2})/gi, '%25').replaceAll(/%[89a-f][\da-f]/gi, '?')),
        ).toContain(`/ns/${name}`);
        expect(head.match(/\r\nauthorization: Bearer ours/gi)).toHaveLength(1);
        expect(head).not.toMatch(/x-remote-user|Bearer (good|bad)|\r\ncookie/i);
      }
    },
  );

  fuzz('goes on as before', fc.constant('/healthz'), { share: 1 }, async (path) => {
    expect((await ask(kubelet.port, keys, { path, client: keys.admin })).code).toBe(200);
    expect(kubelet.lines.filter(({ level }) => Number(level) >= 50 || level === 'error')).toEqual([]);
  });
});
