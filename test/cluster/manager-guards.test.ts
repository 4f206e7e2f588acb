import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../hack/api-access.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import {
  CONTAINERS,
  defaultAccount,
  type Guarded,
  KEPT,
  MANAGER,
  OWNED,
  plainPod,
  serveOnly,
  startGuarded,
  untilRefused,
} from './guard-harness.ts';

/** What a thief of the manager's token can do where it does all that it can be asked to do. */
let guarded: Guarded;
let host: Cluster;
let thief: Api;

beforeAll(async () => {
  guarded = await startGuarded(
    MANAGER,
    'crds/spillway.dev_memberclusters.yaml',
    'crds/spillway.dev_workloadplacements.yaml',
    'crds/spillway.dev_workloadrebalancers.yaml',
    'crds/spillway.dev_workloadmigrations.yaml',
    'rbac.yaml',
    'rbac-service-account.yaml',
    'scheduler/rbac.yaml',
    'scheduler/gangs.yaml',
    'scheduler/descheduler.yaml',
    'scheduler/pod-guard.yaml',
    'outages.yaml',
    'secrets.yaml',
    'admission/webhook.yaml',
    'multi-cluster/crds.yaml',
    'multi-cluster/host.yaml',
    'node-guard.yaml',
    'storage.yaml',
  );
  ({ cluster: host, thief } = guarded);
});
afterAll(() => guarded?.close());

describe('what clusters export', () => {
  const services = '/api/v1/namespaces/default/services';
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
  const imports = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceimports';
  const ours = { 'spillway.dev/host': 'h1' };
  const managed = { ...ours, 'endpointslice.kubernetes.io/managed-by': 'spillway.dev' };
  const service = (name: string, labels: object, spec: object = {}, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, labels, ...metadata },
    spec: { ports: [{ port: 80 }], ...spec },
  });
  const slice = (name: string, of: string, labels: object, metadata: object = {}) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, labels: { ...labels, 'kubernetes.io/service-name': of }, ...metadata },
    addressType: 'IPv4',
    endpoints: [],
  });
  const serviceImport = (name: string, labels: object, metadata: object = {}) => ({
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name, labels, ...metadata },
    spec: { type: 'Headless', ports: [] },
  });

  beforeAll(async () => {
    for (const [path, body] of [
      [services, service('theirs', {})],
      [slices, slice('theirs', 'theirs', {})],
      [imports, serviceImport('theirs', {})],
    ] as const)
      await host.api.call('POST', path, body);
    await untilRefused(
      () => thief.call('POST', `${services}?dryRun=All`, service('derived-x', {})),
      'carries its label',
    );
  });

  it('is written', async () => {
    for (const [path, body] of [
      [services, service('derived-x', ours)],
      [slices, slice('x', 'derived-x', managed)],
      [imports, serviceImport('x', ours)],
    ] as const) {
      await thief.call('POST', path, body);
      await thief.call('DELETE', `${path}/${body.metadata.name}`);
    }
  });

  it.each<[string, string, object]>([
    ['a Service without the label', services, service('derived-y', {})],
    ['a Service by the name of others', services, service('db', ours)],
    ['a Service with a selector', services, service('derived-y', ours, { selector: { app: 'x' } })],
    ['a Service with ports of nodes', services, service('derived-y', ours, { type: 'NodePort' })],
    ['a Service with external IPs', services, service('derived-y', ours, { externalIPs: ['192.0.2.1'] })],
    ['a Service of the cluster itself', services.replace('default', 'kube-system'), service('derived-y', ours)],
    ['endpoints of a Service of others', slices, slice('y', 'theirs', managed)],
    ['endpoints that nobody manages', slices, slice('y', 'derived-y', ours)],
    ['a ServiceImport without the label', imports, serviceImport('y', {})],
  ])('does not allow %s', async (_, path, body) => {
    await expect(thief.call('POST', `${path}?dryRun=All`, body)).rejects.toThrow('spillway-multi-cluster-guard');
  });

  it.each([
    ['owners', OWNED],
    ['finalizers', KEPT],
  ])('gets no %s, neither when it is made nor later', async (_, given) => {
    const refusal = 'what Spillway makes has no owners and no finalizers of its own';
    for (const [path, body, marked] of [
      [services, service('derived-z', ours), service('derived-z', ours, {}, given)],
      [slices, slice('z', 'derived-z', managed), slice('z', 'derived-z', managed, given)],
      [imports, serviceImport('z', ours), serviceImport('z', ours, given)],
    ] as const) {
      await expect(thief.call('POST', `${path}?dryRun=All`, marked), path).rejects.toThrow(refusal);
      const one = `${path}/${body.metadata.name}`;
      const { metadata, ...rest } = (await thief.call('POST', path, body)) as { metadata: object };
      const changed =
        path === imports
          ? thief.call('PATCH', `${one}?dryRun=All`, { metadata: given })
          : thief.call('PUT', `${one}?dryRun=All`, { ...rest, metadata: { ...metadata, ...given } });
      await expect(changed, path).rejects.toThrow(refusal);
      await thief.call('DELETE', one);
    }
  });

  it.each([services, slices, imports])('takes nothing of others away, nor changes it: %s', async (path) => {
    await expect(thief.call('DELETE', `${path}/theirs?dryRun=All`)).rejects.toThrow('spillway-multi-cluster-guard');
    const found = (await host.api.call('GET', `${path}/theirs`)) as { metadata: { labels?: object } };
    const taken = { ...found, metadata: { ...found.metadata, labels: { ...found.metadata.labels, ...managed } } };
    const written =
      path === imports
        ? thief.call('PATCH', `${path}/theirs?dryRun=All`, { metadata: { labels: ours } })
        : thief.call('PUT', `${path}/theirs?dryRun=All`, taken);
    await expect(written).rejects.toThrow('spillway-multi-cluster-guard');
  });
});

describe('disruption budgets', () => {
  const path = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
  const patch = async (body: object): Promise<unknown> => await thief.call('PATCH', `${path}/web?dryRun=All`, body);
  const evictions = 'spillway.dev/member-evictions';
  const refusal = 'Spillway may change nothing of a PodDisruptionBudget but';

  beforeAll(async () => {
    await host.api.call('POST', path, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', labels: { app: 'web' }, annotations: { a: 'b' } },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
    });
    await untilRefused(() => patch({ spec: { minAvailable: 0 } }), refusal);
  });

  it('get to know what members may evict', async () => {
    await patch({ metadata: { annotations: { [evictions]: '{}' } } });
    await thief.call('PATCH', `${path}/web`, { metadata: { annotations: { [evictions]: '{}' } } });
    await patch({ metadata: { annotations: { [evictions]: null } } });
  });

  it.each([
    { spec: { minAvailable: 0 } },
    { spec: { selector: { matchLabels: { app: 'other' } } } },
    { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } },
    { metadata: { annotations: { a: 'c' } } },
    { metadata: { annotations: { a: null } } },
    { metadata: { annotations: { other: 'x' } } },
    { metadata: { labels: { app: null } } },
    { metadata: OWNED },
    { metadata: KEPT },
  ])('are not changed otherwise: %j', async (body) => {
    await expect(patch(body)).rejects.toThrow(refusal);
  });
});

const WORKLOAD = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };

describe.each([
  ['WorkloadRebalancer', 'workloadrebalancers', { workloads: [{ ...WORKLOAD, namespace: 'default' }] }],
  ['WorkloadMigration', 'namespaces/default/workloadmigrations', { workloads: [WORKLOAD], from: 'east' }],
] as const)('of kind %s', (kind, plural, wanted) => {
  const path = `/apis/spillway.dev/v1alpha1/${plural}`;
  const refusal = 'Spillway may only delete WorkloadRebalancers and WorkloadMigrations that are finished';
  const end = async (name: string): Promise<unknown> => await thief.call('DELETE', `${path}/${name}?dryRun=All`);

  it('those are deleted that are over and say that they are to be, and no others', async () => {
    const status = { finishTime: '2026-01-01T00:00:00Z' };
    for (const [name, spec, isOver] of [
      ['kept', {}, true],
      ['begun', { ttlSecondsAfterFinished: 0 }, false],
      ['over', { ttlSecondsAfterFinished: 0 }, true],
    ] as const) {
      const namespace = plural.startsWith('namespaces/') ? { namespace: 'default' } : {};
      const typed = { apiVersion: 'spillway.dev/v1alpha1', kind };
      await host.apply([{ ...typed, metadata: { name, ...namespace }, spec: { ...wanted, ...spec } }]);
      if (isOver) await thief.call('PATCH', `${path}/${name}/status`, { status });
    }
    await untilRefused(() => end('begun'), refusal);
    await expect(end('kept')).rejects.toThrow(refusal);
    await end('over');
  });
});

describe('pods', () => {
  const gates = [{ name: 'spillway.dev/gang' }, { name: 'example.com/wait' }];
  const tolerations = [{ operator: 'Exists' }];
  const at = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;
  const image = { spec: { containers: [{ ...CONTAINERS[0], image: 'app:v2' }] } };
  const onNode = { spec: { nodeName: 'east', terminationGracePeriodSeconds: 600 } };
  const NOT_ITS_WORK = 'Spillway may only work for pods on virtual nodes that RBAC lets it serve';
  const report = async (name: string): Promise<unknown> =>
    await thief.call('PATCH', `${at(name)}/status?dryRun=All`, { status: { phase: 'Running' } });
  const evict = async (deleteOptions: object): Promise<unknown> =>
    await thief.call('POST', `${at('open')}/eviction?dryRun=All`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'open', namespace: 'default' },
      deleteOptions,
    });

  beforeAll(async () => {
    await host.apply([
      defaultAccount('default'),
      plainPod('gated', 'default', { spec: { schedulingGates: gates, tolerations } }),
      plainPod('open', 'default', { spec: { tolerations } }),
      plainPod('bound', 'default', onNode),
      plainPod('ending', 'default', onNode),
    ]);
    await host.api.call('DELETE', at('ending'));
    await untilRefused(() => thief.call('PATCH', `${at('open')}?dryRun=All`, image), 'Spillway may change');
    await untilRefused(() => thief.call('DELETE', `${at('open')}?dryRun=All`), NOT_ITS_WORK);
    await untilRefused(() => evict({}), 'Spillway may only evict');
  });

  it.each([
    ['open', image],
    ['gated', image],
    ['open', { metadata: { labels: { app: 'other' } } }],
    ['open', { metadata: OWNED }],
    ['gated', { metadata: { annotations: { other: 'x' } } }],
    ['gated', { metadata: KEPT }],
    ['gated', { spec: { tolerations: [...tolerations, { key: 'a', operator: 'Exists' }] } }],
    ['gated', { spec: { schedulingGates: [] } }],
  ])('of pod %s this is not changed: %j', async (name, body) => {
    await expect(thief.call('PATCH', `${at(name)}?dryRun=All`, body)).rejects.toThrow('Spillway may change');
  });

  it('of pods the deletion cost is changed, and at the gate of gangs their place', async () => {
    const patch = async (name: string, body: object) => await thief.call('PATCH', at(name), body);
    await patch('open', { metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-1' } } });
    await patch('gated', {
      metadata: { annotations: { 'spillway.dev/gang-placed-at': '2026-01-01T00:00:00Z' } },
      spec: { nodeSelector: { 'spillway.dev/member': 'east' } },
    });
    await patch('gated', { spec: { schedulingGates: gates.slice(1) } });
    await expect(patch('gated', { spec: { nodeSelector: { 'spillway.dev/member': 'east', a: 'b' } } })).rejects.toThrow(
      'Spillway may change',
    );
  });

  it('pods in members are let go by their ReplicaSets, and taken back, as the mark on them says', async () => {
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d', uid: 'set', controller: true };
    const labels = { app: 'web', 'pod-template-hash': '7d' };
    const [ours, bare, local] = ['released', 'bare', 'local'].map((name) =>
      plainPod(name, 'default', { ...onNode, labels }),
    );
    const owned = (pod: object | undefined): object => {
      const { metadata } = pod as { metadata: object };
      return { ...pod, metadata: { ...metadata, ownerReferences: [owner] } };
    };
    await host.apply([owned(ours), bare ?? {}, owned(local)]);
    const status = { conditions: [{ type: 'spillway.dev/Mirrored', status: 'True' }] };
    for (const name of ['released', 'bare']) await host.api.call('PATCH', `${at(name)}/status`, { status });
    const mark = '{"hash":"7d","replicaSet":"web-7d","uid":"set","at":"2026-01-01T00:00:00Z","ready":3}';
    const patch = async (name: string, changes: object, text: string | null, more: object = {}): Promise<unknown> => {
      const annotations = { 'spillway.dev/released': text };
      return await thief.call('PATCH', at(name), { metadata: { labels: changes, annotations }, ...more });
    };
    const hash = (value: string | null) => ({ 'pod-template-hash': value });
    for (const [name, changes, text, more] of [
      ['released', hash(null), null, {}],
      ['released', hash(null), mark.replace('7d', '8e'), {}],
      ['released', hash(null), mark.replace('"set"', '"other"'), {}],
      ['released', hash('8e'), mark, {}],
      ['released', { ...hash(null), app: null }, mark, {}],
      ['released', { ...hash(null), app: 'other' }, mark, {}],
      ['released', { ...hash(null), more: 'x' }, mark, {}],
      ['released', hash(null), mark, image],
      ['released', {}, mark, {}],
      // Nobody would make another one.
      ['bare', hash(null), mark, {}],
      // Not in a member.
      ['local', hash(null), mark, {}],
    ] as const) {
      await expect(patch(name, changes, text, more), JSON.stringify([name, changes, text])).rejects.toThrow(
        'Spillway may change',
      );
    }
    await patch('released', hash(null), mark);
    for (const [changes, text] of [
      [hash('8e'), null],
      [hash('7d'), mark],
      [{ ...hash('7d'), app: 'other' }, null],
      [{}, null],
      [{}, mark.replace('7d', '8e')],
    ] as const) {
      await expect(patch('released', changes, text), JSON.stringify([changes, text])).rejects.toThrow(
        'Spillway may change',
      );
    }
    await patch('released', hash('7d'), null);
    expect((await host.api.call('GET', at('released'))) as object).toMatchObject({ metadata: { labels } });
  });

  it('pods without a node get labels that say what the pod before them left, and no others', async () => {
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'set', controller: true };
    const of = (name: string, spec: object): object => {
      const pod = plainPod(name, 'default', { ...spec, labels: { app: 'db' } }) as { metadata: object };
      return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
    };
    await host.apply([of('db-0', {}), of('db-1', onNode)]);
    const label = async (name: string, labels: object, more: object = {}): Promise<unknown> =>
      await thief.call('PATCH', at(name), { metadata: { labels }, ...more });
    const state = { 'example.com/former-ip': '10.1.2.3' };
    for (const [name, labels, more] of [
      ['db-0', { app: 'other' }, {}],
      ['db-0', { app: null }, {}],
      ['db-0', { ...state, app: 'other' }, {}],
      ['db-0', { ...state, 'app.kubernetes.io/name': 'db' }, {}],
      ['db-0', { ...state, 'spillway.dev/gang': 'x' }, {}],
      ['db-0', { ...state, 'pod-template-hash': 'x' }, {}],
      ['db-0', { ...state, 'kueue.x-k8s.io/queue-name': 'x' }, {}],
      ['db-0', { ...state, 'pod-group.scheduling.sigs.k8s.io': 'x' }, {}],
      ['db-0', Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`l${String(index)}`, 'x'])), {}],
      ['db-0', state, image],
      // It has its node, and nobody's.
      ['db-1', state, {}],
      ['open', state, {}],
    ] as const) {
      const tried = label(name, labels, more);
      await expect(tried, JSON.stringify([name, labels, more])).rejects.toThrow('Spillway may change');
    }
    await label('db-0', state);
    expect(await host.api.call('GET', at('db-0'))).toMatchObject({ metadata: { labels: { app: 'db', ...state } } });
    for (const labels of [{ 'example.com/former-ip': '10.1.2.4' }, { 'example.com/former-ip': null }])
      await expect(label('db-0', labels)).rejects.toThrow('Spillway may change');
  });

  it('pods in members are let outlive an outage, and nothing else of what they are is changed', async () => {
    const present = { key: 'a', operator: 'Exists' };
    const outage = { key: 'node.kubernetes.io/unreachable', operator: 'Equal', effect: 'NoExecute' };
    await host.apply([
      plainPod('in-member', 'default', { spec: { nodeName: 'east', tolerations: [present] } }),
      plainPod('on-host', 'default', { spec: { nodeName: 'worker', tolerations: [present] } }),
    ]);
    const status = { conditions: [{ type: 'spillway.dev/Mirrored', status: 'True' }] };
    await host.api.call('PATCH', `${at('in-member')}/status`, { status });
    const tolerationsOf = async (name: string): Promise<object[]> =>
      ((await host.api.call('GET', at(name))) as { spec: { tolerations: object[] } }).spec.tolerations;
    const give = async (name: string, given: object, more: object = {}): Promise<unknown> =>
      await thief.call('PATCH', at(name), { spec: { tolerations: [given, ...(await tolerationsOf(name))], ...more } });
    for (const [name, given, more] of [
      ['on-host', outage, {}],
      ['open', outage, {}],
      ['in-member', { ...outage, key: 'other' }, {}],
      ['in-member', { ...outage, effect: 'NoSchedule' }, {}],
      ['in-member', { ...outage, operator: 'Exists' }, {}],
      ['in-member', outage, image.spec],
      ['in-member', outage, { activeDeadlineSeconds: 1 }],
    ] as const) {
      const tried = give(name, given, more);
      await expect(tried, `${name} ${JSON.stringify([given, more])}`).rejects.toThrow('Spillway may change');
    }
    await give('in-member', outage);
    const tolerations = await tolerationsOf('in-member');
    expect(tolerations[0]).toEqual(outage);
    // Those that were there cannot be shortened: neither what admission gave, nor what the manager gave itself.
    for (const which of ['Exists', 'Equal']) {
      const shortened = tolerations.map((one) => {
        const { effect, operator } = one as { effect?: string; operator?: string };
        return effect === 'NoExecute' && operator === which ? { ...one, tolerationSeconds: 1 } : one;
      });
      expect(shortened).not.toEqual(tolerations);
      const tried = thief.call('PATCH', at('in-member'), { spec: { tolerations: shortened } });
      await expect(tried, which).rejects.toThrow('Spillway may change');
    }
  });

  it.each([
    ['of no certain UID', { preconditions: {} }],
    ['at once', { gracePeriodSeconds: 0 }],
    ['with what it owns left behind', { propagationPolicy: 'Orphan' }],
  ])('none is evicted %s', async (_, options) => {
    const { metadata } = (await host.api.call('GET', at('open'))) as { metadata: { uid: string } };
    const preconditions = { uid: metadata.uid };
    await expect(evict({ preconditions, ...options })).rejects.toThrow('Spillway may only evict');
    await evict({ preconditions });
  });

  it('deletions are ended that others began, and none is begun', async () => {
    for (const query of ['', '&gracePeriodSeconds=0']) {
      await expect(thief.call('DELETE', `${at('bound')}?dryRun=All${query}`)).rejects.toThrow(
        'Spillway may only end deletions of pods that others began',
      );
    }
    await thief.call('DELETE', `${at('ending')}?dryRun=All&gracePeriodSeconds=0`);
  });

  it.each([
    { metadata: { labels: { app: 'other' } } },
    { metadata: KEPT },
    { metadata: { annotations: { any: 'x' } } },
    { metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-1' } } },
  ])('by way of its status this is not changed: %j', async (body) => {
    const patched = thief.call('PATCH', `${at('bound')}/status?dryRun=All`, body);
    await expect(patched).rejects.toThrow('Spillway may change nothing of a pod but its status');
  });

  it('the status is reported of pods with a node', async () => {
    await report('bound');
    await expect(report('open')).rejects.toThrow(NOT_ITS_WORK);
  });

  it('are those of certain nodes only, where RBAC says which, and so are Leases of nodes', async () => {
    const lease = (name: string) => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace: 'kube-node-lease' },
      spec: { holderIdentity: name, leaseDurationSeconds: 40 },
    });
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?dryRun=All';
    await host.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-node-lease' } }]);
    await serveOnly(host, ['west'], async () => {
      await untilRefused(() => report('bound'), NOT_ITS_WORK);
      const ended = thief.call('DELETE', `${at('ending')}?dryRun=All&gracePeriodSeconds=0`);
      await expect(ended).rejects.toThrow(NOT_ITS_WORK);
      await expect(thief.call('POST', leases, lease('east'))).rejects.toThrow('Spillway may only write Leases');
      await thief.call('POST', leases, lease('west'));
    });
    await until('it may again', async () => (await report('bound').catch(() => undefined)) !== undefined);
    await thief.call('POST', leases, lease('east'));
    // Its owner is the Node of that name, and nobody else: with an owner that is gone it would go, too.
    const ownedBy = (kind: string, name: string): object => {
      const { metadata, ...rest } = lease('east');
      return { ...rest, metadata: { ...metadata, ownerReferences: [{ apiVersion: 'v1', kind, name, uid: 'x' }] } };
    };
    await thief.call('POST', leases, ownedBy('Node', 'east'));
    for (const [kind, name] of [
      ['Node', 'west'],
      ['ConfigMap', 'east'],
    ] as const) {
      const written = thief.call('POST', leases, ownedBy(kind, name));
      await expect(written, `${kind} ${name}`).rejects.toThrow('no owners but the Node');
    }
  });
});

describe('what else it writes', () => {
  const write = async (path: string, body: object): Promise<unknown> =>
    await thief.call('POST', `${path}?dryRun=All`, body);

  it('Events are its own', async () => {
    const events = '/api/v1/namespaces/default/events';
    const event = (name: string, reportingComponent: string) => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: 'default' },
      involvedObject: { kind: 'Pod', namespace: 'default', name: 'a' },
      reason: 'Any',
      reportingComponent,
    });
    await untilRefused(() => write(events, event('stray', 'kubelet')), 'Spillway may only write Events of its own');
    await host.apply([event('theirs', 'kubelet')]);
    await thief.call('POST', events, event('ours', 'spillway'));
    await thief.call('PATCH', `${events}/ours`, { count: 2, message: 'again' });
    for (const [name, body] of [
      ['theirs', { message: 'x' }],
      ['theirs', { metadata: KEPT }],
      ['theirs', { reportingComponent: 'spillway' }],
      ['ours', { reportingComponent: 'kubelet' }],
      ['ours', { involvedObject: { name: 'b' } }],
      ['ours', { metadata: KEPT }],
      ['ours', { metadata: OWNED }],
    ] as const) {
      const patched = thief.call('PATCH', `${events}/${name}?dryRun=All`, body);
      await expect(patched, `${name} ${JSON.stringify(body)}`).rejects.toThrow('spillway-event-guard');
    }
  });

  it('Leases are its own', async () => {
    const leases = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases';
    const lease = (name: string, metadata: object = {}) => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace: 'spillway-system', ...metadata },
      spec: { holderIdentity: 'x' },
    });
    await untilRefused(() => write(leases, lease('any')), 'Spillway may only write Leases of its own');
    await host.apply([lease('spillway-kube-scheduler')]);
    const there = (await thief.call('GET', `${leases}/spillway-kube-scheduler`)) as object;
    const taken = thief.call('PUT', `${leases}/spillway-kube-scheduler`, { ...there, spec: { holderIdentity: 'y' } });
    await expect(taken).rejects.toThrow('Spillway may only write Leases of its own');
    const refused = 'Leases of Spillway have no finalizers, and no owners but the Node';
    const node = { apiVersion: 'v1', kind: 'Node', name: 'spillway-scheduler', uid: 'x' };
    for (const metadata of [KEPT, OWNED, { ownerReferences: [node] }]) {
      await expect(write(leases, lease('spillway-scheduler', metadata)), JSON.stringify(metadata)).rejects.toThrow(
        refused,
      );
    }
    await write(leases, lease('spillway-scheduler'));
    await write(leases, lease('spillway-member-east'));
    const refusal = 'Spillway may only remove Leases of members';
    await untilRefused(() => thief.call('DELETE', `${leases}/spillway-kube-scheduler?dryRun=All`), refusal);
    await host.apply([lease('spillway-member-east')]);
    await thief.call('DELETE', `${leases}/spillway-member-east`);
  });

  it('of a MemberCluster it is its own finalizer', async () => {
    const path = '/apis/spillway.dev/v1alpha1/memberclusters/guarded';
    const patch = async (body: object): Promise<unknown> => await thief.call('PATCH', `${path}?dryRun=All`, body);
    const refusal = 'Spillway may change nothing of a MemberCluster but its own finalizer';
    const secretRef = { namespace: 'spillway-system', name: 'east' };
    const kept = ['example.com/never'];
    const metadata = { name: 'guarded', finalizers: kept, labels: { a: 'b' }, annotations: { c: 'd' } };
    const object = { apiVersion: 'spillway.dev/v1alpha1', kind: 'MemberCluster', metadata };
    await host.apply([{ ...object, spec: { credentials: { secretRef } } }]);
    await untilRefused(() => patch({ spec: { unschedulable: true } }), refusal);
    for (const metadata of [
      { finalizers: [] },
      { finalizers: ['example.com/other', ...kept] },
      { labels: { a: 'c' } },
      { labels: { more: 'x' } },
      { annotations: { c: null } },
      { annotations: { 'spillway.dev/force-leave': 'x' } },
      OWNED,
    ]) {
      await expect(patch({ metadata }), JSON.stringify(metadata)).rejects.toThrow(refusal);
    }
    await thief.call('PATCH', path, { metadata: { finalizers: [...kept, 'spillway.dev/leaving'] } });
    await thief.call('PATCH', path, { metadata: { finalizers: kept } });
    await expect(thief.call('DELETE', path)).rejects.toThrow('forbidden');
  });

  it('of Secrets it is those with its certificates, and no tokens are made by it', async () => {
    const secrets = '/api/v1/namespaces/spillway-system/secrets';
    const secret = (name: string, more: { type?: string; metadata?: object } = {}) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      ...more,
      metadata: { name, namespace: 'spillway-system', ...more.metadata },
    });
    await untilRefused(() => write(secrets, secret('any')), 'Spillway may only write the Secrets with its');
    const annotations = { 'kubernetes.io/service-account.name': 'spillway-scheduler' };
    const token = { type: 'kubernetes.io/service-account-token', metadata: { annotations } };
    await expect(write(secrets, secret('any', token))).rejects.toThrow('Spillway may only write the Secrets');
    await expect(write(secrets, secret('spillway-webhook', token))).rejects.toThrow('nothing but data');
    const refusal = 'Secrets of Spillway have no owners and no finalizers';
    for (const name of ['spillway-webhook', 'spillway-scheduler', 'spillway-scheduler-client']) {
      for (const metadata of [OWNED, KEPT])
        await expect(write(secrets, secret(name, { metadata })), JSON.stringify(metadata)).rejects.toThrow(refusal);
      await write(secrets, secret(name, { type: 'Opaque' }));
      const made = (await thief.call('POST', secrets, secret(name))) as { metadata: object };
      for (const given of [OWNED, KEPT]) {
        const metadata = { ...made.metadata, ...given };
        const changed = thief.call('PUT', `${secrets}/${name}?dryRun=All`, { ...made, metadata });
        await expect(changed, JSON.stringify(given)).rejects.toThrow(refusal);
      }
    }
  });

  it('of the credentials of a member it is the token, where the Secret says so', async () => {
    const secrets = '/api/v1/namespaces/spillway-system/secrets';
    const data = { kubeconfig: 'YQ==', token: 'Yg==' };
    const member = (name: string, labels: object) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'spillway-system', labels },
      data,
    });
    await host.apply([
      member('member-east', { 'spillway.dev/renew-token': 'true' }),
      member('member-west', { 'spillway.dev/renew-token': 'false' }),
      member('member-north', {}),
    ]);
    const patch = async (name: string, body: object): Promise<unknown> =>
      await thief.call('PATCH', `${secrets}/${name}?dryRun=All`, body);
    await patch('member-east', { data: { token: 'Yw==' } });
    for (const body of [
      { data: { kubeconfig: 'Yw==' } },
      { data: { kubeconfig: null } },
      { data: { token: 'Yw==', other: 'Yw==' } },
      { metadata: { labels: { 'spillway.dev/renew-token': 'false' } } },
      { metadata: { annotations: { a: 'b' } } },
      { metadata: KEPT },
      { metadata: OWNED },
      { immutable: true },
    ]) {
      await expect(patch('member-east', body), JSON.stringify(body)).rejects.toThrow(
        'Spillway may only write the Secrets',
      );
    }
    for (const name of ['member-west', 'member-north']) {
      await expect(patch(name, { data: { token: 'Yw==' } }), name).rejects.toThrow(
        'Spillway may only write the Secrets',
      );
    }
  });

  it('of its webhook it is whom to trust', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/spillway-pod-defaults';
    const { webhooks } = (await host.api.call('GET', path)) as { webhooks: Record<string, unknown>[] };
    const [first = {}, ...others] = webhooks;
    const config = first['clientConfig'] as object;
    const change = async (body: object): Promise<unknown> => await thief.call('PATCH', `${path}?dryRun=All`, body);
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['secrets'] }];
    const refusal = 'Spillway may change nothing of a webhook but whom to trust';
    await untilRefused(() => change({ webhooks: [{ ...first, rules }, ...others] }), refusal);
    for (const body of [
      { webhooks: [{ ...first, namespaceSelector: {} }, ...others] },
      { webhooks: [{ ...first, matchConditions: [] }, ...others] },
      { webhooks: [{ ...first, failurePolicy: 'Fail' }, ...others] },
      { webhooks: [{ ...first, clientConfig: { url: 'https://thief.example' } }, ...others] },
      { webhooks: [{ ...first, clientConfig: { service: { namespace: 'default', name: 'theirs' } } }, ...others] },
      { webhooks: [...webhooks, { ...first, name: 'another.pods.spillway.dev' }] },
      { webhooks: [{ ...first, name: 'another.pods.spillway.dev' }, ...others] },
      { webhooks: others },
      { metadata: KEPT },
      { metadata: OWNED },
    ]) {
      await expect(change(body), JSON.stringify(body)).rejects.toThrow(refusal);
    }
    const caBundle = Buffer.from(host.caPem).toString('base64');
    await change({ webhooks: [{ ...first, clientConfig: { ...config, caBundle } }, ...others] });
  });

  it('WorkloadPlacements hold nothing up', async () => {
    const workload = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'a-b' };
    const placement = (metadata: object) => ({
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'WorkloadPlacement',
      metadata: { name: 'deployment-web', namespace: 'default', ...metadata },
      spec: { workload },
    });
    const placements = '/apis/spillway.dev/v1alpha1/namespaces/default/workloadplacements';
    const refusal = 'WorkloadPlacements of Spillway have no finalizers';
    await untilRefused(() => write(placements, placement(KEPT)), refusal);
    for (const owner of [
      { ...workload, blockOwnerDeletion: true },
      { ...workload, controller: true },
      { ...workload, uid: 'c-d' },
    ]) {
      await expect(write(placements, placement({ ownerReferences: [owner] }))).rejects.toThrow(refusal);
    }
    await write(placements, placement({ ownerReferences: [workload] }));
  });
});
