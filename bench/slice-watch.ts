import { until } from '../hack/until.ts';
import { PlainApi, type PlainAccess } from './plain-api.ts';

const ADDRESSES = /"addresses":\["([^"]+)"/g;
const NAME = /"metadata":\{"name":"([^"]+)"/;

/** Where Services of one namespace of a member lead, as a watch shows it, and when which address came and went. */
export class SliceWatch {
  readonly #api: PlainApi;
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  /** By slice. */
  readonly #addresses = new Map<string, ReadonlySet<string>>();
  /** By address, in milliseconds of `performance.now()`. */
  readonly #came = new Map<string, number>();
  readonly #gone = new Map<string, number>();

  private constructor(access: PlainAccess, namespace: string, onStart: () => void) {
    this.#api = new PlainApi(access, 1);
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    this.#watching = this.#api.watch(path, this.#stop.signal, (line) => this.#seen(line.toString('utf8')), onStart);
  }

  /** Resolves once the watch is running; what was there before is not seen. */
  static async start(access: PlainAccess, namespace: string): Promise<SliceWatch> {
    return await new Promise((resolve, reject) => {
      const watch = new SliceWatch(access, namespace, () => resolve(watch));
      watch.#watching.catch(reject);
    });
  }

  #seen(line: string): void {
    const name = NAME.exec(line)?.[1];
    if (name === undefined) return;
    const now = performance.now();
    const before = this.#addresses.get(name) ?? new Set();
    const isGone = line.startsWith('{"type":"DELETED"');
    const after = new Set(isGone ? [] : Array.from(line.matchAll(ADDRESSES), ([, address = '']) => address));
    this.#addresses.set(name, after);
    for (const address of after) if (!before.has(address)) this.#came.set(address, now);
    for (const address of before) if (!after.has(address)) this.#gone.set(address, now);
  }

  /** Slices that lead somewhere. */
  get size(): number {
    return [...this.#addresses.values()].filter(({ size }) => size > 0).length;
  }

  /** When that address came. */
  async came(address: string, timeoutMs: number): Promise<number> {
    return await when(`${address} is told`, () => this.#came.get(address), timeoutMs);
  }

  /** When that address went. */
  async gone(address: string, timeoutMs: number): Promise<number> {
    return await when(`${address} is told no more`, () => this.#gone.get(address), timeoutMs);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    await this.#api.close();
  }
}

async function when(what: string, moment: () => number | undefined, timeoutMs: number): Promise<number> {
  return await until(what, () => moment(), { timeoutMs, intervalMs: 5 });
}
