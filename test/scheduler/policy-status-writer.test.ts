import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

let room: SchedulerRoom;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east']);
  room.letWrite();
});
afterEach(async () => {
  await room.close();
});

const consistent = (name: string): { status: string; message: string } | undefined =>
  room.conditionsOf(name).find(({ type }) => type === 'Consistent');

async function told(status: 'True' | 'False', message: RegExp): Promise<void> {
  await room.seen(`it is told that it is ${status === 'True' ? '' : 'not '}consistent`, () => {
    const condition = consistent('p');
    return condition?.status === status && message.test(condition.message);
  });
  expect(room.conditionsOf('p')).toContainEqual({
    type: 'Accepted',
    status: 'True',
    message: 'the policy is in use',
  });
}

test('a policy that names a member which is not there says so, until the member comes, and again when it goes', async () => {
  room.place('p', { clusterAffinity: { clusterNames: ['east', 'west'] } });
  await told('False', /there is no member west/);
  room.addMember('west');
  await told('True', /no contradictions/);
  room.removeMember('west');
  await told('False', /there is no member west/);
});

test('a policy that another one comes before for all that it selects says so, until it selects something of its own', async () => {
  room.place('a', {});
  room.place('p', {});
  await told('False', /^spec.resourceSelectors: a comes before it and selects all that it does/);
  room.place('p', {}, { name: 'web' });
  await told('True', /no contradictions/);
});

test('labels of a kind that may not be read match nothing, which is said with what to do, until it may', async () => {
  room.api.fault = ({ path }) => (path.endsWith('/selfsubjectaccessreviews') ? { code: 403 } : undefined);
  const rollout = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' };
  room.place('p', {}, { ...rollout, labelSelector: { matchLabels: { tier: 'front' } } });
  await told(
    'False',
    /resourceSelectors\[0\].labelSelector: labels of Rollout \(argoproj.io\/v1alpha1\) are not known, .* may not read rollouts\.argoproj\.io: make a ClusterRole with the label spillway.dev\/aggregate-to-owners: "true"/,
  );
  room.place('p', {}, { ...rollout, name: 'web' });
  await told('True', /no contradictions/);
  room.place('p', {}, { ...rollout, labelSelector: { matchLabels: { tier: 'front' } } });
  await told('False', /may not read rollouts/);
  room.api.fault = undefined;
  room.now += 60_000;
  await told('True', /no contradictions/);
});

test('a kind that is not there, or never owns a pod, matches nothing by labels, by name or at all, which is said', async () => {
  const labelSelector = { matchLabels: { tier: 'front' } };
  for (const by of [{ labelSelector }, { name: 'web' }, {}]) {
    room.place('p', {}, { apiVersion: 'example.com/v1', kind: 'Robot', ...by });
    await told(
      'False',
      /^spec\.resourceSelectors\[0\]\.kind: the host has no kind Robot \(example.com\/v1\), .* until it has$/,
    );
    room.place('p', {}, { apiVersion: 'v1', kind: 'Secret', ...by });
    await told('False', /^spec\.resourceSelectors\[0\]\.kind: nothing is chosen by Secret \(v1\); [^;]*$/);
    room.place('p', {}, { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', ...by });
    await told('True', /no contradictions/);
  }
  for (const [apiVersion, kind] of [
    ['v1', 'Pod'],
    ['batch/v1', 'CronJob'],
    ['argoproj.io/v1alpha1', 'Rollout'],
  ]) {
    room.place('p', {}, { apiVersion, kind, labelSelector });
    await told('True', /no contradictions/);
  }
});

test('groups that pods are to be spread over are counted anew when a member is labelled', async () => {
  room.addMember('west', { rack: 'r1' });
  room.place('p', { spreadConstraints: [{ spreadByLabel: 'rack', minGroups: 2 }] });
  await told('False', /asks for 2 groups by .*rack, but the clusters it may use have only r1/);
  room.editMember('east', { metadata: { labels: { rack: 'r2' } } });
  await told('True', /no contradictions/);
});

test('a status that says the same is not written again', async () => {
  room.place('p', {});
  await told('True', /no contradictions/);
  const writes = (): number => room.api.requests('PATCH', '/placementpolicies/p/status').length;
  await room.process.policies.bringUpToDate('shop/p', new AbortController().signal);
  const before = writes();
  room.now += 60_000;
  await room.seen('the caches show it', () => room.process.view.policies.get('shop/p')?.status !== undefined);
  await room.process.policies.bringUpToDate('shop/p', new AbortController().signal);
  expect(writes()).toBe(before);
});

describe('whether schedulers let it act', () => {
  const effective = (): string | undefined => room.conditionsOf('p').find(({ type }) => type === 'Effective')?.status;
  const look = async (): Promise<unknown> =>
    await room.process.policies.bringUpToDate('shop/p', new AbortController().signal);
  const pod = (name: string, spec: object = {}): void => {
    room.make('/api/v1/namespaces/shop/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'shop', labels: { app: name } },
      spec: { nodeName: 'local-1', containers: [{ name: 'main' }], ...spec },
      status: { phase: 'Running' },
    });
  };
  const known = async (name: string): Promise<void> =>
    await room.seen(`${name} is known`, () => room.process.view.pods.get(`shop/${name}`) !== undefined);

  beforeEach(async () => {
    room.asked = false;
    // Objects get the time of the API server, which is the real one.
    room.now = Date.now();
    room.place('p', {}, { apiVersion: 'v1', kind: 'Pod', name: 'web' });
    await room.seen('it is told that nobody has asked', () => effective() === 'Unknown');
  });

  test('nobody is told so before there is a pod that somebody should have asked about', async () => {
    pod('web');
    pod('other');
    await known('web');
    await known('other');
    room.now += 5_000;
    expect(await look()).toEqual({ requeueAfterMs: 30_000 });
    expect(effective()).toBe('Unknown');
    expect(room.events).toEqual([]);
  });

  test('pods at a gate and finished ones say nothing', async () => {
    pod('web', { nodeName: undefined, schedulingGates: [{ name: 'wait' }] });
    await known('web');
    room.now += 60_000;
    await look();
    expect(effective()).toBe('Unknown');
  });

  test('a pod that a scheduler passed by is told once, and taken back when one asks', async () => {
    pod('web');
    await known('web');
    room.now += 60_000;
    expect(await look()).toBeUndefined();
    expect(effective()).toBe('False');
    await room.seen('the caches show it', () =>
      (room.process.view.policies.get('shop/p')?.status?.conditions ?? []).some(
        ({ reason }) => reason === 'NoSchedulerAsks',
      ),
    );
    await look();
    expect(room.events).toMatchObject([{ about: 'PlacementPolicy p', type: 'Warning', reason: 'NoSchedulerAsks' }]);
    room.asked = true;
    await look();
    expect(effective()).toBe('True');
  });
});
