import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { ManagedProcess, type ProcessSpec } from './managed-process.ts';
import { sayNothing, type Say } from './progress.ts';
import { identify } from './process-table.ts';
import { endMarkedProcesses, markChildren, WORKSPACE_MARK } from './process-marks.ts';
import { endProcesses, endProcessesNow, removeTraces } from './workspace-cleaning.ts';
import { isAbandoned, ownerOf, recordTrace, workspaceFolders, writeOwner, type Trace } from './workspace-record.ts';

const PREFIX = 'spillway-';

export interface WorkspaceOptions {
  /** Where the folder is made. Default: the system's folder for temporary files. */
  parent?: string;
  say?: Say;
}

/**
 * One temporary folder and all that was started for it: processes, network links, routes, control groups. `close`
 * ends everything; so does the end of the program by SIGINT, SIGTERM or plain exit; what a `kill -9` left behind is
 * cleaned by the next {@link Workspace.create} on the machine.
 */
export class Workspace {
  readonly dir: string;
  /** Short and unique on this machine: fit for names of links and control groups. */
  readonly id: string;
  readonly say: Say;
  #detached = false;
  #closed: Promise<void> | undefined;
  #onExit = (): void => this.#closeNow();
  #onSignal = (signal: NodeJS.Signals): void => {
    this.#closeNow();
    // Every open workspace has its own listener; the last one lets the signal do what it does by default.
    process.removeListener(signal, this.#onSignal);
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };

  private constructor(dir: string, say: Say) {
    this.dir = dir;
    this.id = basename(dir).slice(PREFIX.length).toLowerCase();
    this.say = say;
  }

  /** Makes a fresh workspace, after clearing away what killed programs left. */
  static create(options: WorkspaceOptions = {}): Workspace {
    const parent = realpathSync(options.parent ?? tmpdir());
    const say = options.say ?? sayNothing;
    sweepLeftovers(parent, say);
    const dir = mkdtempSync(join(parent, PREFIX));
    writeOwner(dir, false);
    markChildren();
    const workspace = new Workspace(dir, say);
    process.once('exit', workspace.#onExit);
    process.on('SIGINT', workspace.#onSignal);
    process.on('SIGTERM', workspace.#onSignal);
    return workspace;
  }

  /** Takes over a detached workspace, to close it. */
  static open(dir: string, say: Say = sayNothing): Workspace {
    const workspace = new Workspace(realpathSync(dir), say);
    workspace.#detached = true;
    return workspace;
  }

  /** Remembers something that close must take away. Call it before making the thing. */
  record(trace: Trace): void {
    recordTrace(this.dir, trace);
  }

  /** Starts a process whose output goes to a log file, and ends it with the workspace. */
  start(spec: ProcessSpec): ManagedProcess {
    return new ManagedProcess(spec, (command) => {
      if (this.#closed !== undefined) throw new Error(`${command.name}: its workspace is closed`);
      const log = openSync(command.logFile, 'a');
      try {
        // A session of its own: Ctrl-C in a terminal reaches this program only, which then ends things in order.
        const child = spawn(command.file, command.args, {
          cwd: command.cwd ?? this.dir,
          env: { ...(command.env ?? process.env), [WORKSPACE_MARK]: this.dir },
          stdio: ['ignore', log, log],
          detached: true,
        });
        if (child.pid !== undefined) {
          const id = identify(child.pid) ?? { pid: child.pid, start: 'gone' };
          this.record({ kind: 'process', ...id, what: command.name, end: command.end ?? 'SIGKILL' });
        }
        return child;
      } finally {
        closeSync(log);
      }
    });
  }

  /** Lets everything outlive this program; `Workspace.open(dir).close()` ends it later. */
  detach(): void {
    this.#detached = true;
    writeOwner(this.dir, true);
    this.#forget();
  }

  /**
   * Ends all processes (polite ones within `graceMs`, default 10 s), then removes everything else.
   * @throws when something could not be removed; the message names it.
   */
  close(graceMs = 10_000): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    if (this.#detached) writeOwner(this.dir, false);
    await endProcesses(this.dir, graceMs);
    const left = removeTraces(this.dir);
    this.#forget();
    if (left.length > 0) throw new Error(`workspace ${this.dir}: could not remove ${left.join(', ')}`);
  }

  #closeNow(): void {
    endProcessesNow(this.dir);
    const left = removeTraces(this.dir);
    if (left.length > 0) process.stderr.write(`workspace ${this.dir}: could not remove ${left.join(', ')}\n`);
  }

  #forget(): void {
    process.removeListener('exit', this.#onExit);
    process.removeListener('SIGINT', this.#onSignal);
    process.removeListener('SIGTERM', this.#onSignal);
  }
}

/**
 * Cleans every workspace under `parent` whose program is dead and which was not detached.
 * @returns the folders cleaned.
 */
export function sweepLeftovers(parent: string = realpathSync(tmpdir()), say: Say = sayNothing): string[] {
  const swept: string[] = [];
  for (const dir of workspaceFolders(parent, PREFIX)) {
    if (!isAbandoned(dir)) continue;
    say(`cleaning what a killed run left in ${dirname(dir)}/${basename(dir)}`);
    endProcessesNow(dir);
    endMarkedProcesses(dir, ownerOf(dir));
    const left = removeTraces(dir);
    if (left.length > 0) say(`could not remove ${left.join(', ')}`);
    else swept.push(dir);
  }
  return swept;
}
