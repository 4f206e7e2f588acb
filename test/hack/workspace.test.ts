import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createCgroup, cgroupProblem } from '../../hack/cgroup.ts';
import { identify, isAlive, type ProcessId } from '../../hack/process-table.ts';
import { until } from '../../hack/until.ts';
import { sweepLeftovers, Workspace } from '../../hack/workspace.ts';
import { cgroupFolders } from '../../hack/workspace-cleaning.ts';
import { ownerOf, recordTrace, writeOwner } from '../../hack/workspace-record.ts';

const isRoot = process.platform === 'linux' && process.getuid?.() === 0;

let parent = '';
const strays: ChildProcess[] = [];
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'workspace-test-'));
});
afterEach(() => {
  for (const stray of strays.splice(0)) stray.kill('SIGKILL');
  rmSync(parent, { recursive: true, force: true });
});

/** A process of the test itself, that a workspace may end. */
function sleeper(env: NodeJS.ProcessEnv = {}): ProcessId {
  const child = spawn('sleep', ['60'], { stdio: 'ignore', env: { PATH: process.env['PATH'], ...env } });
  strays.push(child);
  const id = identify(child.pid ?? 0);
  if (id === undefined) throw new Error('sleep did not start');
  return id;
}

/** A workspace folder whose program was killed: its owner is a process that has ended. */
function abandoned(name: string): string {
  const dir = join(parent, name);
  mkdirSync(dir);
  writeOwner(dir, false);
  const owner = JSON.parse(readFileSync(join(dir, 'owner.json'), 'utf8')) as { process: ProcessId; boot: string };
  const dead = { ...owner, process: { pid: spawnSync('true').pid, start: '1' } };
  writeFileSync(join(dir, 'owner.json'), JSON.stringify(dead));
  return dir;
}

const start = (workspace: Workspace, script: string, end: 'SIGTERM' | 'SIGKILL' = 'SIGTERM') =>
  workspace.start({ name: 'test', file: 'sh', args: ['-c', script], logFile: join(workspace.dir, 'log'), end });

describe('close', () => {
  test('lets polite processes finish, and removes the folder', async () => {
    const workspace = Workspace.create({ parent });
    const done = join(parent, 'done');
    const polite = start(
      workspace,
      `trap 'sleep 0.1; touch ${done}; exit 0' TERM; echo ready; while :; do sleep 0.02; done`,
    );
    await until('the trap is set', () => polite.logTail().includes('ready'));
    await workspace.close();
    expect(existsSync(done)).toBe(true);
    expect(polite.running).toBe(false);
    expect(existsSync(workspace.dir)).toBe(false);
  });

  test('kills what does not go by itself', async () => {
    const workspace = Workspace.create({ parent });
    const stubborn = start(workspace, `trap '' TERM; echo ready; while :; do sleep 0.02; done`);
    await until('the trap is set', () => stubborn.logTail().includes('ready'));
    const began = Date.now();
    await workspace.close(200);
    expect(stubborn.running).toBe(false);
    expect(Date.now() - began).toBeGreaterThanOrEqual(200);
  });

  test('refuses to start anything afterwards', async () => {
    const workspace = Workspace.create({ parent });
    await workspace.close();
    expect(() => start(workspace, 'sleep 60')).toThrow();
  });

  test.runIf(isRoot)('removes network links', async () => {
    const workspace = Workspace.create({ parent });
    const name = `sw-${workspace.id}`;
    workspace.record({ kind: 'link', name });
    spawnSync('ip', ['link', 'add', name, 'type', 'bridge']);
    expect(existsSync(`/sys/class/net/${name}`)).toBe(true);
    await workspace.close();
    expect(existsSync(`/sys/class/net/${name}`)).toBe(false);
  });

  test.runIf(isRoot && cgroupProblem() === undefined)('removes control groups with what runs in them', async () => {
    const workspace = Workspace.create({ parent });
    const name = `spillway-${workspace.id}-test`;
    workspace.record({ kind: 'cgroup', name });
    createCgroup(name);
    const folders = cgroupFolders(name);
    expect(folders.length).toBeGreaterThan(0);
    const inside = sleeper();
    const pids = folders.find((folder) => folder.includes('/pids/')) ?? folders[0] ?? '';
    mkdirSync(join(pids, 'child'));
    writeFileSync(join(pids, 'child', 'cgroup.procs'), String(inside.pid));
    await workspace.close();
    expect(cgroupFolders(name)).toEqual([]);
    expect(isAlive(inside)).toBe(false);
  });
});

describe('a managed process', () => {
  test('can be stopped, measured and started again with the same arguments', async () => {
    const workspace = Workspace.create({ parent });
    try {
      const process = start(workspace, 'echo started; exec sleep 60');
      const first = process.id;
      await until('it runs', () => process.logTail() === 'started');
      expect(process.usage()?.rssBytes).toBeGreaterThan(0);
      await process.stop();
      expect(process.id).toBeUndefined();
      expect(process.describeExit()).toContain('SIGTERM');
      process.restart();
      await until('it runs again', () => process.logTail() === 'started\nstarted');
      expect(process.id?.pid).not.toBe(first?.pid);
    } finally {
      await workspace.close();
    }
  });

  test('a program that does not exist is told apart from one that runs', async () => {
    const workspace = Workspace.create({ parent });
    const missing = workspace.start({
      name: 'missing',
      file: '/no/such/program',
      args: [],
      logFile: join(parent, 'log'),
    });
    await until('it has failed', () => !missing.running);
    expect(missing.signal('SIGTERM')).toBe(false);
    await workspace.close();
  });
});

describe('leftovers', () => {
  test('of a dead owner are ended and removed', async () => {
    const dir = abandoned('spillway-dead00');
    const left = sleeper();
    recordTrace(dir, { kind: 'process', ...left, what: 'sleep', end: 'SIGTERM' });
    // A record cut off in the middle of a write.
    writeFileSync(join(dir, 'traces.jsonl'), `${readFileSync(join(dir, 'traces.jsonl'), 'utf8')}{"kind":"proc`);
    expect(sweepLeftovers(parent)).toEqual([dir]);
    expect(isAlive(left)).toBe(false);
    expect(existsSync(dir)).toBe(false);
  });

  test.runIf(process.platform === 'linux')('that no record names are found by their environment', () => {
    const dir = abandoned('spillway-dead04');
    const maker = `${ownerOf(dir)?.pid}-1`;
    const started = sleeper({ SPILLWAY_WORKSPACE: dir });
    const command = sleeper({ SPILLWAY_MAKER: maker });
    const others = [
      sleeper({ SPILLWAY_WORKSPACE: `${dir}-other`, SPILLWAY_MAKER: maker }),
      sleeper({ SPILLWAY_MAKER: `${process.pid}-1` }),
    ];
    expect(sweepLeftovers(parent)).toEqual([dir]);
    expect([started, command].map(isAlive)).toEqual([false, false]);
    expect(others.map(isAlive)).toEqual([true, true]);
  });

  test('are swept when the next workspace is made', async () => {
    const dir = abandoned('spillway-dead01');
    const workspace = Workspace.create({ parent });
    expect(existsSync(dir)).toBe(false);
    await workspace.close();
  });

  test('never touch a process that got a dead one’s number', () => {
    const dir = abandoned('spillway-dead02');
    const innocent = sleeper();
    recordTrace(dir, { kind: 'process', pid: innocent.pid, start: '1', what: 'gone', end: 'SIGKILL' });
    expect(sweepLeftovers(parent)).toEqual([dir]);
    expect(isAlive(innocent)).toBe(true);
  });

  test.runIf(isRoot)('of another user are not believed', () => {
    const dir = abandoned('spillway-other0');
    const mine = sleeper();
    recordTrace(dir, { kind: 'process', ...mine, what: 'not theirs', end: 'SIGKILL' });
    chownSync(dir, 65_534, 65_534);
    expect(sweepLeftovers(parent)).toEqual([]);
    expect(isAlive(mine)).toBe(true);
  });

  test('after a reboot nothing is signalled, the folder goes', () => {
    const dir = abandoned('spillway-dead03');
    writeFileSync(
      join(dir, 'owner.json'),
      JSON.stringify({ process: { pid: process.pid, start: '1' }, boot: 'earlier' }),
    );
    const innocent = sleeper();
    recordTrace(dir, { kind: 'process', ...innocent, what: 'from another boot', end: 'SIGKILL' });
    expect(sweepLeftovers(parent)).toEqual([dir]);
    expect(isAlive(innocent)).toBe(true);
  });

  test('workspaces that are in use, detached, or no workspaces at all stay', async () => {
    const mine = Workspace.create({ parent });
    const detached = Workspace.create({ parent });
    const process = start(detached, 'exec sleep 60');
    detached.detach();
    mkdirSync(join(parent, 'spillway-notes'));
    expect(sweepLeftovers(parent)).toEqual([]);
    expect(process.running).toBe(true);
    await Workspace.open(detached.dir).close();
    expect(process.running).toBe(false);
    expect(existsSync(detached.dir)).toBe(false);
    expect(existsSync(join(parent, 'spillway-notes'))).toBe(true);
    await mine.close();
  });
});

test('a wrapper’s own child is what is meant', async () => {
  const workspace = Workspace.create({ parent });
  try {
    const wrapped = workspace.start({
      name: 'wrapped',
      file: 'sh',
      args: ['-c', 'sleep 60; exit 3'],
      logFile: join(workspace.dir, 'log'),
      wrapped: true,
    });
    const command = (): string => readFileSync(`/proc/${wrapped.id?.pid}/cmdline`, 'utf8').split('\0').join(' ');
    await until('the child runs', () => command() === 'sleep 60 ');
    await wrapped.stop();
    expect(wrapped.running).toBe(false);
  } finally {
    await workspace.close();
  }
});

test('a process that has ended is not there', async () => {
  const child = spawn('true');
  await once(child, 'exit');
  expect(identify(child.pid ?? 0)).toBeUndefined();
});
