import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Api } from '../../hack/api-access.ts';
import { startCluster } from '../../hack/cluster.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { type Right, rightsOf } from '../../hack/rights.ts';
import { GRANTS } from '../../hack/rights-page.ts';
import { Workspace } from '../../hack/workspace.ts';
import { newNodeRequest } from '../../src/kube/certificate-key.ts';

const MANAGER = 'system:serviceaccount:spillway-system:spillway-manager';
const SCHEDULER = 'system:serviceaccount:spillway-system:spillway-scheduler';
const HOST_ACCOUNT = 'system:serviceaccount:spillway-access:spillway-host';

let workspace: Workspace;
/** Host and dedicated member in one; rights of the two accounts do not meet. */
let cluster: Cluster;
/** Host where the manager has every right that can be added to the first, and a member that lends namespaces. */
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
      'storage.yaml',
      'member/read.yaml',
      'member/dedicated.yaml',
      'member/node-metrics.yaml',
    ),
    install(
      lent,
      'crds/spillway.dev_memberclusters.yaml',
      'rbac.yaml',
      'rbac-service-account.yaml',
      'scheduler/rbac.yaml',
      'scheduler/gangs.yaml',
      'scheduler/refusals.yaml',
      'scheduler/pod-guard.yaml',
      'admission/webhook.yaml',
      'node-guard.yaml',
      'storage.yaml',
      'member/read.yaml',
      'member/namespaced.yaml',
    ),
  ]);
  // Without the roles of Kubernetes itself that the file binds beside its own.
  const ownRole = parseAllDocuments(manifest('scheduler/second-scheduler.yaml'))
    .map((document) => document.toJS() as { kind: string; metadata: { name: string } })
    .filter(({ kind, metadata }) => kind.startsWith('Role') && metadata.name === 'spillway-kube-scheduler');
  await lent.apply(ownRole);
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

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** Every question that a line of the manifests says yes to. */
function questionsOf({ apiGroups, resources, verbs, namespace = '', resourceNames }: Right): string[] {
  const names = resourceNames.length === 0 ? [''] : resourceNames;
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) => names.map((name) => questionOf(verb, group, resource, namespace, name))),
    ),
  );
}

function questionOf(verb: string, group: string, resource: string, namespace: string, name: string): string {
  const [plural = '', subresource] = resource.split('/');
  const full = `${plural}${group === '' ? '' : `.${group}`}${subresource === undefined ? '' : `/${subresource}`}`;
  return `${verb} ${full} ${namespace}${name === '' ? '' : `/${name}`}`.trim();
}

/** What comes next to a line: its resources with all other verbs, in another namespace, under another name. */
function besides(right: Right, all: readonly Right[]): string[] {
  const everywhere = all.filter(
    ({ namespace, resourceNames }) => namespace === undefined && resourceNames.length === 0,
  );
  const granted = (verb: string, group: string, resource: string, within: readonly Right[]): boolean =>
    within.some((one) => one.verbs.includes(verb) && one.apiGroups.includes(group) && one.resources.includes(resource));
  const { namespace, resourceNames } = right;
  const here = all.filter((one) => one.namespace === undefined || one.namespace === namespace);
  return right.apiGroups.flatMap((group) =>
    right.resources.flatMap((resource) => [
      ...VERBS.filter((verb) => !granted(verb, group, resource, here)).map((verb) =>
        questionOf(verb, group, resource, namespace ?? '', ''),
      ),
      ...(namespace === undefined && resourceNames.length === 0
        ? []
        : VERBS.filter((verb) => !granted(verb, group, resource, everywhere)).map((verb) =>
            questionOf(verb, group, resource, namespace === undefined ? '' : 'elsewhere', 'another'),
          )),
    ]),
  );
}

interface Holding {
  what: string;
  user: string;
  where: () => Cluster;
  /** What was applied there, by file. */
  files: readonly string[];
  rights: Right[];
}

const granted = (...files: string[]): Pick<Holding, 'files' | 'rights'> => ({
  files,
  rights: GRANTS.filter((grant) => grant.files.some((file) => files.includes(file))).flatMap((grant) =>
    rightsOf(grant.files, grant.roles),
  ),
});
const HOLDINGS: readonly Holding[] = [
  { what: 'the manager', user: MANAGER, where: () => cluster, ...granted('rbac.yaml') },
  {
    what: 'the manager that does the work of nodes, and all that can be added',
    user: MANAGER,
    where: () => lent,
    ...granted(
      'rbac.yaml',
      'rbac-service-account.yaml',
      'scheduler/rbac.yaml',
      'scheduler/gangs.yaml',
      'scheduler/refusals.yaml',
      'admission/webhook.yaml',
    ),
  },
  {
    what: 'a second scheduler',
    user: SCHEDULER,
    where: () => lent,
    ...granted('scheduler/second-scheduler.yaml'),
  },
  {
    what: 'the host in a dedicated member that shows what its nodes measure',
    user: HOST_ACCOUNT,
    where: () => cluster,
    ...granted('member/read.yaml', 'member/dedicated.yaml', 'member/node-metrics.yaml'),
  },
  {
    what: 'the host in a member that lends namespaces',
    user: HOST_ACCOUNT,
    where: () => lent,
    ...granted('member/read.yaml', 'member/namespaced.yaml'),
  },
];

it('every grant is tried', () => {
  expect([...new Set(HOLDINGS.flatMap(({ files }) => files))].sort()).toEqual(
    GRANTS.flatMap(({ files }) => files).sort(),
  );
});

describe.each(HOLDINGS)('$what', ({ user, where, rights }) => {
  const lines = rights.map((right): [string, Right] => [
    `${right.verbs.join(', ')} ${right.resources.join(', ')} ${right.namespace ?? ''}`,
    right,
  ]);

  it('has rights that the manifests name', () => {
    const [namespace, name] = rights[0]?.account.split('/') ?? [];
    expect(`system:serviceaccount:${namespace}:${name}`).toBe(user);
    expect(new Set(rights.map(({ account }) => account)).size).toBe(1);
    expect(rights.flatMap(({ verbs, resources, apiGroups }) => [...verbs, ...resources, ...apiGroups])).not.toContain(
      '*',
    );
    for (const { why } of rights) expect(why).not.toBe('');
  });

  it.each(lines)('may %s', async (_, right) => {
    for (const question of questionsOf(right)) expect(await may(where(), user, question), question).toBe(true);
  });

  it.each(lines)('may no more than %s', async (_, right) => {
    const questions = besides(right, rights);
    expect(questions.length).toBeGreaterThan(0);
    for (const question of questions) expect(await may(where(), user, question), question).toBe(false);
  });
});

const manager = {
  yes: ['get configmaps kube-system/extension-apiserver-authentication'],
  /** What would be worth most to a thief. */
  never: [
    'patch memberclusters.spillway.dev',
    'delete nodes',
    'get nodes/proxy',
    'create nodes/proxy',
    'create pods',
    'create pods/exec',
    'create pods/binding',
    'create secrets',
    'patch secrets',
    'delete configmaps',
    'get namespaces',
    'patch namespaces',
    'create serviceaccounts/token',
    'update leases.coordination.k8s.io kube-system',
    'update certificatesigningrequests.certificates.k8s.io/approval',
    'sign signers.certificates.k8s.io',
    'create clusterrolebindings.rbac.authorization.k8s.io',
    'escalate clusterroles.rbac.authorization.k8s.io',
    'bind clusterroles.rbac.authorization.k8s.io',
    'impersonate users',
  ],
  /** The work of virtual nodes, which have identities of their own for it. */
  nodes: [
    'list secrets',
    'get secrets default/any',
    'get configmaps default/any',
    'list pods',
    'delete pods',
    'patch pods/status',
    'create nodes',
    'patch nodes/status',
    'update leases.coordination.k8s.io kube-node-lease',
    'create tokenreviews.authentication.k8s.io',
    'create subjectaccessreviews.authorization.k8s.io',
  ],
};

const inMembers = [
  'patch nodes',
  'delete nodes',
  'patch nodes/status',
  'create nodes/proxy',
  'delete namespaces',
  'patch namespaces',
  'create pods/eviction',
  'patch pods/status',
  'create serviceaccounts/token',
  'create rolebindings.rbac.authorization.k8s.io',
  'impersonate users',
];

describe('the manager in the host', () => {
  it.each(manager.yes)('may %s', async (question) => {
    expect(await may(cluster, MANAGER, question)).toBe(true);
  });
  it.each(manager.never)('may never %s', async (question) => {
    for (const one of [cluster, lent]) expect(await may(one, MANAGER, question), one.name).toBe(false);
  });
  it.each(manager.nodes)('may not %s, unless it does the work of nodes', async (question) => {
    expect(await may(cluster, MANAGER, question)).toBe(false);
    expect(await may(lent, MANAGER, question)).toBe(true);
  });

  it.each(['patch pods', 'get pods', 'create pods/eviction'])(
    'may not %s, unless it takes part in scheduling',
    async (question) => {
      expect(await may(cluster, MANAGER, question)).toBe(false);
      expect(await may(lent, MANAGER, question)).toBe(true);
    },
  );

  it('may change the deletion cost of pods and the place of gangs at their gate, and nothing else of them', async () => {
    const { server, ca } = lent.adminAccess;
    const asManager = new Api(server, ca, await lent.issueClient(MANAGER));
    const gates = [{ name: 'spillway.dev/gang' }, { name: 'example.com/wait' }];
    const containers = [{ name: 'main', image: 'app:v1' }];
    const tolerations = [{ operator: 'Exists' }];
    const pod = (name: string, schedulingGates: object[]) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', labels: { app: name } },
      spec: { containers, schedulingGates, tolerations, automountServiceAccountToken: false },
    });
    await lent.apply([
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'default' } },
      pod('gated', gates),
      pod('open', []),
    ]);
    const patch = async (name: string, body: object) =>
      await asManager.call('PATCH', `/api/v1/namespaces/default/pods/${name}`, body);
    const image = { spec: { containers: [{ ...containers[0], image: 'app:v2' }] } };
    // The policy takes a moment to be in force.
    await until('the guard is in force', async () =>
      String(await patch('open?dryRun=All', image).catch(String)).includes('Spillway may change'),
    );
    for (const [name, body] of [
      ['open', image],
      ['gated', image],
      ['open', { metadata: { labels: { app: 'other' } } }],
      ['gated', { metadata: { annotations: { other: 'x' } } }],
      ['gated', { metadata: { finalizers: ['example.com/mine'] } }],
      ['gated', { spec: { tolerations: [...tolerations, { key: 'a', operator: 'Exists' }] } }],
      ['gated', { spec: { schedulingGates: [] } }],
    ] as const) {
      await expect(patch(name, body), JSON.stringify(body)).rejects.toThrow('Spillway may change');
    }
    await patch('open', { metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-1' } } });
    await patch('gated', {
      metadata: { annotations: { 'spillway.dev/gang-placed-at': '2026-01-01T00:00:00Z' } },
      spec: { nodeSelector: { 'spillway.dev/member': 'east' } },
    });
    await patch('gated', { spec: { schedulingGates: gates.slice(1) } });
    await expect(patch('gated', { spec: { nodeSelector: { 'spillway.dev/member': 'east', a: 'b' } } })).rejects.toThrow(
      'Spillway may change',
    );
    await asManager.close();
  });

  it('may write virtual nodes, and only those', async () => {
    const { server, ca } = lent.adminAccess;
    const asManager = new Api(server, ca, await lent.issueClient(MANAGER));
    const node = (name: string, labels: object) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const create = async (name: string, labels: object) =>
      await asManager.call('POST', '/api/v1/nodes', node(name, labels));
    const patch = async (path: string, body: object) => await asManager.call('PATCH', `/api/v1/nodes/${path}`, body);
    await lent.apply([node('real', {})]);
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
    expect(await lent.kubectl(['label', 'node', 'real', 'a=b'])).toMatchObject({ code: 0 });
  });

  it('may write volumes that stand for data in members, and of claims nothing that users asked for', async () => {
    const { server, ca } = lent.adminAccess;
    const asManager = new Api(server, ca, await lent.issueClient(MANAGER));
    const volumes = '/api/v1/persistentvolumes';
    const volume = (name: string, source: object) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'spillway',
        persistentVolumeReclaimPolicy: 'Retain',
        ...source,
      },
    });
    const ofMember = { csi: { driver: 'member.spillway.dev', volumeHandle: 'x' } };
    const others = {
      'of-driver': { csi: { driver: 'disks.example', volumeHandle: 'x' } },
      'of-node': { hostPath: { path: '/data' } },
    };
    await lent.apply([
      ...Object.entries(others).map(([name, source]) => volume(name, source)),
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'data', namespace: 'default' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'spillway',
          resources: { requests: { storage: '1Gi' } },
        },
      },
    ]);
    // The policy takes a moment to be in force.
    await until('the guard is in force', async () => {
      const stray = volume('stray', { hostPath: { path: '/data' } });
      return String(await asManager.call('POST', `${volumes}?dryRun=All`, stray).catch(String)).includes('only write');
    });
    const marked = { metadata: { annotations: { 'spillway.dev/member-claim-uid': 'x' } } };
    const refusal = 'Spillway may only write volumes whose driver is member.spillway.dev';
    for (const [name, source] of Object.entries(others)) {
      await expect(asManager.call('POST', volumes, volume(`new-${name}`, source)), name).rejects.toThrow(refusal);
      await expect(asManager.call('PATCH', `${volumes}/${name}`, marked), name).rejects.toThrow(refusal);
      await expect(asManager.call('DELETE', `${volumes}/${name}`), name).rejects.toThrow(refusal);
    }
    await asManager.call('POST', volumes, volume('of-member', ofMember));
    await asManager.call('PATCH', `${volumes}/of-member`, marked);
    await asManager.call('DELETE', `${volumes}/of-member`);
    const claim = '/api/v1/namespaces/default/persistentvolumeclaims/data';
    await expect(asManager.call('PATCH', claim, { spec: { volumeName: 'of-member' } })).rejects.toThrow(
      'Spillway may not change what a claim asks for',
    );
    await asManager.call('PATCH', claim, { metadata: { annotations: { 'spillway.dev/member-volume': 'x' } } });
    await asManager.call('PATCH', `${claim}/status`, { status: { phase: 'Pending' } });
    await asManager.close();
    // The guard is for Spillway alone.
    expect(await lent.kubectl(['delete', 'pv', 'of-node', '--wait=false'])).toMatchObject({ code: 0 });
  });

  it('may ask for certificates of nodes that last a week, and for no others', async () => {
    const { server, ca } = lent.adminAccess;
    const asManager = new Api(server, ca, await lent.issueClient(MANAGER));
    const { request } = await newNodeRequest('east');
    const ask = async (signerName: string, expirationSeconds?: number): Promise<unknown> =>
      await asManager.call('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All', {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name: 'x' },
        spec: {
          signerName,
          request: Buffer.from(request).toString('base64'),
          usages: ['digital signature', signerName.endsWith('serving') ? 'server auth' : 'client auth'],
          ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
        },
      });
    const client = 'kubernetes.io/kube-apiserver-client-kubelet';
    await until('the guard is in force', async () =>
      String(await ask('example.com/any').catch(String)).includes('only ask for certificates of nodes'),
    );
    await expect(ask('kubernetes.io/kube-apiserver-client', 3600)).rejects.toThrow('certificates of nodes');
    await expect(ask(client)).rejects.toThrow('seven days at most');
    await expect(ask(client, 604_801)).rejects.toThrow('seven days at most');
    await ask(client, 604_800);
    await ask('kubernetes.io/kubelet-serving');
    await asManager.close();
  });
});

describe('the host in members', () => {
  it.each(inMembers)('may never %s', async (question) => {
    for (const one of [cluster, lent]) expect(await may(one, HOST_ACCOUNT, question), one.name).toBe(false);
  });
  it.each([
    'get nodes/proxy',
    'create namespaces',
    'create pods default',
    'get secrets default',
    'create pods/exec default',
  ])('may not %s where only namespaces are lent', async (question) => {
    expect(await may(cluster, HOST_ACCOUNT, question)).toBe(true);
    expect(await may(lent, HOST_ACCOUNT, question)).toBe(false);
  });
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
