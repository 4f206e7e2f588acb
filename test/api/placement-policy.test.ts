import { describe, expect, it } from 'vitest';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import { parseWorkloadPlacement } from '../../src/api/workload-placement.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { policyProblems } from '../../src/placement/policy-problems.ts';
import { rawPolicy } from '../placement/policies.ts';
import { WRONG_POLICIES } from '../placement/wrong-policies.ts';

const problems = (raw: KubeObject): string[] => {
  const parsed = parsePlacementPolicy(raw);
  return 'problems' in parsed ? parsed.problems : policyProblems(parsed.policy);
};

describe('parsePlacementPolicy', () => {
  it('fills in every default', () => {
    const parsed = parsePlacementPolicy(rawPolicy('p', {}));
    expect('policy' in parsed && parsed.policy.spec).toEqual({
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      priority: 0,
      placement: {
        avoidFor: '5m',
        onRefusal: 'Stay',
      },
    });
  });

  it('fills in those of a division', () => {
    const replicaScheduling = { clusterPreferences: { clusters: { east: { weight: 2 } } } };
    const parsed = parsePlacementPolicy(rawPolicy('p', { placement: { replicaScheduling, spreadConstraints: [{}] } }));
    expect('policy' in parsed && parsed.policy.spec.placement).toMatchObject({
      replicaScheduling: {
        replicaSchedulingType: 'Divided',
        replicaDivisionPreference: 'Weighted',
        clusterPreferences: { rebalance: false, division: 'Total', clusters: { east: { minReplicas: 0, weight: 2 } } },
      },
      spreadConstraints: [{ minGroups: 1, whenUnsatisfiable: 'DoNotSchedule' }],
    });
  });

  it('keeps metadata and a status that can be read', () => {
    const status = { observedGeneration: 3, later: { added: true } };
    const parsed = parsePlacementPolicy({ ...rawPolicy('p', {}, 'shop'), status } as KubeObject);
    expect(parsed).toMatchObject({
      policy: { metadata: { name: 'p', namespace: 'shop', generation: 4 }, status: { observedGeneration: 3 } },
    });
    expect(parsePlacementPolicy({ ...rawPolicy('p', {}), status: 7 } as KubeObject)).not.toHaveProperty(
      'policy.status',
    );
  });

  it('takes a policy with everything in it', () => {
    const tier = {
      labelSelector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists' }] },
      fieldSelector: { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['z'] }] },
      clusterNames: ['local', 'east'],
      exclude: ['west'],
      max: '30%',
      tryNextAfter: '1m30s',
    };
    const spec = {
      priority: -7,
      placement: {
        clusterAffinities: [
          { affinityName: 'a', ...tier, overflowAffinities: [{ affinityName: 't', ...tier, max: 4 }] },
        ],
        clusterTolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
        spreadConstraints: [{ spreadByLabel: 'rack', minGroups: 2, maxGroups: 3, whenUnsatisfiable: 'ScheduleAnyway' }],
        replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } },
        scoreWeights: { signals: [{ name: 'green', weight: 3 }] },
        hysteresis: 0,
        avoidFor: '10m',
        onRefusal: 'TryNext',
      },
    };
    expect(problems(rawPolicy('p', spec))).toEqual([]);
  });

  it('says so when there is no spec at all', () => {
    expect(problems({ metadata: { name: 'p' } })).toEqual([expect.stringContaining('spec: ')]);
  });
});

describe('wrong policies', () => {
  it.each(WRONG_POLICIES)('$what', ({ spec, field }) => {
    expect(problems(rawPolicy('p', spec, 'shop')).join('\n')).toContain(field);
  });

  it('are told field by field, all of them at once', () => {
    const spec = { placement: { avoidFor: '30h', spreadConstraints: [{ minGroups: 3, maxGroups: 2 }] } };
    expect(problems(rawPolicy('p', spec))).toHaveLength(2);
  });
});

describe('parseWorkloadPlacement', () => {
  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u' };
  const raw = (spec: object, status?: unknown) =>
    ({ metadata: { name: 'deployment-web' }, spec, ...(status === undefined ? {} : { status }) }) as KubeObject;

  it('reads what it wrote', () => {
    const status = { where: 'local 1', clusters: [{ name: 'local', tier: 0, actual: 1 }] };
    expect(parseWorkloadPlacement(raw({ workload }, status))).toEqual(raw({ workload }, status));
  });

  it('goes without a status that it cannot read, and not at all without a workload', () => {
    expect(parseWorkloadPlacement(raw({ workload }, { clusters: 'none' }))).toEqual(raw({ workload }));
    expect(parseWorkloadPlacement(raw({}))).toBeUndefined();
  });
});
