import { describe, expect, it } from 'vitest';
import { OVERRIDE_POLICIES, type OverridePolicy, parseOverridePolicy } from '../../src/api/override-policy.ts';
import { apiVersionOf } from '../../src/kube/resource.ts';
import { readOverridePolicyStatus } from '../../src/api/override-policy-status.ts';
import { customKindsOf, overridePolicyStatus, overrideWarnings } from '../../src/overrides/policy-findings.ts';
import type { Cluster } from '../../src/api/cluster.ts';

const cluster = (name: string, labels: Record<string, string> = {}): Cluster =>
  ({ name, labels, zones: [] }) as unknown as Cluster;
const FLEET = [cluster('east', { tier: 'gold' }), cluster('west')];

function policy(...targets: (object | undefined)[]): OverridePolicy {
  return choosing([], ...targets);
}

function choosing(resourceSelectors: object[], ...targets: (object | undefined)[]): OverridePolicy {
  const overrideRules = targets.map((targetCluster) => ({
    ...(targetCluster === undefined ? {} : { targetCluster }),
    overriders: { labelsOverrider: [{ operator: 'add', value: { a: 'b' } }] },
  }));
  const raw = {
    apiVersion: apiVersionOf(OVERRIDE_POLICIES),
    kind: 'OverridePolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: { resourceSelectors, overrideRules },
  };
  const read = parseOverridePolicy('OverridePolicy', raw);
  if ('problems' in read) throw new Error(read.problems.join('; '));
  return read.policy;
}

describe('overrideWarnings', () => {
  it.each<[string, object | undefined, string[]]>([
    ['no target', undefined, []],
    ['a member that is there', { clusterNames: ['east'] }, []],
    ['a label that some member has', { labelSelector: { matchLabels: { tier: 'gold' } } }, []],
    ['a name that no member has', { clusterNames: ['east', 'esat'] }, ['there is no member esat']],
    ['one that is excluded', { exclude: ['nowhere'] }, ['there is no member nowhere']],
    ['the host itself', { clusterNames: ['local', 'east'] }, ['pods that stay on the host are never changed']],
    [
      'a label that none has',
      { labelSelector: { matchLabels: { tier: 'tin' } } },
      ['chooses none of the members there are'],
    ],
  ])('%s', (_, target, words) => {
    const path = 'spec.overrideRules[1].targetCluster: ';
    expect(overrideWarnings(policy(undefined, target), FLEET)).toEqual(words.map((word) => path + word));
  });

  it('says nothing of choices while there are no members, as before the first one is registered', () => {
    expect(overrideWarnings(policy({ labelSelector: { matchLabels: { tier: 'tin' } } }), [])).toEqual([]);
  });
});

it('selectors for kinds of Kubernetes that are never changed are told, and those for other kinds are to be looked up', () => {
  const labelSelector = { matchLabels: { tier: 'gold' } };
  const chosen = [
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
    { apiVersion: 'v1', kind: 'Service', labelSelector },
    { apiVersion: 'apps/v1', kind: 'Deploymnet', name: 'web' },
    { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', labelSelector },
    { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rolout', name: 'web', labelSelector },
  ];
  const found = choosing(chosen, { clusterNames: ['esat'] });
  expect(overrideWarnings(found, FLEET)).toEqual([
    expect.stringMatching(/^spec\.resourceSelectors\[1\]\.kind: nothing is chosen by Service \(v1\); .*ConfigMap/),
    expect.stringMatching(/^spec\.resourceSelectors\[2\]\.kind: nothing is chosen by Deploymnet \(apps\/v1\); /),
    'spec.overrideRules[0].targetCluster: there is no member esat',
  ]);
  expect(customKindsOf(found).map(({ path, kind, byLabels }) => [path, kind, byLabels])).toEqual([
    ['spec.resourceSelectors[3]', 'Rollout', true],
    ['spec.resourceSelectors[4]', 'Rolout', false],
  ]);
});

it('the status stays as it is, times included, until something is found to be otherwise', () => {
  const found = { generation: 2, problems: [], warnings: [] };
  const first = overridePolicyStatus({ ...found, before: undefined, now: 0 });
  expect(overridePolicyStatus({ ...found, before: first, now: 60_000 })).toEqual(first);
  const warned = overridePolicyStatus({ ...found, warnings: ['x'], before: first, now: 60_000 });
  expect(warned.conditions?.map(({ type, status, lastTransitionTime }) => [type, status, lastTransitionTime])).toEqual([
    ['Accepted', 'True', '1970-01-01T00:00:00Z'],
    ['Consistent', 'False', '1970-01-01T00:01:00Z'],
  ]);
  const invalid = overridePolicyStatus({ ...found, problems: ['spec.a: is wrong'], before: first, now: 60_000 });
  expect(invalid.conditions?.map(({ status, reason }) => `${status} ${reason}`)).toEqual([
    'False Invalid',
    'False Contradictory',
  ]);
});

it('what is more than a condition takes is cut, and stays as it is', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => `spec.overrideRules[${String(index)}]: ${'x'.repeat(60)}`);
  const found = { generation: 2, problems: many, warnings: many };
  const status = overridePolicyStatus({ ...found, before: undefined, now: 0 });
  expect(status.conditions?.map(({ message }) => message.length)).toEqual([32_768, 32_768]);
  expect(status.conditions?.[1]?.message).toMatch(/…$/);
  expect(readOverridePolicyStatus({ status })).toEqual(status);
  expect(overridePolicyStatus({ ...found, before: status, now: 60_000 })).toEqual(status);
});
