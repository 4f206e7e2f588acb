import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { overridersSchema } from '../../src/api/overriders.ts';
import { parseOverridePolicy } from '../../src/api/override-policy.ts';
import { canonicalJson } from '../../src/kube/canonical-json.ts';
import { parseJson, stringifyJson } from '../../src/kube/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { applyOverrides, applyRules } from '../../src/overrides/apply-overrides.ts';
import { parseImage, formatImage } from '../../src/kube/image-reference.ts';
import { applyPatchOperation, type PatchOperation } from '../../src/overrides/json-patch.ts';
import { OverrideError } from '../../src/overrides/override-error.ts';
import { policiesInRecord, readPodRecord, readSetKeys, writePodRecord } from '../../src/overrides/override-record.ts';
import { patchYaml } from '../../src/overrides/yaml-patch.ts';
import { contextOf, rendered } from '../overrides/rendered-pod.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { changed, json, key, text } from './inputs.ts';

const POD = rendered();
const CONTEXT = contextOf(undefined);
const TEXT = 'a: 1\nlist:\n  - b # why\n  - &x {c: d}\nother: *x\n';
const config = {
  kind: 'ConfigMap',
  metadata: { name: 'c' },
  data: { 'a.yaml': TEXT, 'a.json': '{"a":[1,{"b":null}]}' },
};

const pointer = fc.oneof(
  fc
    .array(fc.oneof(key, fc.constantFrom('a', 'b', 'c', 'list', '0', '1', '-')), { maxLength: 4 })
    .map((names) => names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')),
  text,
);
const operation: fc.Arbitrary<PatchOperation> = fc.record(
  { operator: fc.constantFrom('add', 'remove', 'replace'), path: pointer, value: json },
  { requiredKeys: ['operator', 'path'] },
);

describe('overrides', () => {
  fuzz('patch JSON', fc.tuple(json, operation), { share: 2_000 }, ([document, operation]) => {
    const before = canonicalJson(document);
    const after = throwsOnly([OverrideError], () => applyPatchOperation(document, operation));
    expect(canonicalJson(document)).toBe(before);
    if (after !== undefined) stringifyJson(after);
  });

  const yamlText = fc.oneof(
    fc.constant(TEXT),
    fc.tuple(fc.nat(TEXT.length), text).map(([at, piece]) => TEXT.slice(0, at) + piece + TEXT.slice(at)),
    json.map(stringifyJson),
    fc.constantFrom(
      '&a [*a]',
      '- *x',
      `a: &a0 [x]\n${'- '.repeat(3_000)}`,
      '['.repeat(5_000),
      '{a: '.repeat(2_000),
      `a: &a [${'x,'.repeat(200)}]\nb: [${'*a,'.repeat(200)}]`,
    ),
    text,
  );
  fuzz(
    'patch YAML',
    fc.tuple(yamlText, fc.array(operation, { minLength: 1, maxLength: 3 })),
    { share: 1_500 },
    ([text, operations]) => {
      // As overrideField does it, which puts what the library throws in words of its own.
      const after = throwsOnly([Error], () => patchYaml(text, operations));
      if (after !== undefined) expect(after.length).toBeLessThan(20_000_000);
    },
  );

  const overriders = {
    imageOverrider: [{ component: 'Registry', operator: 'replace', value: 'mirror.example:5000' }],
    commandOverrider: [{ containerName: 'app', operator: 'add', value: ['--x'] }],
    labelsOverrider: [{ operator: 'add', value: { a: 'b' } }],
    envOverrider: [{ operator: 'add', containerName: 'app', value: [{ name: 'A', value: '${member.name}' }] }],
    resourcesOverrider: [{ operator: 'replace', containerName: 'app', requests: { cpu: '1' } }],
    tolerationsOverrider: [{ operator: 'add', value: [{ key: 'a', operator: 'Exists' }] }],
    fieldOverrider: [{ fieldPath: '/data/a.yaml', yaml: [{ subPath: '/a', operator: 'replace', value: 2 }] }],
    plaintext: [{ path: '/metadata/annotations/x', operator: 'add', value: "${member.labels['tier']}" }],
  };
  const spec = {
    resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', labelSelector: { matchLabels: { app: 'web' } } }],
    overrideRules: [{ targetCluster: { clusterNames: ['east'] }, overriders }],
    applyTo: 'RunningPods',
  };
  const policy = { apiVersion: 'spillway.dev/v1alpha1', kind: 'ClusterOverridePolicy', metadata: { name: 'p' }, spec };
  const few = fc
    .subarray(Object.entries(overriders))
    .map((some) => ({ ...policy, spec: { overrideRules: [{ overriders: Object.fromEntries(some) }] } }));
  const policies = fc.oneof(
    changed(policy),
    few.chain((one) => changed(one)),
  );
  fuzz(
    'of any policy are refused or leave an object of its kind',
    fc.tuple(policies, fc.constantFrom<KubeObject>(POD, config as KubeObject)),
    { share: 3_000 },
    ([raw, object]) => {
      const parsed = parseOverridePolicy('ClusterOverridePolicy', { metadata: { name: 'p' }, ...(raw as object) });
      if ('problems' in parsed) {
        expect(parsed.problems.every((problem) => problem.startsWith('spec'))).toBe(true);
        return;
      }
      const before = canonicalJson(object);
      const outcome = applyOverrides(object, [{ ...parsed.policy, metadata: { name: 'p' } }], CONTEXT);
      expect(canonicalJson(object)).toBe(before);
      if (!('object' in outcome)) return;
      const { metadata, kind } = outcome.object;
      expect([kind, metadata.name, metadata.uid]).toEqual([object.kind, object.metadata.name, object.metadata.uid]);
      const record = writePodRecord(outcome.applied);
      if (typeof record !== 'string') return;
      const read = readPodRecord(record);
      if (typeof read === 'string') throw new Error(`what was just written is ${read}`);
      const again = applyRules(object, read.rules, CONTEXT);
      expect('object' in again && canonicalJson(again.object)).toBe(canonicalJson(outcome.object));
    },
  );

  const record = writePodRecord([
    {
      policy: 'p',
      rule: 0,
      rank: 1,
      applyTo: 'NewPods',
      changes: ['plaintext'],
      overriders: overridersSchema.parse({ labelsOverrider: [{ operator: 'add', value: { a: 'b' } }] }),
    },
  ]);
  const records = fc.oneof(changed(parseJson(typeof record === 'string' ? record : '')).map(stringifyJson), text);
  fuzz('in a record that anybody changed are not believed', records, { share: 1_000 }, (text) => {
    const read = readPodRecord(text);
    if (typeof read !== 'string') for (const { policy } of read.rules) expect(typeof policy).toBe('string');
    expect(policiesInRecord(text).every((name) => typeof name === 'string')).toBe(true);
    readSetKeys(text);
  });

  const image = fc.oneof(
    fc
      .array(
        fc.constantFrom(
          'a',
          'A',
          '.',
          ':',
          '/',
          '@',
          '-',
          '_',
          '__',
          '[::1]',
          'localhost',
          '5000',
          `sha256:${'a'.repeat(64)}`,
        ),
        { maxLength: 8 },
      )
      .map((parts) => parts.join('')),
    text,
  );
  fuzz('read images', image, { share: 1_000 }, (text) => {
    const read = parseImage(text);
    if (read !== undefined) expect(formatImage(read)).toBe(text);
  });
});
