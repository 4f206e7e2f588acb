import { displacedPod } from '../../src/descheduler/displaced-pod.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parseWorkloadMigration, type WorkloadMigration } from '../../src/api/workload-migration.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { GOOD_MIGRATION, WRONG_MIGRATIONS } from '../api/wrong-migrations.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { memberNode } from '../fixtures/member-nodes.ts';
import { memberFit } from '../fixtures/member-room.ts';
import { AGAINST_BUDGET, DENIED_BY_WEBHOOK, MAY_NOT_READ, WEBHOOK_DOWN } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Four pods of Deployment shop/web in member east. West and north are as wide as a test says. */
const PATH = '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadmigrations';
const PODS = '/api/v1/namespaces/shop/pods';
const POLICY = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
const { signal } = new AbortController();
/** The report has to be the same for so long, and be known to all replicas before the first move. */
const [SETTLED_MS, HEARD_MS] = [3_000, 2_000];
let room: SchedulerRoom;
let set: TypedObject;
let names: string[];

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west', 'north']);
  ({ set } = await room.deploy('web', 4));
  wide('west', 9);
  wide('north', 9);
  room.setRoom('local', 0);
  room.place('p', { clusterAffinity: { clusterNames: ['east', 'west', 'north'] } });
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  names = await room.run(set, { east: 4 });
  ready(names);
});
afterEach(async () => {
  await room.close();
});

/** Room for so many pods, those that it is set aside for counted in. @returns those, node by key. */
function wide(member: string, slots: number): Map<string, string> {
  const reserved = new Map<string, string>();
  room.capacities.set(
    member,
    countedRoom(member, () => slots - reserved.size, reserved),
  );
  return reserved;
}

function ready(pods: readonly string[]): void {
  for (const name of pods)
    room.api.edit(`${PODS}/${name}`, { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } });
}

function ask(more: object = {}, name = 'now'): void {
  room.make(PATH, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadMigration',
    metadata: { name, namespace: 'shop' },
    spec: { ...GOOD_MIGRATION, ...more },
  });
}

function stored(name = 'now'): WorkloadMigration | undefined {
  const raw = room.api.objects.get(`${PATH}/${name}`) as KubeObject | undefined;
  if (raw === undefined) return undefined;
  const parsed = parseWorkloadMigration(raw);
  if ('problems' in parsed) throw new Error(parsed.problems.join());
  return parsed.migration;
}

/** One look, with caches that know all that was written before. */
async function look(name = 'now', until = signal): Promise<unknown> {
  const { placed, migrations } = room.process;
  const version = (): string | undefined => room.api.objects.get(`${PATH}/${name}`)?.metadata.resourceVersion;
  await room.seen('the caches know it', () => placed.migration(`shop/${name}`)?.metadata.resourceVersion === version());
  return await migrations.bringUpToDate(`shop/${name}`, until);
}

async function judged(name = 'now'): Promise<void> {
  await look(name);
  room.now += SETTLED_MS;
  await look(name);
}

/** Judged, known everywhere, and looked at once more. */
async function begun(name = 'now'): Promise<void> {
  await judged(name);
  await look(name);
  room.now += HEARD_MS;
  await look(name);
}

const state = (name = 'now'): string[] =>
  (stored(name)?.status?.conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`);
const said = (name = 'now'): string[] =>
  (stored(name)?.status?.workloads ?? []).map(
    ({ workload, reason, waiting, moving, moved, message }) =>
      `${workload.name} ${reason} ${waiting}/${moving}/${moved}${message === undefined ? '' : `: ${message}`}`,
  );
const released = (): string[] =>
  room.api
    .requests('PATCH')
    .filter(({ path }) => path.startsWith(`${PODS}/`) && !path.endsWith('/status'))
    .map(({ path }) => path.slice(PODS.length + 1));
const moves = (): string[] => [...room.evictions(), ...released()];
const asked = (pod: Pod): string[] => {
  const { view, questions } = room.process;
  const chain = view.owners.chainOf(pod);
  const { chosen } = view.policies.select(chain, undefined);
  if (chosen === undefined) throw new Error('no rules');
  const { facts } = questions.ask(pod, chain, chosen, questions.everyOpenNode(pod));
  return facts.migrating === undefined ? [] : [facts.migrating.to ?? '-', facts.migrating.by];
};

test('of a member that is cordoned and does not answer it is said that it does not answer', async () => {
  const ready = { type: 'Ready', status: 'False', reason: 'Timeout', message: '' };
  const conditions = [{ ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  room.editMember('east', { spec: { unschedulable: true }, status: { conditions } });
  await room.seen('it is known', () => room.process.placed.member('east')?.silent !== undefined);
  ask();
  await judged();
  const told = stored()?.status?.conditions?.find(({ type }) => type === 'Fits')?.message;
  expect(told).toMatch(/^member east: it is not ready \(Timeout\); what runs there is not known/);
});

describe('what fits', () => {
  test('is said when each look for three seconds finds it; nothing is moved before every replica knows the way', async () => {
    ask();
    expect(await look()).toEqual({ requeueAfterMs: 1_000 });
    expect(stored()?.status).toBeUndefined();
    await judged();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False Progressing']);
    expect(said()).toEqual(['web Fits 4/0/0']);
    expect(moves()).toEqual([]);
    await look();
    expect(moves()).toEqual([]);
    room.now += HEARD_MS;
    await look();
    expect(moves()).toHaveLength(1);
  });

  test('leaves, and new pods go that way alone, until all have left', async () => {
    ask();
    const [first] = room.pods();
    if (first === undefined) throw new Error('there is no pod');
    expect(asked(first)).toEqual([]);
    await begun();
    expect(asked(first)).toEqual(['west', 'shop/now']);
    room.endPods(room.pods().map(({ metadata }) => metadata.name));
    await room.seen('they are gone', () => room.pods().length === 0);
    ready(await room.run(set, { west: 4 }));
    await look();
    expect(said()).toEqual(['web Moved 0/0/4']);
    expect(state()).toEqual(['Fits True AllFit', 'Complete True Moved']);
    expect(stored()?.status?.finishTime).toBeDefined();
    expect(await look()).toBeUndefined();
    expect(asked(first)).toEqual([]);
  });

  test('leaves from both ReplicaSets of a roll-out at once, while replacements of each get Ready', async () => {
    const deployment = room.api.objects.get('/apis/apps/v1/namespaces/shop/deployments/web') as unknown as TypedObject;
    const other = await room.rollOut(deployment, 'two', '2');
    ready(await room.run(other, { east: 4 }));
    const hashes = [
      ['web-1', 'one'],
      ['web-2', 'two'],
    ] as const;
    for (const [name, hash] of hashes)
      room.editSet(name, { spec: { selector: { matchLabels: { 'pod-template-hash': hash } } } });
    const { placed } = room.process;
    await room.seen('it is known', () => room.pods().every((pod) => placed.surgingSetOf(pod) !== undefined));
    ask();
    await begun();
    expect(
      released()
        .map((name) => name.slice(0, 5))
        .toSorted(),
    ).toEqual(['web-1', 'web-2']);
  });

  test('is also what leads back to an earlier group of clusters than the workload lives in', async () => {
    const clusterAffinities = ['west', 'east', 'north'].map((name) => ({ affinityName: name, clusterNames: [name] }));
    room.api.edit(POLICY, { spec: { placement: { clusterAffinity: null, clusterAffinities } } });
    await room.seen('the policy is another one', () =>
      JSON.stringify(room.process.view.policies.get('shop/p') ?? '').includes('affinityName'),
    );
    ask();
    await begun();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False Progressing']);
    const count = moves().length;
    expect(count).toBeGreaterThan(0);
    ready(await room.run(set, { west: count }));
    room.now += HEARD_MS;
    await look();
    expect(moves().length).toBeGreaterThan(count);
  });

  test('of a whole namespace is also what is on a virtual node that the member does not want any more', async () => {
    room.editMember('east', { spec: { virtualNodes: [{ name: 'a' }] } });
    await room.seen('it is known', () => room.process.view.nodes.virtualNodesOf('east').includes('east-a'));
    ask({ workloads: undefined, all: true });
    await begun();
    expect(said()).toEqual(['web Moving 4/0/0']);
    expect(moves()).toHaveLength(1);
  });

  test('is written to only when there is something new to say', async () => {
    ask();
    await begun();
    const looks = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        room.now += 1_000;
        await look();
      }
    };
    // All that may leave by now is on its way.
    await looks(10);
    const writes = (): number => room.api.requests('PATCH').filter(({ path }) => path.startsWith(PATH)).length;
    const before = writes();
    await looks(5);
    expect(writes()).toBe(before);
  });

  test('waits where the host fails to evict pods, and says so in the words of the host', async () => {
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? WEBHOOK_DOWN : undefined);
    ask();
    await begun();
    const words = /not moved now: the host fails to let it go \(.*"guard\.example\.com"/.source;
    expect(said()).toEqual([expect.stringMatching(new RegExp(`^web Moving 4/0/0: ${words}`))]);
    room.api.fault = undefined;
    room.now += 15_000;
    await look();
    expect(said()).toEqual(['web Moving 4/0/0']);
  });

  test('may be less by now: a pod without a place stays, and says why', async () => {
    ask();
    await judged();
    wide('west', 0);
    room.now += HEARD_MS;
    await look();
    room.now += HEARD_MS;
    await look();
    expect(moves()).toEqual([]);
    expect(room.told('PodNotMigrated')[0]).toContain('member west: 3 nodes: insufficient cpu');
    const why = /no other cluster takes it now \(.*member west: 3 nodes: insufficient cpu .*\)/.source;
    expect(said()).toEqual([expect.stringMatching(new RegExp(`^web Moving 4/0/0: not moved now: ${why}$`))]);
    const complete = stored()?.status?.conditions?.find(({ type }) => type === 'Complete')?.message;
    expect(complete).toMatch(
      new RegExp(`^in member east: 4 pods still there, and 0 on the way; not moved now: deployment/web: ${why}$`),
    );
    room.now += 600_000;
    await look();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False PodsStay']);
    expect(said()).toEqual([
      expect.stringMatching(
        new RegExp(
          `^web PodsStay 4/0/0: no pod could be moved for too long: Events of the pods say why; at last: ${why}$`,
        ),
      ),
    ]);
  });

  test('held by nothing any more says no reason', async () => {
    ask();
    await judged();
    wide('west', 0);
    for (let i = 0; i < 2; i++) {
      room.now += HEARD_MS;
      await look();
    }
    expect(said()[0]).toContain('no other cluster takes it now');
    wide('west', 9);
    room.now += 15_000;
    await look();
    await look();
    expect([moves().length > 0, said().join().includes('no other cluster takes it now')]).toEqual([true, false]);
  });
});

describe('of a workload whose pods were moved too often within the hour', () => {
  const waits = ['Fits Unknown MovedTooOften', 'Complete False Progressing'];
  /** Of four pods twenty moves are allowed. */
  function movedBefore(count: number): void {
    const { placed, records } = room.process;
    const [pod] = room.pods();
    if (pod === undefined) throw new Error('there is no pod');
    const { workload } = placed.rulesOf(pod);
    for (let i = 0; i < count; i++) records.add(workload, { strategy: 'Drain', from: 'west', pod: 'p', message: '' });
  }
  const often = (count: number): string =>
    `its pods were moved ${count} times within the last hour, of at most 20 (descheduler.movesPerPodPerHour is 5); again at 01:00 UTC`;

  test('it waits, says until when, and is judged then', async () => {
    movedBefore(20);
    ask();
    await judged();
    expect(state()).toEqual(waits);
    expect(said()).toEqual([`web MovedTooOften 4/0/0: ${often(20)}`]);
    expect(stored()?.status?.conditions?.[1]?.message).toBe(
      `it waits: deployment/web: ${often(20)}. Nothing is moved until then, when it is asked whether all of it fits`,
    );
    expect([room.breaths, stored()?.status?.finishTime]).toEqual([0, undefined]);
    const writes = (): number => room.api.requests('PATCH').filter(({ path }) => path.startsWith(PATH)).length;
    const before = writes();
    room.now += 1_800_000;
    expect(await look()).toEqual({ requeueAfterMs: 2_000 });
    expect([state(), writes(), moves()]).toEqual([waits, before, []]);
    const [pod] = room.pods();
    expect(asked(pod as Pod)).toEqual([]);
    room.now += 1_800_000;
    await begun();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False Progressing']);
    expect(moves()).toHaveLength(1);
  });

  test('it waits also where only some of them might be moved yet: all or nothing', async () => {
    movedBefore(17);
    ask();
    await judged();
    expect([state(), said()]).toEqual([waits, [`web MovedTooOften 4/0/0: ${often(17)}`]]);
  });

  test('as many as there are may be moved to the last one', async () => {
    movedBefore(16);
    ask();
    await begun();
    expect([state()[0], moves().length]).toEqual(['Fits True AllFit', 1]);
  });

  test('on its way it is not given up while others have used up what may be moved', async () => {
    ask();
    await judged();
    movedBefore(20);
    room.now += HEARD_MS;
    await look();
    room.now += HEARD_MS;
    await look();
    for (const ms of [600_000, 600_000, 600_000]) {
      room.now += ms;
      await look();
    }
    expect([state(), moves()]).toEqual([['Fits True AllFit', 'Complete False Progressing'], []]);
    expect(said()).toEqual([
      expect.stringContaining('not moved now: pods of its workload were moved too often (20 times'),
    ]);
    room.now += 1_800_000;
    await look();
    await look();
    expect(moves()).toHaveLength(1);
  });

  test('what never fits is refused at once', async () => {
    movedBefore(20);
    ask({ workloads: [named('web'), named('gone')] });
    await judged();
    expect(state()).toEqual(['Fits False DoesNotFit', 'Complete False Refused']);
  });

  test('a dry run says both: whether it fits now, and when it might begin', async () => {
    movedBefore(20);
    ask({ dryRun: true });
    await judged();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False DryRun']);
    expect(said()).toEqual([`web Fits 4/0/0: ${often(20)}`]);
  });

  test('with fewer moves than pods allowed it begins when none was moved', async () => {
    room.perPodPerHour = 0.25;
    await room.restart();
    movedBefore(1);
    ask();
    await judged();
    expect([state(), said()[0]]).toEqual([
      waits,
      expect.stringContaining('moved 1 time within the last hour, of at most 1'),
    ]);
    room.now += 3_600_000;
    await begun();
    expect([state()[0], moves().length]).toEqual(['Fits True AllFit', 1]);
  });
});

describe('the question about the whole set', () => {
  let aside: Map<string, string>;
  const settled = async (): Promise<void> => {
    ask();
    await look();
    room.now += SETTLED_MS;
  };
  beforeEach(() => (aside = wide('west', 9)));

  test('is asked once, when all else has settled; others have their turn before each pod, and nothing stays set aside', async () => {
    const sizes: number[] = [];
    const asking: boolean[] = [];
    const { migrationFit } = room.process;
    room.onBreath = () => {
      sizes.push(aside.size);
      asking.push(migrationFit.isAsking);
    };
    ask();
    await look();
    await look();
    room.now += SETTLED_MS - 1;
    await look();
    expect(room.breaths).toBe(0);
    room.now += 1;
    await look();
    expect(state()[0]).toBe('Fits True AllFit');
    expect(sizes).toEqual([0, 1, 2, 3]);
    expect(asking).toEqual([false, true, true, true]);
    expect([aside.size, room.freed, migrationFit.isAsking]).toEqual([0, 1, false]);
  });

  test('leaves nothing set aside when it is broken off, and is asked anew', async () => {
    await settled();
    const ended = new AbortController();
    room.onBreath = () => (room.breaths === 3 ? ended.abort() : undefined);
    await expect(look('now', ended.signal)).rejects.toThrow(/abort/);
    expect([aside.size, room.freed, stored()?.status]).toEqual([0, 1, undefined]);
    expect(room.process.migrationFit.isAsking).toBe(false);
    await look();
    expect(state()[0]).toBe('Fits True AllFit');
  });

  test('nor when it fails', async () => {
    await settled();
    const west = room.capacities.get('west');
    if (west === undefined) throw new Error('there is no room');
    const fails = (): never => {
      throw new Error('it broke');
    };
    room.onBreath = () => void (room.breaths === 3 && room.capacities.set('west', { ...west, fits: fails }));
    await expect(look()).rejects.toThrow('it broke');
    expect([aside.size, room.freed]).toEqual([0, 1]);
    room.capacities.set('west', west);
    await look();
    expect(state()[0]).toBe('Fits True AllFit');
  });
});

describe('of two that are judged at about the same time', () => {
  beforeEach(async () => {
    const { set: other } = await room.deploy('api', 3);
    ready(await room.run(other, { east: 3 }));
  });
  const both = async (): Promise<void> => {
    ask({}, 'a');
    ask({ workloads: [named('api')] }, 'b');
    await look('a');
    await look('b');
    room.now += SETTLED_MS;
  };

  test('the second waits for what is found of the first', async () => {
    await both();
    let between: unknown;
    room.onBreath = async () => void (room.breaths === 2 && (between = await look('b')));
    await look('a');
    expect(between).toEqual({ requeueAfterMs: 1_000 });
    expect(room.breaths).toBe(4);
    room.onBreath = () => undefined;
    await room.seen('it is under way', () => room.process.placed.migration('shop/a')?.status !== undefined);
    await look('b');
    expect(state('b')[0]).toBe('Fits True AllFit');
  });

  test('the second finds the room of the first taken', async () => {
    wide('west', 5);
    await both();
    await look('a');
    await room.seen('it is under way', () => room.process.placed.migration('shop/a')?.status !== undefined);
    await look('b');
    expect([state('a')[0], state('b')[0]]).toEqual(['Fits True AllFit', 'Fits False DoesNotFit']);
    expect(said('b')[0]).toMatch(/^api DoesNotFit 3\/0\/0: a place for 1 of 3 pods/);
  });

  test('the second is not found to fit where the first, which names the same workload, was a moment ago', async () => {
    ask({}, 'a');
    await begun('a');
    room.breaths = 0;
    ask({ to: 'north' }, 'b');
    // As its report was made just before.
    const wayOf = vi.spyOn(room.process.placed, 'wayOf');
    wayOf.mockReturnValueOnce(undefined);
    await look('b');
    room.now += SETTLED_MS;
    wayOf.mockReturnValueOnce(undefined);
    expect(await look('b')).toEqual({ requeueAfterMs: 1_000 });
    expect([stored('b')?.status, room.breaths]).toEqual([undefined, 0]);
    wayOf.mockRestore();
    await judged('b');
    expect(said('b')).toEqual(['web AlreadyMoving 3/0/0: WorkloadMigration shop/a moves it now']);
  });

  test('what the first has moved is not counted twice: only pods that have yet to find a place', async () => {
    ask({}, 'a');
    await begun('a');
    // One was released, and its successor has its place; one more waits for one.
    const [out = ''] = moves();
    const [placed = '', waits = ''] = [...(await room.run(set, { west: 1 })), ...(await room.run(set, { '': 1 }))];
    expect([out, placed, waits]).not.toContain('');
    wide('west', 7);
    ask({ workloads: [named('api')] }, 'b');
    await judged('b');
    expect(state('b')[0]).toBe('Fits True AllFit');
    wide('west', 6);
    ask({ workloads: [named('api')] }, 'c');
    await judged('c');
    expect(state('c')[0]).toBe('Fits False DoesNotFit');
  });
});

describe('what is not known yet is no verdict', () => {
  /** Nobody in this process knows the nodes of the member, as in the first seconds after a start. */
  function unknown(member: string, problem?: string): void {
    const known = countedRoom(member, () => 9);
    if (problem === undefined) room.capacities.delete(member);
    else room.capacities.set(member, { ...known, ready: false, problem });
  }
  const unsaid = ['Fits Unknown NotKnown', 'Complete False Progressing'];
  const saidOf = (type: string): string =>
    stored()?.status?.conditions?.find((one) => one.type === type)?.message ?? '';

  test('nodes of the member: it is asked again, says so, and goes on as soon as they are known', async () => {
    unknown('west');
    ask();
    await judged();
    expect(state()).toEqual(unsaid);
    expect(said()).toEqual(['web NotKnown 4/0/0: a place for 0 of 4 pods (member west: its nodes are not known yet)']);
    expect(saidOf('Complete')).toMatch(/^it is not known yet whether all of it fits: deployment\/web: .*asked again$/);
    expect(stored()?.status?.finishTime).toBeUndefined();
    expect(asked(room.pods()[0] as Pod)).toEqual([]);
    expect(await look()).toEqual({ requeueAfterMs: 2_000 });
    wide('west', 9);
    await begun();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False Progressing']);
    expect(moves()).toHaveLength(1);
  });

  test('for a minute: what is missing is told plainly, and what is known by then is judged', async () => {
    unknown('west', 'nodes of the member cannot be listed (403)');
    ask();
    await judged();
    room.now += 60_000;
    await look();
    expect(state()).toEqual(unsaid);
    expect(saidOf('Complete')).toMatch(
      /^for more than a minute .* \(member west: nodes of the member cannot be listed \(403\)\)\. .*kubectl spillway status/,
    );
    wide('west', 3);
    room.now += 1_000;
    await judged();
    expect(state()).toEqual(['Fits False DoesNotFit', 'Complete False Refused']);
  });

  test('for longer: all of it is asked about ever more seldom, at once when its report is another one', async () => {
    unknown('west');
    ask();
    await judged();
    for (const seconds of [2, 4, 8, 16, 32, 60, 60]) {
      const { breaths } = room;
      expect(await look()).toEqual({ requeueAfterMs: seconds * 1_000 });
      room.now += seconds * 1_000 - 1;
      await look();
      expect(room.breaths).toBe(breaths);
      room.now += 1;
      await look();
      expect(room.breaths).toBe(breaths + 4);
    }
    room.unplace('p');
    await room.seen('the policy is gone', () => room.process.view.policies.get('shop/p') === undefined);
    await judged();
    expect(said()[0]).toMatch(/^web NotKnown .*: PlacementPolicy p was deleted/);
    room.now += 60_000;
    await judged();
    expect(state()[1]).toBe('Complete False Refused');
  });

  test('a cluster that is known to be too small does not hide one that is not known', async () => {
    unknown('north');
    wide('west', 1);
    ask({ to: undefined });
    await judged();
    expect(state()).toEqual(unsaid);
    expect(said()[0]).toMatch(
      /^web NotKnown 4\/0\/0: a place for 1 of 4 pods \(local: .*north: its nodes are not known yet/,
    );
  });

  test('a policy that does not choose the cluster is a verdict, whatever is known of its room', async () => {
    unknown('west');
    room.place('p', { clusterAffinity: { clusterNames: ['east', 'north'] } });
    await room.seen('the policy is known', () => room.process.view.policies.get('shop/p')?.metadata.generation === 2);
    ask();
    await judged();
    expect(state()[1]).toBe('Complete False Refused');
  });

  test('pods that cannot be read: it is asked again soon, and goes on as soon as they can', async () => {
    room.api.fault = ({ method, path }) => (method === 'GET' && path.startsWith(`${PODS}/`) ? MAY_NOT_READ : undefined);
    ask();
    await judged();
    expect(state()).toEqual(unsaid);
    expect(said()).toEqual([
      'web NotRead 4/0/0: its pods cannot be read now (manifests/scheduler/descheduler.yaml grants it)',
    ]);
    expect([saidOf('Complete'), stored()?.status?.finishTime]).toEqual([
      expect.stringMatching(/^it is not known yet whether all of it fits: deployment\/web: its pods cannot be read/),
      undefined,
    ]);
    // Nobody is asked about room for what is not known.
    expect([await look(), room.breaths]).toEqual([{ requeueAfterMs: 2_000 }, 0]);
    room.api.fault = undefined;
    room.now += 60_000;
    await begun();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False Progressing']);
    expect(moves()).toHaveLength(1);
  });

  test('pods that cannot be read do not hide what is known not to fit', async () => {
    room.api.fault = ({ method, path }) => (method === 'GET' && path.startsWith(`${PODS}/`) ? MAY_NOT_READ : undefined);
    ask({ workloads: [named('web'), named('gone')] });
    await judged();
    expect(state()).toEqual(['Fits False DoesNotFit', 'Complete False Refused']);
    expect(saidOf('Fits')).toMatch(/^1 workload of 2: deployment\/gone: there is no such workload/);
  });

  test('a member that nobody has asked anything yet', async () => {
    room.editMember('west', { status: { conditions: [] } });
    await room.seen('it is known', () => room.process.placed.members().some((one) => one.unavailable !== undefined));
    ask();
    await judged();
    expect(state()).toEqual(unsaid);
    expect(saidOf('Fits')).toBe('member west: it has not been contacted yet');
  });
});

test('of pods that go one at a time one that the host does not let go leaves the others their turns before it', async () => {
  let bad: string | undefined;
  room.api.fault = ({ path }) => {
    if (!path.endsWith('/eviction')) return undefined;
    bad ??= path.split('/')[6];
    return path.endsWith(`/${bad ?? ''}/eviction`) ? DENIED_BY_WEBHOOK : undefined;
  };
  ask();
  await begun();
  expect(room.evictions()).toEqual([bad]);
  expect(said()[0]).toMatch(/: not moved now: the host does not let it go /);
  const others = names.filter((name) => name !== bad);
  for (let seconds = 0; seconds < 60 && room.pods().some(({ spec }) => spec.nodeName === 'east'); seconds += 1) {
    room.now += 1_000;
    await look();
    const missing = 4 - room.pods().length;
    await room.seen('they are gone', () => [...room.process.view.pods.values()].length === room.pods().length);
    if (missing > 0) ready(await room.run(set, { west: missing }));
  }
  expect(new Set(room.evictions().slice(1, 4))).toEqual(new Set(others));
  expect(room.evictions().slice(4)).toContain(bad);
});

describe('no pod is kept waiting for a cluster', () => {
  const since = '2026-01-01T00:00:00Z';
  const silent = [{ type: 'Ready', status: 'False', reason: 'Timeout', message: '', lastTransitionTime: since }];

  test.each(['west', 'east'])('that does not answer for a minute: %s', async (member) => {
    ask();
    await begun();
    const [first] = room.pods();
    room.editMember(member, { status: { conditions: silent } });
    const { placed } = room.process;
    await room.seen('it is known', () => placed.members().some((one) => one.unavailable !== undefined));
    await look();
    room.now += 59_000;
    await look();
    expect(state()[1]).toBe('Complete False Progressing');
    expect(asked(first as Pod)).toEqual(['west', 'shop/now']);
    room.now += 1_000;
    await look();
    expect(state()[1]).toBe('Complete False PodsStay');
    expect(stored()?.status?.conditions?.[1]?.message).toMatch(
      new RegExp(`^member ${member}: it is not ready .*What has moved stays moved`),
    );
    await room.seen('no way leads anywhere', () => asked(first as Pod).length === 0);
  });

  test('that answers in time, or that is gone', async () => {
    ask();
    await begun();
    const { placed } = room.process;
    for (const [status, conditions] of [
      ['False', silent],
      ['True', [{ ...silent[0], status: 'True' }]],
    ] as const) {
      room.editMember('west', { status: { conditions } });
      const isKnown = (): boolean =>
        placed.members().some((one) => one.unavailable !== undefined) === (status === 'False');
      await room.seen('it is known', isKnown);
      await look();
      room.now += 59_000;
    }
    await look();
    expect(state()[1]).toBe('Complete False Progressing');
    room.removeMember('west');
    await room.seen('it is gone', () => placed.members().every(({ name }) => name !== 'west'));
    await look();
    room.now += 60_000;
    await look();
    expect(stored()?.status?.conditions?.[1]?.message).toMatch(/^member west: there is no such member/);
  });
});

describe('how long it goes on without a pod that leaves', () => {
  async function allBut(last: () => Promise<void>): Promise<void> {
    ask();
    await begun();
    room.endPods(room.pods().map(({ metadata }) => metadata.name));
    await room.seen('they are gone', () => room.process.view.pods.get(`shop/${names[0] ?? ''}`) === undefined);
    await last();
    await look();
  }

  test('an hour, while pods have yet to be Ready elsewhere', async () => {
    await allBut(async () => {
      ready(await room.run(set, { east: 2 }));
      await room.run(set, { west: 2 });
    });
    for (let minutes = 0; minutes < 59; minutes += 5) {
      room.now += 300_000;
      if (minutes < 55) {
        await look();
        expect(state()[1]).toBe('Complete False Progressing');
      }
    }
    await look();
    expect(state()[1]).toBe('Complete False PodsStay');
  });

  test('ten minutes, when what is left are new pods that find no place', async () => {
    await allBut(async () => {
      ready(await room.run(set, { west: 3 }));
      await room.run(set, { '': 1 });
    });
    room.now += 600_000;
    await look();
    expect(said()[0]).toMatch(/^web PodsStay 0\/0\/4: 1 new pod found no place for too long: Events of these say why/);
  });
});

describe('what does not fit is refused with the list, and nothing is changed', () => {
  async function refusedFor(more: object = {}): Promise<string[]> {
    ask(more);
    await judged();
    await begunAnyway();
    expect(moves()).toEqual([]);
    expect(state()).toEqual(['Fits False DoesNotFit', 'Complete False Refused']);
    expect(asked(room.pods()[0] as Pod)).toEqual([]);
    return said();
  }
  const begunAnyway = async (): Promise<void> => {
    room.now += 60_000;
    expect(await look()).toBeUndefined();
  };

  test('a cluster too small for all of them together', async () => {
    wide('west', 3);
    const [web] = await refusedFor();
    expect(web).toMatch(/^web DoesNotFit 4\/0\/0: a place for 3 of 4 pods \(member west: .*insufficient cpu/);
    expect(stored()?.status?.conditions?.[0]?.message).toMatch(/^1 workload of 1: deployment\/web: a place for 3 of 4/);
  });

  test('two workloads that fit one by one, and not together', async () => {
    const { set: other } = await room.deploy('api', 3);
    ready(await room.run(other, { east: 3 }));
    wide('west', 5);
    const [web, api] = await refusedFor({ workloads: ['web', 'api'].map(named) });
    expect(web).toBe('web Fits 4/0/0');
    expect(api).toMatch(/^api DoesNotFit 3\/0\/0: a place for 1 of 3 pods/);
  });

  test('nowhere to go out of it', async () => {
    wide('west', 1);
    wide('north', 2);
    const [web] = await refusedFor({ to: undefined });
    expect(web).toMatch(/a place for 3 of 4 pods \(local: .*; member north: .*; member west: /);
  });

  test('a cluster that the policy does not choose', async () => {
    room.place('p', { clusterAffinity: { clusterNames: ['east', 'north'] } });
    await room.seen('the policy is known', () => room.process.view.policies.get('shop/p')?.metadata.generation === 2);
    expect(await refusedFor()).toEqual([
      'web DoesNotFit 4/0/0: a place for 0 of 4 pods (member west: the policy does not name it)',
    ]);
  });

  const NODE = '/api/v1/nodes/west';
  const ssd = { nodeSelector: { disk: 'ssd' } };
  const gpu = { nodeSelector: { gpu: 'yes' } };

  /** What pods of shop say beside their containers. */
  function say(pods: readonly string[], spec: object): void {
    for (const name of pods)
      room.api.edit(`${PODS}/${name}`, { spec: { nodeName: 'east', containers: [{ name: 'main' }], ...spec } });
  }

  test('a selector that the virtual node does not satisfy', async () => {
    say(names, ssd);
    expect(await refusedFor()).toEqual([
      'web DoesNotFit 4/0/0: a place for 0 of 4 pods (member west: the node selector or node affinity of the pod leaves it out)',
    ]);
  });

  test('a taint of the virtual node that they do not tolerate', async () => {
    room.api.edit(NODE, { spec: { taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] } });
    const { nodes } = room.process.view.nodes;
    await room.seen('the taint is known', () => nodes.get('west')?.spec?.taints?.length === 1);
    expect(await refusedFor()).toEqual([
      'web DoesNotFit 4/0/0: a place for 0 of 4 pods (member west: the pod does not tolerate taint dedicated=db:NoSchedule)',
    ]);
  });

  test('nodes that a selector leaves out, nodes with a taint, and a quota in the member: each in the list, and what fits', async () => {
    const none = { taints: [], excluded: {}, headroom: new Map(), caps: new Map() };
    const { capacity, virtual } = memberFit({ pools: [{ virtualNode: 'west', nodeSelector: {}, ...none }] }, 'west');
    capacity.nodeHandler.added(memberNode('plain'));
    const taints = [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' as const }];
    capacity.nodeHandler.added(memberNode('dear', { labels: gpu.nodeSelector, taints }));
    capacity.quotaHandler.added({
      metadata: { name: 'five', namespace: 'member-shop' },
      status: { hard: { pods: '5' }, used: { pods: '0' } },
    });
    room.capacities.set('west', virtual);
    const labels = { ...ssd.nodeSelector, ...gpu.nodeSelector };
    room.api.edit(NODE, { metadata: { labels } });
    const { nodes } = room.process.view.nodes;
    await room.seen('the labels are known', () => nodes.get('west')?.metadata.labels?.['disk'] === 'ssd');
    const workloads = [];
    for (const [name, replicas, spec] of [
      ['picky', 1, ssd],
      ['shy', 2, gpu],
      ['late', 3, {}],
    ] as const) {
      const { set: one } = await room.deploy(name, replicas);
      const pods = await room.run(one, { east: replicas });
      say(pods, spec);
      ready(pods);
      workloads.push(named(name));
    }
    const unfit =
      "1 node: does not match the pod's node selector or affinity, 1 node: untolerated taint dedicated=db:NoSchedule";
    const list = [
      `picky DoesNotFit 1/0/0: a place for 0 of 1 pod (member west: ${unfit} (no node can be used))`,
      `shy DoesNotFit 2/0/0: a place for 0 of 2 pods (member west: ${unfit} (no node can be used))`,
      'late DoesNotFit 3/0/0: a place for 1 of 3 pods (member west: quota five: 1 pods wanted, 0 left)',
    ];
    expect(await refusedFor({ workloads: [named('web'), ...workloads] })).toEqual(['web Fits 4/0/0', ...list]);
    const told = list.map((line) => `deployment/${line.replace(/ DoesNotFit [^:]+/, '')}`).join('; ');
    expect(stored()?.status?.conditions?.[0]?.message).toBe(`3 workloads of 4: ${told}`);
    expect(capacity.size.reservations).toBe(0);
  });

  test('no such cluster, and no such workload', async () => {
    expect(await refusedFor({ to: 'south' })).toEqual([]);
    expect(stored()?.status?.conditions?.[0]?.message).toBe('there is no member south');
    ask({ workloads: [named('gone')] }, 'other');
    await judged('other');
    expect(said('other')[0]).toMatch(/^gone NotFound 0\/0\/0: there is no such workload/);
  });

  test('a member that does not answer', async () => {
    const since = '2026-01-01T00:00:00Z';
    const conditions = [{ type: 'Ready', status: 'False', reason: 'Timeout', message: '', lastTransitionTime: since }];
    room.editMember('east', { status: { conditions } });
    await room.seen('it is known', () => room.process.placed.members().some((one) => one.unavailable !== undefined));
    expect(await refusedFor()).toEqual([]);
    expect(stored()?.status?.conditions?.[0]?.message).toMatch(/^member east: it is not ready \(Timeout\); what runs/);
  });

  test('one that another migration moves', async () => {
    ask({ to: 'north' }, 'a');
    await begun('a');
    ask();
    await judged();
    expect(said()).toEqual(['web AlreadyMoving 3/0/0: WorkloadMigration shop/a moves it now']);
  });

  test('a workload that no rules speak about', async () => {
    room.unplace('p');
    await room.seen('the policy is gone', () => room.process.view.policies.get('shop/p') === undefined);
    ask();
    await judged();
    expect(said()[0]).toMatch(/^web NotKnown 4\/0\/0: PlacementPolicy p was deleted.* may come back$/);
    room.now += 60_000;
    await judged();
    expect(said()[0]).toMatch(/^web NoPolicy 4\/0\/0: no policy/);
  });
});

const named = (name: string): object => ({ apiVersion: 'apps/v1', kind: 'Deployment', name });

describe('pods that are never moved', () => {
  beforeEach(async () => {
    const { set: store } = await room.deploy('store', 1);
    const [name = ''] = await room.run(store, { east: 1 });
    ready([name]);
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    room.api.edit(`${PODS}/${name}`, { spec: { nodeName: 'east', containers: [{ name: 'main' }], volumes } });
  });

  test('have the whole namespace refused', async () => {
    ask({ workloads: undefined, all: true });
    await judged();
    expect(said()).toEqual([
      'store Unmovable 1/0/0: 1 pod in member east: it uses claims, and its data are there',
      'web Fits 4/0/0',
    ]);
    expect(state()[1]).toBe('Complete False Refused');
  });

  test('or are left, when the migration says so; what comes in their place goes where they are', async () => {
    ask({ workloads: undefined, all: true, unmovable: 'Leave' });
    await begun();
    expect(moves()).toHaveLength(1);
    expect(moves()[0]).toMatch(/^web-/);
    expect(said()[0]).toMatch(/^store LeftBehind 1\/0\/0/);
    const store = room.pods().find(({ metadata }) => metadata.name.startsWith('store'));
    expect(asked(store as Pod)).toEqual([]);
    room.endPods(names.filter((name) => !moves().includes(name)));
    await room.seen('they are gone', () => room.pods().length === 1);
    ready(await room.run(set, { west: 4 }));
    await look();
    expect(state()[1]).toBe('Complete True Moved');
    expect(stored()?.status?.conditions?.[1]?.message).toContain('deployment/store: 1 pod in member east');
  });

  test('those of Jobs, which count them as failed', async () => {
    const { metadata } = room.make('/apis/batch/v1/namespaces/shop/jobs', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'sums', namespace: 'shop' },
      spec: {},
    });
    const { owners, pods } = room.process.view;
    await room.seen('the Job is known', () => owners.byUid(metadata.uid ?? '') !== undefined);
    const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'sums', uid: metadata.uid, controller: true };
    room.make(PODS, {
      metadata: { name: 'sums-1', namespace: 'shop', ownerReferences: [owner] },
      spec: { nodeName: 'east', containers: [{ name: 'main' }] },
      status: { phase: 'Running' },
    });
    await room.seen('the pod is known', () => pods.get('shop/sums-1') !== undefined);
    ask({ workloads: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'sums' }] });
    await judged();
    expect(said()).toEqual([
      'sums Unmovable 1/0/0: 1 pod in member east: a Job counts a pod that is deleted as one that failed',
    ]);
  });

  test('by the word of their policy', async () => {
    const before = room.api.objects.get(POLICY)?.['spec'] as object;
    room.api.edit(POLICY, { spec: { ...before, failover: { cluster: { purgeMode: 'Never' } } } });
    const { placed } = room.process;
    await room.seen('the policy is known', () =>
      room.pods().every((pod) => placed.rulesOf(pod).failover !== undefined),
    );
    ask();
    await judged();
    expect(said()).toEqual(['web Unmovable 4/0/0: 4 pods in member east: its policy says purgeMode: Never']);
  });
});

describe.each([1, 3])('a StatefulSet of %i, which makes a pod when the former one of its name is gone', (replicas) => {
  let owner: object;
  const typed = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
  const key = '/apis/apps/v1/namespaces/shop/statefulsets/db';

  async function shows(name: string, shown: (pod: Pod | undefined) => boolean): Promise<void> {
    await room.seen(`${name} is known`, () => shown(room.process.view.pods.get(`shop/${name}`)));
  }
  async function make(name: string, nodeName?: string): Promise<void> {
    room.make(PODS, {
      metadata: { name, namespace: 'shop', ownerReferences: [owner] },
      spec: { ...(nodeName === undefined ? {} : { nodeName }), containers: [{ name: 'main' }] },
      status: { phase: nodeName === undefined ? 'Pending' : 'Running' },
    });
    if (nodeName !== undefined) ready([name]);
    await shows(name, (pod) => pod !== undefined && pod.spec.nodeName === nodeName);
  }
  /** One that was evicted takes longer to end than the mover remembers it. */
  async function endSlowly(name: string): Promise<void> {
    await make(name, 'east');
    room.api.edit(`${PODS}/${name}`, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
    await shows(name, (pod) => pod?.metadata.deletionTimestamp !== undefined);
    room.now += 40_000;
    await look();
  }
  async function gone(name: string): Promise<void> {
    room.endPods([name]);
    await shows(name, (pod) => pod === undefined);
    await look();
  }

  beforeEach(async () => {
    room.place('s', { clusterAffinity: { clusterNames: ['east', 'west'] } }, typed);
    await room.seen('the policy is known', () => room.process.view.policies.get('shop/s') !== undefined);
    const set = { ...typed, metadata: { name: 'db', namespace: 'shop' }, spec: { replicas } };
    const { uid = '' } = room.make('/apis/apps/v1/namespaces/shop/statefulsets', set).metadata;
    await room.seen('it is known', () => room.process.view.owners.byUid(uid) !== undefined);
    owner = { ...typed, name: 'db', uid, controller: true };
    for (let ordinal = 0; ordinal < replicas; ordinal += 1) await make(`db-${String(ordinal)}`, 'east');
    ask({ workloads: [{ ...typed, name: 'db' }] });
    await begun();
  });

  test('is led there until its last pod has a place', async () => {
    for (let count = 1; count <= replicas; count += 1) {
      const left = replicas - count;
      expect(room.evictions()).toHaveLength(count);
      const name = room.evictions().at(-1) ?? '';
      await endSlowly(name);
      expect(said()).toEqual([`db Moving ${String(left)}/1/${String(count - 1)}`]);
      await gone(name);
      expect(state()[1]).toBe('Complete False Progressing');
      await make(name);
      await look();
      expect(said()[0]).toContain('1 new pod without a place yet');
      expect(asked(room.process.view.pods.get(`shop/${name}`) as Pod)).toEqual(['west', 'shop/now']);
      expect(room.evictions()).toHaveLength(count);
      await gone(name);
      await make(name, 'west');
      await look();
    }
    expect(state()[1]).toBe('Complete True Moved');
  });

  test('and keeps the room that its last pod has yet to use while that one ends', async () => {
    for (let count = 1; count < replicas; count += 1) {
      const name = room.evictions().at(-1) ?? '';
      await endSlowly(name);
      await gone(name);
      await make(name, 'west');
      await look();
    }
    await endSlowly(room.evictions().at(-1) ?? '');
    expect(said()).toEqual([`db Moving 0/1/${String(replicas - 1)}`]);
    wide('west', 4);
    ask({}, 'web');
    await judged('web');
    expect(state('web')[0]).toBe('Fits False DoesNotFit');
    expect(said('web')[0]).toMatch(/^web DoesNotFit 4\/0\/0: a place for 3 of 4 pods/);
  });

  test('says what keeps the next one: its disruption budget, or that the others are not Ready', async () => {
    const complete = (): string | undefined =>
      stored()?.status?.conditions?.find(({ type }) => type === 'Complete')?.message;
    const [name = ''] = room.evictions();
    await endSlowly(name);
    expect(complete()).toMatch(/still there, and 1 on the way$/);
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
    await gone(name);
    const turns = 'they go one at a time, while all others of the workload are there and Ready';
    if (replicas > 1) expect(complete()).toMatch(new RegExp(`0 on the way; not moved now: statefulset/db: ${turns}$`));
    await make(name, 'west');
    await look();
    if (replicas === 1) return;
    const budget = 'its disruption budget allows no eviction now';
    expect(said()).toEqual([`db Moving 2/0/1: not moved now: ${budget}`]);
    expect(complete()).toBe(
      `in member east: 2 pods still there, and 0 on the way; not moved now: statefulset/db: ${budget}`,
    );
    const writes = (): number => room.api.requests('PATCH').filter(({ path }) => path.startsWith(PATH)).length;
    const before = writes();
    for (let times = 0; times < 10; times += 1) {
      room.now += 1_000;
      await look();
    }
    expect([writes(), room.evictions().length > 2]).toEqual([before, true]);
  });

  test('or until it asks for none', async () => {
    room.api.edit(key, { spec: { replicas: 0 } });
    for (const { metadata } of room.pods().filter(({ metadata: { name } }) => name.startsWith('db-'))) {
      room.endPods([metadata.name]);
      await shows(metadata.name, (pod) => pod === undefined);
    }
    const { owners } = room.process.view;
    const asks = (): unknown => owners.named({ ...typed, namespace: 'shop', name: 'db' });
    await room.seen('it is known', () => JSON.stringify(asks()).includes('"replicas":0'));
    await look();
    expect(state()[1]).toBe('Complete True Moved');
  });
});

describe('stopping it', () => {
  test('suspended, nothing begins and pods go where they would; afterwards what is left is judged anew', async () => {
    ask();
    await begun();
    expect(moves()).toHaveLength(1);
    const [first] = room.pods();
    room.api.edit(`${PATH}/now`, { spec: { ...GOOD_MIGRATION, suspend: true } });
    expect(await look()).toBeUndefined();
    expect(state()).toEqual(['Complete False Suspended']);
    await room.seen('no way leads anywhere', () => asked(first as Pod).length === 0);
    wide('west', 0);
    room.api.edit(`${PATH}/now`, { spec: { ...GOOD_MIGRATION, suspend: false } });
    await judged();
    expect(state()).toEqual(['Fits False DoesNotFit', 'Complete False Refused']);
    expect(stored()?.status?.conditions?.[1]?.message).toMatch(
      /^1 workload of 1: deployment\/web: .*; as it stands nothing is moved by it; edit/,
    );
    expect(moves()).toHaveLength(1);
  });

  test('while all moves are stopped it is suspended and says why; afterwards what is left is judged anew, without a change of it', async () => {
    ask();
    await begun();
    expect(moves()).toHaveLength(1);
    const [first] = room.pods();
    room.stopMoves('INC-7');
    // Nothing else wakes it.
    expect(await look()).toEqual({ requeueAfterMs: 1_000 });
    expect(state()).toEqual(['Complete False Suspended']);
    expect(stored()?.status?.conditions?.[0]?.message).toBe(
      'all moves are stopped (annotation spillway.dev/moves-stopped of Lease spillway-descheduler: INC-7); afterwards what is left is judged anew',
    );
    await room.seen('no way leads anywhere', () => asked(first as Pod).length === 0);
    const writes = room.api.requests('PATCH').length;
    room.now += 9e9;
    await look();
    expect(room.api.requests('PATCH')).toHaveLength(writes);
    room.stopMoves(undefined);
    ready(await room.run(set, { west: 1 }));
    await begun();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False Progressing']);
    expect(moves()).toHaveLength(2);
  });

  test('a dry run moves nothing, and is answered while all moves are stopped', async () => {
    room.stopMoves('');
    ask({ dryRun: true });
    await judged();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False DryRun']);
  });

  test('deleted in the middle, it moves nothing more', async () => {
    ask();
    await begun();
    const { length } = moves();
    room.api.delete(`${PATH}/now`);
    await room.seen('it is known to be gone', () => room.process.placed.migration('shop/now') === undefined);
    expect(await room.process.migrations.bringUpToDate('shop/now', signal)).toBeUndefined();
    expect(moves()).toHaveLength(length);
  });

  test('a dry run ends with the report', async () => {
    ask({ dryRun: true });
    await judged();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False DryRun']);
    room.now += 60_000;
    expect(await look()).toBeUndefined();
    expect(moves()).toEqual([]);
  });
});

describe('a descheduler that moves nothing (dryRun)', () => {
  const asksNobody = async (): Promise<void> =>
    await room.seen('no way leads anywhere', () => asked(room.pods()[0] as Pod).length === 0);

  test('ends a migration with the report, and leads no pods', async () => {
    room.dryRun = true;
    await room.restart();
    ask();
    await judged();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False DryRun']);
    expect(stored()?.status?.conditions?.[1]?.message).toContain('descheduler.dryRun is set');
    await asksNobody();
  });

  test('ends one that is under way', async () => {
    ask();
    await begun();
    room.dryRun = true;
    await room.restart();
    await look();
    expect(state()).toEqual(['Fits True AllFit', 'Complete False DryRun']);
    await asksNobody();
  });
});

test('another process goes on with what was judged, without judging it again', async () => {
  ask();
  await begun();
  expect(moves()).toHaveLength(1);
  wide('west', 3);
  await room.restart();
  await look();
  room.now += HEARD_MS;
  await look();
  expect(state()).toEqual(['Fits True AllFit', 'Complete False Progressing']);
});

test('what is over goes in its time, refused or not, and only then', async () => {
  ask({ to: 'south', ttlSecondsAfterFinished: 60 });
  await judged();
  room.now += 59_000;
  expect(await look()).toEqual({ requeueAfterMs: 1_000 });
  room.now += 1_000;
  await look();
  expect(stored()).toBeUndefined();
});

test.each(WRONG_MIGRATIONS.filter(({ field }) => field !== undefined))('$what is not read', ({ wrong, field }) => {
  const raw: KubeObject & { spec: object } = { metadata: { name: 'x' }, spec: { ...GOOD_MIGRATION, ...wrong } };
  const parsed = parseWorkloadMigration(raw);
  expect(parsed).toEqual({ problems: [expect.stringContaining(`${field}: `)] });
});

describe('out of a member that only takes no new pods', () => {
  const cordon = async (name: string): Promise<void> => {
    room.editMember(name, { spec: { unschedulable: true } });
    await room.seen('it is cordoned', () => room.process.placed.member(name)?.unavailable !== undefined);
  };

  test('pods are moved as out of any other', async () => {
    await cordon('east');
    ask();
    await judged();
    expect(state()[1]).not.toBe('Complete False Refused');
    await begun();
    expect(moves()).toHaveLength(1);
  });

  test('a migration goes on that had begun, and is given up where it is the other member', async () => {
    ask();
    await begun();
    await cordon('east');
    const aMinute = async (): Promise<void> => {
      for (let second = 0; second < 62; second += 1) {
        room.now += 1_000;
        await look();
      }
    };
    await aMinute();
    expect(state()[1]).not.toBe('Complete False PodsStay');
    await cordon('west');
    await aMinute();
    expect(state()[1]).toBe('Complete False PodsStay');
  });

  test('pods are seen to have a better place', async () => {
    room.place('p', { clusterAffinity: { clusterNames: ['west'] } });
    const isBetter = (): boolean =>
      room.pods().some((pod) => room.process.placed.betterPlace(pod, 'east') !== undefined);
    await room.seen('the edit is known', isBetter);
    await cordon('east');
    const found = await displacedPod(room.pods(), room.process, () => true, signal);
    expect(found).toMatchObject({ from: 'east' });
  });
});

describe('a migration that is deleted', () => {
  test('while watches of migrations are down moves nothing more, and says why as long as it is there', async () => {
    ask();
    await begun();
    expect(moves()).toHaveLength(1);
    room.api.fault = ({ method, path, query }) =>
      method === 'GET' && path.endsWith('/workloadmigrations') && query['watch'] !== undefined
        ? { code: 500, reason: 'InternalError', message: 'it is broken' }
        : undefined;
    room.cutWatches();
    const { placed, migrations } = room.process;
    await room.seen('it is known', () => placed.migrationsProblem?.includes('it is broken') === true);
    await goes();
    await migrations.bringUpToDate('shop/now', signal);
    expect(moves()).toHaveLength(1);
    expect(said()[0]).toMatch(
      /: not moved now: it is not known whether it is still wanted, as WorkloadMigrations cannot be followed now \(.*it is broken/,
    );
    // However long that lasts it is not given up for it.
    for (let minutes = 0; minutes < 15; minutes += 1) {
      room.now += 60_000;
      await migrations.bringUpToDate('shop/now', signal);
    }
    expect(state()).toContain('Complete False Progressing');
    room.api.delete(`${PATH}/now`);
    await migrations.bringUpToDate('shop/now', signal);
    room.api.fault = undefined;
    await room.seen('it is gone', () => placed.migration('shop/now') === undefined);
    await migrations.bringUpToDate('shop/now', signal);
    expect(moves()).toHaveLength(1);
  });

  test.each<[string, () => void]>([
    ['deleted', () => room.api.delete(`${PATH}/now`)],
    ['suspended', () => room.api.handle(edited({ suspend: true }))],
  ])('or %s while its watch has died without a word moves nothing more', async (_, end) => {
    ask();
    await begun();
    expect(moves()).toHaveLength(1);
    await goes();
    const { placed, migrations } = room.process;
    const { workload } = placed.rulesOf(pod(0));
    const [known, way] = [placed.migration('shop/now'), placed.wayOf(workload)];
    vi.spyOn(placed, 'migration').mockReturnValue(known);
    vi.spyOn(placed, 'wayOf').mockReturnValue(way);
    end();
    await migrations.bringUpToDate('shop/now', signal);
    expect(moves()).toHaveLength(1);
  });

  /** The one that is on its way is gone, and another one is there in its place: the next one may go. */
  async function goes(): Promise<void> {
    const [first = ''] = moves();
    ready(await room.run(set, { west: 1 }));
    await room.seen('it is gone', () => room.process.view.pods.get(`shop/${first}`) === undefined);
    room.now += 60_000;
  }

  function edited(more: object): Parameters<typeof room.api.handle>[0] {
    const body = { spec: { ...GOOD_MIGRATION, ...more } };
    return { method: 'PATCH', path: `${PATH}/now`, query: {}, body, contentType: 'application/merge-patch+json' };
  }

  function pod(index: number): Pod {
    const found = room.pods()[index];
    if (found === undefined) throw new Error('there is no pod');
    return found;
  }
});

test('what was found of a former version is not written over what was found since', async () => {
  ask();
  await judged();
  const { placed, migrations } = room.process;
  vi.spyOn(placed, 'migration').mockReturnValue(placed.migration('shop/now'));
  const before = stored();
  room.api.edit(`${PATH}/now`, { status: { ...before?.status, finishTime: '2026-01-01T00:00:09Z' } });
  room.now += 60_000;
  await migrations.bringUpToDate('shop/now', signal);
  room.now += 60_000;
  await migrations.bringUpToDate('shop/now', signal);
  expect(stored()?.status?.finishTime).toBe('2026-01-01T00:00:09Z');
});
