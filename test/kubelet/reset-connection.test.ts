import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resetConnection } from '../../src/kubelet/reset-connection.ts';

const server = createServer({ allowHalfOpen: true });
let near: Socket;
let far: Socket;

beforeEach(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  near = connect((server.address() as AddressInfo).port, '127.0.0.1');
  [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [[Socket], unknown];
});
afterEach(async () => {
  near.destroy();
  far.destroy();
  server.close();
  await once(server, 'close');
});

test('the other side sees a reset', async () => {
  const error = once(far, 'error');
  far.resume();
  resetConnection(near, near);
  await once(near, 'close');
  expect(String(await error)).toContain('ECONNRESET');
});

test.each([
  ['in the same turn', (then: () => void) => then()],
  ['before its shutdown is through', (then: () => void) => process.nextTick(() => queueMicrotask(then))],
  ['after its shutdown', (then: () => void) => void setTimeout(then, 20)],
])('a connection whose end was said before closes all the same: %s', async (_when, soon) => {
  far.resume();
  const closed = once(near, 'close');
  near.end();
  soon(() => resetConnection(near, near));
  await closed;
});
