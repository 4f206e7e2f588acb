import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { identify, isAlive, signalProcess, waitSync, type ProcessId } from './process-table.ts';
import { readTraces, type Trace } from './workspace-record.ts';

type ProcessTrace = Extract<Trace, { kind: 'process' }>;

function processesOf(dir: string): ProcessTrace[] {
  return readTraces(dir).filter((trace): trace is ProcessTrace => trace.kind === 'process');
}

/** Milliseconds that a killed process, or a wrapper whose program is gone, may take to disappear. */
const VANISH_MS = 5_000;

/** Ends every recorded process: the polite ones get `graceMs` to go by themselves, then all are killed. */
export async function endProcesses(dir: string, graceMs: number): Promise<void> {
  const rounds = endingRounds(processesOf(dir), graceMs);
  for (const round of rounds) {
    round.signal();
    const deadline = Date.now() + round.waitMs;
    while (round.processes.some(isAlive) && Date.now() < deadline) await sleep(5);
  }
}

/** The same without waiting for anyone's good will, for a program that is ending. */
export function endProcessesNow(dir: string): void {
  for (const round of endingRounds(processesOf(dir), 0)) {
    round.signal();
    const deadline = Date.now() + round.waitMs;
    while (round.processes.some(isAlive) && Date.now() < deadline) waitSync(5);
  }
}

interface Round {
  processes: ProcessTrace[];
  signal: () => void;
  waitMs: number;
}

function endingRounds(all: ProcessTrace[], graceMs: number): Round[] {
  const newestFirst = all.toReversed();
  const first = newestFirst.filter((one) => one.end !== 'last');
  const killAll = (processes: ProcessTrace[]) => (): void => {
    for (const one of processes) signalProcess(one, 'SIGKILL');
  };
  const ask = (): void => {
    for (const one of first) signalProcess(one, one.end === 'SIGTERM' ? 'SIGTERM' : 'SIGKILL');
  };
  return [
    { processes: first, signal: ask, waitMs: graceMs },
    { processes: first, signal: killAll(first), waitMs: VANISH_MS },
    { processes: newestFirst, signal: () => undefined, waitMs: VANISH_MS },
    { processes: newestFirst, signal: killAll(newestFirst), waitMs: VANISH_MS },
  ];
}

/**
 * Removes routes, links, control groups (with every process still inside), mounts and the folder itself.
 * @returns what could not be removed, empty when all is gone.
 */
export function removeTraces(dir: string): string[] {
  const traces = readTraces(dir);
  const left: string[] = traces
    .filter((trace): trace is ProcessTrace => trace.kind === 'process' && isAlive(trace))
    .map((trace) => `process ${trace.pid} (${trace.what})`);
  for (const trace of traces.toReversed()) left.push(...removeTrace(trace));
  for (const target of mountsUnder(dir)) {
    if (!run('umount', [target])) run('umount', ['-l', target]);
  }
  const mounts = mountsUnder(dir);
  // Never delete through a mount: what is behind it may be someone else's.
  if (mounts.length > 0) return [...left, ...mounts.map((target) => `mount ${target}`)];
  // A workspace that left something keeps its record, so that the next sweep can try again.
  if (left.length === 0) rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  return left;
}

/** Takes one link, route or control group away; says what is left of it. Harmless when it is gone already. */
export function removeTrace(trace: Trace): string[] {
  switch (trace.kind) {
    case 'process':
      return [];
    case 'link': {
      const path = `/sys/class/net/${trace.name}`;
      if (existsSync(path)) run('ip', ['link', 'delete', trace.name]);
      return existsSync(path) ? [`network link ${trace.name}`] : [];
    }
    case 'route':
      // Goes by itself with its link; this is for a link that could not be removed.
      run('ip', ['route', 'delete', trace.destination]);
      return [];
    case 'cgroup':
      return removeCgroup(trace.name);
  }
}

function run(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 10_000 }).status === 0;
}

/** Mount points at or below `dir` in this mount namespace, deepest first. */
export function mountsUnder(dir: string): string[] {
  let table: string;
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return [];
  }
  return table
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll('\\040', ' '))
    .filter((target) => target === dir || target.startsWith(`${dir}/`))
    .toSorted((a, b) => b.length - a.length);
}

/** A control group's folder in every mounted hierarchy (one with cgroup v2, about ten with v1). */
export function cgroupFolders(name: string): string[] {
  const root = '/sys/fs/cgroup';
  if (!existsSync(root)) return [];
  const candidates = [join(root, name)];
  if (!existsSync(join(root, 'cgroup.controllers'))) {
    for (const hierarchy of readdirSync(root)) candidates.push(join(root, hierarchy, name));
  }
  return candidates.filter((folder) => existsSync(folder));
}

function removeCgroup(name: string): string[] {
  const deadline = Date.now() + 5_000;
  for (;;) {
    const folders = cgroupFolders(name);
    for (const folder of folders) emptyCgroup(folder);
    const left = cgroupFolders(name);
    if (left.length === 0) return [];
    if (Date.now() > deadline) return left.map((folder) => `cgroup ${folder}`);
    waitSync(20);
  }
}

/** Kills what runs in a control group and below, and removes it, children first. */
function emptyCgroup(folder: string): void {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) emptyCgroup(join(folder, entry.name));
    }
    for (const pid of readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n')) {
      const id: ProcessId | undefined = pid === '' || pid === '0' ? undefined : identify(Number(pid));
      if (id !== undefined) signalProcess(id, 'SIGKILL');
    }
    rmdirSync(folder);
  } catch {
    // Busy until its processes are reaped, or gone already; the caller looks again.
  }
}
