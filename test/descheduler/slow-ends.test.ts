import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { releasedText } from '../../src/api/released.ts';
import type { ReleasedPods } from '../../src/descheduler/released-pods.ts';
import { Releases } from '../../src/descheduler/releases.ts';
import { isReady } from '../../src/kube/conditions.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { DENIED_BY_WEBHOOK, WEBHOOK_DOWN } from '../fixtures/eviction-refusals.ts';
import type { Fault } from '../fixtures/memory-api.ts';
import { releasedPodsIn } from '../fixtures/released-pods.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Ends of released pods to which a webhook of the host is slow to say anything. */
let room: SchedulerRoom;
const PODS = '/api/v1/namespaces/shop/pods';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
});
afterEach(async () => {
  await room.close();
});

const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);

/** Pods of a Deployment that are out of its ReplicaSet, which wants so many. */
async function released(app: string, set: TypedObject, names: readonly string[], ready: number): Promise<void> {
  const at = new Date(room.now).toISOString().replace('.000Z', 'Z');
  const mark = releasedText({ hash: 'one', replicaSet: `${app}-1`, uid: set.metadata.uid ?? '', at, ready });
  const annotations = { 'spillway.dev/released': mark };
  for (const name of names) {
    const metadata = { labels: { 'pod-template-hash': null }, annotations, ownerReferences: null };
    room.api.edit(`${PODS}/${name}`, { metadata });
  }
  const isKnown = (name: string): boolean => cached(name)?.metadata.annotations?.['spillway.dev/released'] === mark;
  await room.seen('they are released', () => names.every(isKnown));
}

/** What is asked about pods of these names takes the host so long. */
function slow(forMs: number, answer: Fault | undefined, isAsked: (name: string) => boolean = () => true): void {
  room.api.fault = ({ path }) => {
    if (!path.endsWith('/eviction') || !isAsked(path.split('/')[6] ?? '')) return undefined;
    room.now += forMs;
    return answer;
  };
}

describe('of one ReplicaSet', () => {
  let releases: Releases;
  let ends: ReleasedPods;
  let set: TypedObject;
  beforeEach(async () => {
    ({ set } = await room.deploy('web', 20));
    const selector = { matchLabels: { 'pod-template-hash': 'one' } };
    room.editSet('web-1', { spec: { replicas: 20, selector }, status: { replicas: 20, readyReplicas: 20 } });
    releases = new Releases(() => room.now);
    ends = releasedPodsIn(room, releases);
  });

  /** @returns in how many ms the next look is due, as the queue has it. */
  const look = async (): Promise<number> => {
    const result = await ends.bringUpToDate(ownerKeyOf(set), new AbortController().signal).catch(() => undefined);
    return result?.requeueAfterMs ?? 250;
  };
  const follow = (names: readonly string[]): void => {
    for (const name of names) releases.seen(cached(name) as Pod);
  };
  const isShown = async (names: readonly string[], status: 'True' | 'False', ready: number): Promise<void> => {
    for (const name of names)
      room.api.edit(`${PODS}/${name}`, { status: { phase: 'Running', conditions: [{ type: 'Ready', status }] } });
    const { placed } = room.process;
    await room.seen('it is known', () => placed.ofController(ownerKeyOf(set)).filter(isReady).length === ready);
  };
  /** Nobody wants them any more. */
  const unwanted = async (count: number): Promise<string[]> => {
    const names = await room.run(set, { east: count });
    await released('web', set, names, 20);
    follow(names);
    room.undeploy('web');
    const { owners } = room.process.view;
    await room.seen('its ReplicaSet is gone', () => owners.byUid(set.metadata.uid ?? '') === undefined);
    return names;
  };

  test('one stays whose replacement is not Ready any more when its turn comes', async () => {
    const names = await room.run(set, { east: 20 });
    await isShown(names, 'True', 20);
    await released('web', set, names.slice(0, 2), 20);
    room.now += 60_000;
    const came = await room.run(set, { west: 2 });
    await isShown(came, 'True', 20);
    follow(names.slice(0, 2));
    slow(9_000, undefined);
    expect(await look()).toBeLessThan(1_000);
    room.editSet('web-1', { status: { readyReplicas: 18 } });
    await isShown(came, 'False', 18);
    await look();
    expect(room.evictions()).toHaveLength(1);
  });

  test('one stays about which the host took long to say what it is, and goes by a judgement of then', async () => {
    const [name = ''] = await unwanted(1);
    room.api.fault = ({ method, path }) => {
      if (method === 'GET' && path.endsWith(`/pods/${name}`)) room.now += 6_000;
      return undefined;
    };
    await look();
    expect(room.evictions()).toEqual([]);
    room.api.fault = undefined;
    await look();
    expect(room.evictions()).toEqual([name]);
  });

  test('many that are denied quickly are tried once in five seconds, however many they are', async () => {
    const names = await unwanted(45);
    slow(25, DENIED_BY_WEBHOOK);
    const began = room.now;
    while (room.now - began < 60_000) room.now += await look();
    expect(new Set(room.evictions()).size).toBe(names.length);
    expect(room.evictions().length).toBeLessThanOrEqual(names.length * 12);
  });

  test('those that fail, in however many looks, keep the others waiting for none of the pauses after a failure', async () => {
    const names = await unwanted(22);
    const bad = new Set(names.slice(0, 20));
    slow(200, WEBHOOK_DOWN, (name) => bad.has(name));
    const began = room.now;
    const results: (number | undefined)[] = [];
    const have = (): boolean => names.every((name) => room.evictions().includes(name));
    while (!have() && results.length < 20) {
      const result = await ends.bringUpToDate(ownerKeyOf(set), new AbortController().signal).catch(() => undefined);
      results.push(result?.requeueAfterMs);
      if (!have()) room.now += result?.requeueAfterMs ?? 60_000;
    }
    expect(room.now - began).toBeLessThan(10_000);
    // What failed is thrown all the same.
    expect(results.at(-1)).toBeUndefined();
  });

  test('those go one after the other that the host is slow to end, each by a judgement of its own', async () => {
    const names = await unwanted(4);
    slow(2_000, undefined);
    for (const count of [1, 2, 3, 4]) {
      expect(await look()).toBeLessThan(1_000);
      expect(new Set(room.evictions()).size).toBe(count);
    }
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test.each([
    ['fails', WEBHOOK_DOWN],
    ['is denied', DENIED_BY_WEBHOOK],
  ])('all rest when the end of one takes long and %s, and each has its turn', async (_, answer) => {
    const names = await unwanted(5);
    slow(10_000, answer);
    const began = room.now;
    let busyMs = 0;
    while (room.now - began < 2_000_000) {
      const before = room.now;
      const inMs = await look();
      busyMs += room.now - before;
      room.now += inMs;
    }
    expect(busyMs / (room.now - began)).toBeLessThan(0.05);
    expect(room.evictions().slice(0, 5).toSorted()).toEqual(names.toSorted());
    expect(room.evictions().slice(5)).toEqual(room.evictions().slice(0, room.evictions().length - 5));
  });

  test('that it takes long and fails is told while they rest', async () => {
    await unwanted(5);
    slow(10_000, WEBHOOK_DOWN);
    await look();
    room.now += 59_000;
    await look();
    expect(room.told('ReleasedPodStays')).toEqual([]);
    room.now += 1_000;
    await look();
    expect(room.told('ReleasedPodStays')).toEqual([expect.stringContaining('the host fails to let it go')]);
    expect(room.evictions()).toHaveLength(1);
  });

  test('one at which the host hangs keeps the others for no longer than that', async () => {
    const names = await unwanted(5);
    slow(10_000, WEBHOOK_DOWN, (name) => name === room.evictions()[0]);
    await look();
    expect(room.evictions()).toHaveLength(1);
    room.now += 200_000;
    await look();
    expect(room.evictions().slice(0, 5).toSorted()).toEqual(names.toSorted());
  });
});

test('those of several ReplicaSets at which the host hangs keep those of none waiting', async () => {
  const gone = async (app: string, pods: number): Promise<string[]> => {
    const { set } = await room.deploy(app, 100);
    const names = await room.run(set, { east: pods });
    await released(app, set, names, 100);
    room.undeploy(app);
    return names;
  };
  for (const app of ['hung-a', 'hung-b', 'hung-c', 'hung-d']) await gone(app, 10);
  const [good = ''] = await gone('good', 1);
  slow(10_000, WEBHOOK_DOWN, (name) => name.startsWith('hung'));
  room.letWrite();
  await room.seen('it goes', () => room.evictions().includes(good));
  expect(room.evictions().indexOf(good)).toBeLessThanOrEqual(4);
});
