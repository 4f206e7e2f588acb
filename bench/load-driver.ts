/**
 * The load: creates pods that are bound to a node already, watches them in both clusters and deletes them again, on
 * command over IPC. A process of its own, so that what it costs is not counted for anybody else and its clock is the
 * same for both clusters.
 */
import { quantile } from './measurement.ts';
import { OUTAGE_TOLERATIONS } from './outage-tolerations.ts';
import { PlainApi, textAfter, type PlainAccess } from './plain-api.ts';

export type LoadCommand =
  | { do: 'watch'; load: Load }
  /** Creates all pods; answered once every one is Running in the host. */
  | { do: 'create' }
  /** Creates all pods one after the other, each once the one before is Running in the host. */
  | { do: 'create-singly' }
  /** Changes the status of so many pods in the member, one after the other; answered once the host shows the last. */
  | { do: 'lag'; changes: number }
  /** Deletes all pods with their normal grace; answered once they are gone from both clusters. */
  | { do: 'delete' };

export interface Load {
  host: PlainAccess;
  member: PlainAccess;
  /** The same in both clusters. */
  namespace: string;
  node: string;
  pods: number;
  /** Requests under way at most. */
  inFlight: number;
  /** Pods come with tolerations for the time when nobody serves their node, as admission gives them; without, the manager does. */
  outageTolerations: boolean;
  /** Of pods that say Never it is written down that they are to be made before they are. */
  restartPolicy: 'Always' | 'Never';
}

export type LoadAnswer =
  | { done: 'watch' }
  | { done: 'create'; report: CreateReport }
  | { done: 'create-singly'; report: CreateReport }
  | { done: 'lag'; report: Spread }
  | { done: 'delete'; report: DeleteReport };

/** Seconds since the first request, or between two things that happened to the same pod. */
export interface CreateReport {
  /** The last create was answered. */
  created: number;
  /** The last pod was seen Running in the host. */
  running: number;
  /** From sending a pod's create to seeing it Running in the host. */
  toRunning: Spread;
  /** From sending a pod's create to seeing its copy in the member. */
  toMember: Spread;
  /** From seeing the copy Running in the member to seeing the pod Running in the host. */
  lag: Spread;
}

export interface DeleteReport {
  gone: number;
  /** From sending a pod's delete to its end in the host. */
  toGone: Spread;
  /** From the end of the member pod to the end of the host pod. */
  hostAfterMember: Spread;
}

export interface Spread {
  p50: number;
  p99: number;
}

type Moments = Map<string, number>;

const RUNNING = '"phase":"Running"';
const TICK_CONDITION = 'bench.example/Tick';

class LoadDriver {
  readonly #load: Load;
  readonly #host: PlainApi;
  readonly #member: PlainApi;
  readonly #names: string[];
  readonly #stop = new AbortController();
  readonly #createSent: Moments = new Map();
  readonly #inMember: Moments = new Map();
  readonly #memberRunning: Moments = new Map();
  readonly #running: Moments = new Map();
  #tick: { mark: string; member?: number; host?: number; seen: () => void } | undefined;
  readonly #deleteSent: Moments = new Map();
  readonly #memberGone: Moments = new Map();
  readonly #hostGone: Moments = new Map();
  #check = (): void => undefined;

  constructor(load: Load) {
    this.#load = load;
    this.#host = new PlainApi(load.host, load.inFlight);
    this.#member = new PlainApi(load.member, 1);
    this.#names = Array.from({ length: load.pods }, (_, index) => `load-${index}`);
  }

  get #path(): string {
    return `/api/v1/namespaces/${this.#load.namespace}/pods`;
  }

  /** Resolves once both watches are running. */
  async watch(): Promise<void> {
    await Promise.all([
      this.#watch(this.#host, (name, type, line) => {
        if (type === 'DELETED') first(this.#hostGone, name);
        else if (!this.#running.has(name) && line.includes(RUNNING)) first(this.#running, name);
        this.#noteTick('host', line);
      }),
      this.#watch(this.#member, (name, type, line) => {
        first(type === 'DELETED' ? this.#memberGone : this.#inMember, name);
        if (!this.#memberRunning.has(name) && line.includes(RUNNING)) first(this.#memberRunning, name);
        this.#noteTick('member', line);
      }),
    ]);
  }

  #noteTick(cluster: 'host' | 'member', line: Buffer): void {
    const tick = this.#tick;
    if (tick === undefined || tick[cluster] !== undefined || !line.includes(tick.mark)) return;
    tick[cluster] = performance.now();
    if (tick.host !== undefined && tick.member !== undefined) tick.seen();
  }

  #watch(api: PlainApi, onEvent: (name: string, type: string, line: Buffer) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const onLine = (line: Buffer): void => {
        const name = textAfter(line, '"metadata":{"name":"');
        const type = textAfter(line, '{"type":"');
        if (name === undefined || type === undefined) return;
        onEvent(name, type, line);
        this.#check();
      };
      api.watch(this.#path, this.#stop.signal, onLine, resolve).catch(reject);
    });
  }

  async create(): Promise<CreateReport> {
    const began = performance.now();
    const allRunning = this.#until(this.#running);
    await this.#each((name) => this.#createOne(name));
    const created = (performance.now() - began) / 1000;
    await allRunning;
    return this.#report(began, created);
  }

  /** What the start of a pod takes while nothing else goes on. */
  async createSingly(): Promise<CreateReport> {
    const began = performance.now();
    for (const name of this.#names) {
      const isRunning = new Promise<void>((resolve) => {
        this.#check = () => {
          if (this.#running.has(name) && this.#memberRunning.has(name)) resolve();
        };
      });
      await this.#createOne(name);
      await isRunning;
    }
    return this.#report(began, (performance.now() - began) / 1000);
  }

  async #createOne(name: string): Promise<void> {
    this.#createSent.set(name, performance.now());
    await this.#host.change('POST', this.#path, loadPod(name, this.#load));
  }

  #report(began: number, created: number): CreateReport {
    return {
      created,
      running: (Math.max(...this.#running.values()) - began) / 1000,
      toRunning: between(this.#createSent, this.#running),
      toMember: between(this.#createSent, this.#inMember),
      lag: between(this.#memberRunning, this.#running),
    };
  }

  /** What a change of a pod's status takes from the member to the host while nothing else goes on. */
  async lag(changes: number): Promise<Spread> {
    const seconds: number[] = [];
    for (let turn = 0; turn < changes; turn++) {
      const mark = `tick ${turn}.`;
      const name = this.#names[turn % this.#names.length] ?? '';
      const condition = {
        type: TICK_CONDITION,
        status: 'True',
        reason: 'Tick',
        message: mark,
        lastTransitionTime: new Date().toISOString(),
      };
      const shown = new Promise<void>((resolve) => (this.#tick = { mark, seen: resolve }));
      const body = { status: { conditions: [condition] } };
      await this.#member.change(
        'PATCH',
        `${this.#path}/${name}/status`,
        body,
        'application/strategic-merge-patch+json',
      );
      await shown;
      seconds.push(((this.#tick?.host ?? Number.NaN) - (this.#tick?.member ?? Number.NaN)) / 1000);
    }
    this.#tick = undefined;
    return spreadOf(seconds);
  }

  async delete(): Promise<DeleteReport> {
    const began = performance.now();
    const allGone = this.#until(this.#hostGone, this.#memberGone);
    await this.#each(async (name) => {
      this.#deleteSent.set(name, performance.now());
      await this.#host.change('DELETE', `${this.#path}/${name}`, {});
    });
    await allGone;
    return {
      gone: (Math.max(...this.#hostGone.values()) - began) / 1000,
      toGone: between(this.#deleteSent, this.#hostGone),
      hostAfterMember: between(this.#memberGone, this.#hostGone),
    };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#host.close(), this.#member.close()]);
  }

  /** Resolves once every pod is in all the maps. The one who started this process has the deadline. */
  #until(...maps: Moments[]): Promise<void> {
    return new Promise((resolve) => {
      this.#check = () => {
        if (maps.every((map) => map.size === this.#load.pods)) resolve();
      };
    });
  }

  async #each(work: (name: string) => Promise<void>): Promise<void> {
    const queue = this.#names.values();
    const worker = async (): Promise<void> => {
      for (const name of queue) await work(name);
    };
    await Promise.all(Array.from({ length: this.#load.inFlight }, worker));
  }
}

function first(moments: Moments, name: string): void {
  if (!moments.has(name)) moments.set(name, performance.now());
}

/** Seconds from one moment to the other, over all pods. */
function between(from: Moments, to: Moments): Spread {
  const seconds: number[] = [];
  for (const [name, end] of to) seconds.push((end - (from.get(name) ?? Number.NaN)) / 1000);
  return spreadOf(seconds);
}

function spreadOf(seconds: readonly number[]): Spread {
  return { p50: quantile(seconds, 0.5), p99: quantile(seconds, 0.99) };
}

/** What a Deployment's pod looks like on its way to the API server, bound already: no scheduler of the host is measured. */
function loadPod(name: string, { node, outageTolerations, restartPolicy }: Load): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'load', 'app.kubernetes.io/part-of': 'bench', 'pod-template-hash': '7d4b9c' } },
    spec: {
      nodeName: node,
      restartPolicy,
      tolerations: [{ operator: 'Exists', effect: 'NoSchedule' }, ...(outageTolerations ? OUTAGE_TOLERATIONS : [])],
      containers: [
        {
          name: 'app',
          image: 'registry.example/load:1',
          ports: [{ name: 'http', containerPort: 8080 }],
          env: [
            { name: 'MODE', value: 'bench' },
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          ],
          resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
          volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
        },
      ],
      volumes: [{ name: 'scratch', emptyDir: {} }],
    },
  };
}

let driver: LoadDriver | undefined;

async function obey(command: LoadCommand): Promise<LoadAnswer> {
  if (command.do === 'watch') {
    driver = new LoadDriver(command.load);
    await driver.watch();
    return { done: 'watch' };
  }
  if (driver === undefined) throw new Error('the first command must be watch');
  if (command.do === 'create') return { done: 'create', report: await driver.create() };
  if (command.do === 'create-singly') return { done: 'create-singly', report: await driver.createSingly() };
  if (command.do === 'lag') return { done: 'lag', report: await driver.lag(command.changes) };
  return { done: 'delete', report: await driver.delete() };
}

process.on('message', (command: LoadCommand) => {
  obey(command).then(
    (answer) => process.send?.(answer),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
// The one who started us is gone, or done with us.
process.once('disconnect', () => {
  void (driver?.close() ?? Promise.resolve()).finally(() => process.exit(0));
});
