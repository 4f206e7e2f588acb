import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { hostname } from 'node:os';

/** Whom Leases show as their holder. */
export interface ProcessIdentity {
  identity: string;
  /** Tells this process from former ones of the same identity. */
  incarnation: string;
  release(): void;
}

/**
 * An identity that outlives this process but never belongs to two at once, so that after a crash the next process need
 * not wait for Leases that nobody renews. It is made of the machine's boot and the network namespace; and whoever has it
 * listens on an abstract socket of that name, which the kernel gives to one process and takes back when
 * that one is dead, however it died. A container that starts again in its pod has the same one; another pod, machine or
 * boot has another. Where that cannot be told (no Linux, socket taken) it is unique to this process. Machines cloned while
 * they run are the one exception; there `incarnation` makes the elder stop at its next renewal (see LeaseElection).
 */
export async function processIdentity(purpose: string): Promise<ProcessIdentity> {
  const incarnation = randomUUID();
  const alone: ProcessIdentity = {
    identity: `${hostname()}_${process.pid}_${incarnation.slice(0, 8)}`,
    incarnation,
    release: () => undefined,
  };
  const place = placeOf(purpose);
  if (place === undefined) return alone;
  const server = await listen(`\0spillway/${place}`);
  if (server === undefined) return alone;
  const release = (): void => void server.close();
  return { identity: `${hostname()}_${place}`, incarnation, release };
}

function placeOf(purpose: string): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const network = readlinkSync('/proc/self/ns/net');
    return createHash('sha256').update([hostname(), boot, network, purpose].join('\n')).digest('hex').slice(0, 16);
  } catch {
    return undefined;
  }
}

/** Undefined when another process listens there, or nobody can. */
async function listen(path: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  return await new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen({ path }, () => {
      server.unref();
      resolve(server);
    });
  });
}
