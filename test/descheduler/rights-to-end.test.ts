import { afterEach, beforeEach, expect, test } from 'vitest';
import { releasedFrom } from '../../src/api/released.ts';
import { isReady } from '../../src/kube/conditions.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import { releasedPodsIn } from '../fixtures/released-pods.ts';
import { Releases } from '../../src/descheduler/releases.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Two Deployments of two Ready pods each are in member east, which is drained; west has room. The host lets nobody read ReplicaSets. */
let room: SchedulerRoom;
const FORBIDDEN = {
  code: 403,
  reason: 'Forbidden',
  message: 'replicasets.apps "web-1" is forbidden: User "manager" cannot get resource "replicasets"',
};

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('west', 100);
  room.setRoom('local', 0);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  room.api.fault = ({ method, path }) =>
    method === 'GET' && /\/replicasets\/[^/]+$/.test(path) ? FORBIDDEN : undefined;
});
afterEach(async () => {
  await room.close();
});

const released = (): string[] =>
  room.pods().flatMap((pod) => (releasedFrom(pod) === undefined ? [] : [pod.metadata.name]));
const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);

/** Of two Ready pods in east. Returns the key of their ReplicaSet. */
async function deploy(name: string): Promise<string> {
  const { set } = await room.deploy(name, 2);
  const selector = { matchLabels: { 'pod-template-hash': 'one' } };
  room.editSet(`${name}-1`, { spec: { replicas: 2, selector }, status: { replicas: 2, readyReplicas: 2 } });
  const pods = await room.run(set, { east: 2 });
  for (const pod of pods)
    room.api.edit(`/api/v1/namespaces/shop/pods/${pod}`, {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    });
  const known = pods.map((pod) => (): boolean => {
    const found = room.process.view.pods.get(`shop/${pod}`);
    return found !== undefined && isReady(found);
  });
  await room.seen('they are Ready', () => known.every((isKnown) => isKnown()));
  return ownerKeyOf(set);
}

test('where released pods cannot be ended, no other one is released, of no workload, and they say what would grant it', async () => {
  const web = await deploy('web');
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is drained', () => room.process.placed.member('east')?.drained.has('east') === true);
  await look();
  expect(released()).toHaveLength(1);
  const releases = new Releases(() => room.now);
  const [first] = room.pods().filter((pod) => releasedFrom(pod) !== undefined);
  if (first === undefined) throw new Error('none is released');
  releases.seen(first);
  room.now += 11 * 60_000;
  const end = async (): Promise<unknown> =>
    await releasedPodsIn(room, releases).bringUpToDate(web, new AbortController().signal);
  await expect(end()).rejects.toThrow('forbidden');
  await deploy('api');
  await look();
  expect(released()).toEqual([first.metadata.name]);
  expect(room.told('DrainedPodHeld').at(-1)).toMatch(
    /its ReplicaSet may not be read, .* \(apply manifests\/scheduler\/descheduler\.yaml\)/,
  );
  // Somebody granted it.
  room.api.fault = undefined;
  room.now += 60_000;
  await look();
  expect(released().length).toBeGreaterThan(1);
});
