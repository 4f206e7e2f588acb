import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, expect, it } from 'vitest';
import { startHonest } from '../fixtures/honest-member.ts';

/** As manifests/manager.yaml limits it. */
const CONTAINER_BYTES = 2 ** 30;
/** What Node.js gives itself in a container of that size, in MiB. */
const HEAP_MIB = 512;
const PROGRAM = join(import.meta.dirname, '../fixtures/member-caches.mjs');
const HOSTILE = join(import.meta.dirname, '../fixtures/hostile-members.mjs');
const BUILT = join(import.meta.dirname, '../../dist/src/members/connection.js');
const WATCHED_MS = 20_000;
/**
 * While a change of the honest member waits, each of the others may have one answer read with as much in it as there may be. That is
 * counted in CPU and not in time, which depends on what else the machine does.
 */
const MOST_ANSWERS = 8;
/** However busy the machine: by then each of them has come to a limit. */
const LIMITED_MS = 250_000;

interface Report {
  rss: number;
  heap: number;
  heapLimit: number;
  /** What the largest answer costs, in ms of CPU. */
  unit: number;
  cpu: [at: number, used: number][];
  members: { name: string; pods: number; synced: boolean; version: number; limit?: string; problem?: string }[];
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

it.each([
  ['send without end', 'bulk'],
  ['send what takes many times what it looks like', 'disguised'],
])(
  'eight members that %s take no more memory than there is, and nothing from a ninth',
  async (_what, kind) => {
    if (!existsSync(BUILT)) throw new Error(`${BUILT} is not there: run make build`);
    const honest = await startHonest();
    closers.push(honest.close, honest.stop);
    const args = [`honest=${honest.url}`];
    const hostile = spawn(process.execPath, [HOSTILE, kind], { stdio: ['ignore', 'pipe', 'inherit'] });
    closers.push(() => ended(hostile));
    for await (const line of createInterface(hostile.stdout)) {
      args.push(line);
      if (args.length === 9) break;
    }
    const child = spawn(
      process.execPath,
      [`--max-old-space-size=${HEAP_MIB}`, '--max-semi-space-size=8', PROGRAM, ...args],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    closers.push(() => ended(child));
    const began = performance.now();
    const reports: Report[] = [];
    const cpu: Report['cpu'] = [];
    let unit = Infinity;
    const lags: number[] = [];
    const limited = new Set(['honest']);
    /** Where the honest one was when the others had come to their limits. */
    let wanted: number | undefined;
    for await (const line of createInterface(child.stdout)) {
      const report = JSON.parse(line) as Report;
      reports.push(report);
      const one = report.members.find(({ name }) => name === 'honest');
      cpu.push(...report.cpu);
      unit = report.unit;
      if (one?.synced === true) lags.push(usedSince(honest.changedAfter(one.version), cpu));
      for (const { name, problem, limit } of report.members) if ((limit ?? problem) !== undefined) limited.add(name);
      const passed = performance.now() - began;
      if (passed > WATCHED_MS && report.members.every(({ name }) => limited.has(name))) wanted ??= honest.version();
      if (passed > LIMITED_MS || (one?.version ?? 0) >= (wanted ?? Infinity)) break;
    }
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    const last = reports.at(-1);
    const worst = (of: (report: Report) => number): number => Math.max(...reports.map(of));
    expect(last?.members.find(({ name }) => name === 'honest')).toMatchObject({ pods: 200, synced: true });
    expect(worst(({ rss }) => rss)).toBeLessThan(CONTAINER_BYTES);
    expect(worst(({ heap, heapLimit }) => heap / heapLimit)).toBeLessThan(0.9);
    expect([...limited].toSorted()).toEqual((last?.members ?? []).map(({ name }) => name).toSorted());
    // Its cache goes on, and not much else was done while a change of it waited.
    expect(last?.members.find(({ name }) => name === 'honest')?.version).toBeGreaterThanOrEqual(wanted ?? Infinity);
    expect(lags).not.toEqual([]);
    expect(Math.max(...lags) / unit).toBeLessThan(MOST_ANSWERS);
  },
  300_000,
);

/** In ms of CPU, which is the same however long the process has to wait for a processor; 0 where nothing was to be done. */
function usedSince(since: number | undefined, cpu: Report['cpu']): number {
  const now = cpu.at(-1);
  if (now === undefined || since === undefined || now[0] <= since) return 0;
  const [, before] = cpu.findLast(([at]) => at <= since) ?? [0, 0];
  return now[1] - before;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await end;
}
