import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { childrenOf, identify, isAlive, signalProcess, usageOf, type ProcessId, type Usage } from './process-table.ts';
import { until } from './until.ts';
import type { HowToEnd } from './workspace-record.ts';

export interface ProcessSpec {
  /** For people: progress and error messages. */
  name: string;
  file: string;
  args: string[];
  logFile: string;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** What ends it when its workspace closes. Default SIGKILL: most of what we start is thrown away whole. */
  end?: HowToEnd;
  /** `file` is a wrapper (nsenter) whose only child is the program meant. */
  wrapped?: boolean;
}

/** A process that can be stopped and started again with the same arguments, for outage tests. */
export class ManagedProcess {
  readonly spec: ProcessSpec;
  readonly #launch: (spec: ProcessSpec) => ChildProcess;
  #child: ChildProcess;
  #id: ProcessId | undefined;

  /** Starts at once; `launch` spawns and records. Use Workspace.start. */
  constructor(spec: ProcessSpec, launch: (spec: ProcessSpec) => ChildProcess) {
    this.spec = spec;
    this.#launch = launch;
    this.#child = this.#spawn();
  }

  #spawn(): ChildProcess {
    const child = this.#launch(this.spec);
    child.on('error', () => undefined);
    child.unref();
    this.#id = child.pid === undefined ? undefined : identify(child.pid);
    return child;
  }

  /** The program's own process, not a wrapper around it; `undefined` when it does not run. */
  get id(): ProcessId | undefined {
    if (this.#id === undefined || !isAlive(this.#id)) return undefined;
    if (this.spec.wrapped !== true) return this.#id;
    const child = childrenOf(this.#id.pid)[0];
    return child === undefined ? undefined : identify(child);
  }

  get running(): boolean {
    return this.#id !== undefined && isAlive(this.#id);
  }

  /** Sends any signal, SIGSTOP and SIGCONT too; false when it does not run. */
  signal(signal: NodeJS.Signals): boolean {
    const id = this.id;
    return id !== undefined && signalProcess(id, signal);
  }

  /** Ends it: `signal` (default SIGTERM), and SIGKILL when it still runs after `graceMs` (default 5 s). */
  async stop(signal: NodeJS.Signals = 'SIGTERM', graceMs = 5_000): Promise<void> {
    if (!this.running) return;
    this.signal('SIGCONT');
    this.signal(signal);
    const child = this.#child;
    // Gone from the process table, and this program has been told how it ended.
    const gone = (): boolean => !this.running && (child.exitCode !== null || child.signalCode !== null);
    try {
      await until(`${this.spec.name} ends`, gone, { timeoutMs: graceMs, intervalMs: 10 });
    } catch {
      this.signal('SIGKILL');
      await until(`${this.spec.name} ends after SIGKILL`, gone, { timeoutMs: 5_000, intervalMs: 10 });
    }
  }

  /** Starts it again with the same arguments; nothing happens when it runs. */
  restart(): void {
    if (!this.running) this.#child = this.#spawn();
  }

  /** Memory and CPU of the program; `undefined` when it does not run or this is not Linux. */
  usage(): Usage | undefined {
    const id = this.id;
    return id === undefined ? undefined : usageOf(id.pid);
  }

  /** Why it is not running, with the end of its log: for error messages. */
  describeExit(): string {
    const code = this.#child.exitCode ?? this.#child.signalCode ?? 'just now';
    return `${this.spec.name} ended (${code}); the end of ${this.spec.logFile}:\n${this.logTail()}`;
  }

  logTail(lines = 12): string {
    try {
      return readFileSync(this.spec.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
    } catch {
      return '(no log)';
    }
  }
}
