import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** A steady Deployment, two pods in each of three clusters, and edits of what decides about it. */

let room: SchedulerRoom;
let pods: string[];

const inOrder = (...clusterNames: string[]): object => {
  const [first = '', ...others] = clusterNames.map((name) => ({ clusterNames: [name] }));
  return { clusterAffinity: { ...(first as object), overflowAffinities: others } };
};
const twice = (...nodes: string[]): string[] => nodes.flatMap((node) => [node, node]);

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  const { set } = await room.deploy('web', 6);
  pods = await room.run(set, { 'local-1': 2, east: 2, west: 2 });
});
afterEach(async () => {
  await room.close();
});

/** Waits for an order and until all is quiet, and makes sure that nothing else has happened to the pods. */
async function goIn(...nodes: string[]): Promise<void> {
  const wanted = twice(...nodes);
  await room.seen(`the pods go in the order ${wanted.join(', ')}`, () => room.goingOrder().join() === wanted.join());
  await room.quiet();
  expect(room.goingOrder()).toEqual(wanted);
  expect(room.pods().map(({ metadata }) => metadata.name)).toEqual(pods);
  expect(room.api.requests('DELETE')).toEqual([]);
  const written = room.api.seen.filter(({ method, path }) => method !== 'GET' && path.includes('/pods/'));
  for (const { method, body } of written) {
    expect(method).toBe('PATCH');
    expect(Object.keys(body as object)).toEqual(['metadata']);
  }
}

describe('the order in which pods go follows what was edited, and nothing else happens:', () => {
  test('tiers', async () => {
    room.place('p', inOrder('local', 'east', 'west'));
    room.letWrite();
    await goIn('west', 'east', 'local-1');
    room.place('p', inOrder('local', 'west', 'east'));
    await goIn('east', 'west', 'local-1');
  });

  test('from tiers to a division by weight', async () => {
    room.place('p', inOrder('local', 'east', 'west'));
    room.letWrite();
    await goIn('west', 'east', 'local-1');
    const rule = (name: string, weight: number) => ({ targetCluster: { clusterNames: [name] }, weight });
    const staticWeightList = [rule('local', 1), rule('east', 100), rule('west', 10)];
    room.place('p', { replicaScheduling: { weightPreference: { staticWeightList } } });
    await goIn('local-1', 'west', 'east');
  });

  test('the price of a member', async () => {
    room.editMember('west', { metadata: { annotations: { 'spillway.dev/price': '2' } } });
    room.editMember('east', { metadata: { annotations: { 'spillway.dev/price': '1' } } });
    room.place('p', {});
    room.letWrite();
    await goIn('west', 'east', 'local-1');
    room.editMember('east', { metadata: { annotations: { 'spillway.dev/price': '3' } } });
    await goIn('east', 'west', 'local-1');
  });

  test('labels of members that tiers choose by', async () => {
    const tier = (rank: string) => ({ labelSelector: { matchLabels: { rank } } });
    const mark = (name: string, rank: string): void => room.editMember(name, { metadata: { labels: { rank } } });
    mark('east', 'first');
    mark('west', 'second');
    room.place('p', {
      clusterAffinity: { clusterNames: ['local'], overflowAffinities: [tier('first'), tier('second')] },
    });
    room.letWrite();
    await goIn('west', 'east', 'local-1');
    mark('east', 'third');
    await goIn('east', 'west', 'local-1');
  });

  test('labels of the workload that policies choose by', async () => {
    room.place('one', inOrder('local', 'east', 'west'), { labelSelector: { matchLabels: { kind: 'one' } } });
    room.place('two', inOrder('local', 'west', 'east'), { labelSelector: { matchLabels: { kind: 'two' } } });
    room.editDeployment('web', { metadata: { labels: { kind: 'one' } } });
    room.letWrite();
    await goIn('west', 'east', 'local-1');
    room.editDeployment('web', { metadata: { labels: { kind: 'two' } } });
    await goIn('east', 'west', 'local-1');
  });

  test('preferences in an annotation of the workload', async () => {
    const prefer = (...[local, east, west]: [number, number, number]): void => {
      const clusters = { local: { weight: local }, east: { weight: east }, west: { weight: west } };
      const key = 'federation.kubernetes.io/deployment-preferences';
      room.editDeployment('web', { metadata: { annotations: { [key]: JSON.stringify({ clusters }) } } });
    };
    prefer(100, 10, 1);
    room.letWrite();
    await goIn('west', 'east', 'local-1');
    prefer(100, 1, 10);
    await goIn('east', 'west', 'local-1');
  });
});
