import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Api } from '../../hack/api-access.ts';
import { startCluster } from '../../hack/cluster.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';

const MANAGER = 'system:serviceaccount:spillway-system:spillway-manager';
const HOST_ACCOUNT = 'system:serviceaccount:spillway-access:spillway-host';

let workspace: Workspace;
/** Host and dedicated member in one; rights of the two accounts do not meet. */
let cluster: Cluster;
let lent: Cluster;

beforeAll(async () => {
  workspace = Workspace.create();
  [cluster, lent] = await Promise.all([
    startCluster(workspace, { name: 'host', components: 'api-only' }),
    startCluster(workspace, { name: 'lent', components: 'api-only' }),
  ]);
  await Promise.all([
    install(
      cluster,
      'crds/spillway.dev_memberclusters.yaml',
      'rbac.yaml',
      'node-guard.yaml',
      'member/read.yaml',
      'member/dedicated.yaml',
    ),
    install(lent, 'member/read.yaml', 'member/namespaced.yaml'),
  ]);
  await until('the kinds are served', async () => {
    await cluster.api.call('GET', '/apis/spillway.dev/v1alpha1/memberclusters');
    return true;
  });
});
afterAll(async () => {
  await workspace.close();
});

async function install(into: Cluster, ...files: string[]): Promise<void> {
  for (const file of files) await into.apply(manifest(file));
}
function manifest(file: string): string {
  return readFileSync(new URL(`../../manifests/${file}`, import.meta.url), 'utf8');
}

/** `verb resource[.group][/subresource] [namespace][/name]`; without a namespace it is asked for all of them. */
async function may(where: Cluster, user: string, question: string): Promise<boolean> {
  const [verb, what = '', place = ''] = question.split(' ');
  const [full = '', subresource] = what.split('/');
  const [resource, ...group] = full.split('.');
  const [namespace, name] = place.split('/');
  const resourceAttributes = { verb, resource, group: group.join('.'), subresource, namespace, name };
  const answer = await where.api.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups: ['system:authenticated', 'system:serviceaccounts'], resourceAttributes },
  });
  return (answer as { status: { allowed: boolean } }).status.allowed;
}

const manager = {
  yes: [
    'list memberclusters.spillway.dev',
    'watch memberclusters.spillway.dev',
    'patch memberclusters.spillway.dev/status',
    'get nodes',
    'watch nodes',
    'create nodes',
    'patch nodes',
    'patch nodes/status',
    'list pods',
    'watch pods',
    'delete pods',
    'patch pods/status',
    'create events',
    'patch events',
    'list services',
    'get secrets',
    'watch configmaps',
    'get namespaces /kube-system',
    'create tokenreviews.authentication.k8s.io',
    'create subjectaccessreviews.authorization.k8s.io',
    'create certificatesigningrequests.certificates.k8s.io',
    'get configmaps kube-system/extension-apiserver-authentication',
    'create leases.coordination.k8s.io kube-node-lease',
    'update leases.coordination.k8s.io kube-node-lease',
    'update leases.coordination.k8s.io spillway-system',
  ],
  no: [
    'patch memberclusters.spillway.dev',
    'delete memberclusters.spillway.dev',
    'delete nodes',
    'get nodes/proxy',
    'create nodes/proxy',
    'create pods',
    'patch pods',
    'create pods/exec',
    'create pods/eviction',
    'create pods/binding',
    'create secrets',
    'patch secrets',
    'delete configmaps',
    'list namespaces',
    'get namespaces /default',
    'create serviceaccounts/token',
    'update leases.coordination.k8s.io kube-system',
    'delete leases.coordination.k8s.io spillway-system',
    'update certificatesigningrequests.certificates.k8s.io/approval',
    'create clusterrolebindings.rbac.authorization.k8s.io',
    'escalate clusterroles.rbac.authorization.k8s.io',
    'bind clusterroles.rbac.authorization.k8s.io',
    'impersonate users',
  ],
};

const memberEverywhere = {
  yes: ['watch nodes', 'watch pods', 'watch namespaces', 'get namespaces', 'list pods.metrics.k8s.io'],
  no: [
    'patch nodes',
    'get nodes/proxy',
    'delete namespaces',
    'patch namespaces',
    'create pods/eviction',
    'patch pods/status',
    'create serviceaccounts/token',
    'create rolebindings.rbac.authorization.k8s.io',
    'impersonate users',
  ],
};
const workloads = [
  'create pods',
  'patch pods',
  'delete pods',
  'get pods/log',
  'create pods/exec',
  'get pods/exec',
  'create pods/attach',
  'create pods/portforward',
  'patch pods/ephemeralcontainers',
  'patch pods/resize',
  'create secrets',
  'update configmaps',
  'delete secrets',
  'watch events',
];

describe('the manager in the host', () => {
  it.each(manager.yes)('may %s', async (question) => {
    expect(await may(cluster, MANAGER, question)).toBe(true);
  });
  it.each(manager.no)('may not %s', async (question) => {
    expect(await may(cluster, MANAGER, question)).toBe(false);
  });

  it('may write virtual nodes, and only those', async () => {
    const { server, ca } = cluster.adminAccess;
    const asManager = new Api(server, ca, await cluster.issueClient(MANAGER));
    const node = (name: string, labels: object) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const create = async (name: string, labels: object) =>
      await asManager.call('POST', '/api/v1/nodes', node(name, labels));
    const patch = async (path: string, body: object) => await asManager.call('PATCH', `/api/v1/nodes/${path}`, body);
    await cluster.apply([node('real', {})]);
    // The policy takes a moment to be in force.
    await until('the guard is in force', async () => {
      const path = '/api/v1/nodes?dryRun=All';
      const answer = await asManager.call('POST', path, node('stray', {})).catch((error: unknown) => String(error));
      return String(answer).includes('Spillway may only write Nodes that carry the label spillway.dev/member');
    });
    await create('east', { 'spillway.dev/member': 'east' });
    await patch('east', { spec: { unschedulable: true } });
    await patch('east/status', { status: { capacity: { cpu: '4' } } });
    for (const [path, body] of [
      ['real', { spec: { unschedulable: true } }],
      ['real', { metadata: { labels: { 'spillway.dev/member': 'east' } } }],
      ['real/status', { status: { capacity: { cpu: '1' } } }],
      ['east', { metadata: { labels: { 'spillway.dev/member': null } } }],
    ] as const) {
      await expect(patch(path, body)).rejects.toThrow('Spillway may only');
    }
    await asManager.close();
    expect(await cluster.kubectl(['label', 'node', 'real', 'a=b'])).toMatchObject({ code: 0 });
  });
});

describe('the host in a dedicated member', () => {
  it.each([...memberEverywhere.yes, 'create namespaces', ...workloads])('may %s', async (question) => {
    expect(await may(cluster, HOST_ACCOUNT, question)).toBe(true);
  });
  it.each(memberEverywhere.no)('may not %s', async (question) => {
    expect(await may(cluster, HOST_ACCOUNT, question)).toBe(false);
  });
});

describe('the host in a member that lends namespaces', () => {
  it.each([...memberEverywhere.yes, ...workloads.map((question) => `${question} shop`)])('may %s', async (question) => {
    expect(await may(lent, HOST_ACCOUNT, question)).toBe(true);
  });
  it.each([
    ...memberEverywhere.no,
    'create namespaces',
    ...workloads.filter((q) => !q.endsWith('events')).map((q) => `${q} default`),
  ])('may not %s', async (question) => {
    expect(await may(lent, HOST_ACCOUNT, question)).toBe(false);
  });
});

describe('the host in a member that shows what its nodes measure', () => {
  beforeAll(() => install(cluster, 'member/node-metrics.yaml'));

  it('may get from kubelets', async () => {
    await until('the right is in force', () => may(cluster, HOST_ACCOUNT, 'get nodes/proxy'));
  });
  it.each(['create nodes/proxy', 'patch nodes/proxy', 'delete nodes', 'patch nodes/status'])(
    'may not %s',
    async (question) => {
      expect(await may(cluster, HOST_ACCOUNT, question)).toBe(false);
    },
  );
});

describe('the other manifests', () => {
  it.each(['manager.yaml', 'samples/deployment.yaml'])('%s is accepted without a warning', async (file) => {
    const { stderr, code } = await cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: manifest(file) });
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  it('the manager fits the restricted level of its namespace', async () => {
    const documents = parseAllDocuments(manifest('manager.yaml')).map(
      (one) => one.toJS() as { kind: string; spec: { template: object } },
    );
    const deployment = documents.find(({ kind }) => kind === 'Deployment');
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x', namespace: 'spillway-system' },
      ...deployment?.spec.template,
    };
    Object.assign(pod.metadata, { name: 'x', namespace: 'spillway-system' });
    const { stderr } = await cluster.kubectl(['create', '--dry-run=server', '-f', '-'], { input: JSON.stringify(pod) });
    expect(stderr).not.toContain('violates PodSecurity');
  });
});
