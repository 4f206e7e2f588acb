import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Begins to listen; the port that was bound, which matters for 0. Rejects when it cannot be had, such as EADDRINUSE. */
export async function listenOn(server: Server, { address, port }: { address: string; port: number }): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/** Takes no new connections, lets answers end for `graceMs` milliseconds, then breaks what is left. */
export async function closeWithin(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timer);
}
