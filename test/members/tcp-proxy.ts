import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** Passes bytes between clients and one target on this machine; answers can be held back, connections broken. */
export class TcpProxy {
  /** Answers reach the client this much later, in ms. Counts for connections that are open already, too. */
  delayMs = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #target: URL;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((client) => {
      const upstream = connect(Number(this.#target.port), this.#target.hostname);
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket.on('error', () => socket.destroy());
        socket.on('close', () => {
          this.#sockets.delete(socket);
          client.destroy();
          upstream.destroy();
        });
      }
      client.on('data', (chunk: Buffer) => upstream.write(chunk));
      upstream.on('data', (chunk: Buffer) => {
        this.#later(() => client.write(chunk));
      });
    });
  }

  static async to(server: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(server));
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  /** https URL of the proxy. */
  get url(): string {
    return `https://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** That are open. */
  get connections(): number {
    return Math.floor(this.#sockets.size / 2);
  }

  /** Breaks every connection; new ones lead to another server. */
  lead(server: string): void {
    this.#target = new URL(server);
    this.breakAll();
  }

  /** Breaks every connection; new ones are taken. */
  breakAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    this.breakAll();
    await closed;
  }

  #later(act: () => void): void {
    if (this.delayMs === 0) {
      act();
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, this.delayMs);
    this.#timers.add(timer);
  }
}
