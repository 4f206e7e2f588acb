import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { usageOf, type Usage } from '../hack/process-table.ts';
import type { Load, LoadAnswer, LoadCommand } from './load-driver.ts';

/** The load driver's process, seen from the program that started it. */
export class LoadProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves once its watches are running. */
  static async start(load: Load): Promise<LoadProcess> {
    const child = fork(fileURLToPath(new URL('load-driver.js', import.meta.url)), { stdio: ['ignore', 2, 2, 'ipc'] });
    const started = new LoadProcess(child);
    await started.order({ do: 'watch', load }, 30_000);
    return started;
  }

  /** @throws when the driver ends, or has not answered after `timeoutMs`. */
  async order<C extends LoadCommand>(command: C, timeoutMs: number): Promise<Extract<LoadAnswer, { done: C['do'] }>> {
    const stop = new AbortController();
    const { signal } = stop;
    const answered = once(this.#child, 'message', { signal }).then(([answer]) => answer as LoadAnswer);
    const ended = once(this.#child, 'exit', { signal }).then(() => {
      throw new Error(`the load driver ended during "${command.do}"`);
    });
    const late = setTimeout(
      () => stop.abort(new Error(`load driver: "${command.do}" not done after ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    try {
      this.#child.send(command);
      return (await Promise.race([answered, ended])) as Extract<LoadAnswer, { done: C['do'] }>;
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      clearTimeout(late);
      stop.abort();
      await Promise.allSettled([answered, ended]);
    }
  }

  usage(): Usage | undefined {
    return this.#child.pid === undefined ? undefined : usageOf(this.#child.pid);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    if (this.#child.connected) this.#child.disconnect();
    await ended;
  }
}
