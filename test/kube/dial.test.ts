import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createSecureContext, createServer, TLSSocket, type Server } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority, issueClient, issueServing, type Authority } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { dialServer, type TlsSettings } from '../../src/kube/dial.ts';

let authority: Authority;
let server: Server;
let origin: string;
/** The client's name in each handshake that the server saw, and whether it resumed a session. */
const seen: { client: string; resumed: boolean }[] = [];

beforeAll(async () => {
  authority = await createAuthority('dial-test');
  const serving = await issueServing(authority, 'server', ['127.0.0.1']);
  server = createServer(
    { cert: serving.cert, key: serving.key, ca: authority.cert, requestCert: true, rejectUnauthorized: true },
    (socket) => {
      seen.push({ client: String(socket.getPeerCertificate().subject.CN), resumed: socket.isSessionReused() });
      socket.on('error', () => undefined);
      // TLS 1.3 hands out sessions after the handshake: data makes sure that the client has read them.
      socket.write('hello');
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

async function settings(user: string): Promise<TlsSettings> {
  const client = await issueClient(authority, user, []);
  return { secureContext: createSecureContext({ ca: authority.cert, cert: client.cert, key: client.key }) };
}

/** Dials, waits for the first byte, hangs up; whether the session was resumed. */
async function resumes(tls: TlsSettings): Promise<boolean> {
  const socket: Socket = await dialServer({ origin, tls });
  if (!(socket instanceof TLSSocket)) throw new Error('not a TLS connection');
  await once(socket, 'data');
  expect(socket.authorized).toBe(true);
  const resumed = socket.isSessionReused();
  socket.destroy();
  return resumed;
}

describe('dialServer', () => {
  test('resumes the TLS session of the same identity, and only of that', async () => {
    const [ours, other] = [await settings('ours'), await settings('other')];
    expect(await resumes(ours)).toBe(false);
    // A session comes some time after the handshake.
    await until('a session is resumed', () => resumes(ours));
    const before = seen.length;
    expect(await resumes(other)).toBe(false);
    await until('the other session is resumed', () => resumes(other));
    expect(seen.slice(0, before).every(({ client }) => client === 'ours')).toBe(true);
    expect(seen.slice(before).every(({ client }) => client === 'other')).toBe(true);
    expect(seen.at(-1)?.resumed).toBe(true);
  });
});
