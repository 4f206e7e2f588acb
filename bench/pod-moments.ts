import { until } from '../hack/until.ts';
import { PlainApi, textAfter, type PlainAccess } from './plain-api.ts';

const RUNNING = '"phase":"Running"';
const NODE = '"nodeName":"';
const COST = '"controller.kubernetes.io/pod-deletion-cost":"';

/** Deletion costs that have not changed for so long are final, in ms. */
const STEADY_MS = 3_000;

/** When what happened to the pods of a namespace, in milliseconds of `performance.now()`, as a watch shows it. */
export class PodMoments {
  readonly #api: PlainApi;
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  readonly #bound = new Map<string, number>();
  readonly #running = new Map<string, number>();
  readonly #gone = new Map<string, number>();
  readonly #costs = new Map<string, string>();
  /** When a cost changed last; its beginning while none has. */
  #costChanged = performance.now();

  private constructor(access: PlainAccess, namespace: string, onStart: () => void) {
    this.#api = new PlainApi(access, 1);
    const path = `/api/v1/namespaces/${namespace}/pods`;
    this.#watching = this.#api.watch(path, this.#stop.signal, (line) => this.#seen(line), onStart);
  }

  /** Resolves once the watch is running. */
  static async start(access: PlainAccess, namespace: string): Promise<PodMoments> {
    return await new Promise((resolve, reject) => {
      const moments = new PodMoments(access, namespace, () => resolve(moments));
      moments.#watching.catch(reject);
    });
  }

  #seen(line: Buffer): void {
    const name = textAfter(line, '"metadata":{"name":"');
    if (name === undefined) return;
    const now = performance.now();
    if (textAfter(line, '{"type":"') === 'DELETED') {
      this.#gone.set(name, now);
      return;
    }
    if (!this.#bound.has(name) && line.includes(NODE)) this.#bound.set(name, now);
    if (!this.#running.has(name) && line.includes(RUNNING)) this.#running.set(name, now);
    const cost = textAfter(line, COST);
    if (cost === undefined || this.#costs.get(name) === cost) return;
    this.#costs.set(name, cost);
    this.#costChanged = now;
  }

  /** The moment when so many pods had a node. */
  async bound(pods: number, timeoutMs: number): Promise<number> {
    return await this.#when('bound', this.#bound, pods, timeoutMs);
  }

  /** The moment when so many pods ran. */
  async running(pods: number, timeoutMs: number): Promise<number> {
    return await this.#when('Running', this.#running, pods, timeoutMs);
  }

  /** The moment when so many pods were gone. */
  async gone(pods: number, timeoutMs: number): Promise<number> {
    return await this.#when('gone', this.#gone, pods, timeoutMs);
  }

  /** The moment when the last deletion cost changed, once none does any more. */
  async costsAtRest(timeoutMs: number): Promise<number> {
    await until('deletion costs do not change any more', () => performance.now() - this.#costChanged >= STEADY_MS, {
      timeoutMs,
    });
    return this.#costChanged;
  }

  async #when(what: string, moments: ReadonlyMap<string, number>, pods: number, timeoutMs: number): Promise<number> {
    const question = (): boolean => {
      if (moments.size >= pods) return true;
      throw new Error(`${moments.size} are`);
    };
    await until(`${pods} pods are ${what}`, question, { timeoutMs, intervalMs: 50 });
    return Math.max(...moments.values());
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    await this.#api.close();
  }
}
