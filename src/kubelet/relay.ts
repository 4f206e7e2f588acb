import type { Socket } from 'node:net';

/** Stream bytes so far, head bytes included. */
export interface Traffic {
  toMember: number;
  fromMember: number;
}

/** Why a relay ended, for the audit line. */
export type RelayEnd = 'closed' | 'caller reset' | 'member reset';

/** How long the second half of a connection may outlive the first once everything sent has been handed on. */
const LINGER_MS = 5_000;

/**
 * Copies bytes both ways until both connections are closed. Reading stops while the other side is slow, so what is
 * held is bounded by the sockets' own buffers. When one side has said its last word, the other gets everything that is
 * still on its way, however slowly it reads, and then the end; an error on one side ends the other too. There is no
 * idle limit: the peers ping each other, and a kubelet keeps idle streams for hours.
 */
export function relay(caller: Socket, member: Socket, traffic: Traffic): Promise<RelayEnd> {
  return new Promise((resolve) => {
    let open = 2;
    let end: RelayEnd = 'closed';
    let linger: NodeJS.Timeout | undefined;
    const startLinger = (): void => {
      linger ??= setTimeout(() => {
        caller.destroy();
        member.destroy();
      }, LINGER_MS);
    };
    const pump = (from: Socket, to: Socket, count: (bytes: number) => void, reset: RelayEnd): void => {
      // Otherwise Node would answer one side's end by cutting off what we still have for it.
      from.allowHalfOpen = true;
      from.setTimeout(0);
      from.on('error', () => {
        end = end === 'closed' ? reset : end;
      });
      from.on('data', (chunk: Buffer) => {
        count(chunk.length);
        if (!to.write(chunk)) {
          from.pause();
        }
      });
      to.on('drain', () => from.resume());
      from.on('end', () => {
        if (to.writable) {
          to.end(startLinger);
        }
      });
      from.on('close', () => {
        open -= 1;
        if (open === 0) {
          clearTimeout(linger);
          resolve(end);
          return;
        }
        startLinger();
        to.destroySoon();
      });
    };
    pump(caller, member, (bytes) => (traffic.toMember += bytes), 'caller reset');
    pump(member, caller, (bytes) => (traffic.fromMember += bytes), 'member reset');
  });
}
