import { describe, expect, it } from 'vitest';
import { BURST_LABEL } from '../../src/api/marks.ts';
import { workloadOf } from '../../src/placement/owner-chain.ts';
import type { OwnerChain } from '../../src/placement/owner-chain.ts';
import { compilePolicy, selectPolicy } from '../../src/placement/policy-selection.ts';
import type { CompiledPolicy, Selection } from '../../src/placement/policy-selection.ts';
import type { PlacementPolicy } from '../../src/api/placement-policy.ts';
import { DEPLOYMENTS, object, policy, webPod } from './policies.ts';

const compiled = (...policies: PlacementPolicy[]): CompiledPolicy[] =>
  policies.map((one) => {
    const result = compilePolicy(one);
    if ('problems' in result) throw new Error(result.problems.join('; '));
    return result;
  });
const select = (chain: OwnerChain, policies: PlacementPolicy[], labels: Record<string, string> = {}): Selection =>
  selectPolicy(chain, compiled(...policies), labels);
const winner = (chain: OwnerChain, ...policies: PlacementPolicy[]): string | undefined =>
  select(chain, policies).chosen?.source.name;
const selecting = (more: object, spec: object = {}) => ({ resourceSelectors: [{ ...DEPLOYMENTS, ...more }], ...spec });
const byLabel = { labelSelector: { matchLabels: { app: 'web' } } };

describe('which policy applies', () => {
  it.each([
    ['the pod itself', { apiVersion: 'v1', kind: 'Pod' }, true],
    ['its ReplicaSet', { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d' }, true],
    ['its Deployment', { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, true],
    ['another version', { apiVersion: 'apps/v1beta1', kind: 'Deployment' }, false],
    ['another kind', { apiVersion: 'apps/v1', kind: 'StatefulSet' }, false],
    ['another name', { ...DEPLOYMENTS, name: 'db' }, false],
    ['its labels', { ...DEPLOYMENTS, ...byLabel }, true],
    ['other labels', { ...DEPLOYMENTS, labelSelector: { matchLabels: { app: 'db' } } }, false],
    [
      'a name, whatever the labels',
      { ...DEPLOYMENTS, name: 'web', labelSelector: { matchLabels: { app: 'db' } } },
      true,
    ],
    ['its namespace', { ...DEPLOYMENTS, namespace: 'shop' }, true],
    ['another namespace', { ...DEPLOYMENTS, namespace: 'bank' }, false],
  ])('selects by %s', (_name, selector, expected) => {
    expect(winner(webPod(), policy('p', { resourceSelectors: [selector] })) === 'p').toBe(expected);
  });

  it('speaks only of its own namespace when it has one', () => {
    expect(winner(webPod(), policy('p', {}, 'shop'))).toBe('p');
    expect(winner(webPod(), policy('p', {}, 'bank'))).toBeUndefined();
  });

  it.each([
    [
      'namespace before cluster, whatever the priority',
      [policy('own', {}, 'shop'), policy('all', { priority: 9, ...selecting({ name: 'web' }) })],
      'own',
    ],
    [
      'priority before match',
      [policy('a', selecting({ name: 'web' })), policy('b', selecting({}, { priority: 1 }))],
      'b',
    ],
    ['name before label', [policy('a', selecting(byLabel)), policy('b', selecting({ name: 'web' }))], 'b'],
    ['label before kind', [policy('a', selecting({})), policy('b', selecting(byLabel))], 'b'],
    ['the alphabet last', [policy('b', selecting({})), policy('a', selecting({}))], 'a'],
    ['negative priority last', [policy('a', selecting({ name: 'web' }, { priority: -1 })), policy('b')], 'b'],
  ])('%s', (_name, policies, expected) => {
    expect(winner(webPod(), ...policies)).toBe(expected);
    expect(winner(webPod(), ...policies.toReversed())).toBe(expected);
  });

  it('takes the closest of several selectors and owners', () => {
    const several = policy('several', {
      resourceSelectors: [DEPLOYMENTS, { apiVersion: 'v1', kind: 'Pod', name: 'web-7d-x' }],
    });
    expect(winner(webPod(), several, policy('a', selecting(byLabel)))).toBe('several');
  });

  it('tells where it comes from', () => {
    expect(select(webPod(), [policy('p', {}, 'shop')]).chosen?.source).toEqual({
      kind: 'PlacementPolicy',
      name: 'p',
      generation: 4,
    });
    expect(select(webPod(), [policy('p')]).chosen?.source).toEqual({
      kind: 'ClusterPlacementPolicy',
      name: 'p',
      generation: 4,
    });
  });
});

describe('without a policy', () => {
  const burst = { 'spillway.dev/burst': 'enabled' };

  it('keeps pods on the host', () => {
    expect(select(webPod(), []).chosen).toBeUndefined();
    expect(select(webPod(), [], { 'spillway.dev/burst': 'yes' }).chosen).toBeUndefined();
  });

  it('lets them burst where the namespace says so: local first, then any member', () => {
    const { chosen } = select(webPod(), [], burst);
    expect(chosen?.source).toEqual({ kind: 'Namespace', name: 'shop' });
    const facts = {
      labels: {},
      provider: undefined,
      region: undefined,
      zones: [],
      taints: [],
      unavailable: undefined,
      price: undefined,
    };
    const tierOf = (name: string) =>
      chosen?.placement.groups[0].tiers.findIndex(({ whyNot }) => whyNot({ ...facts, name }) === undefined);
    expect([tierOf('local'), tierOf('east'), tierOf('west')]).toEqual([0, 1, 1]);
  });

  it('leaves those out that say no, or whose owner does', () => {
    const no = { labels: { [BURST_LABEL]: 'disabled' } };
    expect(select(webPod({}, no), [], burst).chosen).toBeUndefined();
    expect(select(webPod(no), [], burst).chosen).toBeUndefined();
    expect(select(webPod(no), [policy('p')], burst).chosen?.source.name).toBe('p');
  });
});

describe('Federation v1 annotations', () => {
  const annotated = (annotations: Record<string, string>) => webPod({ annotations });
  const key = 'federation.kubernetes.io/deployment-preferences';
  const preferences = {
    [key]: '{"rebalance":true,"clusters":{"*":{"weight":1},"east":{"minReplicas":2,"maxReplicas":4,"weight":3}}}',
  };

  it('stand between policies of the namespace and those of the cluster', () => {
    expect(select(annotated(preferences), [policy('all')], {}).chosen?.source).toEqual({
      kind: 'Annotation',
      name: key,
    });
    expect(winner(annotated(preferences), policy('own', {}, 'shop'))).toBe('own');
  });

  it('that cannot be read are passed over, and told', () => {
    const { chosen, problem } = select(
      annotated({ [key]: '{"clusters":{"east":{"weight":"3"}}}' }),
      [policy('all')],
      {},
    );
    expect(chosen?.source.name).toBe('all');
    expect(problem).toMatch(
      /^the federation annotations of Deployment web are ignored: the preferences cannot be used: clusters\.east\.weight: /,
    );
    expect(select(annotated({ [key]: '{' }), []).problem).toMatch(/the preferences cannot be read: /);
  });
});

describe('what a pod belongs to', () => {
  it('is the Deployment behind its ReplicaSet, in the revision of the pod', () => {
    const { object: workload, replicas, revision } = workloadOf(webPod());
    expect([workload.kind, workload.metadata.name, replicas, revision]).toEqual(['Deployment', 'web', 5, '7d']);
  });

  const pod = object('v1', 'Pod', 'p');
  it.each<[string, OwnerChain, string, number | undefined]>([
    ['a pod alone', [pod], 'p', 1],
    ['a ReplicaSet alone', [pod, object('apps/v1', 'ReplicaSet', 'rs', { spec: { replicas: 3 } })], 'rs', 3],
    ['a StatefulSet, one replica by default', [pod, object('apps/v1', 'StatefulSet', 'db', { spec: {} })], 'db', 1],
    ['a DaemonSet', [pod, object('apps/v1', 'DaemonSet', 'ds')], 'ds', undefined],
    [
      'a Rollout',
      [
        pod,
        object('apps/v1', 'ReplicaSet', 'rs', { spec: { replicas: 1 } }),
        object('argoproj.io/v1alpha1', 'Rollout', 'ro', { spec: { replicas: 8 } }),
      ],
      'ro',
      8,
    ],
    [
      'a ReplicaSet of something without replicas',
      [
        pod,
        object('apps/v1', 'ReplicaSet', 'rs', { spec: { replicas: 2 } }),
        object('x.io/v1', 'App', 'app', { spec: {} }),
      ],
      'rs',
      2,
    ],
    ['a Job', [pod, object('batch/v1', 'Job', 'job', { spec: { parallelism: 4 } })], 'job', 4],
    [
      'a Job near its end',
      [pod, object('batch/v1', 'Job', 'job', { spec: { parallelism: 4, completions: 10 }, status: { succeeded: 8 } })],
      'job',
      2,
    ],
    [
      'each Job of a CronJob',
      [
        pod,
        object('batch/v1', 'Job', 'job-1', { spec: { parallelism: 2 } }),
        object('batch/v1', 'CronJob', 'cron', { spec: {} }),
      ],
      'job-1',
      2,
    ],
    [
      'the StatefulSet of a set of groups',
      [
        pod,
        object('apps/v1', 'StatefulSet', 'group-0', { spec: { replicas: 4 } }),
        object('x.io/v1', 'LeaderWorkerSet', 'lws', { spec: { replicas: 2 } }),
      ],
      'group-0',
      4,
    ],
    ['a kind of anybody', [pod, object('x.io/v1', 'Train', 't', { spec: { replicas: 6 } })], 't', 6],
    ['a kind without a number', [pod, object('x.io/v1', 'Train', 't')], 't', undefined],
  ])('%s', (_name, chain, name, replicas) => {
    const workload = workloadOf(chain);
    expect([workload.object.metadata.name, workload.replicas]).toEqual([name, replicas]);
  });
});
