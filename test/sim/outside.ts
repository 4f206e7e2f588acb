/**
 * Everything the program touches outside of itself, replaced in this Node.js process: time, chance, files, sockets.
 * Has to be the first module that is loaded, and is for processes that do nothing but simulate.
 */
import { createRequire, syncBuiltinESMExports } from 'node:module';
import type * as cryptoModule from 'node:crypto';
import type * as fsModule from 'node:fs';
import type * as fsPromisesModule from 'node:fs/promises';
import type * as timersModule from 'node:timers/promises';
import type { Turn } from './event-loop.ts';
import { realNow } from './real-time.ts';
import { SimPool } from './sim-pool.ts';
import { SimServer } from './sim-server.ts';
import { EPOCH, FILES, runningSimulation, simulation } from './simulation.ts';

const require = createRequire(import.meta.url);
const RealDate = Date;
const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  random: Math.random,
};

class SimTimer {
  turn: Turn | undefined;
  readonly #ms: number;
  readonly #run: () => void;
  readonly #again: boolean;

  constructor(ms: number, run: () => void, again: boolean) {
    this.#ms = ms;
    this.#run = run;
    this.#again = again;
    this.refresh();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    this.cancel();
    this.turn = simulation().loop.schedule(this.#ms, () => {
      if (this.#again) this.refresh();
      this.#run();
    });
    return this;
  }

  cancel(): void {
    if (this.turn !== undefined) this.turn.cancelled = true;
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}

type Callback = (...args: unknown[]) => void;

function replaceTimers(): void {
  const start =
    (again: boolean, fallback: (run: Callback, ms?: number, ...args: unknown[]) => unknown) =>
    (run: Callback, ms = 1, ...args: unknown[]): unknown => {
      if (runningSimulation() === undefined) return fallback(run, ms, ...args);
      return new SimTimer(Math.max(1, ms), () => run(...args), again);
    };
  const stop = (fallback: (timer: never) => void) => (timer: unknown) => {
    if (timer instanceof SimTimer) timer.cancel();
    else fallback(timer as never);
  };
  Object.assign(globalThis, {
    setTimeout: start(false, real.setTimeout),
    setInterval: start(true, real.setInterval),
    setImmediate: (run: Callback, ...args: unknown[]): unknown =>
      runningSimulation() === undefined ? real.setImmediate(run, ...args) : new SimTimer(0, () => run(...args), false),
    clearTimeout: stop(real.clearTimeout),
    clearInterval: stop(real.clearInterval),
    clearImmediate: stop(real.clearImmediate),
  });
  const promises = require('node:timers/promises') as { setTimeout: unknown; setImmediate: unknown };
  promises.setImmediate = async (): Promise<void> =>
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  promises.setTimeout = async (
    ms: number,
    value: unknown,
    { signal }: Parameters<typeof timersModule.setTimeout>[2] & { signal?: AbortSignal } = {},
  ): Promise<unknown> =>
    await new Promise((resolve, reject) => {
      const aborted = (): Error => Object.assign(new Error('The operation was aborted'), ABORTED);
      if (signal?.aborted === true) {
        reject(aborted());
        return;
      }
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(aborted());
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve(value);
      }, ms);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  AbortSignal.timeout = (ms: number): AbortSignal => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new DOMException('The operation timed out', 'TimeoutError')), ms);
    return controller.signal;
  };
}

const ABORTED = { name: 'AbortError', code: 'ABORT_ERR' };

function replaceClocks(): void {
  const wall = (): number => {
    const { loop } = runningSimulation() ?? {};
    if (loop === undefined) return RealDate.now();
    return Math.floor(EPOCH + loop.now + (loop.current?.clockOffsetMs ?? 0));
  };
  class SimDate extends RealDate {
    constructor(...args: [] | [number | string | Date]) {
      if (args.length === 0) super(wall());
      else super(...(args as [number]));
    }

    static override now(): number {
      return wall();
    }
  }
  globalThis.Date = SimDate as DateConstructor;
  performance.now = () => runningSimulation()?.loop.now ?? realNow();
}

function replaceChance(): void {
  const next = (): number => runningSimulation()?.random.next() ?? real.random();
  const byte = (): number => Math.floor(next() * 256);
  Math.random = next;
  const crypto = require('node:crypto') as { randomUUID: unknown; randomBytes: unknown };
  const randomBytes = (size: number): Buffer => Buffer.from(Array.from({ length: size }, byte));
  const randomUUID = (): string => {
    const hex = randomBytes(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  const { randomBytes: realBytes } = crypto as typeof cryptoModule;
  // The same certificate is looked at every few simulated seconds, which takes as long as everything else together.
  const { X509Certificate, createPrivateKey } = crypto as typeof cryptoModule;
  const certificates = remembered((pem) => thatRemembers(new X509Certificate(pem)));
  Object.assign(crypto, {
    createPrivateKey: remembered((pem) => createPrivateKey(pem)),
    X509Certificate: function (pem: string) {
      return certificates(pem);
    },
  });
  crypto.randomUUID = randomUUID;
  crypto.randomBytes = (size: number) => (runningSimulation() === undefined ? realBytes(size) : randomBytes(size));
}

/** What it found out about a key it need not find out again. */
function thatRemembers(certificate: cryptoModule.X509Certificate): cryptoModule.X509Certificate {
  for (const check of ['verify', 'checkPrivateKey'] as const) {
    const known = new WeakMap<cryptoModule.KeyObject, boolean>();
    const work = certificate[check].bind(certificate);
    certificate[check] = (key) => {
      const found = known.get(key) ?? work(key);
      known.set(key, found);
      return found;
    };
  }
  return certificate;
}

function remembered<T>(make: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const made = known.get(text) ?? make(text);
    known.set(text, made);
    return made;
  };
}

function replaceFiles(): void {
  const promises = require('node:fs/promises') as { readFile: unknown };
  const fs = require('node:fs') as { readFileSync: unknown; readlinkSync: unknown };
  const { readFile } = promises as typeof fsPromisesModule;
  const { readFileSync, readlinkSync } = fs as typeof fsModule;
  promises.readFile = async (path: string, options: never): Promise<unknown> =>
    FILES.get(path) ?? (await readFile(path, options));
  fs.readFileSync = (path: string, options: never): unknown => FILES.get(path) ?? readFileSync(path, options);
  fs.readlinkSync = (path: string, options: never): unknown =>
    path === '/proc/self/ns/net'
      ? (runningSimulation()?.loop.current?.place ?? 'nowhere')
      : readlinkSync(path, options);
  FILES.set('/proc/sys/kernel/random/boot_id', 'one boot');
}

function replaceSockets(): void {
  const create = (...args: unknown[]): SimServer => new SimServer(args.find((arg) => typeof arg === 'function'));
  const refuse = (): never => {
    throw new Error('the simulator has no sockets');
  };
  for (const name of ['node:http', 'node:https', 'node:net', 'node:tls']) {
    Object.assign(require(name) as object, { createServer: create, request: refuse, connect: refuse });
  }
  Object.assign(require('node:tls') as object, { createSecureContext: () => ({}) });
  Object.assign(require('node:os') as object, { hostname: () => 'simulated' });
  Object.defineProperty(process, 'pid', { value: 1 });
  (require('undici') as { Pool: unknown }).Pool = SimPool;
}

/** They watch the real process, for ever: each life of the program would leave its own behind, with all that it knew. */
function replaceObservers(): void {
  const nothing = (): undefined => undefined;
  Object.assign(require('node:perf_hooks') as object, {
    PerformanceObserver: class {
      readonly observe = nothing;
      readonly disconnect = nothing;
    },
    monitorEventLoopDelay: () => ({ enable: nothing, disable: nothing, reset: nothing, percentile: () => 0 }),
  });
  // Each life asks the kernel, which takes longer than all else that it does to begin.
  const cpuUsage = process.cpuUsage.bind(process);
  process.cpuUsage = (before?: NodeJS.CpuUsage) =>
    runningSimulation() === undefined ? cpuUsage(before) : { user: 0, system: 0 };
}

/** What nobody caught would end the program: in the process whose turn it is. */
function catchTheUncaught(): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      const owner = runningSimulation()?.loop.current;
      if (owner === undefined) {
        console.error(error);
        process.exit(1);
      }
      owner.failure ??= error;
      owner.alive = false;
    });
  }
}

catchTheUncaught();
replaceTimers();
replaceClocks();
replaceChance();
replaceFiles();
replaceSockets();
replaceObservers();
syncBuiltinESMExports();
