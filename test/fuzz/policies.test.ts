import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { repositoryRoot } from '../../hack/repository.ts';
import { parseMemberCluster, virtualNodesOf } from '../../src/api/member-cluster.ts';
import { memberNamespaceFor } from '../../src/api/namespace-mapping.ts';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import { parsePlacementScore } from '../../src/api/placement-score.ts';
import { parseWorkloadPlacement } from '../../src/api/workload-placement.ts';
import { parseWorkloadMigration } from '../../src/api/workload-migration.ts';
import { parseWorkloadRebalancer } from '../../src/api/workload-rebalancer.ts';
import { deletedInMs, isOver } from '../../src/descheduler/order.ts';
import { migrationStatus } from '../../src/descheduler/migration-status.ts';
import { rebalanceStatus, resultsOf } from '../../src/descheduler/rebalance-status.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { compilePlacement } from '../../src/placement/compiled-placement.ts';
import { parseDuration } from '../../src/placement/duration.ts';
import { federationPreferences } from '../../src/placement/federation-preferences.ts';
import { isUnderWay } from '../../src/placement/migrating.ts';
import { rolloutOf, workloadOf } from '../../src/placement/owner-chain.ts';
import { SelectorError } from '../../src/kube/label-selector.ts';
import { object, rawPolicy } from '../placement/policies.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { changed, json, text } from './inputs.ts';

const member = {
  apiVersion: 'spillway.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name: 'east', uid: 'u', generation: 1, labels: { tier: 'gold' } },
  spec: {
    credentials: { secretRef: { namespace: 'spillway-system', name: 'member-east' } },
    namespaces: { mapping: 'Prefixed', prefix: 'a-', create: true },
    virtualNodes: [
      {
        name: 'gpu',
        nodeSelector: { gpu: 'yes' },
        labels: { a: 'b' },
        taints: [{ key: 'x.io/a', effect: 'NoSchedule' }],
      },
    ],
    capacity: { limits: { cpu: '10', memory: 1 } },
    probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 },
    storage: { classes: [{ host: 'disk', member: 'fast' }] },
    podPriority: { classes: [{ host: 'gold', member: 'high' }], default: 'low' },
    serviceAccount: { mode: 'Member', allowed: ['None'] },
  },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  },
};
const placement = {
  clusterAffinities: [
    {
      affinityName: 'a',
      clusterNames: ['east'],
      labelSelector: { matchLabels: { a: 'b' } },
      overflowAffinities: [{ affinityName: 'b', max: '50%', tryNextAfter: '5m' }],
    },
  ],
  clusterTolerations: [{ key: 'a', operator: 'Exists' }],
  spreadConstraints: [{ spreadByField: 'region', minGroups: 1, maxGroups: 2 }],
  replicaScheduling: {
    replicaSchedulingType: 'Divided',
    replicaDivisionPreference: 'Weighted',
    weightPreference: { staticWeightList: [{ targetCluster: { clusterNames: ['east'] }, weight: 2 }] },
  },
  avoidFor: '1h30m',
};
const deployments = readdirSync(`${repositoryRoot()}/manifests/samples`).filter((file) => file.endsWith('.yaml'));
const samples = deployments.flatMap((file) =>
  parseAllDocuments(readFileSync(`${repositoryRoot()}/manifests/samples/${file}`, 'utf8')).map(
    (one) => one.toJS() as object,
  ),
);

/** As the API server sends objects: with metadata. */
const withMetadata = (raw: unknown): KubeObject => ({ ...(raw as object), metadata: { name: 'x', generation: 1 } });

describe('what people write', () => {
  fuzz('MemberClusters are read, or say what is wrong', changed(member, ...samples), { share: 2_000 }, (raw) => {
    const parsed = parseMemberCluster(withMetadata(raw));
    if ('problems' in parsed) {
      expect(parsed.problems.join()).toMatch(/^spec/);
      return;
    }
    const nodes = virtualNodesOf(parsed.member);
    expect(nodes.length).toBeGreaterThan(0);
    for (const host of ['shop', 'kube-system', 'a'.repeat(63), '../x', '']) {
      const mapped = memberNamespaceFor(parsed.member.spec.namespaces, host);
      if ('namespace' in mapped) expect(mapped.namespace).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    }
  });

  fuzz(
    'PlacementPolicies are read, or say what is wrong',
    changed(rawPolicy('p', { placement })),
    { share: 2_500 },
    (raw) => {
      const parsed = parsePlacementPolicy({ ...withMetadata(raw) });
      if ('problems' in parsed) expect(parsed.problems.join()).not.toBe('');
      else throwsOnly([SelectorError], () => compilePlacement(parsed.policy.spec.placement));
    },
  );

  const score = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementScore',
    metadata: { name: 's' },
    spec: { scores: [{ clusterName: 'east', score: 5 }], validFor: '5m' },
  };
  fuzz(
    'scores and placements are read, or are none',
    changed(score, { metadata: { name: 'w' }, spec: {}, status: { targets: [{ cluster: 'east', replicas: 1 }] } }),
    { share: 1_000 },
    (raw) => {
      parsePlacementScore(withMetadata(raw));
      parseWorkloadPlacement(withMetadata(raw));
    },
  );

  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' };
  const rebalancer = {
    spec: { workloads: [workload], ttlSecondsAfterFinished: 60 },
    status: {
      observedGeneration: 1,
      observedWorkloads: [{ workload, result: 'Failed', reason: 'NoPolicy', message: 'none' }],
      finishTime: '2026-01-01T00:00:00Z',
    },
  };
  fuzz('WorkloadRebalancers are read, or say what is wrong', changed(rebalancer), { share: 1_000 }, (raw) => {
    const parsed = parseWorkloadRebalancer(withMetadata(raw));
    if ('problems' in parsed) {
      expect(parsed.problems.join()).toMatch(/^spec/);
      return;
    }
    const deletedIn = deletedInMs(parsed.rebalancer, Date.now());
    expect(deletedIn === undefined || deletedIn >= 0).toBe(true);
    expect(
      rebalanceStatus(parsed.rebalancer, [...resultsOf(parsed.rebalancer, false)], { now: 0, isDry: false })
        .observedGeneration,
    ).toBe(1);
  });

  const { namespace: _, ...ofNamespace } = workload;
  const migration = {
    spec: { workloads: [ofNamespace], from: 'east', to: 'west', ttlSecondsAfterFinished: 60 },
    status: {
      observedGeneration: 1,
      conditions: [
        {
          type: 'Fits',
          status: 'True',
          observedGeneration: 1,
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'AllFit',
          message: '',
        },
      ],
      workloads: [{ workload: ofNamespace, pods: 3, waiting: 1, moving: 1, moved: 1, reason: 'Moving' }],
      finishTime: '2026-01-01T00:00:00Z',
    },
  };
  fuzz('WorkloadMigrations are read, or say what is wrong', changed(migration), { share: 1_000 }, (raw) => {
    const parsed = parseWorkloadMigration(withMetadata(raw));
    if ('problems' in parsed) {
      expect(parsed.problems.join()).toMatch(/^spec/);
      return;
    }
    const { migration: one } = parsed;
    const deletedIn = deletedInMs(one, Date.now());
    expect(deletedIn === undefined || deletedIn >= 0).toBe(true);
    const workloads = one.status?.workloads ?? [];
    const found = {
      state: isUnderWay(one) || isOver(one) ? 'Progressing' : 'Refused',
      message: '',
      workloads,
    } as const;
    expect(migrationStatus(one, { ...found, fits: undefined }, 0).observedGeneration).toBe(1);
  });

  const preferences = { rebalance: true, clusters: { '*': { minReplicas: 1, weight: 2 }, east: { maxReplicas: 5 } } };
  const selector = [{ key: 'a', operator: 'in', values: ['b'] }];
  const annotations = fc.tuple(
    fc.oneof(
      changed(preferences).map((one) => JSON.stringify(one)),
      text,
    ),
    fc.oneof(
      changed(selector).map((one) => JSON.stringify(one)),
      text,
    ),
  );
  fuzz('annotations of Federation v1 are read, or are a problem', annotations, { share: 1_500 }, ([one, other]) => {
    const owner = object(
      'apps/v1',
      'Deployment',
      'web',
      { spec: { replicas: 2 } },
      {
        annotations: {
          'federation.kubernetes.io/deployment-preferences': one,
          'federation.alpha.kubernetes.io/cluster-selector': other,
        },
      },
    );
    const found = federationPreferences([owner]);
    expect(found !== undefined && ('placement' in found || found.problem.length > 0)).toBe(true);
  });

  fuzz(
    'workloads of any kind have replicas or none',
    fc.tuple(json, json, text),
    { share: 1_000 },
    ([spec, status, revision]) => {
      const fields = {
        spec: typeof spec === 'object' && spec !== null ? spec : {},
        status: typeof status === 'object' && status !== null ? status : {},
      };
      const owner = object('batch/v1', 'Job', 'web', fields, {
        annotations: { 'deployment.kubernetes.io/revision': revision },
      });
      const { replicas } = workloadOf([object('v1', 'Pod', 'p'), owner]);
      expect(replicas === undefined || replicas >= 0).toBe(true);
      expect(rolloutOf(owner)).toBeGreaterThanOrEqual(0);
    },
  );

  const duration = fc.oneof(
    fc
      .array(fc.constantFrom('1', '30', 'h', 'm', 's', 'ms', '.', '-', ' '), { maxLength: 6 })
      .map((parts) => parts.join('')),
    text,
  );
  fuzz('durations', duration, { share: 500, examples: ['1'.repeat(200_000)] }, (text) => {
    const read = throwsOnly([Error], () => parseDuration(text));
    if (read !== undefined) expect(Number.isNaN(read)).toBe(false);
  });
});
