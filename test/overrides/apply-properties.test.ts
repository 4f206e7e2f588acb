import fc from 'fast-check';
import { expect, it } from 'vitest';
import { GROUP } from '../../src/api/marks.ts';
import { overridersSchema } from '../../src/api/overriders.ts';
import { canonicalJson } from '../../src/kube/canonical-json.ts';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { applyRules } from '../../src/overrides/apply-overrides.ts';
import type { PlannedRule } from '../../src/overrides/planned-rules.ts';
import { contextOf, rendered } from './rendered-pod.ts';

const POD = rendered();
const CONTEXT = contextOf(undefined, { pool: { disk: 'ssd' } });

/** Names that mean something in a pod, names that are dangerous, and others. */
const name = fc.oneof(
  fc.constantFrom(
    'spec',
    'metadata',
    'labels',
    'annotations',
    'containers',
    'name',
    'namespace',
    'uid',
    'nodeName',
    '0',
    '1',
    '-',
  ),
  fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'status',
    'kind',
    'apiVersion',
    'nodeSelector',
    'disk',
  ),
  fc.constantFrom(...Object.keys(POD.metadata.labels ?? {}), ...Object.keys(POD.metadata.annotations ?? {})),
  fc.string({ maxLength: 4 }),
);
const pointer = fc
  .array(name, { minLength: 1, maxLength: 5 })
  .map((names) => names.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''));
const operator = fc.constantFrom('add' as const, 'remove' as const, 'replace' as const);
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom({}, [], null, { name: 'x' }, JSON.parse('{"__proto__":{"a":1}}')),
);
const map = fc.dictionary(name, fc.constantFrom('a', '', 'x y', 'b'), { maxKeys: 3 });
const container = fc.constantFrom('app', 'side', 'init', 'nobody');

/** Overriders that give the same when applied twice. */
const steady = {
  labelsOverrider: fc.array(fc.record({ operator, value: map }), { maxLength: 2 }),
  annotationsOverrider: fc.array(fc.record({ operator, value: map }), { maxLength: 2 }),
  nodeSelectorOverrider: fc.array(fc.record({ operator, value: map }), { maxLength: 2 }),
  envOverrider: fc.array(
    fc.record({
      operator,
      containerName: container,
      value: fc.array(fc.record({ name: fc.constantFrom('MODE', 'URL', 'NEW'), value: fc.string({ maxLength: 3 }) }), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
    { maxLength: 2 },
  ),
  resourcesOverrider: fc.array(
    fc.record({
      operator,
      containerName: container,
      requests: fc.dictionary(fc.constantFrom('cpu', 'memory'), fc.constantFrom('1', '2Gi')),
    }),
    { maxLength: 2 },
  ),
  initContainersOverrider: fc.array(
    fc.record({
      operator,
      position: fc.constantFrom('First', 'Last'),
      value: fc.uniqueArray(
        fc.record({ name: fc.constantFrom('init', 'wait', 'last'), image: fc.constantFrom('a', 'b') }),
        { minLength: 1, maxLength: 2, selector: ({ name }) => name },
      ),
    }),
    { maxLength: 2 },
  ),
  imagePullSecretsOverrider: fc.array(
    fc.record({ operator, value: fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 }) }),
    { maxLength: 2 },
  ),
  tolerationsOverrider: fc.array(
    fc.record({
      operator,
      value: fc.array(
        fc.record(
          {
            key: fc.constantFrom('gpu', 'spot'),
            operator: fc.constantFrom('Exists'),
            effect: fc.constantFrom('NoSchedule', 'NoExecute'),
          },
          { requiredKeys: ['key'] },
        ),
        { maxLength: 2 },
      ),
    }),
    { maxLength: 2 },
  ),
  runtimeClassOverrider: fc.record({ operator, value: fc.constantFrom('gvisor', 'kata') }),
};
const anything = {
  ...steady,
  imageOverrider: fc.array(
    fc.record(
      {
        component: fc.constantFrom('Registry', 'Repository', 'Tag'),
        operator,
        value: fc.constantFrom('a.example', 'x', '/y', ':z', ''),
        scope: fc.constantFrom('Containers', 'AllContainers'),
        predicate: fc.record({ path: pointer }),
      },
      { requiredKeys: ['component', 'operator', 'value', 'scope'] },
    ),
    { maxLength: 2 },
  ),
  argsOverrider: fc.array(
    fc.record({ containerName: container, operator, value: fc.array(fc.string({ maxLength: 3 }), { maxLength: 2 }) }),
    { maxLength: 2 },
  ),
  fieldOverrider: fc.array(
    fc.record({
      fieldPath: pointer,
      yaml: fc.array(fc.record({ subPath: pointer, operator, value }), { minLength: 1, maxLength: 2 }),
    }),
    { maxLength: 1 },
  ),
  plaintext: fc.array(fc.record({ path: pointer, operator, value }), { maxLength: 3 }),
};

const rule = (policy: string, overriders: unknown): PlannedRule => ({
  policy,
  rule: 0,
  rank: 1,
  applyTo: 'NewPods',
  // Not through the schema: what gets past an old CRD must not hurt either.
  overriders: overriders as PlannedRule['overriders'],
});
const kinds = fc.constantFrom('ClusterOverridePolicy a', 'OverridePolicy shop/a');

function marksOf(object: KubeObject): unknown {
  const { labels = {}, annotations = {}, ...identity } = object.metadata;
  const own = (map: Record<string, string>) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => key.startsWith(`${GROUP}/`)));
  return {
    identity,
    labels: own(labels),
    annotations: own(annotations),
    kind: object.kind,
    apiVersion: object.apiVersion,
    status: 'status' in object,
  };
}

it('never changes what an object is, whose it is and where it runs, nor anything in place', () => {
  const before = canonicalJson(POD);
  let applied = 0;
  fc.assert(
    fc.property(kinds, fc.record(anything, { requiredKeys: [] }), (policy, overriders) => {
      const outcome = applyRules(POD, [rule(policy, overriders)], CONTEXT);
      expect(canonicalJson(POD)).toBe(before);
      expect('polluted' in {} || 'a' in {}).toBe(false);
      if ('refused' in outcome) {
        expect(outcome.refused.policy).toBe(policy);
        expect(outcome.refused.path).toMatch(/^overrideRules\[0\]\./);
        expect(outcome.refused.message).toContain('cluster "east"');
        return;
      }
      applied += 1;
      const { object } = outcome;
      expect(marksOf(object)).toEqual(marksOf(POD));
      expect(object.spec.nodeName).toBeUndefined();
      expect(object.spec.nodeSelector?.['disk']).toBe('ssd');
      expect(object.spec.containers.map(({ name }) => name)).toEqual(expect.arrayContaining(['app', 'side']));
    }),
    { numRuns: 3000 },
  );
  expect(applied).toBeGreaterThan(100);
});

it('gives the same again where an operator sets things', () => {
  fc.assert(
    fc.property(fc.record(steady, { requiredKeys: [] }), (generated) => {
      // One of each: to take something out and put it back in moves it every time.
      const overriders = Object.fromEntries(
        Object.entries(generated).map(([name, list]) => [name, Array.isArray(list) ? list.slice(0, 1) : list]),
      );
      const one = applyRules(POD, [rule('ClusterOverridePolicy a', overriders)], CONTEXT);
      if ('refused' in one) return;
      const two = applyRules(one.object, [rule('ClusterOverridePolicy a', overriders)], CONTEXT);
      if ('refused' in two) throw new Error(two.refused.message);
      expect(two.object).toEqual(one.object);
    }),
    { numRuns: 2000 },
  );
});

it('says that something changed exactly when it did', () => {
  fc.assert(
    fc.property(fc.record(steady, { requiredKeys: [] }), (overriders) => {
      const outcome = applyRules(POD, [rule('ClusterOverridePolicy a', overriders)], CONTEXT);
      if ('refused' in outcome || outcome.applied[0] === undefined) return;
      const { changes } = outcome.applied[0];
      if (changes.length === 0) expect(outcome.object).toBe(POD);
      for (const change of changes) expect(Object.keys(overridersSchema.shape)).toContain(change);
      if (!jsonEqual(outcome.object, POD)) expect(changes.length).toBeGreaterThan(0);
    }),
  );
});
