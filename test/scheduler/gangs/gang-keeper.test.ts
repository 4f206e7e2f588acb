import { pino } from 'pino';
import { Registry } from 'prom-client';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { until } from '../../../hack/until.ts';
import {
  GANG_GATE,
  GANG_LABEL,
  GANG_PLACED_ANNOTATION,
  GANG_SIZE_ANNOTATION,
  MEMBER_LABEL,
} from '../../../src/api/marks.ts';
import type { Pod } from '../../../src/kube/core-v1.ts';
import type { GaveBack } from '../../../src/scheduler/gangs/gang-evictions.ts';
import { GangKeeper } from '../../../src/scheduler/gangs/gang-keeper.ts';
import { gangMetrics } from '../../../src/scheduler/gangs/gang-metrics.ts';
import type { GangPlaces } from '../../../src/scheduler/gangs/gang-places.ts';
import { MemoryApi } from '../../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../../fixtures/memory-api-server.ts';

const HOUR_MS = 3_600_000;
let ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
});

/** A gang of four that was bound to east an hour ago, and of which the host has heard nothing since. */
async function gangAfterAnOutage(): Promise<{ api: MemoryApi; server: MemoryApiServer }> {
  const api = new MemoryApi();
  const server = await serveMemoryApi(api);
  const placed = new Date(Date.now() - HOUR_MS).toISOString();
  for (const name of ['w-0', 'w-1', 'w-2', 'w-3']) {
    const metadata = {
      name,
      namespace: 'ml',
      labels: { [GANG_LABEL]: 'train' },
      annotations: { [GANG_SIZE_ANNOTATION]: '4', [GANG_PLACED_ANNOTATION]: placed },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: 'j', controller: true }],
    };
    const spec = { nodeName: 'east', containers: [], nodeSelector: { [MEMBER_LABEL]: 'east' } };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Pending' } };
    await api.client().request({ method: 'POST', path: '/api/v1/namespaces/ml/pods', body });
  }
  return { api, server };
}

const podOf = (api: MemoryApi, name: string): Pod => api.objects.get(podPath(name)) as unknown as Pod;
const podPath = (name: string): string => `/api/v1/namespaces/ml/pods/${name}`;

/** A gang of three of which the one that failed was made anew. */
async function gangWithOneAnew(
  finishedOf: string,
  waiting: string[],
): Promise<{ api: MemoryApi; server: MemoryApiServer }> {
  const api = new MemoryApi();
  const server = await serveMemoryApi(api);
  const placed = new Date(Date.now() - HOUR_MS).toISOString();
  const make = (name: string, of: string, spec: object, status: object, marks: object): void => {
    const metadata = {
      name,
      namespace: 'ml',
      creationTimestamp: placed,
      labels: { [GANG_LABEL]: 'train' },
      annotations: { [GANG_SIZE_ANNOTATION]: '3', ...marks },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: of, uid: of, controller: true }],
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [], ...spec }, status };
    api.put(podPath(name), pod);
  };
  for (const [name, phase] of [
    ['w-0', 'Succeeded'],
    ['w-1', 'Succeeded'],
    ['w-2', 'Failed'],
  ] as const) {
    const spec = { nodeName: 'east', nodeSelector: { [MEMBER_LABEL]: 'east' } };
    make(name, finishedOf, spec, { phase, startTime: placed }, { [GANG_PLACED_ANNOTATION]: placed });
  }
  for (const name of waiting) make(name, 'train', { schedulingGates: [{ name: GANG_GATE }] }, { phase: 'Pending' }, {});
  return { api, server };
}

interface Kept {
  asked: string[];
  evicted: string[];
  kept: string[];
  told: string[];
  /** Names of pods whose room was given back. */
  released: string[];
  api: MemoryApi;
  /** How many gangs count as given up. */
  timedOut: () => Promise<number>;
}

/** `hasNode`: what the member says of a pod, by its name. Returns the names it was asked about, and reasons of Events with their pod. */
async function keep(
  hasNode: (name: string) => boolean | undefined,
  followedMs: number,
  world = gangAfterAnOutage(),
  setInTurn?: { name: string; replicas: number },
  beforeEviction: (api: MemoryApi, name: string, isStillToGo: () => boolean) => Promise<void> = async () =>
    await Promise.resolve(),
  place: GangPlaces['place'] = async () => await Promise.resolve({ cluster: 'east' }),
  gaveBack: (name: string) => GaveBack = () => 'gone',
): Promise<Kept> {
  const { api, server } = await world;
  const asked: string[] = [];
  const released: string[] = [];
  const told: string[] = [];
  const evicted: string[] = [];
  const kept: string[] = [];
  const aborted = new AbortController();
  const metrics = gangMetrics(new Registry());
  const keeper = new GangKeeper({
    host: server.client('host'),
    evictions: {
      inTurn: (pods) => [...pods],
      giveBack: async ({ metadata: { name } }, at, isStillToGo) => {
        expect(at).toBe('east');
        await beforeEviction(api, name, () => isStillToGo(podOf(api, name)));
        if (!isStillToGo(podOf(api, name))) {
          kept.push(name);
          return 'notWanted';
        }
        evicted.push(name);
        return gaveBack(name);
      },
    },
    places: {
      place,
      hold: async () => await Promise.resolve(),
      release: (pods) => void released.push(...pods.map(({ metadata }) => metadata.name)),
      hasNode: async ({ metadata }) => {
        asked.push(metadata.name);
        return await Promise.resolve(hasNode(metadata.name));
      },
      setInTurn: () => setInTurn,
    },
    events: {
      record: ({ name }, _type, reason, message) => {
        told.push(`${name} ${reason} ${message}`);
      },
    },
    metrics,
    logger: pino({ level: 'silent' }),
    clock: Date.now,
    followedMs,
  });
  const run = keeper.run(aborted.signal);
  ends.push(async () => {
    aborted.abort();
    await run;
    await server.close();
  });
  const timedOut = async (): Promise<number> =>
    (await metrics.gangs.get()).values.find(({ labels }) => labels.outcome === 'timed-out')?.value ?? 0;
  return { asked, evicted, kept, told, released, api, timedOut };
}

const seen = async (look: () => void): Promise<void> => await vi.waitFor(look, { timeout: 15_000, interval: 20 });

it('keeps a gang that ran in its member while the host was away', async () => {
  const { asked, evicted } = await keep(() => true, 0);
  // The second look comes after all that the first one led to.
  await seen(() => expect(asked.length).toBeGreaterThan(4));
  expect(evicted).toEqual([]);
});

it('keeps a gang while its member cannot say whether it runs', async () => {
  const { asked, evicted } = await keep(() => undefined, 0);
  await seen(() => expect(asked.length).toBeGreaterThan(1));
  expect(evicted).toEqual([]);
  // One that says nothing is asked about one pod a look.
  expect(new Set(asked).size).toBe(1);
});

it('gives up when the member has no node for one of them, which goes last, as it says so', async () => {
  const { evicted } = await keep((name) => name !== 'w-2', 0);
  await seen(() => expect(evicted.slice(0, 4)).toEqual(['w-0', 'w-1', 'w-3', 'w-2']));
});

it('keeps what is left of a gang whose late pods got their nodes before the others had gone', async () => {
  let hasNode = false;
  const { evicted, kept } = await keep(
    (name) => hasNode || name !== 'w-2',
    0,
    undefined,
    undefined,
    async (api, name, isStillToGo) => {
      if (name === 'w-0') return;
      hasNode = true;
      if (podOf(api, 'w-2').status?.startTime === undefined)
        api.edit(podPath('w-2'), { status: { phase: 'Running', startTime: new Date().toISOString() } });
      await until('the watch has brought it', () => !isStillToGo(), { intervalMs: 5 });
    },
  );
  await seen(() => expect(kept).toEqual(['w-1', 'w-3', 'w-2']));
  expect(evicted).toEqual(['w-0']);
});

it('counts as given up only what gave something back, and lets those rest that are held', async () => {
  const held = new Set(['w-0']);
  const outcome = (name: string): GaveBack => (held.has(name) ? 'held' : 'gone');
  const { asked, evicted, timedOut } = await keep(() => false, 0, undefined, undefined, undefined, undefined, outcome);
  await seen(() => expect(evicted).toEqual(['w-0', 'w-1', 'w-2', 'w-3']));
  expect(await timedOut()).toBe(1);
  // Longer than between two looks at others.
  await pause(4_500);
  expect([asked.length, evicted.length, await timedOut()]).toEqual([4, 4, 1]);
});

it('tries one pod of each controller whose pods are held, so that each takes one turn of its member', async () => {
  const world = await gangAfterAnOutage();
  const other = { apiVersion: 'batch/v1', kind: 'Job', name: 'other', uid: 'k', controller: true };
  world.api.edit(podPath('w-3'), { metadata: { ownerReferences: [other] } });
  const outcome = (name: string): GaveBack => (name === 'w-3' ? 'gone' : 'controllerHeld');
  const kept = await keep(() => false, 0, Promise.resolve(world), undefined, undefined, undefined, outcome);
  await seen(() => expect(kept.evicted).toEqual(['w-0', 'w-3']));
  await pause(4_500);
  expect([kept.asked.length, kept.evicted, await kept.timedOut()]).toEqual([4, ['w-0', 'w-3'], 1]);
});

it('tries those that are not Ready beside one that is and that a budget keeps', async () => {
  const world = await gangAfterAnOutage();
  world.api.edit(podPath('w-0'), { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const outcome = (name: string): GaveBack => (name === 'w-0' ? 'controllerHeld' : 'gone');
  const kept = await keep(() => false, 0, Promise.resolve(world), undefined, undefined, undefined, outcome);
  await seen(() => expect(kept.evicted).toEqual(['w-0', 'w-1', 'w-2', 'w-3']));
});

it('lets the others have their turns before one that was tried in vain', async () => {
  const outcome = (name: string): GaveBack => (name === 'w-0' ? 'controllerHeld' : 'gone');
  const kept = await keep(() => false, 0, undefined, undefined, undefined, undefined, outcome);
  await until('the next round is over', () => kept.evicted.length === 5, { timeoutMs: 20_000 });
  expect(kept.evicted).toEqual(['w-0', 'w-1', 'w-2', 'w-3', 'w-0']);
}, 30_000);

it('tries one pod of a gang while all moves are stopped, and counts nothing', async () => {
  const stopped = (): GaveBack => 'stopped';
  const kept = await keep(() => false, 0, undefined, undefined, undefined, undefined, stopped);
  await seen(() => expect(kept.evicted).toEqual(['w-0']));
  await pause(4_500);
  expect([kept.asked.length, kept.evicted, await kept.timedOut()]).toEqual([4, ['w-0'], 0]);
  expect(kept.told).toEqual([expect.stringMatching(/^w-0 GangTimedOut .* They are to give back what they have: /)]);
});

it('judges no gang before the host was followed for long enough', async () => {
  const started = Date.now();
  const { evicted } = await keep(() => false, 2_000);
  await seen(() => expect(evicted).not.toEqual([]));
  expect(Date.now() - started).toBeGreaterThanOrEqual(2_000);
});

it('lets a pod that is made anew go when the others of its gang have succeeded', async () => {
  const { api } = await keep(() => true, 0, gangWithOneAnew('train', ['w-3']));
  await seen(() => expect(podOf(api, 'w-3').spec.schedulingGates).toEqual([]));
  expect(podOf(api, 'w-3').spec.nodeSelector).toEqual({ [MEMBER_LABEL]: 'east' });
});

it('tells the oldest pod at the gate, not one that ended, how many are missing', async () => {
  const { told, api } = await keep(() => true, 0, gangWithOneAnew('last-night', ['w-3', 'w-4']));
  await seen(() =>
    expect(told).toEqual([expect.stringMatching(/^w-3 GangIncomplete 2 of 3 pods of the gang are there; /)]),
  );
  expect(podOf(api, 'w-3').spec.schedulingGates).toHaveLength(1);
});

it('says at once that a StatefulSet which makes its pods in turn will not make the next one', async () => {
  const world = gangWithOneAnew('last-night', ['w-3']);
  const { told } = await keep(() => true, 0, world, { name: 'web', replicas: 3 });
  await seen(() => expect(told).toHaveLength(1));
  expect(told[0]).toMatch(/^w-3 GangOrdered 1 of 3 pods .*StatefulSet web .*podManagementPolicy: Parallel/);
});

it('says nothing of that while the StatefulSet has made all of its pods', async () => {
  const world = gangWithOneAnew('last-night', ['w-3']);
  const { told } = await keep(() => true, 0, world, { name: 'web', replicas: 1 });
  await seen(() => expect(told).toEqual([expect.stringContaining('GangIncomplete')]));
});

/** A gang of three at the gate; the first write to one of them is answered with that code. */
async function gangAtTheGate(code: number): Promise<{ api: MemoryApi; server: MemoryApiServer }> {
  const world = await gangWithOneAnew('last-night', ['w-3', 'w-4', 'w-5']);
  let left = 1;
  world.api.fault = ({ method, path }) => {
    if (method !== 'PATCH' || path !== podPath('w-3') || left === 0) return undefined;
    left -= 1;
    return { code, reason: code === 409 ? 'Conflict' : 'NotFound' };
  };
  return world;
}

it('keeps the room of a pod that changed while it was pinned, and opens the gate of all of them after that', async () => {
  const { released, api } = await keep(() => true, 0, gangAtTheGate(409));
  await seen(() => {
    for (const name of ['w-3', 'w-4', 'w-5']) expect(podOf(api, name).spec.schedulingGates).toEqual([]);
  });
  expect(released).toEqual([]);
});

it('gives back the room of a pod that went while it was pinned', async () => {
  const { released } = await keep(() => true, 0, gangAtTheGate(404));
  await seen(() => expect(released).toEqual(['w-3']));
});

it('tells a gang that waits for room that nobody is evicted for it', async () => {
  const world = gangWithOneAnew('last-night', ['w-3', 'w-4', 'w-5']);
  const why = 'member east: room for 2 of 3 pods (insufficient cpu)';
  const { told } = await keep(
    () => true,
    0,
    world,
    undefined,
    undefined,
    async () => await Promise.resolve({ why }),
  );
  await seen(() => expect(told).toHaveLength(1));
  expect(told[0]).toBe(
    `w-3 GangWaiting no place takes all 3 pods of the gang now: ${why}. It takes room that is free: nobody is evicted for a gang, whatever its priority`,
  );
});

it('says that pods of a gang are missing which wait at gates of others, and writes nothing to those that are there', async () => {
  const { api, server } = await gangWithOneAnew('last-night', ['w-3', 'w-4', 'w-5']);
  api.edit(podPath('w-5'), { spec: { schedulingGates: [{ name: GANG_GATE }, { name: 'example.com/quota' }] } });
  const { told } = await keep(() => true, 0, Promise.resolve({ api, server }));
  await seen(() => expect(told).toHaveLength(1));
  expect(told[0]).toContain('2 of 3 pods of the gang are there, 1 more wait at scheduling gates of others');
  expect(api.requests('PATCH', '/pods/')).toEqual([]);
});

it('goes on with a look that took long after those at other gangs', async () => {
  const world = gangWithOneAnew('last-night', ['w-3', 'w-4', 'w-5']);
  const tried = new Map([['east', 'it has no room']]);
  const asked: unknown[] = [];
  const { api } = await keep(
    () => true,
    0,
    world,
    undefined,
    undefined,
    async (_pods, question) => {
      asked.push(question.tried);
      return await Promise.resolve(asked.length === 1 ? { tried } : { cluster: 'west' });
    },
  );
  await seen(() => expect(podOf(api, 'w-5').spec.schedulingGates).toEqual([]));
  expect(asked).toEqual([undefined, tried]);
});

it('says what is wrong with pods for which there will be no place', async () => {
  const world = gangWithOneAnew('last-night', ['w-3', 'w-4', 'w-5']);
  const problem = 'its pods are of more than 64 kinds';
  const place: GangPlaces['place'] = async () => await Promise.resolve({ problem });
  const { told } = await keep(() => true, 0, world, undefined, undefined, place);
  await seen(() => expect(told).toEqual([`w-3 GangInvalid the gang waits, as ${problem}`]));
});

it('places other gangs while one that gives up waits for its evictions, and leaves that one alone', async () => {
  const world = await gangAfterAnOutage();
  const { api } = world;
  let free = (): void => undefined;
  const isFree = new Promise<void>((resolve) => (free = resolve));
  const placed: string[] = [];
  const { evicted, asked } = await keep(
    () => false,
    0,
    Promise.resolve(world),
    undefined,
    async (_api, name) => {
      if (name === 'w-1') await isFree;
    },
    async (pods) => {
      placed.push(...pods.map(({ metadata }) => metadata.name));
      return await Promise.resolve({ cluster: 'east' });
    },
  );
  ends.unshift(async () => await Promise.resolve(free()));
  await seen(() => expect(evicted).toEqual(['w-0']));
  const make = (name: string, gang: string, size: string): void => {
    const labels = { [GANG_LABEL]: gang };
    const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: gang, uid: gang, controller: true }];
    const annotations = { [GANG_SIZE_ANNOTATION]: size };
    const metadata = { name, namespace: 'ml', labels, annotations, ownerReferences };
    const spec = { containers: [], schedulingGates: [{ name: GANG_GATE }] };
    api.put(podPath(name), { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Pending' } });
  };
  // The controller of the one that gives up is quick to make one for the pod that went.
  api.delete(podPath('w-0'));
  make('w-4', 'train', '4');
  make('x-0', 'small', '1');
  await seen(() => expect(podOf(api, 'x-0').spec.schedulingGates).toEqual([]));
  make('y-0', 'other', '1');
  await seen(() => expect(podOf(api, 'y-0').spec.schedulingGates).toEqual([]));
  // Nobody was asked about it meanwhile, and its new pod waits.
  expect([evicted, asked.length, placed]).toEqual([['w-0'], 4, ['x-0', 'y-0']]);
  free();
  await seen(() => expect(evicted.slice(0, 4)).toEqual(['w-0', 'w-1', 'w-2', 'w-3']));
  expect(podOf(api, 'w-4').spec.schedulingGates).toHaveLength(1);
});

it('looks anew at a gang whose giving up was broken off', async () => {
  let isBroken = true;
  const broken = async (): Promise<void> => {
    if (!isBroken) return await Promise.resolve();
    isBroken = false;
    throw new Error('the host does not answer');
  };
  const { evicted, asked } = await keep(() => false, 0, undefined, undefined, broken);
  await seen(() => expect(evicted).toEqual(['w-0', 'w-1', 'w-2', 'w-3']));
  expect(asked).toHaveLength(8);
});
