import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, get } from 'node:https';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';
import { ask, directoryOf, makeKeys, open, podNamed, readAll, startKubelet, until } from './harness.ts';
import type { Keys, Kubelet } from './harness.ts';

/** Logs of a member that is a real HTTP server, through a real client: what passes here is the body as it is on the wire. */

let keys: Keys;
let kubelet: Kubelet;
let member: TestServer;
let client: KubeClient;

beforeAll(async () => {
  keys = await makeKeys();
});
afterEach(async () => {
  await kubelet.server.close(0);
  await client.close();
  await member.close();
});

const PATH = '/containerLogs/ns/web/c';

async function serve(answer: (response: ServerResponse) => void): Promise<void> {
  member = await startHttpServer((_request, response) => answer(response));
  client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: member.url }, token: 'ours' }) });
  kubelet = await startKubelet(keys, directoryOf([podNamed('web')], client));
}

const read = (): ReturnType<typeof ask> => ask(kubelet.port, keys, { path: PATH, client: keys.admin });

test('many small pieces come back as they were, and the connection can be used again', async () => {
  const lines = Array.from({ length: 3_000 }, (_, index) => `line ${index} 0\r\n\r\n\n`);
  await serve((response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    const rest = lines.values();
    const write = (): void => {
      for (let count = 0; count < 100; count++) {
        const { value, done } = rest.next();
        if (done === true) return void response.end();
        response.write(value);
      }
      setImmediate(write);
    };
    write();
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: keys.authority.cert, ...keys.admin });
  const ports = new Set<number | undefined>();
  for (let turn = 0; turn < 3; turn++) {
    const request = get({ host: '127.0.0.1', port: kubelet.port, path: PATH, agent });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    ports.add(answer.socket.localPort);
    expect(answer.headers['transfer-encoding']).toBe('chunked');
    expect((await readAll(answer)).toString()).toBe(lines.join(''));
  }
  agent.destroy();
  expect(ports.size).toBe(1);
});

test('an answer of known length', async () => {
  await serve((response) => {
    response.writeHead(200, { 'content-length': 6 });
    response.write('abc');
    setTimeout(() => response.end('def'), 20);
  });
  expect(await read()).toMatchObject({ code: 200, text: 'abcdef', type: 'text/plain; charset=utf-8' });
});

test.each([
  ['in chunks', { 'transfer-encoding': 'chunked' }],
  ['of known length', { 'content-length': '6' }],
])('the end of a body %s is no part of what is read with its last piece', async (_what, headers) => {
  await serve((response) => response.writeHead(200, headers).end('alive\n'));
  const caller = await open(kubelet.port, keys, keys.admin, `GET ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const reads: string[] = [];
  caller.on('data', (piece: Buffer) => void reads.push(String(piece)));
  await until(() => reads.join('').endsWith('0\r\n\r\n'), 'the end of the body');
  caller.destroy();
  expect(reads.join('')).toMatch(/\r\n\r\n6\r\nalive\n\r\n0\r\n\r\n$/);
  // kube-apiserver takes a chunk for the last one as soon as it has that line whole.
  expect(reads.filter((piece) => piece.includes('alive\n\r\n0\r\n'))).toEqual([]);
});

test('trailers do not go on', async () => {
  await serve((response) => {
    response.writeHead(200, { trailer: 'Digest' });
    response.write('one');
    response.addTrailers({ digest: 'x' });
    response.end();
  });
  const text = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  const caller = await open(kubelet.port, keys, keys.admin, text);
  expect((await readAll(caller)).toString()).toMatch(/\r\n\r\n3\r\none\r\n0\r\n\r\n$/);
});

test.each([
  ['in chunks', { 'transfer-encoding': 'chunked' }],
  ['of known length', { 'content-length': '0' }],
])('nothing at all, %s', async (_what, headers) => {
  await serve((response) => response.writeHead(200, headers).end());
  expect(await read()).toMatchObject({ code: 200, text: '' });
});

test.each([
  ['in chunks', {}],
  ['of known length', { 'content-length': '100' }],
])('a body %s that is cut breaks the answer', async (_what, headers) => {
  await serve((response) => {
    response.writeHead(200, headers);
    response.write('half 0\r\n\r\n');
    setTimeout(() => response.destroy(), 50);
  });
  await expect(read()).rejects.toThrow(/aborted|hang up/);
});

test('the head and each piece go out when they come; a caller who leaves ends the member’s stream', async () => {
  let response: ServerResponse | undefined;
  await serve((one) => {
    response = one;
    one.writeHead(200).flushHeaders();
  });
  const caller = await open(kubelet.port, keys, keys.admin, `GET ${PATH}?follow=true HTTP/1.1\r\nHost: x\r\n\r\n`);
  const next = async (): Promise<string> => String(((await once(caller, 'data')) as [Buffer])[0]);
  expect(await next()).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  for (const text of ['one', 'two']) {
    response?.write(text);
    expect(await next()).toBe(`3\r\n${text}\r\n`);
  }
  caller.destroy();
  await until(() => response?.destroyed === true, 'the member’s stream to be ended');
});

test('a slow reader stops the member', async () => {
  const piece = Buffer.alloc(65_536, 'x');
  const whole = 64 * 1_048_576;
  let offered = 0;
  await serve((response) => {
    const offer = (): void => {
      while (offered < whole) {
        offered += piece.length;
        if (!response.write(piece)) return void response.once('drain', offer);
      }
      response.end();
    };
    offer();
  });
  const text = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  const caller = await open(kubelet.port, keys, keys.admin, text);
  let last = -1;
  await until(async () => {
    const still = offered === last && offered > 0;
    last = offered;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return still;
  }, 'the member to stand still');
  expect(offered).toBeLessThan(whole / 2);
  expect((await readAll(caller)).length).toBeGreaterThan(whole);
});

test('a caller who speaks HTTP/1.0 gets no chunks', async () => {
  await serve((response) => {
    response.write('one');
    response.end('two');
  });
  const caller = await open(kubelet.port, keys, keys.admin, `GET ${PATH} HTTP/1.0\r\n\r\n`);
  expect((await readAll(caller)).toString()).toMatch(/\r\n\r\nonetwo$/);
});

test.each([
  ['at once', false],
  ['in chunks', true],
])('a refusal that comes %s reaches the user in its own words', async (_what, inChunks) => {
  const message = 'container "c" in pod "web" is waiting to start: ContainerCreating';
  const status = { kind: 'Status', status: 'Failure', reason: 'BadRequest', code: 400, message };
  await serve((response) => {
    if (!inChunks) return sendJson(response, 400, status);
    const text = JSON.stringify(status);
    response.writeHead(400, { 'content-type': 'application/json' });
    response.write(text.slice(0, 20));
    setTimeout(() => response.end(text.slice(20)), 20);
  });
  expect(await read()).toMatchObject({ code: 400, text: message });
});

test('what is no HTTP is said to be none', async () => {
  await serve((response) => {
    response.socket?.end('HTTP/0.9 hello\r\n\r\n');
  });
  const answer = await read();
  expect(answer.code).toBe(500);
  expect(answer.text).toContain('cluster east');
});
