import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { replicasOf, type TypedObject } from '../../src/placement/owner-chain.ts';
import { AGAINST_BUDGET } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** A roll-out of Deployment shop/web that is stuck: six pods of ReplicaSet web-1 and four of web-2, all in member east. */
let room: SchedulerRoom;
let sets: [TypedObject, TypedObject];
let [first, second]: [string[], string[]] = [[], []];
const PODS = '/api/v1/namespaces/shop/pods';
const { signal } = new AbortController();

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('local', 0);
  room.setRoom('west', 100);
  room.place('p', {});
  const { deployment, set } = await room.deploy('web', 6);
  sets = [set, await room.rollOut(deployment, 'two', '2')];
  await ask([6, 4]);
  first = await room.run(sets[0], { east: 6 });
  second = await room.run(sets[1], { east: 4 });
  await edit([...first, ...second], { status: READY });
});
afterEach(async () => {
  await room.close();
});

const READY = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);

async function edit(names: readonly string[], patch: object): Promise<void> {
  for (const name of names) room.api.edit(`${PODS}/${name}`, { ...patch });
  const version = (name: string): string | undefined =>
    room.api.objects.get(`${PODS}/${name}`)?.metadata.resourceVersion;
  await room.seen('it is known', () => names.every((name) => cached(name)?.metadata.resourceVersion === version(name)));
}

async function drained(): Promise<void> {
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.member('east')?.drained.has('east') === true);
}

/** As the queue has it looked at, for so long. */
async function during(seconds: number): Promise<void> {
  const until = room.now + seconds * 1_000;
  while (room.now < until) {
    const result = await room.process.members.bringUpToDate('east', signal);
    await room.seen('they are gone', () =>
      room
        .evictions()
        .every((name) => (cached(name)?.metadata ?? { deletionTimestamp: '' }).deletionTimestamp !== undefined),
    );
    room.now += Math.max(100, (result as { requeueAfterMs?: number } | undefined)?.requeueAfterMs ?? 5_000);
  }
}

async function ask(replicas: readonly [number, number]): Promise<void> {
  for (const [index, count] of replicas.entries())
    room.editSet(`web-${String(index + 1)}`, { spec: { replicas: count } });
  const asked = ({ metadata: { uid = '' } }: TypedObject): number | undefined => {
    const set = room.process.placed.workloadByKey(`shop/${uid}`);
    return set && replicasOf(set);
  };
  await room.seen('it is known', () => sets.every((set, index) => asked(set) === replicas[index]));
}

const NOT_READY = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] };
const uidOf = (name: string): string => cached(name)?.metadata.uid ?? '';

/** Of the six of web-1 one is not Ready, and would be tried after the others. */
async function oneIsNotWell(): Promise<string> {
  const last = first.toSorted((a, b) => (uidOf(a) < uidOf(b) ? -1 : 1)).at(-1) ?? '';
  await edit([last], { status: NOT_READY });
  return last;
}

const onEastAlone = { spec: { nodeSelector: { 'kubernetes.io/hostname': 'east' } } };

describe.each<[string, () => Promise<void>]>([
  ['makes no pods', async () => await ask([9, 4])],
  ['has no place for its next pods', async () => await edit(first, onEastAlone)],
])('what holds one ReplicaSet of a Deployment, which %s,', (_, held) => {
  test('keeps no pods of the other one on a virtual node that is drained', async () => {
    await held();
    await drained();
    await during(60);
    expect(new Set(room.evictions())).toEqual(new Set(second));
    expect(room.told('DrainedPodHeld').length).toBeGreaterThan(0);
  });
});

describe('what holds pods that are Ready keeps none of their ReplicaSet that is not:', () => {
  test('another one that has found no node', async () => {
    const [like] = room.pods();
    const { labels, ownerReferences } = like?.metadata ?? {};
    const metadata = { name: 'waits', namespace: 'shop', labels, ownerReferences };
    const spec = { containers: [{ name: 'main' }] };
    room.make(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Pending' } });
    await room.seen('it came', () => cached('waits') !== undefined);
    const last = await oneIsNotWell();
    room.endPods(second);
    await room.seen('they are gone', () => second.every((name) => cached(name) === undefined));
    await ask([7, 0]);
    await drained();
    await during(60);
    expect(room.evictions()).toEqual([last]);
    expect(room.told('DrainedPodHeld')[0]).toContain('another pod of its workload has found no node');
  });

  test('a disruption budget that always lets such a one go', async () => {
    const last = await oneIsNotWell();
    room.api.fault = ({ path }) =>
      path.endsWith('/eviction') && !path.endsWith(`/${last}/eviction`) ? AGAINST_BUDGET : undefined;
    await drained();
    await room.process.members.bringUpToDate('east', signal);
    expect(room.evictions()).toContain(last);
    // Of those that are Ready one is asked about for all.
    expect(room.evictions()).toHaveLength(2);
  });
});

test('while replacements of one ReplicaSet get Ready, pods of the other one have their turn', async () => {
  for (const [name, hash] of [
    ['web-1', 'one'],
    ['web-2', 'two'],
  ] as const)
    room.editSet(name, { spec: { selector: { matchLabels: { 'pod-template-hash': hash } } } });
  const { placed } = room.process;
  await room.seen('it is known', () => room.pods().every((pod) => placed.surgingSetOf(pod) !== undefined));
  await drained();
  await during(60);
  const released = room.api.requests('PATCH').filter(({ path }) => path.startsWith(`${PODS}/`));
  const names = released.map(({ path }) => path.slice(PODS.length + 1));
  expect([first, second].map((of) => names.filter((name) => of.includes(name)).length)).toEqual([1, 1]);
});
