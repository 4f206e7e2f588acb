import { loadConfig } from '../../src/config.ts';
import { runManager } from '../../src/manager/manager.ts';
// The manager loads it when it starts, and to read a file takes time that nobody simulates.
import '../../src/manager/scheduler.ts';
import { SimProcess } from './sim-process.ts';
import type { World } from './world.ts';

/** What the program logs goes to standard error; `SIM_LOG=debug` shows all of it. */
const LOG_LEVEL = (process.env['SIM_LOG'] ?? 'silent') as 'error';

/** One place where the program runs: it starts, dies at any moment, and starts again. */
export class Replica {
  readonly place: string;
  readonly #world: World;
  #lives = 0;
  process: SimProcess | undefined;
  #stop = new AbortController();

  constructor(world: World, place: string) {
    this.#world = world;
    this.place = place;
  }

  get running(): boolean {
    return this.process?.alive === true;
  }

  async start(): Promise<void> {
    const { loop, network } = this.#world;
    this.#lives += 1;
    const life = new SimProcess(this.place, this.#lives);
    this.process = life;
    network.processes.add(life);
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const config = loadConfig(undefined, {
      kubeconfig: '/sim/host.kubeconfig',
      nodeAddress: '10.0.0.1',
      hostIdentity: 'ServiceAccount',
      kubelet: { servingCertificate: { mode: 'Files', certFile: '/sim/tls.crt', keyFile: '/sim/tls.key' } },
      scheduler: { servingCertificate: { mode: 'Files', certFile: '/sim/tls.crt', keyFile: '/sim/tls.key' } },
    });
    await loop.enter(life, () => {
      runManager({ ...config, logLevel: LOG_LEVEL }, signal).then(
        () => this.#ended(life, signal.aborted ? undefined : new Error('it ended by itself')),
        (error: unknown) => this.#ended(life, error),
      );
    });
  }

  /** As a power cut: nothing of it ever happens again. */
  crash(): void {
    if (this.process !== undefined) this.process.alive = false;
    if (this.process !== undefined) this.#world.network.processes.delete(this.process);
  }

  /** As SIGTERM. It ends in its own time. */
  async stop(): Promise<void> {
    if (this.process !== undefined)
      await this.#world.loop.enter(this.process, () => this.#stop.abort(new Error('SIGTERM')));
  }

  #ended(life: SimProcess, failure: unknown): void {
    life.alive = false;
    life.failure = failure;
    this.#world.network.processes.delete(life);
  }
}
