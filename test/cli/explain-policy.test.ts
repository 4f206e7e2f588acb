import { describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/api/cluster.ts';
import { type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { explainPolicy, type LiveWorkload } from '../../src/cli/explain-policy/explain.ts';
import type { ExplainedPolicy } from '../../src/cli/explain-policy/explained-policy.ts';
import { explainedPolicyText } from '../../src/cli/explain-policy/explained-policy-text.ts';
import { compiledPolicies } from '../../src/cli/compiled-policies.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { cluster } from '../placement/fleet.ts';
import { rawPolicy } from '../placement/policies.ts';

const FLEET: Cluster[] = [
  cluster('local'),
  cluster('east', { labels: { gpu: 'yes' } }),
  cluster('west', { unavailable: 'it is not ready (Timeout)' }),
  cluster('north', { taints: [{ key: 'old', effect: 'NoSchedule' }] }),
  cluster('south'),
];

const raw = (name: string, spec: object = {}): KubeObject => rawPolicy(name, { placement: {}, ...spec }, 'shop');

function member(name: string, spec: object = {}): MemberCluster {
  const credentials = { secretRef: { namespace: 'spillway-system', name } };
  const parsed = parseMemberCluster({ metadata: { name }, spec: { credentials, ...spec } } as KubeObject);
  if ('problems' in parsed) throw new Error(parsed.problems.join());
  return parsed.member;
}

interface WorkloadOptions {
  namespace?: string;
  annotations?: Record<string, string>;
  labels?: Record<string, string>;
  spec?: Partial<Pod['spec']>;
}

function workload(name: string, o: WorkloadOptions = {}): LiveWorkload {
  const { namespace = 'shop', annotations = {}, labels = {}, spec = {} } = o;
  const pod: Pod = { metadata: { name, namespace, labels }, spec: { containers: [], ...spec } };
  const of = (apiVersion: string, kind: string): TypedObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace, uid: `${kind} ${name}`, labels: { app: name }, annotations },
  });
  const chain = [of('v1', 'Pod'), of('apps/v1', 'ReplicaSet'), of('apps/v1', 'Deployment')] as const;
  return { namespace, of: `Deployment/${name}`, pod, chain: [...chain], where: name === 'web' ? 'east 2' : undefined };
}

interface Given {
  others?: KubeObject[];
  workloads?: LiveWorkload[];
  members?: MemberCluster[];
  labels?: Record<string, Record<string, string>>;
}

function explained(policy: KubeObject, o: Given = {}): ExplainedPolicy {
  const { others = [], workloads = [workload('web')], members = [], labels = {} } = o;
  return explainPolicy({
    policy,
    others: compiledPolicies(others),
    clusters: FLEET,
    members,
    workloads,
    namespaceLabels: new Map(Object.entries(labels)),
  });
}

const says = (policy: KubeObject, o: Given): (string | undefined)[] =>
  explained(policy, o).workloads.map((one) => one.says);

it('tells in which order clusters are filled, how many each tier takes, and why not the others', () => {
  const clusterAffinity = {
    clusterNames: ['local', 'west'],
    overflowAffinities: [
      { clusterNames: ['east'], max: 3 },
      { clusterNames: ['north'], max: '20%' },
    ],
  };
  const { clusters } = explained(raw('p', { placement: { clusterAffinity } }));
  expect(clusters.map(({ cluster: name, tier, says: words }) => [name, tier, words])).toEqual([
    ['local', 1, 'takes pods'],
    ['east', 2, 'takes pods, at most 3 of a workload in all clusters of this tier'],
    ['west', 1, 'not now: it is not ready (Timeout)'],
    ['north', 3, expect.stringMatching(/^not now: it has cluster taint old:NoSchedule/)],
    ['south', null, 'the policy does not name it'],
  ]);
});

it('names the group of a cluster where there are several', () => {
  const clusterAffinities = [
    { affinityName: 'near', clusterNames: ['east'] },
    { affinityName: 'far', clusterNames: ['south'] },
  ];
  const { clusters } = explained(raw('p', { placement: { clusterAffinities } }));
  expect(clusters.map(({ cluster: name, group, tier }) => [name, group, tier])).toEqual([
    ['local', null, null],
    ['east', 'near', 1],
    ['west', null, null],
    ['north', null, null],
    ['south', 'far', 1],
  ]);
});

it('lists the workloads that it matches, with where they are', () => {
  const other = workload('web', { namespace: 'elsewhere' });
  const { workloads } = explained(raw('p'), { workloads: [workload('web'), workload('api'), other] });
  expect(workloads).toEqual([
    { namespace: 'shop', workload: 'Deployment/web', decides: true, says: 'this policy decides', where: 'east 2' },
    { namespace: 'shop', workload: 'Deployment/api', decides: true, says: 'this policy decides', where: null },
  ]);
  const named = { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'api' }] };
  expect(explained(raw('p', named)).workloads).toEqual([]);
});

it.each([
  [
    'a higher priority',
    raw('z', { priority: 5 }),
    /^PlacementPolicy z decides: its priority is 5, that of this one 0$/,
  ],
  [
    'a closer match',
    raw('z', { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }] }),
    /^PlacementPolicy z decides: it matches the workload more closely$/,
  ],
  ['the alphabet', raw('a'), /^PlacementPolicy a decides: of equals the first by name counts$/],
])('tells which other policy comes before it, by %s', (_what, other, words) => {
  expect(says(raw('p'), { others: [other] })).toEqual([expect.stringMatching(words)]);
});

it('tells of a ClusterPlacementPolicy what comes before every one', () => {
  const own = rawPolicy('all', { placement: {} });
  const annotations = {
    'federation.kubernetes.io/replica-set-preferences': JSON.stringify({ clusters: { east: { weight: 1 } } }),
  };
  expect(says(own, { others: [raw('p')] })).toEqual([
    'PlacementPolicy p decides: it comes before every ClusterPlacementPolicy',
  ]);
  expect(says(own, { workloads: [workload('web', { annotations })] })[0]).toMatch(/^annotation .* decides/);
  expect(says(own, {})).toEqual(['this policy decides']);
});

it('says of one that cannot be used why, and nothing else', () => {
  const broken = explained(raw('p', { placement: { clusterAffinity: { clusterNames: 'east' } } }));
  expect(broken).toMatchObject({ clusters: [], workloads: [], notLabelled: [], failover: null });
  expect(broken.problems).toEqual([expect.stringMatching(/^spec\.placement\.clusterAffinity\.clusterNames: /)]);
  expect(explainedPolicyText(broken)).toMatch(/^PlacementPolicy p in shop cannot be used, and says nothing/);
});

describe('a namespace without the label that lets its pods go to virtual nodes', () => {
  const FIX = 'kubectl label namespace shop spillway.dev/burst=policies';
  const east = member('east');
  const toEast = raw('p', { placement: { clusterAffinity: { clusterNames: ['local', 'east'] } } });
  const told = (o: Given, policy = toEast): string[] =>
    explained(policy, { members: [east], labels: { shop: {} }, ...o }).notLabelled.map(({ fix }) => fix);

  it('is told, once, with what to type', () => {
    const found = explained(toEast, {
      members: [east],
      labels: { shop: { team: 'a' } },
      workloads: [workload('web'), workload('api'), workload('db')],
    });
    const workloads = ['Deployment/web', 'Deployment/api', 'Deployment/db'];
    expect(found.notLabelled).toEqual([{ namespace: 'shop', workloads, fix: FIX }]);
    expect(found.workloads.map((one) => one.says)).toEqual(workloads.map(() => 'this policy decides'));
    expect(explainedPolicyText(found)).toContain(
      `\nNamespace not labelled: its pods do not tolerate the taint of virtual nodes, and stay in this cluster. To change that for those that are made afterwards:
  shop (Deployment/web and 2 other workloads): ${FIX}
`,
    );
    expect(explainedPolicyText(explained(toEast))).not.toContain('Namespace not labelled');
  });

  it('is told of each namespace that a ClusterPlacementPolicy sends to members, and not of those of the cluster itself', () => {
    const labels = {
      shop: {},
      lab: { 'spillway.dev/burst': 'off' },
      ready: { 'spillway.dev/burst': 'enabled' },
      'kube-system': {},
    };
    const workloads = Object.keys(labels).map((namespace) => workload('web', { namespace }));
    expect(told({ workloads, labels }, rawPolicy('all', { placement: {} }))).toEqual([
      FIX,
      'kubectl label namespace lab spillway.dev/burst=policies --overwrite',
    ]);
  });

  it.each<[string, Given]>([
    ['it has the label', { labels: { shop: { 'spillway.dev/burst': 'policies' } } }],
    ['its labels are not known', { labels: {} }],
    ['another policy decides', { others: [raw('a')] }],
    ['no virtual node keeps pods away', { members: [member('east', { taintMode: 'PreferNoSchedule' })] }],
    [
      'pods tolerate the taint by themselves',
      {
        workloads: [
          workload('web', { spec: { tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }] } }),
        ],
      },
    ],
    [
      'pods ask for a virtual node, by which they get the toleration',
      { workloads: [workload('web', { spec: { nodeSelector: { 'kubernetes.io/hostname': 'east' } } })] },
    ],
    [
      'pods are to stay by a label of their own, which the one of the namespace does not change',
      { workloads: [workload('web', { labels: { 'spillway.dev/burst': 'disabled' } })] },
    ],
  ])('is not told where %s', (_, given) => {
    expect(told(given)).toEqual([]);
  });

  it('is told where pods tolerate something else, or whatever there is, which admission has stay on the host', () => {
    const tolerating = (toleration: object): Given => ({
      workloads: [workload('web', { spec: { tolerations: [toleration] } })],
    });
    expect(told(tolerating({ key: 'gpu', operator: 'Exists' }))).toEqual([FIX]);
    expect(told(tolerating({ operator: 'Exists' }))).toEqual([FIX]);
    expect(told(tolerating({ key: 'spillway.dev/virtual-node', operator: 'Exists', effect: 'NoExecute' }))).toEqual([
      FIX,
    ]);
  });

  it('is not told where the policy chooses no member', () => {
    expect(told({}, raw('p', { placement: { clusterAffinity: { clusterNames: ['local'] } } }))).toEqual([]);
  });
});

it('is read by people', () => {
  const found = explained(raw('p', { placement: { clusterAffinity: { clusterNames: ['east', 'moon'] } } }));
  expect(found.warnings).toEqual(['spec.placement.clusterAffinity: there is no member moon']);
  const text = explainedPolicyText(found);
  expect(text).toMatch(/^PlacementPolicy p in shop\n\nCLUSTER +TIER +SAYS\n/);
  expect(text).toMatch(/^east +1 +takes pods$/m);
  expect(text).toMatch(/^shop +Deployment\/web +this policy decides +east 2$/m);
  expect(text).toMatch(
    /^ReplicaSet \(so of a Deployment\), ReplicationController +replaced after 5m \(default\) +replaced +moved$/m,
  );
  expect(text).toMatch(/^an earlier tier has room for a pod in a later one +never \(default\): no repatriate$/m);
  expect(text).toMatch(/\nNot consistent:\n {2}spec\.placement\.clusterAffinity: there is no member moon\n$/);
});
