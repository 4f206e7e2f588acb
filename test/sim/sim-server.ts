import { EventEmitter } from 'node:events';
import { simulation } from './simulation.ts';

/** A port of the program, or a socket without a file. Nobody connects to it; who wants to ask calls `handler`. */
export class SimServer extends EventEmitter {
  maxConnections = 0;
  keepAliveTimeout = 0;
  readonly handler: unknown;
  #path: string | undefined;
  #port = 0;

  constructor(handler: unknown) {
    super();
    this.handler = handler;
  }

  listen(...args: unknown[]): this {
    const [where, ...rest] = args;
    const done = rest.find((arg): arg is () => void => typeof arg === 'function');
    const owner = simulation().loop.current;
    if (typeof where === 'object' && where !== null && 'path' in where) this.#path = String(where.path);
    else this.#port = Number(where) === 0 ? 40_000 : Number(where);
    const path = this.#path;
    if (path !== undefined && owner !== undefined && simulation().network.isListening(path)) {
      process.nextTick(() => this.emit('error', Object.assign(new Error('in use'), { code: 'EADDRINUSE' })));
      return this;
    }
    if (path === undefined) owner?.ports.set(this.#port, this);
    else owner?.sockets.add(path);
    if (done !== undefined) this.once('listening', done);
    process.nextTick(() => this.emit('listening'));
    return this;
  }

  address(): { port: number } {
    return { port: this.#port };
  }

  close(done?: () => void): this {
    const { current } = simulation().loop;
    if (this.#path === undefined) current?.ports.delete(this.#port);
    else current?.sockets.delete(this.#path);
    if (done !== undefined) process.nextTick(done);
    return this;
  }

  unref(): this {
    return this;
  }

  closeIdleConnections(): void {}
  closeAllConnections(): void {}
  setSecureContext(): void {}
  getConnections(done: (error: null, count: number) => void): void {
    done(null, 0);
  }
}
