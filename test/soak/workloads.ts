import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { RandomScheduling } from '../fixtures/random-scheduling.ts';
import { type Fields, newNamespace } from '../fixtures/live-pods.ts';
import { prioritised } from '../fixtures/preemption.ts';
import { CHEATS, DIVIDED_BY_ROOM, GPU, roomResource, SPOT } from './lab.ts';

/** Kinds of the soak, by their groups. */
const API_VERSIONS = {
  Deployment: 'apps/v1',
  ReplicaSet: 'apps/v1',
  StatefulSet: 'apps/v1',
  DaemonSet: 'apps/v1',
  Job: 'batch/v1',
  CronJob: 'batch/v1',
  ReplicationController: 'v1',
  Pod: 'v1',
} as const;

/** Something that makes pods, as the soak knows it. */
export interface Made {
  readonly kind: keyof typeof API_VERSIONS;
  readonly namespace: string;
  readonly name: string;
}

export const pathOf = ({ kind, namespace, name }: Made): string => {
  const apiVersion = API_VERSIONS[kind];
  const group = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
  return `${group}/namespaces/${namespace}/${kind.toLowerCase()}s/${name}`;
};

/** Where the important pods run that are not to run on the host. */
const CORE_MEMBER = 'west';

/** The namespaces whose pods may leave the host, by what their label says; the others' stay. */
export const NAMESPACES: Readonly<Record<string, string | undefined>> = {
  static: 'policies',
  limits: 'policies',
  room: 'policies',
  tiers: 'policies',
  core: 'policies',
  gpu: 'policies',
  rollouts: 'policies',
  burst: 'enabled',
  gangs: 'enabled',
  scaled: 'enabled',
  home: undefined,
};

const weights = (list: Readonly<Record<string, number>>): Fields => ({
  replicaScheduling: {
    weightPreference: {
      staticWeightList: Object.entries(list).map(([name, weight]) => ({
        targetCluster: { clusterNames: [name] },
        weight,
      })),
    },
  },
});

function policy(namespace: string, name: string, placement: Fields, selector: Fields, more: Fields = {}): Fields {
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name, namespace },
    spec: { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', ...selector }], placement, ...more },
  };
}
const rule = (name: string): Fields => ({ labelSelector: { matchLabels: { rule: name } } });

/** Policies of namespace `static` by name: whose labels choose them, and how they divide. */
export function staticPolicies(random: RandomScheduling): Fields[] {
  const places = [
    ['local', 'east', 'west'],
    ['east', 'north', 'west'],
    ['local', 'north'],
  ];
  return places.map((names, index) => staticPolicy(`w${index}`, names, random));
}

function staticPolicy(name: string, places: readonly string[], random: RandomScheduling): Fields {
  const list = Object.fromEntries(places.map((place) => [place, random.number(1, 4)]));
  return policy('static', name, weights(list), rule(name));
}

const TIERS = {
  clusterAffinity: {
    clusterNames: ['local'],
    max: '50%',
    overflowAffinities: [{ clusterNames: ['east'], max: 1 }, { clusterNames: ['north', 'west'] }],
  },
};
const SET = { kind: 'StatefulSet' };

function policies(random: RandomScheduling): Fields[] {
  const limits = {
    replicaScheduling: {
      whenFull: 'Wait',
      clusterPreferences: {
        clusters: { local: { weight: 1, minReplicas: 1 }, east: { weight: 2, maxReplicas: 2 }, '*': { weight: 1 } },
      },
    },
  };
  const dynamic = { replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } };
  const anywhere = { clusterAffinity: { clusterNames: ['east', 'north', 'west'] } };
  const onlyLocal = { clusterAffinity: { clusterNames: ['local'] } };
  return [
    ...staticPolicies(random),
    policy('limits', 'limits', limits, {}),
    policy('limits', 'limits-sets', limits, SET),
    policy('limits', 'limits-controllers', limits, { apiVersion: 'v1', kind: 'ReplicationController' }),
    policy('room', 'dynamic', dynamic, rule('dynamic')),
    policy(
      'room',
      'aggregated',
      { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } },
      rule('aggregated'),
    ),
    policy('tiers', 'tiers', TIERS, {}, { failover: { onMemberLost: { after: '20s' } } }),
    policy('tiers', 'tiers-sets', TIERS, SET),
    policy('core', 'core', onlyLocal, rule('local')),
    policy('core', 'core-member', { clusterAffinity: { clusterNames: [CORE_MEMBER] } }, rule(CORE_MEMBER)),
    policy('gpu', 'gpu', anywhere, {}),
    policy('gpu', 'gpu-jobs', anywhere, { apiVersion: 'batch/v1', kind: 'Job' }),
    policy('rollouts', 'rollouts', weights({ east: 1, west: 1 }), { apiVersion: 'example.com/v1', kind: 'Rollout' }),
    // Tenants who cheat are to stay on the host, whatever owns their pods.
    policy(CHEATS, 'residency', onlyLocal, { apiVersion: 'v1', kind: 'Pod' }),
  ];
}

interface Shape {
  cpu: string;
  resources?: Fields;
  tolerations?: readonly Fields[];
  labels?: Fields;
  annotations?: Fields;
  spec?: Fields;
}

const tolerate = ({ key, value, effect }: typeof GPU | typeof SPOT): Fields => ({
  key,
  operator: 'Equal',
  value,
  effect,
});

function template(name: string, shape: Shape): Fields {
  const requests = { cpu: shape.cpu, ...shape.resources };
  const limits = shape.resources === undefined ? {} : { limits: shape.resources };
  return {
    metadata: { labels: { app: name, ...shape.labels }, annotations: shape.annotations ?? {} },
    spec: {
      terminationGracePeriodSeconds: 1,
      ...(shape.tolerations === undefined ? {} : { tolerations: shape.tolerations }),
      containers: [{ name: 'main', image: 'registry.example/app:v1', resources: { requests, ...limits } }],
      ...shape.spec,
    },
  };
}

export function workload(made: Made, shape: Shape, spec: Fields): Fields {
  const { kind, namespace, name } = made;
  const labels = { app: name, ...shape.labels };
  const metadata = { name, namespace, labels };
  const apiVersion = API_VERSIONS[kind];
  const pods = template(name, shape);
  if (kind === 'Pod') {
    const { metadata: of, spec: podSpec } = pods as { metadata: Fields; spec: Fields };
    return { apiVersion, kind, metadata: { ...of, name, namespace }, spec: podSpec };
  }
  if (kind === 'CronJob')
    return { apiVersion, kind, metadata, spec: { ...spec, jobTemplate: { spec: { template: pods } } } };
  return { apiVersion, kind, metadata, spec: { ...selectorOf(kind, name), ...spec, template: pods } };
}

function selectorOf(kind: Made['kind'], app: string): Fields {
  if (kind === 'Job') return {};
  return { selector: kind === 'ReplicationController' ? { app } : { matchLabels: { app } } };
}

/** One that is divided by the room for its pods, which take nothing but a resource of their own. */
export function dividedByRoom(index: number, replicas: number): { made: Made; object: Fields } {
  const made: Made = { kind: 'Deployment', namespace: 'room', name: `deployment-${index}` };
  const labels = { rule: index % 2 === 0 ? 'dynamic' : 'aggregated' };
  const shape = { cpu: '0', resources: { [roomResource(index)]: '1' }, labels };
  return { made, object: workload(made, shape, { replicas }) };
}

/** 300 workloads of all kinds, in the namespaces and under the policies that they need. */
export async function makeWorkloads(host: Cluster, random: RandomScheduling): Promise<Made[]> {
  for (const [name, burst] of Object.entries(NAMESPACES)) {
    await newNamespace(host, name);
    if (burst === undefined) continue;
    const metadata = { labels: { 'spillway.dev/burst': burst } };
    await host.api.call('PATCH', `/api/v1/namespaces/${name}`, { metadata });
  }
  await host.apply(policies(random));
  const made: Made[] = [];
  const objects: Fields[] = [];
  const cpu = (): string => random.pick(['100m', '200m', '400m']);
  const add = (namespace: string, kind: Made['kind'], count: number, of: (index: number) => [Shape, Fields]): void => {
    for (let index = 0; index < count; index += 1) {
      const one = { kind, namespace, name: `${kind.toLowerCase()}-${index}` };
      const [shape, spec] = of(index);
      made.push(one);
      objects.push(workload(one, shape, spec));
    }
  };
  const some = (most: number): Fields => ({ replicas: random.number(1, most) });
  const ordered = (): Fields => ({
    podManagementPolicy: random.pick(['OrderedReady', 'Parallel']),
    serviceName: 'none',
  });
  const labelled = (value: string): Shape => ({ cpu: cpu(), labels: { rule: value } });
  add('static', 'Deployment', 50, (index) => [labelled(`w${index % 3}`), some(5)]);
  add('limits', 'Deployment', 19, () => [{ cpu: cpu() }, some(5)]);
  add('limits', 'ReplicationController', 6, () => [{ cpu: cpu() }, some(5)]);
  add('limits', 'StatefulSet', 12, () => [{ cpu: cpu() }, { ...some(3), ...ordered() }]);
  for (let index = 0; index < DIVIDED_BY_ROOM; index += 1) {
    const one = dividedByRoom(index, random.number(1, 6));
    made.push(one.made);
    objects.push(one.object);
  }
  // Some ask for nothing, so that there is always a place to move them to.
  add('tiers', 'Deployment', 40, (index) =>
    index % 5 === 0 ? [{ cpu: '0' }, { replicas: random.number(3, 5) }] : [{ cpu: cpu() }, some(5)],
  );
  add('tiers', 'StatefulSet', 12, () => [{ cpu: cpu() }, { ...some(3), ...ordered() }]);
  add('burst', 'Deployment', 21, () => [{ cpu: cpu() }, some(3)]);
  add('burst', 'Pod', 20, () => [{ cpu: cpu() }, {}]);
  add('burst', 'Job', 15, () => [
    { cpu: cpu(), spec: { restartPolicy: 'Never' } },
    { parallelism: 2, completions: 4 },
  ]);
  add('burst', 'CronJob', 4, () => [
    { cpu: cpu(), spec: { restartPolicy: 'Never' } },
    { schedule: '*/3 * * * *', concurrencyPolicy: 'Forbid' },
  ]);
  const gpu = { resources: { [GPU.key]: '1' }, tolerations: [tolerate(GPU)] };
  add('gpu', 'Deployment', 12, (index) => [
    index % 2 === 0 ? { cpu: cpu(), ...gpu } : { cpu: cpu(), tolerations: [tolerate(SPOT)] },
    some(3),
  ]);
  add('gpu', 'Job', 10, () => [{ cpu: cpu(), ...gpu, spec: { restartPolicy: 'Never' } }, { completions: 2 }]);
  add('gangs', 'ReplicaSet', 12, (index) => {
    const size = random.number(2, 4);
    const labels = { 'spillway.dev/gang': `gang-${index}` };
    const annotations = { 'spillway.dev/gang-size': String(size), 'spillway.dev/gang-timeout-seconds': '60' };
    return [{ cpu: '1', labels, annotations }, { replicas: size }];
  });
  add('home', 'Deployment', 15, () => [{ cpu: cpu() }, some(3)]);
  add('home', 'DaemonSet', 8, (index) => [
    index % 4 === 0 ? { cpu: '10m', tolerations: [{ operator: 'Exists' }] } : { cpu: '10m' },
    {},
  ]);
  // In the member more than two of its plain nodes hold beside anything else: others have to make way there.
  add('core', 'Deployment', 8, (index) => [
    index % 2 === 0
      ? { cpu: '3', spec: prioritised('high'), labels: { rule: 'local' } }
      : { cpu: '5', spec: prioritised('high'), labels: { rule: CORE_MEMBER } },
    { replicas: 0 },
  ]);
  add('scaled', 'Deployment', 4, () => [{ cpu: '200m' }, { replicas: 1 }]);
  const queue = made.map((one, index) => [pathOf(one).replace(/\/[^/]+$/, ''), objects[index]] as const).values();
  const worker = async (): Promise<void> => {
    for (const [path, object] of queue)
      await until(`${path} takes another one`, async () => (await host.api.ensure(path, object), true));
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  for (const { name } of made.filter(({ namespace }) => namespace === 'scaled')) await host.apply([autoscaler(name)]);
  for (let index = 0; index < 12; index += 1) made.push(await makeRollout(host, index, cpu()));
  return made;
}

function autoscaler(name: string): Fields {
  return {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name, namespace: 'scaled' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
      minReplicas: 1,
      maxReplicas: 6,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
      ],
    },
  };
}

/** A ReplicaSet of a kind of owner that Spillway does not follow. */
async function makeRollout(host: Cluster, index: number, cpu: string): Promise<Made> {
  const name = `rollout-${index}`;
  const path = '/apis/example.com/v1/namespaces/rollouts/rollouts';
  const rollout = await until('Rollouts are served', async () => {
    const object = { apiVersion: 'example.com/v1', kind: 'Rollout', metadata: { name } };
    return (await host.api.call('POST', path, object)) as { metadata: { uid: string } };
  });
  const made: Made = { kind: 'ReplicaSet', namespace: 'rollouts', name };
  const object = workload(made, { cpu }, { replicas: 2 });
  const owner = { apiVersion: 'example.com/v1', kind: 'Rollout', name, uid: rollout.metadata.uid, controller: true };
  await host.apply([{ ...object, metadata: { ...(object['metadata'] as Fields), ownerReferences: [owner] } }]);
  return made;
}
