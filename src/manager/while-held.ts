import type { Logger } from 'pino';
import { INCARNATION_ANNOTATION } from '../api/marks.ts';
import { processIdentity } from '../host/process-identity.ts';
import { LeaseElection } from '../kube/lease-election.ts';
import type { Lease } from '../kube/lease.ts';
import type { HostServices } from './host-services.ts';

/**
 * Works whenever this replica holds the Lease of that name; the next process in the same place inherits it. `isHeld`: acting as the holder is safe at this very moment, which
 * may end before the signal says so. `seen` is told the Lease, whoever has it.
 */
export async function whileHeld(
  { host, hostId, config }: Pick<HostServices, 'host' | 'hostId' | 'config'>,
  name: string,
  logger: Logger,
  signal: AbortSignal,
  work: (held: AbortSignal, isHeld: () => boolean) => Promise<void>,
  seen?: (lease: Lease) => void,
): Promise<void> {
  const self = await processIdentity(`${hostId}/${config.namespace}/${name}`);
  const lease = new LeaseElection({
    client: host,
    namespace: config.namespace,
    name,
    identity: config.identity ?? self.identity,
    incarnation: { annotation: INCARNATION_ANNOTATION, value: self.incarnation },
    logger,
    ...(seen === undefined ? {} : { onSeen: seen }),
  });
  await lease.run({ signal, onAcquired: async (held) => await work(held, () => lease.held) });
  self.release();
}
