import type { Socket } from 'node:net';

/**
 * Ends a TLS connection with a TCP reset, which no client takes for a regular end. `tcp`: what it runs on. A connection
 * whose own end was already said is closed instead: a reset comes too late for it, and libuv refuses one during a
 * shutdown and then never closes the connection.
 */
export function resetConnection(tls: Socket, tcp: Socket | undefined): void {
  if (tcp === undefined || tls.writableEnded) {
    tls.destroy();
  } else {
    tcp.resetAndDestroy();
  }
}
