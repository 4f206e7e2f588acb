import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { openApiSchema, type SchemaNode } from '../../src/api/crd.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { displacedAfterMs } from '../../src/descheduler/displaced-rules.ts';
import { durationInWords } from '../../src/placement/duration.ts';

const PAGE = readFileSync('docs/concepts/failover.md', 'utf8');
const SECTION = PAGE.split('\n## What holds when nothing is said\n')[1]?.split('\n## ')[0] ?? '';
const ROWS = [...SECTION.matchAll(/^\| `([\w.]+)` \| ([^|]+) \| ([^|]+) \|$/gm)].map(
  ([, field = '', value = '', why = '']) => ({ field, value, why }),
);

/** Besides those that are found by what they are. */
const OTHERS = [
  'spec.addAfterSeconds',
  'spec.removeAfterSeconds',
  'spec.placement.avoidFor',
  'spec.placement.onRefusal',
  'spec.unmovable',
  'spec.failover.activation',
  'spec.failover.dryRun',
];

function fieldIn(schema: SchemaNode, path: string): SchemaNode | undefined {
  return path.split('.').reduce<SchemaNode | undefined>((node, name) => node?.properties?.[name], schema);
}

/** Its defaults, in all kinds that have such a field; what has none may say it in words. */
function defaultsOf(path: string): string[] {
  const found = KINDS.map(({ schema }) => fieldIn(openApiSchema(schema), path)).filter((node) => node !== undefined);
  return found.map(({ default: own, description = '' }) =>
    own === undefined ? (/Default: (\w+)\./.exec(description)?.[1] ?? 'none') : JSON.stringify(own).replaceAll('"', ''),
  );
}

it.each(ROWS)('failover.md says of $field what holds when nothing is said: $value', ({ field, value, why }) => {
  expect([...new Set(defaultsOf(field))]).toEqual([value]);
  expect(why.length).toBeGreaterThan(10);
});

it('names every field by which members are probed, and every one of failover that has to be given a time', () => {
  const named = ROWS.map(({ field }) => field);
  const policies = KINDS.find(({ resource }) => resource.kind === 'PlacementPolicy');
  const members = KINDS.find(({ resource }) => resource.kind === 'MemberCluster');
  if (policies === undefined || members === undefined) throw new Error('no such kinds');
  const probe = Object.keys(fieldIn(openApiSchema(members.schema), 'spec.probe')?.properties ?? {});
  const rules = Object.entries(fieldIn(openApiSchema(policies.schema), 'spec.failover')?.properties ?? {});
  const timed = rules.filter(([, { required = [] }]) => required.includes('after')).map(([name]) => name);
  const wanted = [
    ...probe.map((name) => `spec.probe.${name}`),
    ...timed.map((name) => `spec.failover.${name}.after`),
  ].concat(OTHERS);
  expect(timed.length).toBeGreaterThan(3);
  expect(named.toSorted()).toEqual(wanted.toSorted());
});

it('says how long after an edit Eager acts', () => {
  const afterMs = displacedAfterMs({ activation: 'Eager' }).get('PolicyChanged') ?? 0;
  expect(SECTION).toContain(`With \`Eager\` it counts after ${durationInWords(afterMs).replace('s', ' s')}`);
});
