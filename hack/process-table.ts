import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process that can not be mistaken for a later one with the same number. */
export interface ProcessId {
  pid: number;
  /** When it started, as the operating system tells it (clock ticks since boot on Linux). */
  start: string;
}

/** Field `n` (from 3 on) of /proc/PID/stat; the command name in field 2 may hold spaces and brackets. */
function statFields(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

/** The start time of a process, `undefined` when there is none with that number or it is a zombie. */
function startOf(pid: number): string | undefined {
  if (process.platform === 'linux') {
    const fields = statFields(pid);
    return fields === undefined || fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  }
  try {
    const text = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return text === '' ? undefined : text;
  } catch {
    return undefined;
  }
}

export function identify(pid: number): ProcessId | undefined {
  const start = startOf(pid);
  return start === undefined ? undefined : { pid, start };
}

/** Whether this very process lives: a new one with the same number does not count. */
export function isAlive(id: ProcessId): boolean {
  return startOf(id.pid) === id.start;
}

/** Sends a signal to exactly this process; false when it is gone. */
export function signalProcess(id: ProcessId, signal: NodeJS.Signals): boolean {
  if (!isAlive(id)) return false;
  try {
    process.kill(id.pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Process numbers of the children (Linux only; empty elsewhere). */
export function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    return [];
  }
}

export interface Usage {
  /** Resident memory in bytes. */
  rssBytes: number;
  /** Highest resident memory so far in bytes. */
  peakRssBytes: number;
  /** User and system CPU time so far in seconds, of this process and its waited-for children not included. */
  cpuSeconds: number;
}

/** What a process uses, read from /proc (Linux only); `undefined` when it is gone. */
export function usageOf(pid: number): Usage | undefined {
  const fields = statFields(pid);
  if (fields === undefined) return undefined;
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kilobytes = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
    const ticks = Number(fields[11]) + Number(fields[12]);
    // USER_HZ is 100 on every Linux architecture Node runs on.
    return { rssBytes: kilobytes('VmRSS') * 1024, peakRssBytes: kilobytes('VmHWM') * 1024, cpuSeconds: ticks / 100 };
  } catch {
    return undefined;
  }
}

/** Waits without an event loop: only for clean-up while the program ends. */
export function waitSync(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
