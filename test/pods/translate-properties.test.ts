import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import { parseJson, stringifyJson } from '../../src/kube/json.ts';
import { appliedHash } from '../../src/pods/applied.ts';
import { memberUpdates } from '../../src/pods/member-updates.ts';
import { translatePod } from '../../src/pods/translate.ts';
import { boundPod, CONTEXT, frozen, type Loose, madePod, translated } from '../fixtures/translation.ts';

/** Any JSON, with keys that trip careless programs. */
const key = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'spec', 'name'),
);
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.string({ maxLength: 8 }),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie('json')), { maxLength: 3 }).map((entries) => Object.fromEntries(entries)),
  ),
}));

const FIELDS = [
  'containers',
  'initContainers',
  'ephemeralContainers',
  'volumes',
  'nodeSelector',
  'affinity',
  'tolerations',
  'topologySpreadConstraints',
  'resourceClaims',
  'resources',
  'activeDeadlineSeconds',
  'enableServiceLinks',
];
/** A spec whose known fields hold anything at all. */
const wildSpec = fc
  .array(fc.tuple(fc.constantFrom(...FIELDS), json), { maxLength: 6 })
  .map((entries) => Object.fromEntries(entries) as Loose);
const container = fc.record(
  { name: fc.constant('app'), env: json, envFrom: json, volumeMounts: json, resources: json },
  { requiredKeys: ['name'] },
);
const volume = fc.record({ name: fc.constant('v'), projected: json, downwardAPI: json }, { requiredKeys: ['name'] });
const nearSpec = fc.record(
  {
    containers: fc.array(container, { maxLength: 2 }),
    volumes: fc.array(volume, { maxLength: 2 }),
    affinity: fc.record({ nodeAffinity: json, podAffinity: json, podAntiAffinity: json }, { requiredKeys: [] }),
    tolerations: fc.array(json, { maxLength: 2 }),
  },
  { requiredKeys: ['containers'] },
);
const serviceEnv = [{ name: 'DB_SERVICE_HOST', value: '10.96.0.9' }];

describe('for any pod', () => {
  test('translation neither throws nor changes the pod, and answers the same again', () => {
    fc.assert(
      fc.property(fc.oneof(wildSpec, nearSpec), json, json, (spec, labels, annotations) => {
        const pod = frozen(boundPod(spec, { labels, annotations }));
        const first = translatePod(pod, { ...CONTEXT, serviceEnv });
        expect(jsonEqual(translatePod(pod, { ...CONTEXT, serviceEnv }), first)).toBe(true);
        expect(appliedHash(pod)).toMatch(/^v1:[-\w.]+$/);
      }),
      { numRuns: 2_000 },
    );
  });

  test('no mark is forged', () => {
    const map = fc.dictionary(
      fc.oneof(
        key,
        fc.constantFrom(
          'spillway.dev/host',
          'spillway.dev/node',
          'spillway.dev/uid',
          'spillway.dev/applied',
          'spillway.dev/x',
        ),
      ),
      fc.constant('forged'),
    );
    fc.assert(
      fc.property(map, map, (labels, annotations) => {
        const { metadata } = translated(boundPod({}, { labels, annotations }));
        for (const part of ['labels', 'annotations']) {
          for (const [name, value] of Object.entries(metadata[part] as Loose)) {
            if (name.startsWith('spillway.dev/')) expect(value).not.toBe('forged');
            else expect(value).toBe('forged');
          }
        }
      }),
    );
  });

  test('translating the spec of a member pod changes nothing more', () => {
    fc.assert(
      fc.property(nearSpec, (spec) => {
        const once = translatePod(boundPod(spec), { ...CONTEXT, serviceEnv });
        if (once.kind === 'refused') return;
        const again = translatePod({ ...boundPod(), spec: once.pod.spec }, { ...CONTEXT, serviceEnv });
        if (again.kind === 'refused') throw new Error(again.reason);
        expect(stringifyJson(again.pod.spec)).toBe(stringifyJson(once.pod.spec));
      }),
    );
  });

  test('whatever changes in a pod, what is sent stays within what a member may be sent', () => {
    fc.assert(
      fc.property(nearSpec, nearSpec, json, json, (before, after, labels, annotations) => {
        const created = translatePod(boundPod(before), CONTEXT);
        if (created.kind === 'refused') return;
        const updates = memberUpdates(frozen(boundPod(after, { labels, annotations })), created.pod, CONTEXT);
        for (const { patch } of updates) {
          expect(Object.keys(patch).every((name) => name === 'metadata' || name === 'spec')).toBe(true);
          expect(JSON.stringify(patch)).not.toMatch(/"spillway.dev\/(host|node|uid)"/);
        }
        if (updates.length > 0) expect(updates.at(-1)?.kind).toBe('patch');
      }),
    );
  });
});

describe('fields nobody has heard of', () => {
  const NEWS = { of: [{ the: 'future', id: 1 }], on: true };
  /** Every object in the value that rewrites leave in place, as a path. */
  function* objects(value: unknown, path: (string | number)[] = []): Generator<(string | number)[]> {
    if (typeof value !== 'object' || value === null) return;
    if (!Array.isArray(value)) yield path;
    for (const [name, part] of Object.entries(value))
      yield* objects(part, [...path, Array.isArray(value) ? Number(name) : name]);
  }
  function withNews(value: unknown, path: readonly (string | number)[]): unknown {
    const [head, ...rest] = path;
    if (head === undefined) return { ...(value as Loose), newField: NEWS };
    if (Array.isArray(value))
      return value.map((item: unknown, index) => (index === head ? withNews(item, rest) : item));
    return { ...(value as Loose), [head]: withNews((value as Loose)[head], rest) };
  }
  /** Inside the token volume or its mounts, or something that is dropped whole. */
  function isLost(pod: Pod, path: readonly (string | number)[]): boolean {
    let part: unknown = pod;
    for (const step of path) {
      part = (part as Loose)[step];
      const { name, key } = part as Loose;
      if (/^(kube-api-access-|spillway\.dev\/|node\.kubernetes\.io\/)/.test(String(name ?? key))) return true;
    }
    return path[1] === 'ownerReferences' || path[1] === 'managedFields';
  }

  test.each(['deployment', 'statefulSet', 'job'] as const)('survive at any depth of a pod of a %s', (kind) => {
    const pod = madePod(kind);
    let checked = 0;
    for (const root of ['spec', 'metadata'] as const) {
      for (const path of objects(pod[root])) {
        const at = [root, ...path].join('.');
        const changed = withNews(pod, [root, ...path]) as Pod;
        const text = JSON.stringify(translated(changed));
        if (isLost(pod, [root, ...path]) || isKept(at)) continue;
        expect(text, at).toContain('"newField":{"of":[{"the":"future","id":1}],"on":true}');
        checked += 1;
      }
    }
    expect(checked).toBeGreaterThan({ deployment: 60, statefulSet: 10, job: 5 }[kind]);
  });

  /** Parts of the fixtures that stay on the host as a whole, or whose literal replaces them. */
  function isKept(at: string): boolean {
    return (
      at.startsWith('spec.topologySpreadConstraints.1') ||
      at.startsWith('spec.affinity.podAntiAffinity.preferred') ||
      (at.endsWith('matchExpressions.0') && at.includes('nodeAffinity')) ||
      /^spec\.containers\.0\.env\.(2|3)\.valueFrom/.test(at)
    );
  }
});

test('keys that name what every object inherits are ordinary keys', () => {
  const text = JSON.stringify(boundPod({ containers: [{ name: 'app', image: 'x' }] })).replace(
    '"image":"x"',
    '"image":"x","__proto__":{"polluted":true},"constructor":{"prototype":1}',
  );
  const pod = parseJson(text) as Pod;
  const [app] = translated(pod, { serviceEnv }).spec['containers'] as Loose[];
  expect(stringifyJson(app)).toContain('"__proto__":{"polluted":true},"constructor":{"prototype":1}');
  expect(({} as Loose)['polluted']).toBeUndefined();
});
