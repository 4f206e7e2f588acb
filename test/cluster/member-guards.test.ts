import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Api } from '../../hack/api-access.ts';
import { repositoryRoot } from '../../hack/repository.ts';
import { until } from '../../hack/until.ts';
import {
  defaultAccount,
  type Guarded,
  HOST_ACCOUNT,
  KEPT,
  OWNED,
  plainPod,
  startGuarded,
  untilRefused,
} from './guard-harness.ts';

/** What a thief of a host's kubeconfig can do in a dedicated member, where RBAC names no namespaces. */
let guarded: Guarded;
let thief: Api;

const ours = { 'spillway.dev/host': 'h1' };
const LEVEL = 'pod-security.kubernetes.io/enforce';
const level = (value: string): object => ({ ...ours, [LEVEL]: value });
const theirs = { app: 'shop' };
const make = async (namespace: string, plural: string, body: object): Promise<unknown> =>
  await thief.call('POST', `/api/v1/namespaces/${namespace}/${plural}?dryRun=All`, body);
const object = (kind: string, name: string, labels: object, more: object = {}) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, labels, ...more },
});
const secret = (labels: object, more: object = {}) => object('Secret', 'x', labels, more);
const space = (name: string, labels: object = {}, more: object = {}) => object('Namespace', name, labels, more);

beforeAll(async () => {
  const files = ['read.yaml', 'dedicated.yaml', 'services.yaml', 'multi-cluster.yaml', 'guard.yaml', 'token.yaml'].map(
    (file) => `member/${file}`,
  );
  guarded = await startGuarded(HOST_ACCOUNT, 'multi-cluster/crds.yaml', ...files);
  ({ thief } = guarded);
  await guarded.cluster.apply([
    space('lent', { 'spillway.dev/allow-host': 'h1' }),
    space('lent-to-any', { 'spillway.dev/allow-host': 'any' }),
    space('made', ours),
    space('lent-to-another', { 'spillway.dev/allow-host': 'h2' }),
    space('of-another', { 'spillway.dev/host': 'h2', 'spillway.dev/allow-host': 'any' }),
    space('private'),
    space('spillway-system'),
    ...['lent', 'kube-system'].flatMap((namespace) => [
      defaultAccount(namespace),
      plainPod('ours', namespace, { labels: ours, spec: { nodeName: 'n' } }),
      plainPod('theirs', namespace, { labels: theirs, spec: { nodeName: 'n' } }),
      object('Secret', 'ours', ours, { namespace }),
      object('Secret', 'theirs', theirs, { namespace }),
      { ...object('Service', 'theirs', theirs, { namespace }), spec: { ports: [{ port: 80 }] } },
    ]),
  ]);
  await untilRefused(() => make('private', 'secrets', secret(ours)), 'a host may only use namespaces');
  const root = space('kube-x', level('baseline'));
  await untilRefused(() => thief.call('POST', '/api/v1/namespaces?dryRun=All', root), 'of the cluster itself');
  const exec = '/api/v1/namespaces/kube-system/pods/theirs/exec?command=true&stdout=true';
  await untilRefused(() => thief.call('POST', exec), 'a host may only use namespaces');
});
afterAll(() => guarded?.close());

it.each(['lent', 'lent-to-any', 'made'])('its own objects can be made in namespace %s', async (namespace) => {
  await make(namespace, 'secrets', secret(ours));
  await make(namespace, 'configmaps', object('ConfigMap', 'x', ours));
});

it.each(['private', 'lent-to-another', 'of-another', 'default', 'kube-system', 'kube-public', 'spillway-system'])(
  'nothing can be made in namespace %s',
  async (namespace) => {
    await expect(make(namespace, 'secrets', secret(ours))).rejects.toThrow(
      /a host may only use namespaces|of the cluster itself/,
    );
  },
);

it.each([
  ['without the label', secret({})],
  ['with an owner', secret(ours, OWNED)],
  ['with a finalizer', secret(ours, KEPT)],
  [
    'that makes a token of an account',
    {
      ...secret(ours, { annotations: { 'kubernetes.io/service-account.name': 'default' } }),
      type: 'kubernetes.io/service-account-token',
    },
  ],
])('no Secret can be made %s', async (_, body) => {
  await expect(make('lent', 'secrets', body)).rejects.toThrow('spillway-host-guard');
});

it.each([
  ['of its own pods', ours, { matchLabels: ours }, undefined],
  ['of all pods', ours, {}, 'disruption budgets of a host cover its own pods only'],
  ['of pods of others', ours, { matchLabels: theirs }, 'disruption budgets of a host cover its own pods only'],
  ['of pods of another host', ours, { matchLabels: { 'spillway.dev/host': 'h2' } }, 'cover its own pods only'],
  ['without the label', {}, { matchLabels: ours }, 'carries the label spillway.dev/host'],
])('whether a disruption budget %s can be made', async (_, labels, selector, refusal) => {
  const path = '/apis/policy/v1/namespaces/lent/poddisruptionbudgets?dryRun=All';
  const body = {
    ...object('PodDisruptionBudget', 'x', labels),
    apiVersion: 'policy/v1',
    spec: { minAvailable: 1, selector },
  };
  const made = thief.call('POST', path, body);
  if (refusal === undefined) await made;
  else await expect(made).rejects.toThrow(refusal);
});

it.each<[string, object, object, string | undefined]>([
  ['with a cluster IP', ours, {}, undefined],
  ['that is a name', ours, { type: 'ExternalName', externalName: 'x.example.com' }, undefined],
  ['without the label', {}, {}, 'carries the label spillway.dev/host'],
  ['with a selector', ours, { selector: theirs }, 'Services of a host have a cluster IP'],
  ['with ports of nodes', ours, { type: 'NodePort' }, 'Services of a host have a cluster IP'],
  ['with a load balancer', ours, { type: 'LoadBalancer' }, 'Services of a host have a cluster IP'],
  ['with external IPs', ours, { externalIPs: ['192.0.2.1'] }, 'Services of a host have a cluster IP'],
])('whether a Service %s can be made', async (_, labels, spec, refusal) => {
  const body = { ...object('Service', 'x', labels), spec: { ports: [{ port: 80 }], ...spec } };
  const made = make('lent', 'services', body);
  if (refusal === undefined) await made;
  else await expect(made).rejects.toThrow(refusal);
});

it.each([
  ['of its own', { ...ours, 'endpointslice.kubernetes.io/managed-by': 'spillway.dev' }, undefined],
  ['that nobody manages', ours, 'EndpointSlices of a host say that spillway.dev manages them'],
  ['without the label', { 'endpointslice.kubernetes.io/managed-by': 'spillway.dev' }, 'carries the label'],
])('whether an EndpointSlice %s can be made', async (_, labels, refusal) => {
  const path = '/apis/discovery.k8s.io/v1/namespaces/lent/endpointslices?dryRun=All';
  const body = { ...object('EndpointSlice', 'x', labels), apiVersion: 'discovery.k8s.io/v1', addressType: 'IPv4' };
  const made = thief.call('POST', path, { ...body, endpoints: [] });
  if (refusal === undefined) await made;
  else await expect(made).rejects.toThrow(refusal);
});

it.each([
  ['of its own', 'lent', ours, undefined],
  ['without the label', 'lent', {}, 'carries the label spillway.dev/host'],
  ['where nothing is lent', 'private', ours, 'a host may only use namespaces'],
])('whether a ServiceImport %s can be made', async (_, namespace, labels, refusal) => {
  const path = `/apis/multicluster.x-k8s.io/v1beta1/namespaces/${namespace}/serviceimports?dryRun=All`;
  const body = { ...object('ServiceImport', 'x', labels), apiVersion: 'multicluster.x-k8s.io/v1beta1' };
  const made = thief.call('POST', path, { ...body, spec: { type: 'Headless', ports: [] } });
  if (refusal === undefined) await made;
  else await expect(made).rejects.toThrow(refusal);
});

it('of a ServiceExport nothing but the status is changed, and a ServiceImport of others stays', async () => {
  const group = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/lent';
  const apiVersion = 'multicluster.x-k8s.io/v1beta1';
  const { api } = guarded.cluster;
  await api.call('POST', `${group}/serviceexports`, { ...object('ServiceExport', 'x', theirs), apiVersion });
  const spec = { type: 'Headless', ports: [] };
  await api.call('POST', `${group}/serviceimports`, { ...object('ServiceImport', 'theirs', theirs), apiVersion, spec });
  const change = { metadata: { labels: ours }, spec: { exportedLabels: { a: 'b' } } };
  await expect(thief.call('PATCH', `${group}/serviceexports/x`, change)).rejects.toThrow('forbidden');
  const told = await thief.call('PATCH', `${group}/serviceexports/x/status`, { ...change, status: { conditions: [] } });
  expect(told).not.toHaveProperty('spec.exportedLabels');
  expect(told).not.toHaveProperty(['metadata', 'labels', 'spillway.dev/host']);
  for (const path of ['theirs', 'theirs/status'])
    await expect(
      thief.call('PATCH', `${group}/serviceimports/${path}`, { metadata: { labels: ours } }),
    ).rejects.toThrow('may only change and delete what it made');
  await expect(thief.call('DELETE', `${group}/serviceimports/theirs`)).rejects.toThrow('may only change and delete');
});

it.each([
  ['pods', 'theirs', { metadata: { labels: ours } }],
  ['pods', 'theirs', { metadata: { annotations: { a: 'b' } } }],
  ['pods', 'ours', { metadata: { labels: { 'spillway.dev/host': null } } }],
  ['pods', 'ours', { metadata: { labels: { 'spillway.dev/host': 'h2' } } }],
  ['pods', 'ours', { metadata: OWNED }],
  ['pods', 'ours', { metadata: KEPT }],
  ['pods', 'theirs/ephemeralcontainers', { spec: { ephemeralContainers: [{ name: 'x', image: 'x' }] } }],
  ['secrets', 'theirs', { metadata: { labels: ours } }],
  ['secrets', 'theirs', { stringData: { a: 'b' } }],
])('of %s %s this cannot be changed: %j', async (plural, path, body) => {
  const patched = thief.call('PATCH', `/api/v1/namespaces/lent/${plural}/${path}?dryRun=All`, body);
  await expect(patched).rejects.toThrow('spillway-host-guard');
});

it('a Service of others is neither replaced nor deleted', async () => {
  const path = '/api/v1/namespaces/lent/services/theirs';
  const found = (await guarded.cluster.api.call('GET', path)) as { metadata: { labels: object } };
  const taken = { ...found, metadata: { ...found.metadata, labels: ours } };
  for (const body of [found, taken]) {
    await expect(thief.call('PUT', `${path}?dryRun=All`, body)).rejects.toThrow(
      'may only change and delete what it made',
    );
  }
  await expect(thief.call('DELETE', `${path}?dryRun=All`)).rejects.toThrow('may only change and delete what it made');
});

it('its own objects can be changed and deleted, and no others', async () => {
  for (const plural of ['pods', 'secrets']) {
    const path = `/api/v1/namespaces/lent/${plural}`;
    await thief.call('PATCH', `${path}/ours?dryRun=All`, { metadata: { annotations: { a: 'b' } } });
    await thief.call('DELETE', `${path}/ours?dryRun=All`);
    for (const namespace of ['lent', 'kube-system']) {
      const deleted = thief.call('DELETE', `/api/v1/namespaces/${namespace}/${plural}/theirs?dryRun=All`);
      await expect(deleted, namespace).rejects.toThrow('a host may only change and delete what it made');
    }
  }
});

it.each([
  ['of the cluster itself', space('openshift-x', level('baseline'))],
  ['of its own account', space('spillway-access', level('baseline'))],
  ['without the label', space('x', { [LEVEL]: 'baseline' })],
  ['without a Pod Security level', space('x', ours)],
  ['for privileged pods', space('x', level('privileged'))],
  [
    'whose pods are judged by old rules',
    space('x', { ...level('baseline'), 'pod-security.kubernetes.io/enforce-version': 'v1.0' }),
  ],
  ['with a finalizer', space('x', level('baseline'), KEPT)],
  // It would go as soon as the garbage collector looks for that owner, and whatever others have put there with it.
  ['with an owner', space('x', level('baseline'), OWNED)],
])('no namespace %s can be made', async (_, body) => {
  const made = thief.call('POST', '/api/v1/namespaces?dryRun=All', body);
  await expect(made).rejects.toThrow('spillway-host-namespace-guard');
});

it('a namespace can be made, and used at once', async () => {
  for (const name of ['new-1', 'new-2', 'new-3', 'new-4', 'new-5']) {
    await thief.call('POST', '/api/v1/namespaces', space(name, level(name === 'new-1' ? 'restricted' : 'baseline')));
    await thief.call('POST', `/api/v1/namespaces/${name}/secrets`, secret(ours));
  }
});

it.each(['new-1', 'made', 'lent', 'private', 'kube-system'])(
  'the level of namespace %s stays as it is',
  async (name) => {
    const patched = thief.call('PATCH', `/api/v1/namespaces/${name}?dryRun=All`, {
      metadata: { labels: level('privileged') },
    });
    await expect(patched).rejects.toThrow('cannot patch resource');
  },
);

it('namespaces for privileged pods are made where the owner of the member grants it', async () => {
  const make = async (): Promise<unknown> =>
    await thief.call('POST', '/api/v1/namespaces?dryRun=All', space('new', level('privileged')));
  await expect(make()).rejects.toThrow('the owner of this cluster applies manifests/member/privileged.yaml');
  await guarded.cluster.apply(readFileSync(join(repositoryRoot(), 'manifests/member/privileged.yaml'), 'utf8'));
  await until('it is granted', () =>
    make().then(
      () => true,
      () => false,
    ),
  );
  await guarded.cluster.kubectl(['delete', 'clusterrolebinding', 'spillway-privileged']);
});

it('only a namespace that it made is removed', async () => {
  const remove = async (name: string): Promise<unknown> =>
    await thief.call('DELETE', `/api/v1/namespaces/${name}?dryRun=All`);
  await untilRefused(() => remove('private'), 'a host may only remove namespaces that it made');
  for (const name of ['lent', 'lent-to-any', 'spillway-system', 'default', 'kube-system'])
    await expect(remove(name), name).rejects.toThrow();
  await guarded.cluster.kubectl(['label', 'namespace', 'spillway-system', 'spillway.dev/host=h1']);
  await expect(remove('spillway-system')).rejects.toThrow('namespaces of the cluster itself are not for hosts');
  await guarded.cluster.kubectl(['label', 'namespace', 'spillway-system', 'spillway.dev/host-']);
  await remove('made');
});

it('what it made goes also when its namespace is not lent any more', async () => {
  await guarded.cluster.apply([space('withdrawn', { 'spillway.dev/allow-host': 'h1' })]);
  const secrets = '/api/v1/namespaces/withdrawn/secrets';
  await thief.call('POST', secrets, secret(ours));
  await guarded.cluster.kubectl(['label', 'namespace', 'withdrawn', 'spillway.dev/allow-host-']);
  await untilRefused(
    () => make('withdrawn', 'secrets', { ...secret(ours), metadata: { name: 'y', labels: ours } }),
    'only use',
  );
  await thief.call('DELETE', `${secrets}/x`);
});

it.each(['exec?command=true&stdout=true', 'attach?stdout=true', 'portforward'])(
  'where nothing is lent %s is refused',
  async (stream) => {
    const refusal = 'a host may only use namespaces';
    const opened = thief.call('POST', `/api/v1/namespaces/kube-system/pods/theirs/${stream}`);
    await expect(opened).rejects.toThrow(refusal);
    // No kubelet answers here.
    await expect(thief.call('POST', `/api/v1/namespaces/lent/pods/ours/${stream}`)).rejects.not.toThrow(refusal);
  },
);

it('tokens are for itself, and for seven days at most', async () => {
  const token = async (spec: object, account = 'spillway-access/serviceaccounts/spillway-host'): Promise<unknown> =>
    await thief.call('POST', `/api/v1/namespaces/${account}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
    });
  await untilRefused(() => token({ expirationSeconds: 604_801 }), 'lasts for seven days at most');
  await token({ expirationSeconds: 604_800 });
  await token({});
  const others = ['lent/serviceaccounts/spillway-host', 'spillway-access/serviceaccounts/other'];
  await guarded.cluster.apply([
    object('ServiceAccount', 'spillway-host', {}, { namespace: 'lent' }),
    object('ServiceAccount', 'other', {}, { namespace: 'spillway-access' }),
  ]);
  for (const other of others) await expect(token({}, other), other).rejects.toThrow('cannot create resource');
  // The policy holds also where somebody grants more than token.yaml does.
  const authorization = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'any-token' } };
  const rules = [{ apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] }];
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'any-token' };
  const subjects = [{ kind: 'ServiceAccount', name: 'spillway-host', namespace: 'spillway-access' }];
  await guarded.cluster.apply([
    { ...authorization, kind: 'ClusterRole', rules },
    { ...authorization, kind: 'ClusterRoleBinding', roleRef, subjects },
  ]);
  for (const other of others) await untilRefused(() => token({}, other), 'only have tokens of its own account');
  await guarded.cluster.kubectl(['delete', 'clusterrole,clusterrolebinding', 'any-token']);
});
