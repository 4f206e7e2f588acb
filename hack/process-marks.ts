import { readFileSync, readdirSync } from 'node:fs';
import { identify, isAlive, signalProcess, waitSync, type ProcessId } from './process-table.ts';

/** In the environment of what a workspace started: its folder. */
export const WORKSPACE_MARK = 'SPILLWAY_WORKSPACE';

/** In the environment of everything that a program with workspaces runs: which process that is. */
const MAKER_MARK = 'SPILLWAY_MAKER';

/** Milliseconds that a killed process may take to disappear. */
const VANISH_MS = 5_000;

const markOf = (maker: ProcessId): string => `${maker.pid}-${maker.start}`;

/** From now on, what this program runs can be recognised after its death. */
export function markChildren(): void {
  const me = identify(process.pid);
  if (me !== undefined) process.env[MAKER_MARK] = markOf(me);
}

/** The environment a process was started with, empty when it is gone or another user's (Linux only). */
function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/**
 * The processes of a dead program that no record names: killed between the start of a process and its record, or while
 * a command such as `ip` or `kubectl` ran. Their environment tells whose they are.
 */
function markedProcesses(dir: string, maker: ProcessId): ProcessId[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const environment = environmentOf(Number(name));
      const workspace = environment.find((one) => one.startsWith(`${WORKSPACE_MARK}=`));
      const ours =
        workspace === undefined
          ? environment.includes(`${MAKER_MARK}=${markOf(maker)}`)
          : workspace === `${WORKSPACE_MARK}=${dir}`;
      return (ours ? identify(Number(name)) : undefined) ?? [];
    });
}

/** Ends them all (Linux only); a second look finds what one of them started meanwhile. */
export function endMarkedProcesses(dir: string, maker: ProcessId | undefined): void {
  if (process.platform !== 'linux' || maker === undefined) return;
  for (let round = 0; round < 3; round += 1) {
    const marked = markedProcesses(dir, maker);
    if (marked.length === 0) return;
    for (const one of marked) signalProcess(one, 'SIGKILL');
    const deadline = Date.now() + VANISH_MS;
    while (marked.some(isAlive) && Date.now() < deadline) waitSync(5);
  }
}
