import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Asker } from '../../src/scheduler/asker.ts';

/** Asks a server, and answers whether it knew of a hang-up by the time that `answer` was done with it. */
async function askAndTell(answer: (asker: Asker, hangUp: () => void) => Promise<void>): Promise<boolean> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const told = new Promise<boolean>((resolve, reject) => {
    server.on('request', (_, response: ServerResponse) => {
      const asker = new Asker(response);
      // Requests are read in the poll phase: what comes in from here on is read in the next one.
      answer(asker, () => socket.destroy()).then(() => resolve(asker.hungUp.aborted), reject);
    });
  });
  socket.write('POST /preempt HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n');
  return await told;
}

test('hears of a hang-up that came in while the answer was worked out, whatever the phase of the loop that was in', async () => {
  const inPoll = askAndTell(async (asker, hangUp) => {
    hangUp();
    await asker.listen();
  });
  expect(await inPoll).toBe(true);
  const inCheck = askAndTell(async (asker, hangUp) => {
    await asker.listen();
    hangUp();
    await asker.listen();
  });
  expect(await inCheck).toBe(true);
});

test('takes none for gone who waits', async () => {
  expect(await askAndTell(async (asker) => await asker.listen())).toBe(false);
});
