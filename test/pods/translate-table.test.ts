import { describe, expect, test } from 'vitest';
import { findReferences } from '../../src/pods/references.ts';
import { type Path, pathsBelow, structIn, textOf } from '../fixtures/api-fields.ts';
import { decisiveRow, exampleFor, type MappedExample } from '../fixtures/field-paths.ts';
import { fieldRows, podFields, rowOf } from '../fixtures/pod-fields.ts';
import { at, sampleOf } from '../fixtures/samples.ts';
import { boundPod, type Loose, refused, translated } from '../fixtures/translation.ts';

const { structs } = podFields;
const id = ({ struct, field }: { struct: string; field: string }): string => `${struct}.${field}`;

test('every field has exactly one row, and every row is needed', () => {
  const needed = new Set<string>();
  const visit = (name: string): void => {
    for (const [field, type] of Object.entries(structs[name] ?? {})) {
      const row = rowOf(name, field);
      const seen = id(row ?? { struct: name, field });
      if (needed.has(seen)) continue;
      needed.add(seen);
      const below = structIn(type, structs);
      // What is sent later than the pod is treated as containers are.
      const isOpen = row?.treatment === 'mapped' || field === 'ephemeralContainers';
      if (isOpen && below !== undefined) visit(below.name);
    }
  };
  for (const name of ['ObjectMeta', 'PodSpec', 'PodStatus']) visit(name);
  expect(fieldRows.map(id).sort()).toEqual([...needed].sort());
});

test('every refusal names its reason on the page', () => {
  for (const row of fieldRows.filter(({ treatment }) => treatment === 'refused'))
    expect(row.why).toMatch(/^`[A-Z]\w+`/);
});

/** Without these a struct is not sent at all. */
const NEEDED: Readonly<Record<string, Loose>> = {
  PodAffinityTerm: { topologyKey: 'kubernetes.io/hostname' },
  TopologySpreadConstraint: { topologyKey: 'kubernetes.io/hostname' },
  // A term of which nothing is left is no constraint any more.
  PreferredSchedulingTerm: { preference: { matchExpressions: [{ key: 'gpu', operator: 'Exists' }] } },
};

/** What becomes of fields that are mapped and have no fields of their own: an example each, before and after. */
const MAPPED: Readonly<Record<string, MappedExample>> = {
  'PodSpec.automountServiceAccountToken': { before: true, after: false },
  'PodSpec.enableServiceLinks': { before: true, after: false },
  'PodSpec.priorityClassName': { before: 'critical', after: 'burst-high' },
  'PodSpec.nodeSelector': { before: { type: 'virtual-kubelet', disk: 'ssd' }, after: { disk: 'ssd' } },
  'ObjectFieldSelector.fieldPath': { before: 'status.podIP', after: 'status.podIP' },
  'PodAffinityTerm.namespaces': { before: ['shop'], after: ['team-shop'] },
  'PodAffinityTerm.topologyKey': { before: 'kubernetes.io/hostname', after: 'kubernetes.io/hostname' },
  'TopologySpreadConstraint.topologyKey': { before: 'kubernetes.io/hostname', after: 'kubernetes.io/hostname' },
};

const context = {
  memberNamespaceOf: (namespace: string) => `team-${namespace}`,
  podPriority: { classes: [{ host: 'critical', member: 'burst-high' }] },
};

function check(path: Path): void {
  const { row, depth } = decisiveRow(path);
  const what = `${textOf(path)} (${row.treatment})`;
  const mapped = exampleFor(row, MAPPED);
  const pod = boundPod(sampleOf(path, { needed: NEEDED, ...(mapped === undefined ? {} : { leaf: mapped.before }) }));
  if (row.treatment === 'refused') {
    expect(refused(pod, context).reason, what).toBe(/^`(\w+)`/.exec(row.why)?.[1]);
    return;
  }
  const { spec } = translated(pod, context);
  const before = at(pod.spec, path, depth);
  const after = at(spec, path, depth);
  expect(before, what).toBeDefined();
  if (row.treatment === 'dropped') expect(after, what).toBeUndefined();
  else expect(after, what).toEqual(mapped?.after ?? before);
}

describe('along every path of PodSpec the pod becomes what the page says', () => {
  const paths = pathsBelow('PodSpec', structs);
  const fields = [...new Set(paths.map(({ steps }) => steps[0]?.field ?? ''))];
  test.each(fields)('%s', (field) => {
    const below = paths.filter(({ steps }) => steps[0]?.field === field);
    expect(below.length).toBeGreaterThan(0);
    for (const path of below) {
      // A term that selects namespaces by their labels stays on the host.
      if (!path.steps.some((step) => step.field === 'namespaceSelector')) check(path);
    }
  });
});

describe('what a pod refers to', () => {
  const NAMES = /^(SecretKeySelector|SecretEnvSource|SecretProjection|SecretReference|LocalObjectReference)\.name$/;
  const kindOf = (path: Path): 'Secret' | 'ConfigMap' | undefined => {
    const last = path.steps.at(-1);
    if (last === undefined) return undefined;
    if (/^ConfigMap\w+\.name$/.test(id(last))) return 'ConfigMap';
    return NAMES.test(id(last)) || last.field === 'secretName' ? 'Secret' : undefined;
  };
  const paths = pathsBelow('PodSpec', structs).filter(
    (path) => kindOf(path) !== undefined && decisiveRow(path).row.treatment !== 'refused',
  );

  test('there are as many as there were', () => expect(paths.length).toBeGreaterThanOrEqual(25));

  test.each(paths.map((path) => [textOf(path), path] as const))('%s comes along', (_, path) => {
    const pod = boundPod(sampleOf(path, { needed: {} }));
    expect(findReferences(pod)).toMatchObject([{ kind: kindOf(path), name: 'mark' }]);
  });
});

describe('ObjectMeta', () => {
  const dropped = fieldRows.filter(({ struct, treatment }) => struct === 'ObjectMeta' && treatment === 'dropped');
  test.each(dropped.map(({ field }) => field))('%s is dropped', (field) => {
    const { metadata } = translated(boundPod({}, field === 'uid' ? {} : { [field]: { mark: true } }));
    expect(metadata).not.toHaveProperty([field]);
  });
  test('the name is copied, the namespace mapped', () => {
    expect(translated(boundPod()).metadata).toMatchObject({ name: 'web-0', namespace: 'team-shop' });
  });
});

test('an empty list of resource claims is no claim', () => {
  expect(translated(boundPod({ resourceClaims: [] })).spec['resourceClaims']).toEqual([]);
});

test('a refused volume is named, with the cluster, and whether it passes', () => {
  const projected = { sources: [{ serviceAccountToken: { path: 'token' } }] };
  const { message } = refused(boundPod({ volumes: [{ name: 'data', projected }] }));
  expect(message).toMatch(/"data".*cluster "east".*does not pass by itself/);
});
