import { expect, it } from 'vitest';
import type { Cluster } from '../../src/api/cluster.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { explainPolicy, type LiveWorkload } from '../../src/cli/explain-policy/explain.ts';
import type { ExplainedPolicy } from '../../src/cli/explain-policy/explained-policy.ts';
import { explainedPolicyText } from '../../src/cli/explain-policy/explained-policy-text.ts';
import { compiledPolicies } from '../../src/cli/compiled-policies.ts';
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

function workload(name: string, o: { namespace?: string; annotations?: Record<string, string> } = {}): LiveWorkload {
  const { namespace = 'shop', annotations = {} } = o;
  const of = (apiVersion: string, kind: string): TypedObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace, uid: `${kind} ${name}`, labels: { app: name }, annotations },
  });
  const chain = [of('v1', 'Pod'), of('apps/v1', 'ReplicaSet'), of('apps/v1', 'Deployment')] as const;
  return { namespace, of: `Deployment/${name}`, chain: [...chain], where: name === 'web' ? 'east 2' : undefined };
}

function explained(policy: KubeObject, o: { others?: KubeObject[]; workloads?: LiveWorkload[] } = {}): ExplainedPolicy {
  const { others = [], workloads = [workload('web')] } = o;
  return explainPolicy({
    policy,
    others: compiledPolicies(others),
    clusters: FLEET,
    workloads,
    namespaceLabels: new Map(),
  });
}

const says = (policy: KubeObject, o: Parameters<typeof explained>[1]): (string | undefined)[] =>
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
  expect(broken).toMatchObject({ clusters: [], workloads: [], failover: null });
  expect(broken.problems).toEqual([expect.stringMatching(/^spec\.placement\.clusterAffinity\.clusterNames: /)]);
  expect(explainedPolicyText(broken)).toMatch(/^PlacementPolicy p in shop cannot be used, and says nothing/);
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
