import type { Socket } from 'node:net';
import { corkForThisTurn } from './cork.ts';

/** Stream bytes so far, head bytes included. */
export interface Traffic {
  toMember: number;
  fromMember: number;
}

/** Why a relay ended, for the audit line. */
export type RelayEnd = 'closed' | 'caller reset' | 'member reset' | 'cut';

/** How long the second half of a connection may outlive the first once everything sent has been handed on. */
const LINGER_MS = 5_000;

/**
 * Bytes that may wait in this process for one side before the other is read no further. Node's own limit of 16 KiB
 * costs a stop and a start for each TLS record, about a tenth of the time.
 */
const MOST_HELD = 131_072;

/**
 * Copies bytes both ways until both connections are closed. Reading stops while the other side is slow, so what is
 * held is bounded. When one side has said its last word, or breaks, the other gets everything that is still on its way,
 * however slowly it reads, and then the end. There is no idle limit: the peers ping each other, and a kubelet keeps
 * idle streams for hours. `signal`: end both now.
 */
export function relay(caller: Socket, member: Socket, traffic: Traffic, signal: AbortSignal): Promise<RelayEnd> {
  return new Promise((resolve) => {
    let open = 2;
    let end: RelayEnd = 'closed';
    let linger: NodeJS.Timeout | undefined;
    const destroyBoth = (): void => {
      caller.destroy();
      member.destroy();
    };
    const cut = (): void => {
      end = end === 'closed' ? 'cut' : end;
      destroyBoth();
    };
    const startLinger = (): void => {
      linger ??= setTimeout(destroyBoth, LINGER_MS);
    };
    const pump = (from: Socket, to: Socket, reset: RelayEnd, count: (bytes: number) => void): void => {
      // Otherwise Node would answer one side's end by cutting off what we still have for it.
      from.allowHalfOpen = true;
      from.setTimeout(0);
      from.on('error', () => {
        end = end === 'closed' ? reset : end;
      });
      from.on('data', (chunk: Buffer) => {
        count(chunk.length);
        corkForThisTurn(to);
        if (!to.write(chunk) && to.writableLength > MOST_HELD) {
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
          signal.removeEventListener('abort', cut);
          resolve(end);
          return;
        }
        startLinger();
        to.destroySoon();
      });
    };
    pump(caller, member, 'caller reset', (bytes) => (traffic.toMember += bytes));
    pump(member, caller, 'member reset', (bytes) => (traffic.fromMember += bytes));
    signal.addEventListener('abort', cut, { once: true });
    if (signal.aborted) {
      cut();
    }
  });
}
