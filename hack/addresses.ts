import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';

/** The first IPv4 address of this machine that others could use, or a documentation address when it has none. */
export function nonLoopbackAddress(): string {
  for (const list of Object.values(networkInterfaces())) {
    for (const one of list ?? []) {
      if (one.family === 'IPv4' && !one.internal && !one.address.startsWith('169.254.')) return one.address;
    }
  }
  return '192.0.2.1';
}

const handedOut = new Set<number>();

/**
 * A free TCP port on `address`. Taken from 20000-32000: below the range that outgoing connections use, so that a
 * stopped server finds its port free when it starts again.
 */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (handedOut.has(port)) continue;
    handedOut.add(port);
    if (await canListen(address, port)) return port;
  }
  throw new Error(`no free port on ${address} between 20000 and 32000`);
}

function canListen(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, address, () => server.close(() => resolve(true)));
  });
}
