import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster } from '../../hack/cluster.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../../src/api/placement-policy.ts';
import { PLACEMENT_SCORES } from '../../src/api/placement-score.ts';
import { WORKLOAD_MIGRATIONS } from '../../src/api/workload-migration.ts';
import { WORKLOAD_PLACEMENTS } from '../../src/api/workload-placement.ts';
import { WORKLOAD_REBALANCERS } from '../../src/api/workload-rebalancer.ts';
import { rawPolicy } from '../placement/policies.ts';
import { WRONG_POLICIES } from '../placement/wrong-policies.ts';
import { CLUSTER_TAINT_POLICIES } from '../../src/api/cluster-taint-policy.ts';
import { GOOD_TAINT_POLICY, WRONG_TAINT_POLICIES } from '../placement/wrong-taint-policies.ts';
import { GOOD_MIGRATION, WRONG_MIGRATIONS } from '../api/wrong-migrations.ts';
import { GOOD_REBALANCER, WRONG_REBALANCERS } from '../api/wrong-rebalancers.ts';
import { GOOD_SCORE, WRONG_SCORES } from '../placement/wrong-scores.ts';

const KINDS = [
  PLACEMENT_POLICIES,
  CLUSTER_PLACEMENT_POLICIES,
  CLUSTER_TAINT_POLICIES,
  WORKLOAD_PLACEMENTS,
  PLACEMENT_SCORES,
  WORKLOAD_REBALANCERS,
  WORKLOAD_MIGRATIONS,
].map(({ plural }) => plural);

let workspace: Workspace;
let host: Cluster;

beforeAll(async () => {
  workspace = Workspace.create();
  host = await startCluster(workspace, { name: 'host', components: 'api-only' });
  for (const kind of KINDS) {
    await host.apply(readFileSync(new URL(`../../manifests/crds/spillway.dev_${kind}.yaml`, import.meta.url), 'utf8'));
  }
  await until('the kinds are served', async () => {
    for (const kind of KINDS) await host.api.call('GET', `/apis/spillway.dev/v1alpha1/${kind}`);
    return true;
  });
  await host.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }]);
});

afterAll(async () => {
  await workspace.close();
});

async function dryRun(object: object): Promise<{ stdout: string; stderr: string; code: number }> {
  return host.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input: JSON.stringify(object) });
}

describe('the kinds', () => {
  it.each(KINDS)('%s are structural and established', async (kind) => {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${kind}.spillway.dev`;
    const crd = (await host.api.call('GET', path)) as { status: { conditions: { type: string; status: string }[] } };
    const conditions = Object.fromEntries(crd.status.conditions.map(({ type, status }) => [type, status]));
    expect(conditions).toEqual({ NamesAccepted: 'True', Established: 'True' });
  });

  it('get their defaults from the API server', async () => {
    const { stdout, stderr } = await dryRun(rawPolicy('p', {}));
    expect(stderr).toBe('');
    expect((JSON.parse(stdout) as { spec: object }).spec).toEqual({
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      priority: 0,
      placement: {
        avoidFor: '5m',
        onRefusal: 'Stay',
      },
    });
  });

  it('take a policy with everything in it', async () => {
    const tier = {
      labelSelector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists' }] },
      fieldSelector: { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['z'] }] },
      clusterNames: ['local', 'east'],
      exclude: ['west'],
      max: '30%',
      tryNextAfter: '1m30s',
    };
    const clusterPreferences = {
      rebalance: true,
      clusters: { '*': { weight: 1 }, east: { minReplicas: 2, maxReplicas: 4 } },
    };
    const placement = {
      clusterAffinities: [{ affinityName: 'a', ...tier }],
      clusterTolerations: [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
      spreadConstraints: [{ spreadByLabel: 'rack', minGroups: 2, maxGroups: 3, whenUnsatisfiable: 'ScheduleAnyway' }],
      replicaScheduling: { clusterPreferences, whenFull: 'Wait' },
      scoreWeights: { signals: [{ name: 'green', weight: 3 }] },
    };
    const overflow = { clusterAffinity: { ...tier, overflowAffinities: [{ ...tier, max: 4 }] } };
    for (const one of [placement, overflow]) {
      expect((await dryRun(rawPolicy('p', { placement: one }, 'shop'))).stderr).toBe('');
    }
  });

  it('explain themselves', async () => {
    const { stdout } = await host.kubectl(['explain', 'placementpolicy.spec.placement.replicaScheduling']);
    expect(stdout).toContain('How the replicas of a workload are divided');
    const tier = await host.kubectl(['explain', 'cpp.spec.placement.clusterAffinity.tryNextAfter']);
    expect(tier.stdout).toContain('How long a pod waits for room');
  });

  it('keep the workload of a WorkloadPlacement as it is', async () => {
    const workload = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u' };
    const object = {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'WorkloadPlacement',
      metadata: { name: 'deployment-web', namespace: 'shop' },
      spec: { workload },
    };
    await host.apply([object]);
    const patch = JSON.stringify({ spec: { workload: { name: 'other' } } });
    const { stderr } = await host.kubectl(['-n', 'shop', 'patch', 'wp', 'deployment-web', '--type=merge', '-p', patch]);
    expect(stderr).toContain('spec.workload: Invalid value: cannot be changed');
  });
});

describe('wrong policies are refused', () => {
  const refused = WRONG_POLICIES.filter(({ refusal }) => refusal !== undefined);

  it.each(refused)('$what', async ({ spec, refusal }) => {
    const { stderr, code } = await dryRun(rawPolicy('p', spec, 'shop'));
    expect(code).toBe(1);
    // Values are shown in front of a rule's message; what was sent is not the point here.
    expect(
      stderr.replaceAll(/Invalid value: (?:\{.*?\}|\[.*?\]|"[^"]*"|-?\d+): (?=[a-z]|Duplicated)/g, 'Invalid value: '),
    ).toContain(refusal);
  });
});

describe('wrong scores are refused', () => {
  const score = (spec: object): object => ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementScore',
    metadata: { name: 's' },
    spec: { ...GOOD_SCORE, ...spec },
  });

  it('and good ones taken', async () => {
    expect((await dryRun(score({}))).stderr).toBe('');
    expect((await dryRun(score({ validUntil: '2026-01-01T01:00:00+01:00' }))).stderr).toBe('');
  });

  it.each(WRONG_SCORES)('$what', async ({ wrong, refusal }) => {
    const { stderr, code } = await dryRun(score(wrong));
    expect(code).toBe(1);
    expect(stderr).toContain(refusal);
  });
});

describe('wrong policies of taints are refused', () => {
  const taintPolicy = (spec: object): object => ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'ClusterTaintPolicy',
    metadata: { name: 'p' },
    spec: { ...GOOD_TAINT_POLICY, ...spec },
  });

  it('and good ones taken', async () => {
    expect((await dryRun(taintPolicy({}))).stderr).toBe('');
    expect((await dryRun(taintPolicy({ addOnConditions: [] }))).stderr).toBe('');
  });

  it.each(WRONG_TAINT_POLICIES)('$what', async ({ wrong, refusal }) => {
    const { stderr, code } = await dryRun(taintPolicy(wrong));
    expect(code).toBe(1);
    expect(stderr).toContain(refusal);
  });
});

describe('wrong rebalancers are refused', () => {
  const rebalancer = (spec: object): object => ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadRebalancer',
    metadata: { name: 'r' },
    spec: { ...GOOD_REBALANCER, ...spec },
  });

  it('and good ones taken', async () => {
    expect((await dryRun(rebalancer({}))).stderr).toBe('');
  });

  it.each(WRONG_REBALANCERS)('$what', async ({ wrong, refusal }) => {
    const { stderr, code } = await dryRun(rebalancer(wrong));
    expect(code).toBe(1);
    expect(stderr).toContain(refusal);
  });
});

describe('wrong migrations are refused', () => {
  const migration = (spec: object): object => ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadMigration',
    metadata: { name: 'm', namespace: 'shop' },
    spec: { ...GOOD_MIGRATION, ...spec },
  });

  it.each([{}, { to: undefined }, { to: 'local' }, { workloads: undefined, all: true }])(
    'and good ones taken: %j',
    async (spec) => {
      expect((await dryRun(migration(spec))).stderr).toBe('');
    },
  );

  it.each(WRONG_MIGRATIONS)('$what', async ({ wrong, refusal }) => {
    const { stderr, code } = await dryRun(migration(wrong));
    expect(code).toBe(1);
    expect(stderr).toContain(refusal);
  });
});
