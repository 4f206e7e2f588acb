import { readFileSync } from 'node:fs';
import PQueue from 'p-queue';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster } from '../../hack/cluster.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { type Right, rightsOf } from '../../hack/rights.ts';
import { type Grant, GRANTS } from '../../hack/rights-page.ts';
import { Workspace } from '../../hack/workspace.ts';
import { NEVER, neverIn } from './never.ts';

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
      'member/token.yaml',
      'member/services.yaml',
      'member/privileged.yaml',
      'member/multi-cluster.yaml',
    ),
    install(
      lent,
      'crds/spillway.dev_memberclusters.yaml',
      'rbac.yaml',
      'rbac-service-account.yaml',
      'outages.yaml',
      'secrets.yaml',
      'scheduler/rbac.yaml',
      'scheduler/gangs.yaml',
      'scheduler/descheduler.yaml',
      'scheduler/pod-guard.yaml',
      'admission/webhook.yaml',
      'multi-cluster/host.yaml',
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
  for (const grant of GRANTS) await whereOf(grant).apply(boundAlone(grant));
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
      'outages.yaml',
      'secrets.yaml',
      'scheduler/rbac.yaml',
      'scheduler/gangs.yaml',
      'scheduler/descheduler.yaml',
      'admission/webhook.yaml',
      'multi-cluster/host.yaml',
    ),
  },
  {
    what: 'a second scheduler',
    user: SCHEDULER,
    where: () => lent,
    ...granted('scheduler/second-scheduler.yaml'),
  },
  {
    what: 'the host in a dedicated member that shows what its nodes measure, has its Services and exchanges them, may make namespaces for privileged pods, and renews its token',
    user: HOST_ACCOUNT,
    where: () => cluster,
    ...granted(
      'member/read.yaml',
      'member/dedicated.yaml',
      'member/node-metrics.yaml',
      'member/services.yaml',
      'member/multi-cluster.yaml',
      'member/token.yaml',
      'member/privileged.yaml',
    ),
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

/** Of a cluster where the roles are. */
function whereOf({ files: [file = ''] }: Grant): Cluster {
  return file.startsWith('member/') && file !== 'member/namespaced.yaml' ? cluster : lent;
}

/** Who has what that grant says, and nothing beside it. */
const aloneWith = ({ files: [file] }: Grant): string => `alone-with:${file ?? ''}`;

/** The bindings of a grant to its own roles, for {@link aloneWith} in the place of the account. */
function boundAlone(grant: Grant): object[] {
  const { files, roles = [] } = grant;
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: aloneWith(grant) }];
  const documents = (file: string): Binding[] =>
    parseAllDocuments(manifest(file)).map((document) => document.toJS() as Binding);
  const own = new Set([...files, ...roles].flatMap(documents).map(({ kind, metadata }) => `${kind} ${metadata.name}`));
  return files
    .flatMap(documents)
    .filter(({ roleRef }) => roleRef !== undefined && own.has(`${roleRef.kind} ${roleRef.name}`))
    .map(({ metadata, ...rest }) => ({
      ...rest,
      metadata: { ...metadata, name: `alone-with-${(files[0] ?? '').replaceAll('/', '-')}-${metadata.name}` },
      subjects,
    }));
}

interface Binding {
  kind: string;
  metadata: { name: string; namespace?: string };
  roleRef?: { kind: string; name: string };
}

const reviews = new PQueue({ concurrency: 8 });

/** Of these questions, those that are answered with yes. */
async function allowedOf(where: Cluster, user: string, questions: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(
    questions.map(async (question) =>
      (await reviews.add(async () => await may(where, user, question))) ? [question] : [],
    ),
  );
  return answers.flat();
}

it('of every grant it is written down what its roles never allow', () => {
  expect(Object.keys(NEVER).sort()).toEqual(GRANTS.flatMap(({ files }) => files).sort());
});

// The manager has many of these at a time: what one of them allows too much another one may allow rightly.
describe.each(GRANTS)('$title: its roles alone', (grant) => {
  const user = aloneWith(grant);

  it('allow what they say', async () => {
    const questions = rightsOf(grant.files, grant.roles).flatMap(questionsOf);
    expect(questions.length).toBeGreaterThan(0);
    expect(await allowedOf(whereOf(grant), user, questions)).toEqual(questions);
  });

  it.each(grant.files.flatMap((file) => Object.entries(NEVER[file] ?? {})))(
    'never allow what is written down (namespace: %j)',
    async (namespace, lines) => {
      expect(await allowedOf(whereOf(grant), user, neverIn(namespace, lines))).toEqual([]);
    },
  );
});

const manager = {
  yes: ['get configmaps kube-system/extension-apiserver-authentication'],
  /** What would be worth most to a thief. */
  never: [
    'update memberclusters.spillway.dev',
    'deletecollection nodes',
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
});

describe('the host in members', () => {
  it('may not delete namespaces where some are lent; where it makes them a policy says which', async () => {
    expect(await may(lent, HOST_ACCOUNT, 'delete namespaces')).toBe(false);
    expect(await may(cluster, HOST_ACCOUNT, 'delete namespaces')).toBe(true);
  });
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
