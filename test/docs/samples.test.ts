import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { openApiSchema, type SchemaNode } from '../../src/api/crd.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { managerConfigSchema } from '../../src/config.ts';

/** What people copy from pages is something that clusters, and the manager, take. */
const pages = [
  'README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

type Fields = Record<string, unknown>;
interface Sample {
  readonly page: string;
  readonly content: Fields;
}

const samples = pages.flatMap((page): Sample[] =>
  [...readFileSync(page, 'utf8').matchAll(/^```yaml\n([\s\S]*?)^```/gm)].flatMap(([, text = '']) =>
    parseAllDocuments(text).flatMap((document) => {
      // Some show a part of something, which need be no YAML by itself.
      const content: unknown = document.errors.length > 0 ? undefined : document.toJS();
      return typeof content === 'object' && content !== null ? [{ page, content: content as Fields }] : [];
    }),
  ),
);

/** What the API server would drop, or refuse with strict validation. */
function unknownFields(schema: SchemaNode, value: unknown, path: string): string[] {
  if (Array.isArray(value))
    return value.flatMap((one, index) => unknownFields(schema.items ?? {}, one, `${path}[${index}]`));
  const { properties, additionalProperties } = schema;
  if (typeof value !== 'object' || value === null || properties === undefined) return [];
  return Object.entries(value).flatMap(([name, one]) => {
    const below = properties[name] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    return below === undefined ? [`${path}.${name}`] : unknownFields(below, one, `${path}.${name}`);
  });
}

/** What is wrong with an object of our kinds, in words. */
function wrongIn({ kind, spec }: Fields): string[] {
  const found = KINDS.find(({ resource }) => resource.kind === kind);
  if (found === undefined) return [`there is no kind ${String(kind)}`];
  const parsed = found.schema.safeParse({ spec });
  const problems = parsed.error?.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) ?? [];
  return [...problems, ...unknownFields(openApiSchema(found.schema), { spec }, '')];
}

const ofOurs = samples.filter(({ content }) => content['apiVersion'] === 'spillway.dev/v1alpha1');

/** Placement policies on a page, and what each of their selectors says, as words to compare. */
function policiesOn(page: string): { name: string; selectors: string[] }[] {
  const policies = ofOurs.filter((one) => one.page === page && String(one.content['kind']).endsWith('PlacementPolicy'));
  return policies.map(({ content: { kind, metadata, spec } }) => {
    const { name, namespace = '' } = metadata as { name: string; namespace?: string };
    const { resourceSelectors } = spec as { resourceSelectors: object[] };
    return {
      name: `${String(kind)} ${namespace}/${name}`,
      selectors: resourceSelectors.map((one) => `${namespace} ${JSON.stringify(one)}`),
    };
  });
}

describe('samples on pages', () => {
  it.each(ofOurs.map(({ page, content }) => [page, content['kind'], content] as const))('%s: %s', (_, _kind, content) => {
    expect(wrongIn(content)).toEqual([]);
  });

  it.each(pages)('of %s can be applied together: no two policies choose the same workload in the same words', (page) => {
    const chosen = policiesOn(page).flatMap(({ name, selectors }) => selectors.map((one) => ({ name, one })));
    const twice = chosen.filter(({ one }, i) => chosen.findIndex((other) => other.one === one) !== i);
    expect(twice).toEqual([]);
    // Under one name the second would take the place of the first.
    const names = policiesOn(page).map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  });

  it('of the configuration are read', () => {
    const keys = new Set(Object.keys(managerConfigSchema.shape));
    const configs = samples.filter(({ content }) => {
      const names = Object.keys(content);
      return names.length > 0 && names.every((name) => keys.has(name));
    });
    expect(configs.map(({ page }) => page)).toContain('docs/guides/admission.md');
    for (const { page, content } of configs) expect(managerConfigSchema.safeParse(content).error, page).toBeUndefined();
  });

  it('are looked at', () => {
    expect(ofOurs.length).toBeGreaterThan(15);
    const spec = { resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', nmae: 'web' }], placement: {} };
    expect(wrongIn({ kind: 'PlacementPolicy', spec })).toEqual(['.spec.resourceSelectors[0].nmae']);
    expect(wrongIn({ kind: 'PlacementPolicy', spec: {} })).not.toEqual([]);
    expect(wrongIn({ kind: 'PlacementPolcy', spec })).toEqual(['there is no kind PlacementPolcy']);
  });
});

it.each(pages)('files that %s has in commands are there', (page) => {
  const code = readFileSync(page, 'utf8')
    .split('\n')
    .filter((line) => /^(\s{4,}|kubectl |helm |\$ )/.test(line))
    .flatMap((line) => [...line.matchAll(/(?<=\s|=)(?:manifests|deploy|hack)\/[\w./-]+/g)].map(([file]) => file));
  // `deploy/NAME` is a Deployment for kubectl as well.
  const files = code.filter((file) => !file.startsWith('deploy/spillway-'));
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
});
