import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WorkloadMigration } from '../../src/api/workload-migration.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { DENIED_BY_WEBHOOK } from '../fixtures/eviction-refusals.ts';
import type { MemoryRequest } from '../fixtures/memory-api.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Deployments of namespace shop are in member east; west takes all of them. */
const PATH = '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadmigrations';
const PODS = '/api/v1/namespaces/shop/pods';
const { signal } = new AbortController();
let room: SchedulerRoom;
let sets: Map<string, TypedObject>;

beforeEach(async () => {
  sets = new Map();
  room = await SchedulerRoom.start(['east', 'west']);
  const reserved = new Map<string, string>();
  room.capacities.set(
    'west',
    countedRoom('west', () => 1_000 - reserved.size, reserved),
  );
  room.setRoom('local', 0);
  room.place('p', { clusterAffinity: { clusterNames: ['east', 'west'] } });
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
});
afterEach(async () => {
  await room.close();
});

/** A pod of a Deployment that is Ready. */
async function run(name: string, member = 'east'): Promise<void> {
  const known = sets.get(name) ?? (await room.deploy(name, 1)).set;
  sets.set(name, known);
  const [pod = ''] = await room.run(known, { [member]: 1 });
  room.api.edit(`${PODS}/${pod}`, {
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const { pods } = room.process.view;
  await room.seen('it is Ready', () => pods.get(`shop/${pod}`)?.status?.conditions?.[0]?.status === 'True');
}

const stored = (): WorkloadMigration['status'] =>
  (room.api.objects.get(`${PATH}/now`) as unknown as WorkloadMigration).status;
const complete = (): string | undefined => stored()?.conditions?.find(({ type }) => type === 'Complete')?.reason;
const said = (): string[] =>
  (stored()?.workloads ?? []).map(({ workload: { name }, reason, message = '' }) => `${name} ${reason} ${message}`);
const ofPods = ({ path }: MemoryRequest): boolean => path.startsWith(`${PODS}/`);
/** Workloads of the pods that were to leave. */
const tried = (): string[] => [
  ...new Set(
    [...room.api.requests('POST', '/eviction'), ...room.api.requests('PATCH').filter(ofPods)].map(
      ({ path }) => path.slice(PODS.length + 1).split('-')[0] ?? '',
    ),
  ),
];

/** One look, with caches that know all that was written before. */
async function look(): Promise<unknown> {
  const { placed, migrations } = room.process;
  const version = (): string | undefined => room.api.objects.get(`${PATH}/now`)?.metadata.resourceVersion;
  await room.seen('the caches know it', () => placed.migration('shop/now')?.metadata.resourceVersion === version());
  return await migrations.bringUpToDate('shop/now', signal);
}

/** Judged, and known everywhere: the next look moves pods. */
async function begun(...names: string[]): Promise<void> {
  const workloads = names.map((name) => ({ apiVersion: 'apps/v1', kind: 'Deployment', name }));
  room.make(PATH, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadMigration',
    metadata: { name: 'now', namespace: 'shop' },
    spec: { from: 'east', to: 'west', ...(names.length === 0 ? { all: true } : { workloads }) },
  });
  await look();
  room.now += 3_000;
  await look();
  await look();
  room.now += 2_000;
}

test('a failure at one workload keeps neither the others from their turns nor the status from being written; then it is thrown', async () => {
  for (const name of ['a', 'b']) await run(name);
  await begun('a', 'b');
  let failures = 0;
  room.api.fault = ({ path, query }) => {
    // Whether the move is still ordered, past the caches.
    const isAsked = path.startsWith(PATH) && query['watch'] === undefined && failures === 0;
    if (!isAsked) return undefined;
    failures += 1;
    return { code: 422, reason: 'Invalid', message: 'not now' };
  };
  await expect(look()).rejects.toThrow('not now');
  expect(tried()).toEqual(['b']);
  expect(said()).toEqual([
    'a Moving not moved now: a request failed (cluster host: not now (422 Invalid))',
    expect.stringMatching(/^b Moving/),
  ]);
  await look();
  expect(tried()).toEqual(['b', 'a']);
});

test('after a failure of the host as a whole nothing more is asked for, what is known is written, and nothing is given up for it', async () => {
  for (const name of ['a', 'b', 'c']) await run(name);
  await begun('a', 'b', 'c');
  room.api.fault = (request) =>
    ofPods(request) && request.method === 'GET' && request.path.includes('/b-')
      ? { code: 401, reason: 'Unauthorized', message: 'who are you' }
      : undefined;
  await expect(look()).rejects.toThrow('who are you');
  expect(tried()).toEqual(['a']);
  for (let minutes = 0; minutes < 15; minutes += 1) {
    room.now += 60_000;
    await expect(look()).rejects.toThrow('who are you');
  }
  expect(complete()).toBe('Progressing');
  expect(said()[1]).toContain('not moved now: a request failed (cluster host: who are you');
  room.api.fault = undefined;
  await look();
  expect(tried()).toEqual(['a', 'c', 'b']);
});

test('a workload about whose pod the host does not answer keeps no other, and is given up in its time', async () => {
  await run('a');
  await run('b');
  await begun('a', 'b');
  room.api.fault = (request) =>
    ofPods(request) && request.method === 'GET' && request.path.includes('/a-') ? 'reset' : undefined;
  await look();
  expect(tried()).toEqual(['b']);
  await run('b', 'west');
  for (let minutes = 0; minutes < 15 && stored()?.finishTime === undefined; minutes += 3) {
    await look();
    room.now += 180_000;
  }
  expect(complete()).toBe('PodsStay');
  expect(said()).toEqual([
    expect.stringMatching(
      /^a PodsStay .*at last: the host does not say what it is now \(cluster host: the connection broke/,
    ),
    'b Moved ',
  ]);
}, 20_000);

describe('beside ten that are held', () => {
  const ten = Array.from({ length: 10 }, (_, index) => `a${String(index)}`);

  test('a workload has its turn, as those that were tried in vain come after it', async () => {
    // Of each another pod is made first, for one pod at a time: the other one waits, and is tried every second.
    for (const name of [...ten, 'z']) {
      for (const _ of [1, 2]) await run(name);
      room.editSet(`${name}-1`, { spec: { selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
    }
    const { placed } = room.process;
    await room.seen('it is known', () => room.pods().every((pod) => placed.surgingSetOf(pod) !== undefined));
    await begun(...ten, 'z');
    for (let seconds = 0; seconds < 10; seconds += 1) {
      await look();
      room.now += 1_000;
    }
    expect(tried()).toEqual([...ten, 'z']);
    // In the order of the migration.
    expect(said().map((words) => words.split(' ')[0])).toEqual([...ten, 'z']);
  });

  test('a workload that had no turn is not given up, however long theirs take', async () => {
    for (const name of [...ten, 'z']) await run(name);
    await begun(...ten, 'z');
    room.api.fault = ({ path }) => {
      if (!path.endsWith('/eviction') || path.includes('/z-')) return undefined;
      room.now += 60_000;
      return DENIED_BY_WEBHOOK;
    };
    await look();
    expect([tried(), complete()]).toEqual([ten, 'Progressing']);
    await look();
    expect(tried()).toEqual([...ten, 'z']);
    await run('z', 'west');
    for (let minutes = 0; minutes < 15 && stored()?.finishTime === undefined; minutes += 1) {
      await look();
      room.now += 60_000;
    }
    expect(complete()).toBe('PodsStay');
    expect(said().at(-1)).toBe('z Moved ');
  });
});
