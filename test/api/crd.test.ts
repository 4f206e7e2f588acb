import { describe, expect, it } from 'vitest';
import { openApiSchema, structuralSchema } from '../../src/api/crd.ts';
import type { SchemaNode } from '../../src/api/crd.ts';
import { KINDS } from '../../src/api/kinds.ts';

function* nodes(node: SchemaNode, path: string): Generator<[string, SchemaNode]> {
  yield [path, node];
  for (const [name, child] of Object.entries(node.properties ?? {})) yield* nodes(child, `${path}.${name}`);
  if (node.items !== undefined) yield* nodes(node.items, `${path}[]`);
  if (typeof node.additionalProperties === 'object') yield* nodes(node.additionalProperties, `${path}{}`);
}

/** Words that apiextensions.k8s.io/v1 accepts in a structural schema and that we use. */
const ALLOWED = new Set(
  (
    'type description default format pattern enum minimum maximum minLength maxLength minItems maxItems maxProperties required ' +
    'properties additionalProperties items anyOf x-kubernetes-int-or-string x-kubernetes-validations ' +
    'x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-preserve-unknown-fields'
  ).split(' '),
);

describe.each(KINDS.map((kind) => [kind.resource.kind, kind] as const))('%s', (_name, kind) => {
  const schema = structuralSchema(openApiSchema(kind.schema));
  const all = [...nodes(schema, '')];

  it('has no column for a list in the status: kubectl shows the first of several alone', () => {
    const paths = kind.columns.map(({ jsonPath }) => jsonPath);
    expect(paths.filter((path) => path.startsWith('.status') && path.includes('[*]'))).toEqual([]);
  });

  it('is structural', () => {
    for (const [path, node] of all) {
      expect([path, Object.keys(node).filter((word) => !ALLOWED.has(word))]).toEqual([path, []]);
      const anyJson = node['x-kubernetes-preserve-unknown-fields'] === true && node.properties === undefined;
      if (node['x-kubernetes-int-or-string'] === true) expect([path, node.type]).toEqual([path, undefined]);
      else if (anyJson) expect([path, [undefined, 'object']]).toEqual([path, expect.arrayContaining([node.type])]);
      else expect([path, typeof node.type]).toEqual([path, 'string']);
    }
  });

  it('describes every field', () => {
    const fields = all.filter(([path]) => path !== '' && !path.endsWith('[]') && !path.endsWith('{}'));
    expect(fields.filter(([, node]) => (node.description ?? '') === '').map(([path]) => path)).toEqual([]);
  });

  it('keeps integers inside what JSON carries exactly', () => {
    for (const [path, node] of all) {
      if (node.type === 'integer') expect([path, node.format]).toEqual([path, expect.stringMatching(/^int(32|64)$/)]);
    }
  });

  it('writes nested defaults out and leaves empty ones away', () => {
    for (const [path, node] of all) {
      if (typeof node.default === 'object')
        expect([path, Object.keys(node.default ?? {}).length > 0]).toEqual([path, true]);
    }
  });
});
