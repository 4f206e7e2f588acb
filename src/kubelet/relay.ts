import type { Socket } from 'node:net';

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

/** The caller's side. A broken stream must not look like one that ended: for SPDY clients that would be exit code 0. */
export interface CallerConnection {
  readonly socket: Socket;
  /** Ends it with a TCP reset, which no client takes for a regular end. */
  reset(): void;
}

/**
 * Copies bytes both ways until both connections are closed. Reading stops while the other side is slow, so what is
 * held is bounded. When one side has said its last word, the other gets everything that is still on its way, however
 * slowly it reads, and then the end; an error on one side breaks the other too. There is no idle limit: the peers ping
 * each other, and a kubelet keeps idle streams for hours. `signal`: break both now.
 */
export function relay(
  caller: CallerConnection,
  member: Socket,
  traffic: Traffic,
  signal: AbortSignal,
): Promise<RelayEnd> {
  return new Promise((resolve) => {
    let open = 2;
    let end: RelayEnd = 'closed';
    let linger: NodeJS.Timeout | undefined;
    const cut = (): void => {
      end = end === 'closed' ? 'cut' : end;
      caller.reset();
      member.destroy();
    };
    const startLinger = (): void => {
      linger ??= setTimeout(() => {
        if (end === 'closed') {
          caller.socket.destroy();
        } else {
          caller.reset();
        }
        member.destroy();
      }, LINGER_MS);
    };
    const breakCaller = (): void => {
      if (caller.socket.writableLength === 0) {
        caller.reset();
      } else {
        caller.socket.once('drain', () => caller.reset());
      }
    };
    const pump = (from: Socket, to: Socket, count: (bytes: number) => void, onError: () => void): void => {
      // Otherwise Node would answer one side's end by cutting off what we still have for it.
      from.allowHalfOpen = true;
      from.setTimeout(0);
      from.on('error', onError);
      from.on('data', (chunk: Buffer) => {
        count(chunk.length);
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
        if (to === member || end === 'closed') {
          to.destroySoon();
        }
      });
    };
    const note = (reset: RelayEnd): void => {
      end = end === 'closed' ? reset : end;
    };
    pump(
      caller.socket,
      member,
      (bytes) => (traffic.toMember += bytes),
      () => note('caller reset'),
    );
    pump(
      member,
      caller.socket,
      (bytes) => (traffic.fromMember += bytes),
      () => {
        note('member reset');
        breakCaller();
      },
    );
    signal.addEventListener('abort', cut, { once: true });
    if (signal.aborted) {
      cut();
    }
  });
}
