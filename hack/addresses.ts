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

const FIRST_PORT = 20_000;
const PORTS = 12_000;
/** What a process looks at first is its own: nobody else is handed a port between the look and the start of what is to listen there. */
const OWN_PORTS = 400;
const OWN_TRIES = 100;
const handedOut = new Set<number>();

/**
 * A free TCP port on `address`. Taken from 20000-32000: below the range that outgoing connections use, so that a
 * stopped server finds its port free when it starts again.
 */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  for (let attempt = 0; attempt < 2 * OWN_TRIES; attempt++) {
    const port = attempt < OWN_TRIES ? ownPort() : FIRST_PORT + Math.floor(Math.random() * PORTS);
    if (handedOut.has(port)) continue;
    handedOut.add(port);
    if (await canListen(address, port)) return port;
  }
  throw new Error(`no free port on ${address} between 20000 and 32000`);
}

/** Processes that are started one after the other have other ones. */
function ownPort(): number {
  const first = FIRST_PORT + OWN_PORTS * (process.pid % (PORTS / OWN_PORTS));
  return first + Math.floor(Math.random() * OWN_PORTS);
}

function canListen(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, address, () => server.close(() => resolve(true)));
  });
}
