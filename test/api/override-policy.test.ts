import { describe, expect, it } from 'vitest';
import { type OverridePolicy, type OverridePolicyKind, parseOverridePolicy } from '../../src/api/override-policy.ts';
import type { KubeObject } from '../../src/kube/object.ts';

const raw = (spec: unknown, kind: string = 'OverridePolicy'): KubeObject =>
  ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind,
    metadata: { name: 'eu', namespace: 'shop', generation: 3 },
    spec,
    status: { from: 'elsewhere' },
  }) as KubeObject;

function parsed(spec: unknown, kind: OverridePolicyKind = 'OverridePolicy'): OverridePolicy {
  const result = parseOverridePolicy(kind, raw(spec, kind));
  if ('problems' in result) throw new Error(result.problems.join('; '));
  return result.policy;
}
const problems = (spec: unknown, kind: OverridePolicyKind = 'OverridePolicy'): string => {
  const result = parseOverridePolicy(kind, raw(spec, kind));
  return 'problems' in result ? result.problems.join('; ') : 'no problem';
};
const rule = (overriders: object) => ({ overrideRules: [{ overriders }] });
const selector = (labelSelector: object) => ({ resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', labelSelector }] });

describe('parseOverridePolicy', () => {
  it('fills in every default', () => {
    expect(parsed({}).spec).toEqual({ resourceSelectors: [], overrideRules: [], applyTo: 'NewPods' });
    const { overrideRules } = parsed(
      rule({
        imageOverrider: [{ component: 'Registry', operator: 'remove' }],
        initContainersOverrider: [{ operator: 'add', value: [{ name: 'a' }] }],
      }),
    ).spec;
    expect(overrideRules[0]?.overriders).toEqual({
      imageOverrider: [{ component: 'Registry', operator: 'remove', scope: 'Containers' }],
      initContainersOverrider: [{ operator: 'add', position: 'Last', value: [{ name: 'a' }] }],
    });
  });

  it('keeps who it is, and nothing else beside the spec', () => {
    expect(parsed({}, 'ClusterOverridePolicy')).toEqual({
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'ClusterOverridePolicy',
      metadata: { name: 'eu', namespace: 'shop', generation: 3 },
      spec: { resourceSelectors: [], overrideRules: [], applyTo: 'NewPods' },
    });
  });

  it('takes a list from the API server for what it says, without kind in its items', () => {
    const { kind: _, apiVersion: __, ...item } = raw({});
    expect(parseOverridePolicy('OverridePolicy', item)).toMatchObject({ policy: { kind: 'OverridePolicy' } });
  });

  it('keeps values of any JSON as they are', () => {
    const value = { a: [1, null, { b: 'c' }], __proto__: undefined };
    const { overrideRules } = parsed(rule({ plaintext: [{ path: '/data/x', operator: 'add', value }] })).spec;
    expect(overrideRules[0]?.overriders.plaintext?.[0]?.value).toBe(value);
  });

  it.each([
    [undefined, 'spec:'],
    [{ applyTo: 'All' }, 'spec.applyTo'],
    [{ resourceSelectors: [{ kind: 'Pod' }] }, 'spec.resourceSelectors.0.apiVersion'],
    [selector({ matchLabels: { 'a b': 'c' } }), 'spec.resourceSelectors.0.labelSelector: keys must be label keys'],
    [selector({ matchLabels: { a: 'b c' } }), 'spec.resourceSelectors.0.labelSelector.matchLabels.a'],
    [selector({ matchExpressions: [{ key: 'a..b/c', operator: 'Exists' }] }), 'labelSelector: keys must be label keys'],
    [selector({ matchExpressions: [{ key: 'a', operator: 'In' }] }), 'matchExpressions.0.values: values are required'],
    [
      selector({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }),
      'matchExpressions.0.values: values are required with In and NotIn, and not allowed',
    ],
    [rule({ imageOverrider: [{ component: 'Host', operator: 'add' }] }), 'overriders.imageOverrider.0.component'],
    [rule({ plaintext: [{ path: '', operator: 'add', value: 1 }] }), 'overriders.plaintext.0.path'],
    [rule({ plaintext: [{ path: '/a~b', operator: 'remove' }] }), 'overriders.plaintext.0.path'],
    [rule({ fieldOverrider: [{ fieldPath: '/a', json: [{ subPath: 'b', operator: 'remove' }] }] }), 'json.0.subPath'],
  ])('names the field of %j', (spec, field) => {
    expect(problems(spec)).toContain(field);
    expect(problems(spec, 'ClusterOverridePolicy')).toContain(field);
  });
});
