import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { memberNode } from '../fixtures/member-nodes.ts';
import { memberFit } from '../fixtures/member-room.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/**
 * Pods db-0 and db-1 of StatefulSet shop/db in member east, which is being emptied. Member west has one node of 8 CPUs. The pods are of revision
 * db-1, and the set updates to db-2.
 */
let room: SchedulerRoom;
const typed = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
const { signal } = new AbortController();

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('local', 0);
  const pools = [
    { virtualNode: 'west', nodeSelector: {}, taints: [], excluded: {}, headroom: new Map(), caps: new Map() },
  ];
  const { capacity, virtual } = memberFit({ pools }, 'west');
  capacity.nodeHandler.added(memberNode('only'));
  room.capacities.set('west', virtual);
  room.place('p', {}, { kind: 'StatefulSet' });
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
});
afterEach(async () => {
  await room.close();
});

const asking = (cpu: string) => ({ containers: [{ name: 'main', image: 'a', resources: { requests: { cpu } } }] });
const REVISIONS = { currentRevision: 'db-1', updateRevision: 'db-2', replicas: 2, updatedReplicas: 0 };

/** The set, whose pods ask for `before`, and the next of which, by its template, ask for `after`. */
async function run(
  before: string,
  after: string,
  more: { strategy?: object; status?: object; revision?: string } = {},
): Promise<void> {
  const { strategy = { type: 'OnDelete' }, status = REVISIONS, revision = 'db-1' } = more;
  const template = { metadata: { labels: { app: 'db' } }, spec: asking(after) };
  const { uid = '' } = room.make('/apis/apps/v1/namespaces/shop/statefulsets', {
    ...typed,
    metadata: { name: 'db', namespace: 'shop' },
    spec: { replicas: 2, updateStrategy: strategy, template },
    status,
  }).metadata;
  await room.seen('it is known', () => room.process.view.owners.byUid(uid) !== undefined);
  for (const name of ['db-0', 'db-1']) {
    room.make('/api/v1/namespaces/shop/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'shop',
        labels: { app: 'db', 'controller-revision-hash': revision },
        ownerReferences: [{ ...typed, name: 'db', uid, controller: true }],
      },
      spec: { nodeName: 'east', ...asking(before) },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    });
  }
  await room.seen('its pods are known', () => room.process.view.podsOn('east').length === 2);
}

/** Member east is emptied. @returns the pods that leave. */
async function drain(): Promise<string[]> {
  const spec = { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] };
  room.api.edit('/api/v1/nodes/east', { spec });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
  await room.process.members.bringUpToDate('east', signal);
  return room.evictions();
}

const whys = (): string[] => room.events.filter(({ type }) => type === 'Warning').map(({ message }) => message);

test('the next pod of one that makes way has its own size promised to it, not that of the one before', async () => {
  await run('1', '5');
  expect(await drain()).toHaveLength(1);
  expect(whys().join()).toContain('the room elsewhere is for pods that come before it');
});

test('a pod stays whose next one asks for more than there is anywhere else', async () => {
  await run('1', '64');
  expect(await drain()).toEqual([]);
  expect(whys().join()).toContain('no other cluster takes it now (local: ');
});

test('and one goes that asks for more than there is, in whose place one comes that asks for less', async () => {
  await run('64', '1');
  expect(await drain()).not.toEqual([]);
});

test('a pod below the partition comes back as it was, and those from there on as the template has it', async () => {
  await run('1', '64', { strategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } });
  await drain();
  // One that is held is passed over for a time, and the workload for this look.
  await room.process.members.bringUpToDate('east', signal);
  expect(room.evictions()).toEqual(['db-0']);
});

test('once all are of the revision that it updates to, each comes back as it is', async () => {
  const status = { currentRevision: 'db-2', updateRevision: 'db-2', replicas: 2, updatedReplicas: 2 };
  await run('1', '64', { status, revision: 'db-2' });
  expect(await drain()).not.toEqual([]);
});

test('a pod stays in whose place one of an older revision comes, which nobody knows any more', async () => {
  const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 5 } };
  await run('1', '1', { strategy, revision: 'db-2', status: { ...REVISIONS, updatedReplicas: 2 } });
  expect(await drain()).toEqual([]);
  expect(whys().join()).toContain(
    'the pod that comes in its place is of revision db-1, and it is not known what that asks for',
  );
});

test('nobody says that a pod is where it would go in whose place one comes that nobody knows', async () => {
  const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 5 } };
  await run('1', '1', { strategy, revision: 'db-2', status: { ...REVISIONS, updatedReplicas: 2 } });
  const [pod] = room.process.view.podsOn('east') as [Pod];
  const better = room.process.placed.betterPlace(pod, 'east');
  expect(better).toEqual({ unknown: expect.stringContaining('it is not known what that asks for') as string });
});

test('a pod stays while the controller has not seen the last edit of its set', async () => {
  await run('1', '1', { status: { ...REVISIONS, observedGeneration: 0 } });
  expect(await drain()).toEqual([]);
  expect(whys().join()).toContain('its StatefulSet was changed a moment ago');
});

describe('the report of a migration', () => {
  const fits = async (): Promise<(string | undefined)[]> => {
    const { placed, mover } = room.process;
    const live = await Promise.all(room.process.view.podsOn('east').map(async (pod) => await mover.read(pod, signal)));
    const pods = live.filter((pod): pod is Pod => pod !== undefined);
    const found = await placed.whyNotTogether([{ pods, way: { from: 'east', to: 'west', by: 'shop/now' } }], signal);
    return pods.map(({ metadata: { uid = '' } }) => found.get(uid)?.why);
  };

  test('asks about the pods that come, too', async () => {
    await run('1', '6');
    expect(await fits()).toEqual([undefined, expect.stringContaining('insufficient cpu')]);
  });

  test('and says of which it is not known', async () => {
    await run('1', '1', { status: { ...REVISIONS, observedGeneration: 0 } });
    expect(await fits()).toEqual([
      expect.stringContaining('changed a moment ago'),
      expect.stringContaining('changed a moment ago'),
    ]);
  });
});
