import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { boundPod, type Loose, refused, translated } from '../fixtures/translation.ts';

/** Schema name to field names, from the API's OpenAPI document; test/cluster compares it with a live one. */
const { schemas } = JSON.parse(readFileSync(new URL('../fixtures/pod-fields.json', import.meta.url), 'utf8')) as {
  schemas: Record<string, string[]>;
};

const page = readFileSync(new URL('../../docs/pod-translation.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| `(\w+)\.(\w+)` \| (copied|mapped|dropped|refused) \| ?(.*?) ?\|$/gm)].map(
  ([, schema = '', field = '', treatment = '', why = '']) => ({ schema, field, treatment, why }),
);
const rowsOf = (schema: string, treatment: string): string[] =>
  rows.filter((row) => row.schema === schema && row.treatment === treatment).map(({ field }) => field);

/** A value that no rewrite could make up. */
const MARK = { mark: ['of', 'a', 'field'], nested: { deep: 9007199254740991 } };

test('every field of 1.36 has exactly one row, and every row is a field', () => {
  const fields = Object.entries(schemas).flatMap(([schema, names]) => names.map((name) => `${schema}.${name}`));
  expect(rows.map(({ schema, field }) => `${schema}.${field}`).sort()).toEqual(fields.sort());
});

test('every refusal names its reason on the page', () => {
  for (const row of rows.filter(({ treatment }) => treatment === 'refused')) expect(row.why).toMatch(/^`[A-Z]\w+`/);
});

describe('PodSpec', () => {
  test.each(rowsOf('PodSpec', 'copied'))('%s is copied', (field) => {
    expect(translated(boundPod({ [field]: MARK })).spec[field]).toEqual(MARK);
  });
  test.each(rowsOf('PodSpec', 'dropped'))('%s is dropped', (field) => {
    expect(translated(boundPod({ [field]: [MARK] })).spec).not.toHaveProperty([field]);
  });
  test('resourceClaims are refused', () => {
    expect(refused(boundPod({ resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] })).reason).toBe(
      'ResourceClaimsNotSupported',
    );
    expect(translated(boundPod({ resourceClaims: [] })).spec['resourceClaims']).toEqual([]);
  });
  test('automountServiceAccountToken and enableServiceLinks are off', () => {
    const { spec } = translated(boundPod({ automountServiceAccountToken: true, enableServiceLinks: true }));
    expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  });
});

describe('ObjectMeta', () => {
  test.each(rowsOf('ObjectMeta', 'dropped'))('%s is dropped', (field) => {
    const { metadata } = translated(boundPod({}, field === 'uid' ? {} : { [field]: MARK }));
    expect(metadata).not.toHaveProperty([field]);
  });
  test('the name is copied, the namespace mapped', () => {
    expect(translated(boundPod()).metadata).toMatchObject({ name: 'web-0', namespace: 'team-shop' });
  });
});

describe.each(['containers', 'initContainers'])('%s', (list) => {
  test.each(rowsOf('Container', 'copied'))('%s is copied', (field) => {
    const value = field === 'name' ? 'app' : field === 'envFrom' ? [{ prefix: 'X_', other: MARK }] : MARK;
    const { spec } = translated(boundPod({ [list]: [{ name: 'app', [field]: value }] }));
    expect((spec[list] as Loose[])[0]?.[field]).toEqual(value);
  });
});

describe('Volume', () => {
  test.each(rowsOf('Volume', 'copied'))('%s is copied', (field) => {
    const volume = { name: 'v', [field]: field === 'name' ? 'v' : MARK };
    expect(translated(boundPod({ volumes: [volume] })).spec['volumes']).toEqual([volume]);
  });
  test.each(rowsOf('Volume', 'refused'))('%s is refused', (field) => {
    const refusal = refused(boundPod({ volumes: [{ name: 'data', [field]: { claimName: 'data-0' } }] }));
    expect(refusal.reason).toBe('ClaimsNotSupported');
    expect(refusal.message).toMatch(/"data".*cluster "east".*does not pass by itself/);
  });
});

describe('VolumeProjection', () => {
  const volumes = (source: Loose): Loose => ({ volumes: [{ name: 'v', projected: { sources: [source] } }] });
  test.each(rowsOf('VolumeProjection', 'copied'))('%s is copied', (field) => {
    const spec = volumes({ [field]: MARK });
    expect(translated(boundPod(spec)).spec['volumes']).toEqual(spec['volumes']);
  });
  test('a token or certificate that a user asks for is refused', () => {
    expect(rowsOf('VolumeProjection', 'refused')).toEqual(['podCertificate', 'serviceAccountToken']);
    expect(refused(boundPod(volumes({ serviceAccountToken: { path: 'token' } }))).reason).toBe(
      'ServiceAccountTokenNotAvailable',
    );
    expect(refused(boundPod(volumes({ podCertificate: { signerName: 'x' } }))).reason).toBe(
      'PodCertificateNotAvailable',
    );
  });
});

describe('EnvVarSource', () => {
  test.each(rowsOf('EnvVarSource', 'copied'))('%s is copied', (field) => {
    const env = [{ name: 'X', valueFrom: { [field]: MARK } }];
    const { spec } = translated(boundPod({ containers: [{ name: 'app', env }] }));
    expect((spec['containers'] as Loose[])[0]?.['env']).toEqual(env);
  });
});

describe('scheduling structs', () => {
  test.each(rowsOf('TopologySpreadConstraint', 'copied'))('spread: %s is copied', (field) => {
    const constraint = { topologyKey: 'kubernetes.io/hostname', [field]: MARK };
    expect(translated(boundPod({ topologySpreadConstraints: [constraint] })).spec['topologySpreadConstraints']).toEqual(
      [constraint],
    );
  });
  test.each(rowsOf('PodAffinityTerm', 'copied'))('pod affinity: %s is copied', (field) => {
    const affinity = {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname', [field]: MARK }],
      },
    };
    expect(translated(boundPod({ affinity })).spec['affinity']).toEqual(affinity);
  });
});
