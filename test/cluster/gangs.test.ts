import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { eventsOf, type Fields, kubectl, podsOf } from '../fixtures/live-pods.ts';
import { burstNamespace, LOCAL_PREFIX, policy, whereAre } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Groups of pods that are placed all in one cluster, or not at all. */
const PATIENT = { timeoutMs: 90_000 };
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: [
      { name: 'east', kwok: { nodes: 1, cpu: '3' } },
      { name: 'west', kwok: { nodes: 2, cpu: '2' } },
    ],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 1, cpu: '2', prefix: LOCAL_PREFIX });
  for (const name of ['admission/pod-defaults', 'admission/validation', 'scheduler/gangs']) {
    await host.apply(readFileSync(new URL(`../../manifests/${name}.yaml`, import.meta.url), 'utf8'));
  }
  await burstNamespace(host, 'shop');
  await until('pods of gangs get their gate', async () => (await dryRun('1')).stdout.includes('schedulingGates'));
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

async function dryRun(size: string): Promise<{ stdout: string; stderr: string }> {
  const metadata = {
    name: 'probe',
    namespace: 'shop',
    labels: { 'spillway.dev/gang': 'probe' },
    annotations: { 'spillway.dev/gang-size': size },
  };
  const input = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { containers: [{ name: 'main', image: 'app' }] },
  });
  return await host.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input });
}

/** As manifests/scheduler/extender-pods.yaml has it: the scheduler asks about such a pod twice, and goes on with no answer less. */
const MARK = { 'spillway.dev/extender': '0' };

interface GangShape {
  annotations?: Fields;
  spec?: Fields;
  /** Pods of this set; the whole gang unless others are to join. */
  replicas?: number;
  /** Name of the set. */
  set?: string;
}

/** A set of pods of a gang; kwok would end those of a Job at once. */
function part(name: string, size: number, shape: GangShape = {}): Fields {
  const { annotations = {}, spec = {}, replicas = size, set = name } = shape;
  const labels = { app: name, set };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: set, namespace: 'shop' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: {
          labels: { ...labels, 'spillway.dev/gang': name },
          annotations: { 'spillway.dev/gang-size': String(size), ...annotations },
        },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [
            {
              name: 'main',
              image: 'registry.example/app:v1',
              resources: { requests: { cpu: '1', ...MARK }, limits: MARK },
            },
          ],
          ...spec,
        },
      },
    },
  };
}

async function gang(name: string): Promise<Pod[]> {
  return (await podsOf(host, 'shop', `app=${name}`)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

/** Where the pods are, or `waiting`. */
async function untilPlaces(name: string, wanted: Record<string, number>): Promise<void> {
  await until(
    `${name} is at ${JSON.stringify(wanted)}`,
    async () => {
      const seen = whereAre(await gang(name));
      if (isDeepStrictEqual(seen, wanted)) return true;
      throw new Error(`it is at ${JSON.stringify(seen)}`);
    },
    PATIENT,
  );
}

async function untilTold(name: string, reason: string, words: RegExp): Promise<void> {
  await until(
    `${reason} is told of ${name}`,
    async () => {
      const told = await Promise.all((await gang(name)).map(({ metadata }) => eventsOf(host, 'shop', metadata.name)));
      return told.flat().some((event) => event.reason === reason && words.test(event.message));
    },
    PATIENT,
  );
}

const gates = ({ spec }: Pod): string[] => (spec.schedulingGates ?? []).map(({ name }) => name);

async function end(...names: string[]): Promise<void> {
  await kubectl(host, ['delete', 'replicaset', ...names, '-n', 'shop', '--wait=false']);
  for (const name of names) {
    await until(`${name} is gone`, async () => (await podsOf(host, 'shop', `set=${name}`)).length === 0);
  }
}

test('a wrong size is refused with its field', async () => {
  await until('the rule is followed', async () => (await dryRun('three')).stderr !== '');
  expect((await dryRun('three')).stderr).toContain(
    'metadata.annotations[spillway.dev/gang-size]: must be the number of pods of the gang, from 1 to 10000, not "three"',
  );
});

test('the host first, when it takes all; then one member that takes all, and no other', async () => {
  await host.apply([part('small', 2)]);
  await untilPlaces('small', { local: 2 });
  // East has room for three, the host for none, and west for no more than these.
  await host.apply([part('ring', 4)]);
  await untilPlaces('ring', { west: 4 });
  for (const { spec, metadata } of await gang('ring')) {
    expect(spec.nodeSelector).toEqual({ 'spillway.dev/member': 'west' });
    expect(metadata.annotations).toHaveProperty(['spillway.dev/gang-placed-at']);
  }
  await end('small', 'ring');
});

test('none, when none takes all; what waits holds nothing; then all, when room is made', async () => {
  await host.apply([part('large', 5)]);
  await untilTold('large', 'GangWaiting', /^(?=.*east: room for 3 of 5)(?=.*west: room for 4 of 5)/);
  expect((await gang('large')).map(gates)).toEqual(Array.from({ length: 5 }, () => ['spillway.dev/gang']));
  await host.apply([part('ring', 4)]);
  await untilPlaces('ring', { west: 4 });
  await topology.member('east').kwok?.addNodes({ nodes: 1, prefix: 'more', cpu: '2' });
  await untilPlaces('large', { east: 5 });
  await end('large', 'ring');
});

test('pods that are missing are waited for at the gate', async () => {
  await host.apply([part('half', 2, { replicas: 1 })]);
  await until('one is there', async () => (await gang('half')).length === 1);
  await host.apply([part('half', 2, { replicas: 1, set: 'other-half' })]);
  await untilPlaces('half', { local: 2 });
  await end('half', 'other-half');
});

test('a policy that divides the replicas does not part a gang', async () => {
  const rule = (name: string): Fields => ({ targetCluster: { clusterNames: [name] }, weight: 1 });
  const division = policy('shop', 'halves', {
    replicaScheduling: { weightPreference: { staticWeightList: [rule('east'), rule('west')] } },
  });
  const selector = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'pair' };
  await host.apply([
    { ...division, spec: { ...(division['spec'] as Fields), resourceSelectors: [selector] } },
    part('pair', 4),
  ]);
  await until('all four are in one member', async () => {
    const places = whereAre(await gang('pair'));
    return isDeepStrictEqual(places, { east: 4 }) || isDeepStrictEqual(places, { west: 4 });
  });
  await end('pair');
});

/** As long as it stands still nobody is bound. */
const scheduler = (): { signal: (name: NodeJS.Signals) => void } => host.component('kube-scheduler');

/** All of them, once they may go to their place. */
async function opened(name: string, size: number): Promise<Pod[]> {
  return await until(`${name} may go to its place`, async () => {
    const pods = await gang(name);
    return pods.length === size && pods.every((pod) => gates(pod).length === 0) ? pods : undefined;
  });
}

test('a manager that is killed goes on with what it finds; the room is kept meanwhile', async () => {
  scheduler().signal('SIGSTOP');
  await host.apply([part('held', 5)]);
  await opened('held', 5);
  await topology.spillway.process.stop('SIGKILL');
  await host.apply([part('rival', 5)]);
  topology.spillway.process.restart();
  await waitReady(topology.spillway);
  await untilTold('rival', 'GangWaiting', /east: (room for 0|.*insufficient|no node)/i);
  scheduler().signal('SIGCONT');
  await untilPlaces('held', { east: 5 });
  await end('held');
  await untilPlaces('rival', { east: 5 });
  await end('rival');
});

test('when time is up all give back what they have, and the room is free for others', async () => {
  scheduler().signal('SIGSTOP');
  await host.apply([part('stuck', 5, { annotations: { 'spillway.dev/gang-timeout-seconds': '5' } })]);
  const placed = new Set((await opened('stuck', 5)).map(({ metadata }) => metadata.uid));
  await host.apply([part('next', 5)]);
  await until(
    'new pods stand in for all of them',
    async () => {
      const pods = await gang('stuck');
      return pods.length === 5 && pods.every(({ metadata }) => !placed.has(metadata.uid));
    },
    PATIENT,
  );
  await until('it is told why', async () => {
    const events = JSON.parse(await kubectl(host, ['get', 'events', '-n', 'shop', '-o', 'json'])) as {
      items: { reason: string; message: string }[];
    };
    const words = 'not all pods of the gang got a node in east in time';
    return events.items.some(({ reason, message }) => reason === 'GangTimedOut' && message.includes(words));
  });
  await until('pods and their set say that they gave back what they had', async () => {
    const events = JSON.parse(await kubectl(host, ['get', 'events', '-n', 'shop', '-o', 'json'])) as {
      items: { reason: string; involvedObject: { kind: string; name: string } }[];
    };
    const given = events.items.filter(
      ({ reason, involvedObject }) => reason === 'GangPodGivenBack' && involvedObject.name.startsWith('stuck'),
    );
    const about = new Set(given.map(({ involvedObject }) => involvedObject.kind));
    return about.has('Pod') && about.has('ReplicaSet');
  });
  await opened('next', 5);
  scheduler().signal('SIGCONT');
  await untilPlaces('next', { east: 5 });
});

/** Binds one of its pods, as a scheduler would. */
async function bind({ metadata: { name }, spec }: Pod): Promise<void> {
  const node = spec.nodeSelector?.['spillway.dev/member'];
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: node } };
  await host.api.call('POST', `/api/v1/namespaces/shop/pods/${name}/binding`, binding);
}

test('a pod of a Job that is made anew goes without those that succeeded', async () => {
  scheduler().signal('SIGSTOP');
  const { spec } = part('retry', 3, { spec: { restartPolicy: 'Never' } });
  const { template } = spec as Fields;
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'retry', namespace: 'shop' },
    spec: { completions: 3, parallelism: 3, completionMode: 'Indexed', template },
  };
  await host.apply([job]);
  const [third, ...others] = await opened('retry', 3);
  for (const pod of others) await bind(pod);
  const succeeded = async (): Promise<number> =>
    (await gang('retry')).filter(({ status }) => status?.phase === 'Succeeded').length;
  await until('two of them succeeded', async () => (await succeeded()) === 2, PATIENT);
  await kubectl(host, ['delete', 'pod', third?.metadata.name ?? '', '-n', 'shop']);
  scheduler().signal('SIGCONT');
  await until('all of them succeeded', async () => (await succeeded()) === 3, PATIENT);
  await kubectl(host, ['delete', 'job', 'retry', '-n', 'shop', '--wait=false']);
});

test('a StatefulSet that makes its pods in turn is told why they wait; one that makes them at once is placed', async () => {
  const set = (podManagementPolicy: string): Fields => {
    const { spec, ...rest } = part('ranks', 2);
    return { ...rest, kind: 'StatefulSet', spec: { ...(spec as Fields), serviceName: 'ranks', podManagementPolicy } };
  };
  await host.apply([set('OrderedReady')]);
  await untilTold('ranks', 'GangOrdered', /^1 of 2 pods .*StatefulSet ranks .*podManagementPolicy: Parallel/);
  await kubectl(host, ['delete', 'statefulset', 'ranks', '-n', 'shop']);
  await host.apply([set('Parallel')]);
  await untilPlaces('ranks', { local: 2 });
  await kubectl(host, ['delete', 'statefulset', 'ranks', '-n', 'shop', '--wait=false']);
});
