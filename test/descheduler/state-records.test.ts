import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WorkloadPlacement } from '../../src/api/workload-placement.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { AGAINST_BUDGET } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Deployment shop/web is in member east, which is drained; west has room. Its policy hands on the address of the pod that is moved. */
let room: SchedulerRoom;
let web: { deployment: TypedObject; set: TypedObject };

const SPILLWAY = '/apis/spillway.dev/v1alpha1/namespaces/shop';
const RECORD = `${SPILLWAY}/workloadplacements/deployment-web`;
const IP = { aliasLabelName: 'example.com/former-ip', jsonPath: '{.podIP}' };

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('west', 100);
  room.setRoom('local', 0);
  web = await room.deploy('web', 1);
  await place('p', [IP]);
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
});
afterEach(async () => {
  await room.close();
});

async function place(name: string, rules: readonly object[], chosen?: object): Promise<void> {
  room.place(name, {}, chosen);
  const path = `${SPILLWAY}/placementpolicies/${name}`;
  const spec = room.api.objects.get(path)?.['spec'] as object;
  const cluster = { purgeMode: 'Directly', ...(rules.length === 0 ? {} : { statePreservation: { rules } }) };
  room.api.edit(path, { spec: { ...spec, failover: { cluster } } });
  const { resourceVersion } = room.api.objects.get(path)?.metadata ?? {};
  const { policies } = room.process.view;
  const isKnown = (): boolean => policies.get(`shop/${name}`)?.policy?.metadata.resourceVersion === resourceVersion;
  await room.seen('the policy is known', isKnown);
}

/** The WorkloadPlacement, as the writer makes it. */
function remember(status: object = {}, uid = web.deployment.metadata.uid): void {
  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid };
  const metadata = { name: 'deployment-web', namespace: 'shop' };
  const object = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadPlacement',
    metadata,
    spec: { workload },
    status,
  };
  room.make(`${SPILLWAY}/workloadplacements`, object);
}

async function run(status: object, count = 1): Promise<string[]> {
  const names = await room.run(web.set, { east: count });
  for (const name of names)
    room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { status: { phase: 'Running', ...status } });
  return names;
}

const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);
const preserved = (): { pod: string; uid: string; labels: object }[] | undefined =>
  room.placementOf('web')?.status?.preserved?.map(({ pod, uid, labels }) => ({ pod, uid, labels }));
const uidOf = (name: string): string | undefined =>
  (room.api.objects.get(`/api/v1/namespaces/shop/pods/${name}`) as unknown as Pod | undefined)?.metadata.uid;

describe('a pod whose policy hands on what it shows', () => {
  test('goes after that was written down, and not before', async () => {
    remember({ moves: [] });
    const [name = ''] = await run({ podIP: '10.1.2.3' });
    const uid = uidOf(name);
    await look();
    expect(preserved()).toEqual([{ pod: name, uid, labels: { 'example.com/former-ip': '10.1.2.3' } }]);
    expect(room.evictions()).toEqual([name]);
    const order = room.api.seen.filter(({ method }) => method === 'PATCH' || method === 'POST').map(({ path }) => path);
    const written = order.findIndex((path) => path.startsWith(RECORD));
    expect(written).toBeGreaterThanOrEqual(0);
    expect(order.findIndex((path) => path.endsWith('/eviction'))).toBeGreaterThan(written);
    // What its writer does not know it leaves alone.
    expect(room.placementOf('web')?.status?.moves).toEqual([]);
    expect(room.told('StateNotHandedOn')).toEqual([]);
  });

  test.each([
    ['there is no object to write it to', () => undefined, 'its workload has no WorkloadPlacement yet'],
    ['the object is of a former workload', () => remember({}, 'former'), 'its workload has no WorkloadPlacement yet'],
  ])('stays while %s, and says so', async (_what, given, words) => {
    given();
    await run({ podIP: '10.1.2.3' });
    await look();
    expect(room.evictions()).toEqual([]);
    expect(room.told('DrainedPodHeld')).toEqual([expect.stringContaining(words)]);
    expect(room.told('DrainedPodHeld')[0]).toContain('what it is to hand on is not written down');
  });

  test('stays while the host does not let it be written, and goes when it does', async () => {
    remember();
    const [name] = await run({ podIP: '10.1.2.3' });
    const message = 'not now';
    room.api.fault = ({ method, path }) =>
      method === 'PATCH' && path.startsWith(RECORD) ? { code: 500, reason: 'InternalError', message } : undefined;
    await look();
    expect(room.evictions()).toEqual([]);
    expect(room.told('DrainedPodHeld')).toEqual([expect.stringContaining('not now')]);
    room.api.fault = undefined;
    room.now += 2_000;
    await look();
    expect(room.evictions()).toEqual([name]);
    expect(preserved()).toHaveLength(1);
  });

  test('stays when people have stopped all moves by the time that it is written', async () => {
    remember();
    await run({ podIP: '10.1.2.3' });
    room.api.fault = ({ method, path }) => {
      if (method !== 'PATCH' || !path.startsWith(RECORD)) return undefined;
      room.now += 10_000;
      room.stopMoves('INC-7');
      return undefined;
    };
    await look();
    expect(preserved()).toHaveLength(1);
    expect(room.evictions()).toEqual([]);
  });

  test('keeps no other in the member while the host does not answer about it, whatever its priority, and says so', async () => {
    remember();
    const [name = ''] = await run({ podIP: '10.1.2.3' });
    const api = await room.run((await room.deploy('api', 2)).set, { east: 2 });
    room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { priority: 9 } });
    await room.seen('it is known', () => room.process.view.pods.get(`shop/${name}`)?.spec.priority === 9);
    room.api.fault = ({ method, path }) => {
      if (method !== 'PATCH' || !path.startsWith(RECORD)) return undefined;
      // A webhook is slow, and a load balancer breaks the connection meanwhile.
      room.now += 10_000;
      return 'reset';
    };
    await look();
    await look();
    expect(room.evictions()).toEqual(api);
    expect(room.told('DrainedPodHeld')).toEqual([
      expect.stringMatching(/is not written down: the host does not say whether it is \(.* the connection broke/),
    ]);
    const tries = (): number => room.api.requests('PATCH').filter(({ path }) => path.startsWith(RECORD)).length;
    expect(tries()).toBe(1);
    // What takes long is asked for rarely.
    room.now += 199_000;
    await look();
    expect(tries()).toBe(1);
    room.now += 1_000;
    room.api.fault = undefined;
    await look();
    expect(room.evictions()).toEqual([...api, name]);
    expect(preserved()).toHaveLength(1);
  });

  test('has it written to what others wrote meanwhile', async () => {
    remember();
    await run({ podIP: '10.1.2.3' });
    let conflicts = 0;
    room.api.fault = ({ method, path }) => {
      if (method !== 'PATCH' || !path.startsWith(RECORD) || conflicts === 2) return undefined;
      conflicts += 1;
      return { code: 409, reason: 'Conflict', message: 'the object has been modified' };
    };
    await look();
    expect(conflicts).toBe(2);
    expect(preserved()).toHaveLength(1);
    expect(room.evictions()).toHaveLength(1);
  });

  test('goes without what no label can be, and without what it does not show, and says the former', async () => {
    await place('p', [
      IP,
      { aliasLabelName: 'said', jsonPath: '{.message}' },
      { aliasLabelName: 'b', jsonPath: '{.reason}' },
    ]);
    remember();
    const [name = ''] = await run({ podIP: '10.1.2.3', message: 'more than one word' });
    await look();
    expect(preserved()).toEqual([expect.objectContaining({ labels: { 'example.com/former-ip': '10.1.2.3' } })]);
    expect(room.evictions()).toEqual([name]);
    const words =
      'failover.cluster.statePreservation: said is not handed on: by {.message} the value is none that a label may have: letters and digits, and between them ".", "_" and "-"';
    expect(room.told('StateNotHandedOn')).toEqual([`Pod ${name}: ${words}`, `Deployment web: pod ${name}: ${words}`]);
  });

  test('that its disruption budget keeps is written down, and told of, once', async () => {
    await place('p', [IP, { aliasLabelName: 'said', jsonPath: '{.message}' }]);
    remember();
    const [name] = await run({ podIP: '10.1.2.3', message: 'more than one word' });
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
    for (let tries = 0; tries < 3; tries += 1) {
      await look();
      room.now += 5_000;
    }
    expect(room.evictions()).toEqual([name, name, name]);
    expect(room.api.seen.filter(({ method, path }) => method === 'PATCH' && path.startsWith(RECORD))).toHaveLength(1);
    expect(room.told('StateNotHandedOn')).toHaveLength(2);
  });

  test('goes without it where it is one of several, which is told, and nothing is left of the only one before', async () => {
    room.editDeployment('web', { spec: { replicas: 2 } });
    const { owners } = room.process.view;
    const { uid = '' } = web.deployment.metadata;
    await room.seen('it is known', () => (owners.byUid(uid) as { spec?: { replicas?: number } }).spec?.replicas === 2);
    const labels = { 'example.com/former-ip': '10.9.9.9' };
    remember({ preserved: [{ pod: 'web-old', uid: 'old', time: '2026-01-01T00:00:00Z', labels }] });
    const names = await run({ podIP: '10.1.2.3' }, 2);
    await look();
    expect(room.evictions()).toEqual(names);
    expect(preserved()).toEqual([]);
    expect(room.told('StateNotHandedOn')[0]).toContain('of Deployment web there may be several pods');
    const order = room.api.seen.filter(({ method }) => method === 'PATCH' || method === 'POST').map(({ path }) => path);
    const written = order.flatMap((path, index) => (path.startsWith(RECORD) ? [index] : []));
    expect(written).toHaveLength(1);
    expect(order.findIndex((path) => path.endsWith('/eviction'))).toBeGreaterThan(written[0] ?? Infinity);
  });

  test('goes without what its controller would let go of the next pod by, which is told', async () => {
    const matchExpressions = [{ key: IP.aliasLabelName, operator: 'DoesNotExist' }];
    room.editDeployment('web', { spec: { replicas: 1, selector: { matchLabels: { app: 'web' }, matchExpressions } } });
    const { owners } = room.process.view;
    const { uid = '' } = web.deployment.metadata;
    await room.seen(
      'it is known',
      () => (owners.byUid(uid) as { spec?: { selector?: unknown } }).spec?.selector !== undefined,
    );
    remember();
    const names = await run({ podIP: '10.1.2.3' });
    await look();
    expect(room.evictions()).toEqual(names);
    expect(preserved()).toBeUndefined();
    expect(room.told('StateNotHandedOn')[0]).toContain('the selector of its workload rules that label out');
  });

  test('is not written down where no rule says so', async () => {
    await place('p', []);
    await run({ podIP: '10.1.2.3' });
    await look();
    expect(room.evictions()).toHaveLength(1);
    expect(room.api.seen.filter(({ path }) => path.startsWith(RECORD))).toEqual([]);
  });

  test('keeps it in spite of whoever writes the rest of the object', async () => {
    remember();
    await run({ podIP: '10.1.2.3' });
    await look();
    const before = preserved();
    expect(before).toHaveLength(1);
    await room.seen('it is known', () => room.process.placed.recordOf(web.deployment) !== undefined);
    const signal = new AbortController().signal;
    await room.process.placements.bringUpToDate(web.deployment.metadata.uid ?? '', signal);
    expect(room.placementOf('web')?.status?.policy?.name).toBe('p');
    expect(preserved()).toEqual(before);
  });

  test('goes though the first pod of its workload is under no rules, which are those of a label', async () => {
    room.unplace('p');
    const byLabel = { apiVersion: 'v1', kind: 'Pod', labelSelector: { matchLabels: { track: 'new' } } };
    await place('q', [IP], byLabel);
    const set = room.make('/apis/apps/v1/namespaces/shop/statefulsets', {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db', namespace: 'shop' },
      spec: { replicas: 2, updateStrategy: { rollingUpdate: { partition: 1 } } },
    });
    const { uid = '' } = set.metadata;
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid, controller: true }];
    const comes = (name: string, track: string, nodeName: string): unknown =>
      room.make('/api/v1/namespaces/shop/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'shop', labels: { track }, ownerReferences },
        spec: { nodeName, containers: [{ name: 'main' }] },
        status: { phase: 'Running', podIP: '10.1.2.3' },
      });
    comes('db-0', 'old', 'local-1');
    comes('db-1', 'new', 'east');
    const { pods, owners } = room.process.view;
    await room.seen('they are known', () => pods.get('shop/db-1') !== undefined && owners.byUid(uid) !== undefined);
    await room.process.placements.bringUpToDate(uid, new AbortController().signal);
    await look();
    expect(room.evictions()).toEqual(['db-1']);
    const record = room.api.objects.get(`${SPILLWAY}/workloadplacements/statefulset-db`) as
      | WorkloadPlacement
      | undefined;
    expect(record?.status?.preserved?.map(({ pod }) => pod)).toEqual(['db-1']);
  });
});
