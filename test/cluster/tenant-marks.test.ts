import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../hack/api-access.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import {
  apiOf,
  CONTAINERS,
  defaultAccount,
  type Guarded,
  MANAGER,
  plainPod,
  startGuarded,
  untilRefused,
} from './guard-harness.ts';

/**
 * What a tenant can do with marks of ours: the table of docs/reference/marks.md, row by row. The tenant may do everything with pods,
 * their status included, and with what makes pods, in one namespace.
 */
let guarded: Guarded;
let host: Cluster;
let tenant: Api;
let editor: Api;
let manager: Api;

const PODS = '/api/v1/namespaces/shop/pods';
const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';
const PLACED = 'spillway.dev/gang-placed-at';
const ONLY_SPILLWAY = 'only Spillway writes this';

beforeAll(async () => {
  guarded = await startGuarded(
    MANAGER,
    'crds/spillway.dev_memberclusters.yaml',
    'crds/spillway.dev_workloadplacements.yaml',
    'rbac.yaml',
    'scheduler/rbac.yaml',
    'scheduler/gangs.yaml',
    'scheduler/pod-guard.yaml',
    'scheduler/scheduler-guard.yaml',
    'admission/validation.yaml',
  );
  ({ cluster: host, thief: manager } = guarded);
  const rules = [
    { apiGroups: [''], resources: ['pods', 'pods/status', 'configmaps'], verbs: ['*'] },
    { apiGroups: ['apps', 'batch'], resources: ['*'], verbs: ['*'] },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['*'] },
  ];
  const rbac = 'rbac.authorization.k8s.io';
  await until('MemberClusters are served', () => host.api.call('GET', MEMBERS));
  await host.apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    defaultAccount('shop'),
    { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: { name: 'tenant', namespace: 'shop' }, rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'tenant', namespace: 'shop' },
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'tenant' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: 'tenant' }],
    },
    // What ClusterRole edit of Kubernetes is made of; nothing puts it together here.
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'editor', namespace: 'shop' },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'system:aggregate-to-edit' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: 'editor' }],
    },
    ...[
      ['east', []],
      ['west', ['gpu']],
      ['worker-2', []],
    ].map(([name, pools]) => ({
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name },
      spec: {
        credentials: { secretRef: { namespace: 'default', name } },
        virtualNodes: (pools as string[]).map((pool) => ({ name: pool })),
      },
    })),
    plainPod('there', 'shop'),
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'there' } } },
    },
    plainPod('placed', 'shop', { spec: { schedulingGates: [{ name: 'spillway.dev/gang' }] } }),
  ]);
  tenant = await apiOf(host, 'tenant');
  editor = await apiOf(host, 'editor');
  await untilRefused(() => create(marked({ [PLACED]: 'x' })), ONLY_SPILLWAY);
  await untilRefused(() => create(bound('east')), 'is a virtual node');
});
afterAll(async () => {
  await tenant?.close();
  await editor?.close();
  await guarded?.close();
});

const create = async (pod: object): Promise<unknown> => await tenant.call('POST', `${PODS}?dryRun=All`, pod);
const marked = (annotations: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'new', namespace: 'shop', annotations },
  spec: { containers: CONTAINERS },
});
const bound = (nodeName: string): object => plainPod('new', 'shop', { spec: { nodeName } });

describe('what only Spillway writes', () => {
  const cost = { 'controller.kubernetes.io/pod-deletion-cost': '-5', 'spillway.dev/deletion-cost': '-5' };
  it.each([
    ['when its gang got a place', { [PLACED]: '2026-01-01T00:00:00Z' }],
    ['whose deletion cost it is', cost],
    ['which ReplicaSet let go of it', { 'spillway.dev/released': '{"hash":"7d"}' }],
  ])('%s: not in a new pod, nor by a change of it or of its status', async (_what, annotations) => {
    await expect(create(marked(annotations))).rejects.toThrow(ONLY_SPILLWAY);
    const patch = { metadata: { annotations } };
    await expect(tenant.call('PATCH', `${PODS}/there?dryRun=All`, patch)).rejects.toThrow(ONLY_SPILLWAY);
    await expect(tenant.call('PATCH', `${PODS}/there/status?dryRun=All`, patch)).rejects.toThrow(ONLY_SPILLWAY);
    // Of a pod in a member, with its label: test/cluster/manager-guards.test.ts.
    if (!('spillway.dev/released' in annotations)) await manager.call('PATCH', `${PODS}/there?dryRun=All`, patch);
  });

  it('what is there stays, may be taken away, and is not exchanged', async () => {
    const placed = { metadata: { annotations: { [PLACED]: '2026-01-01T00:00:00Z' } } };
    await manager.call('PATCH', `${PODS}/placed`, placed);
    await tenant.call('PATCH', `${PODS}/placed?dryRun=All`, { metadata: { labels: { a: 'b' } } });
    await tenant.call('PATCH', `${PODS}/placed?dryRun=All`, { metadata: { annotations: { [PLACED]: null } } });
    const later = { metadata: { annotations: { [PLACED]: '2027-01-01T00:00:00Z' } } };
    await expect(tenant.call('PATCH', `${PODS}/placed?dryRun=All`, later)).rejects.toThrow(ONLY_SPILLWAY);
  });
});

describe('the node of a pod', () => {
  it('is no virtual one, unless who makes the pod may bind pods', async () => {
    for (const name of ['east', 'west-gpu']) await expect(create(bound(name))).rejects.toThrow('is a virtual node');
    for (const name of ['worker-1', 'west']) await create(bound(name));
    await host.api.call('POST', `${PODS}?dryRun=All`, bound('east'));
  });

  it('is a real one, though a MemberCluster wants its name: as soon as that is known', async () => {
    await expect(create(bound('worker-2'))).rejects.toThrow(
      'spec.nodeName: worker-2 is a virtual node of MemberCluster worker-2, or is to be one, and a scheduler chooses pods for it',
    );
    const taken = (name: string) => ({ status: { takenNames: [name] } });
    await host.api.call('PATCH', `${MEMBERS}/worker-2/status`, taken('worker-2'));
    await until(
      'it is allowed',
      async () =>
        await create(bound('worker-2')).then(
          () => true,
          () => false,
        ),
    );
    await expect(tenant.call('PATCH', `${MEMBERS}/east/status`, taken('east'))).rejects.toThrow(/forbidden/i);
    await expect(create(bound('east'))).rejects.toThrow('is a virtual node');
  });
});

describe('a scheduler that asks nobody', () => {
  const OWN_GATE = { schedulingGates: [{ name: 'example.com/wait' }] };
  const OURS = { key: 'spillway.dev/virtual-node', operator: 'Exists' };
  const PASSED_BY = 'default-scheduler does not ask Spillway';

  /** As `kubectl edit` has it: what is there stays. */
  const addTo = async (name: string, ...added: object[]): Promise<unknown> => {
    const { spec } = (await host.api.call('GET', `${PODS}/${name}`)) as { spec: { tolerations: object[] } };
    const tolerations = [...spec.tolerations, ...added];
    return await tenant.call('PATCH', `${PODS}/${name}?dryRun=All`, { spec: { tolerations } });
  };

  beforeAll(async () => {
    await host.apply([
      plainPod('waits', 'shop', { spec: OWN_GATE }),
      plainPod('asked', 'shop', { spec: { ...OWN_GATE, schedulerName: 'spillway-scheduler' } }),
      plainPod('elsewhere', 'shop', { spec: { ...OWN_GATE, schedulerName: 'other' } }),
      // Of a time before the second scheduler.
      plainPod('older', 'shop', { spec: { ...OWN_GATE, tolerations: [OURS] } }),
      plainPod('bound', 'shop', { spec: { nodeName: 'worker-1' } }),
    ]);
    await untilRefused(() => addTo('waits', OURS), PASSED_BY);
  });

  it.each([
    [OURS],
    [{ ...OURS, effect: 'NoSchedule' }],
    [{ key: OURS.key, operator: 'Equal' }],
    [{ key: OURS.key }],
    [{ operator: 'Exists' }],
    [{ operator: 'Exists', effect: 'NoSchedule' }],
  ])('gets no pod that was let through later: by toleration %j', async (toleration) => {
    await expect(addTo('waits', toleration)).rejects.toThrow(PASSED_BY);
    await expect(addTo('elsewhere', toleration)).rejects.toThrow('other does not ask Spillway');
    await addTo('asked', toleration);
    await addTo('older', toleration);
    await addTo('bound', toleration);
  });

  it('gets one that tolerates something else, and with it all that Kubernetes lets people change', async () => {
    await addTo('waits', { key: 'gpu', operator: 'Exists' }, { operator: 'Exists', effect: 'NoExecute' });
    await addTo('waits', { ...OURS, effect: 'PreferNoSchedule' }, { key: OURS.key, operator: 'Equal', value: 'x' });
    const open = { metadata: { labels: { a: 'b' } }, spec: { schedulingGates: [] } };
    for (const name of ['waits', 'older', 'elsewhere']) await tenant.call('PATCH', `${PODS}/${name}?dryRun=All`, open);
  });

  it('gets none that merely says that a DaemonSet made it', async () => {
    const made = (apiVersion: string, spec: object): object => ({
      ...marked({}),
      metadata: {
        name: 'new',
        namespace: 'shop',
        ownerReferences: [{ apiVersion, kind: 'DaemonSet', name: 'agent', uid: 'u', controller: true }],
      },
      spec: { containers: CONTAINERS, ...spec },
    });
    const named = (name: string): object => ({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }],
        },
      },
    });
    for (const toleration of [OURS, { operator: 'Exists' }]) {
      const pod = { tolerations: [toleration], affinity: named('east') };
      await expect(create(made('apps/v1', pod))).rejects.toThrow('who may bind pods');
      await create(made('apps/v1', { ...pod, schedulerName: 'spillway-scheduler' }));
      // The DaemonSet controller may bind pods.
      await host.api.call('POST', `${PODS}?dryRun=All`, made('apps/v1', pod));
    }
    await create(made('apps/v1', { affinity: named('worker-1') }));
    // Admission gives it the scheduler that asks.
    await create(made('example.com/v1', { tolerations: [OURS] }));
  });
});

describe('what a tenant may write', () => {
  it.each([
    { 'spillway.dev/member-constraints': '{"nodeSelector":{"disk":"ssd"}}' },
    { 'spillway.dev/service-account-mode': 'Host' },
    { 'spillway.dev/member-pod-ip': '10.0.0.1' },
    // Its own wish, as Kubernetes has it.
    { 'controller.kubernetes.io/pod-deletion-cost': '-5' },
  ])('%j on a pod, where it is held to something else, or says nothing', async (annotations) => {
    await create(marked(annotations));
  });

  const specOf = (spec: object): object => plainPod('new', 'shop', { spec });
  it.each([
    ['the gate of gangs', specOf({ schedulingGates: [{ name: 'spillway.dev/gang' }] })],
    ['that it stays on the host', plainPod('new', 'shop', { labels: { 'spillway.dev/burst': 'disabled' } })],
    [
      'that it may leave it, which says nothing',
      plainPod('new', 'shop', { labels: { 'spillway.dev/burst': 'enabled' } }),
    ],
    [
      'that it tolerates virtual nodes',
      specOf({ tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }] }),
    ],
    [
      'that schedulers are to ask about it',
      specOf({
        containers: CONTAINERS.map((one) => ({ ...one, resources: { limits: { 'spillway.dev/extender': '1' } } })),
      }),
    ],
    [
      'whose copy it would be, which says nothing',
      plainPod('new', 'shop', {
        labels: { 'spillway.dev/host': 'x', 'spillway.dev/node': 'east', 'spillway.dev/uid': 'x' },
      }),
    ],
  ])('%s', async (_what, pod) => {
    await create(pod);
  });

  it('that a pod does not wait for its gang any more: what that gave it stays', async () => {
    const open = { spec: { schedulingGates: [] } };
    await tenant.call('PATCH', `${PODS}/placed?dryRun=All`, open);
    const both = { ...open, metadata: { annotations: { [PLACED]: '2027-01-01T00:00:00Z' } } };
    await expect(tenant.call('PATCH', `${PODS}/placed?dryRun=All`, both)).rejects.toThrow(ONLY_SPILLWAY);
  });

  it('how the evictions of its budget are shared, if it may change that, but not how many there are', async () => {
    const budget = '/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web';
    const annotations = { 'spillway.dev/member-evictions': '{"east":1000}' };
    await tenant.call('PATCH', `${budget}?dryRun=All`, { metadata: { annotations } });
    const status = { status: { disruptionsAllowed: 1000 } };
    await expect(tenant.call('PATCH', `${budget}/status?dryRun=All`, status)).rejects.toThrow(/forbidden/i);
  });

  it('a gang, of a size that can be', async () => {
    const gang = (size: string): object => ({
      ...marked({ 'spillway.dev/gang-size': size }),
      metadata: {
        name: 'new',
        namespace: 'shop',
        labels: { 'spillway.dev/gang': 'ring' },
        annotations: { 'spillway.dev/gang-size': size },
      },
    });
    await untilRefused(() => create(gang('many')), 'gang-size');
    await create(gang('2'));
  });
});

describe('what is kept from a tenant by rights', () => {
  const annotations = {
    'spillway.dev/price': '0',
    'spillway.dev/confirm-identity': 'x',
    'spillway.dev/confirm-deletions': 'x',
    'spillway.dev/force-leave': 'x',
  };
  it('what was made of a pod in a member, from whoever has the rights that Kubernetes gives to edit', async () => {
    const mirrored = {
      type: 'spillway.dev/Mirrored',
      status: 'True',
      reason: 'Mirrored',
      message: 'east/shop/there/x',
    };
    const conditions = [mirrored, { ...mirrored, type: 'spillway.dev/MemberScheduled' }];
    await editor.call('PATCH', `${PODS}/there?dryRun=All`, { metadata: { labels: { a: 'b' } } });
    for (const path of [`${PODS}/there/status`, `${PODS}/there/status?dryRun=All`])
      await expect(editor.call('PATCH', path, { status: { conditions } })).rejects.toThrow(/forbidden/i);
    // By way of the pod itself the API server takes no status.
    const made = await editor.call('PATCH', `${PODS}/there?dryRun=All`, { status: { conditions } });
    expect(JSON.stringify(made)).not.toContain('Mirrored');
  });

  it.each([
    [
      'which Secrets are renewed',
      '/api/v1/namespaces/spillway-system/secrets/east',
      { metadata: { labels: { 'spillway.dev/renew-token': 'true' } } },
    ],
    [
      'which volume of a member a volume stands for',
      '/api/v1/persistentvolumes/data',
      { metadata: { annotations: { 'spillway.dev/member-claim-uid': 'x', 'spillway.dev/member-volume': 'x' } } },
    ],
    [
      'which requests for certificates go with a member',
      '/apis/certificates.k8s.io/v1/certificatesigningrequests/x',
      { metadata: { labels: { 'spillway.dev/member': 'east', 'spillway.dev/node': 'east' } } },
    ],
    ['what holds a MemberCluster up', `${MEMBERS}/east`, { metadata: { finalizers: [] } }],
    [
      'that its namespace bursts',
      '/api/v1/namespaces/shop',
      { metadata: { labels: { 'spillway.dev/burst': 'enabled' } } },
    ],
    [
      'as whom the pods of its namespace speak',
      '/api/v1/namespaces/shop',
      { metadata: { labels: { 'spillway.dev/service-account-mode': 'Host' } } },
    ],
    ['prices, and what an administrator confirms', `${MEMBERS}/east`, { metadata: { annotations } }],
    ['what Nodes are', '/api/v1/nodes/east', { metadata: { labels: { 'spillway.dev/member': 'west' } } }],
    [
      'that a virtual node is to be emptied',
      '/api/v1/nodes/east',
      { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } },
    ],
    [
      'that nothing runs on a virtual node any more',
      '/api/v1/nodes/east',
      { spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } },
    ],
    [
      'that no move of a pod is to begin',
      '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/spillway-descheduler',
      { metadata: { annotations: { 'spillway.dev/moves-stopped': 'x' } } },
    ],
    [
      'who holds a Lease',
      '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/spillway-descheduler',
      { metadata: { annotations: { 'spillway.dev/process': 'x' } } },
    ],
    [
      'where pods of a workload are',
      '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadplacements/web',
      { status: {} },
    ],
  ])('%s', async (_what, path, body) => {
    await expect(tenant.call('PATCH', path, body)).rejects.toThrow(/forbidden/i);
  });
});
