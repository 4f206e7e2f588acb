import { once } from 'node:events';
import { expect } from 'vitest';
import type { KeyPair } from '../../hack/pki.ts';
import { type Keys, open, readAll } from '../kubelet/harness.ts';

/** So long a caller waits for the first byte before it hangs up, in ms: half a request is answered much later, or never. */
const PATIENCE_MS = 200;

/**
 * Sends bytes to a port of ours, and answers the status that came back; undefined: none. Who hangs up `atOnce` is seldom answered, and
 * what it asked for is not begun.
 */
export async function sendRaw(
  o: { port: number; keys: Keys; client: KeyPair | undefined; hangsUp?: 'atOnce' | 'whenAnswered' },
  parts: readonly Buffer[],
): Promise<{ status: number; text: string } | undefined> {
  const socket = await open(o.port, o.keys, o.client, '');
  socket.on('error', () => undefined);
  for (const part of parts) socket.write(part);
  if (o.hangsUp === 'atOnce') socket.end();
  const patience = setTimeout(() => socket.end(), PATIENCE_MS);
  socket.once('data', () => {
    clearTimeout(patience);
    socket.end();
  });
  const answer = await Promise.race([
    readAll(socket).catch(() => Buffer.alloc(0)),
    once(socket, 'close').then(() => Buffer.alloc(0)),
  ]);
  clearTimeout(patience);
  socket.destroy();
  if (answer.length === 0) return undefined;
  const text = answer.toString('latin1');
  expect(text).toMatch(/^HTTP\/1\.1 [1-5]\d\d /);
  return { status: Number(text.slice(9, 12)), text };
}
