import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { configurationFields } from '../../hack/configuration-page.ts';
import { REASONS } from '../../hack/configuration-reasons.ts';
import { openApiSchema, type SchemaNode } from '../../src/api/crd.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { displacedAfterMs } from '../../src/descheduler/displaced.ts';
import { durationInWords } from '../../src/placement/duration.ts';
import { MORE_KNOBS } from './more-knobs.ts';

const CONCEPT = readFileSync('docs/concepts/failover.md', 'utf8');
const PAGE = readFileSync('docs/reference/failover-defaults.md', 'utf8');
const CONFIGURATION = 'configuration';

/** A field that may be left out, and what holds then. */
interface Knob {
  of: string;
  field: string;
  value: string;
}

/** What these kinds say of other things than moves. A new field of theirs that is not below one of these has to be on the page. */
const NOT_ABOUT_MOVES: Readonly<Record<string, readonly string[]>> = {
  MemberCluster: [
    'credentials',
    'region',
    'zones',
    'provider',
    'labels',
    'taintMode',
    'virtualNodes',
    'capacity',
    'namespaces',
    'daemonSets',
    'network',
    'podEvents',
    'disruptionBudgets',
    'services',
    'serviceAccount',
    'storage',
    'hostPath',
  ],
  PlacementPolicy: [
    'priority',
    'placement.clusterAffinity',
    'placement.clusterAffinities',
    'placement.spreadConstraints',
    'placement.replicaScheduling',
    'placement.scoreWeights',
    'placement.hysteresis',
  ],
  ClusterTaintPolicy: [],
  WorkloadMigration: [],
  WorkloadRebalancer: [],
};
/** What chooses members is one choice, not a knob for each way to name them. */
const CHOICES = ['spec.targetClusters'];

function schemaOf(kind: string): SchemaNode {
  const found = KINDS.find(({ resource }) => resource.kind === kind);
  if (found === undefined) throw new Error(kind);
  return openApiSchema(found.schema);
}

function fieldIn(schema: SchemaNode, path: string): SchemaNode | undefined {
  return path.split('.').reduce<SchemaNode | undefined>((node, name) => node?.properties?.[name], schema);
}

/** What has no default of the schema may say it in words. */
function defaultOf({ default: own, description = '' }: SchemaNode): string {
  if (own === undefined) return /Default: ([^.]+)\./.exec(description)?.[1] ?? 'none';
  return Array.isArray(own) && own.length === 0 ? 'none' : JSON.stringify(own).replaceAll('"', '');
}

/** All that may be left out below a node, be it with what it belongs to. */
function knobsIn(of: string, node: SchemaNode, path: string, isOptional: boolean): Knob[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const field = `${path}.${name}`;
    if (NOT_ABOUT_MOVES[of]?.includes(field.replace('spec.', '')) === true) return [];
    const mayBeLeftOut = isOptional || node.required?.includes(name) !== true;
    if (child.properties !== undefined && !CHOICES.includes(field)) return knobsIn(of, child, field, mayBeLeftOut);
    return mayBeLeftOut ? [{ of, field, value: defaultOf(child) }] : [];
  });
}

function knobsOf(kind: string): Knob[] {
  return knobsIn(kind, fieldIn(schemaOf(kind), 'spec') ?? {}, 'spec', false);
}

const KNOBS: readonly Knob[] = [
  ...Object.keys(NOT_ABOUT_MOVES).flatMap(knobsOf),
  ...configurationFields()
    .filter(({ path }) => path.startsWith('descheduler.'))
    .map(({ path, default: value = '' }) => ({ of: CONFIGURATION, field: path, value })),
  ...MORE_KNOBS,
];

interface Row extends Knob {
  why: string;
}

/** Of the page of defaults. */
const ON_PAGE: readonly Row[] = [
  ...PAGE.matchAll(/^\| (\w+) \| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$/gm),
].map(([, of = '', field = '', value = '', why = '']) => ({ of, field, value, why }));

/** Of those of single parts of `failover`, in failover.md, which say more beside a default and beside the choices that there are. */
const AT_FIELDS: readonly Row[] = [...CONCEPT.matchAll(/^\| field \| default \| why \|\n\|[-|]+\|\n((?:\|.*\n)+)/gm)]
  .flatMap(([, rows = '']) => [...rows.matchAll(/^\| `([\w.]+)[^|]*\| ([^|]+) \| ([^|]+) \|$/gm)])
  .map(([, field = '', value = '', why = '']) => ({
    of: 'PlacementPolicy',
    field: `spec.failover.${field}`,
    value: (value.split(/[,:;] /)[0] ?? '').replaceAll('`', ''),
    why,
  }));
const ROWS = [...ON_PAGE, ...AT_FIELDS];

const named = ({ of, field }: Pick<Knob, 'of' | 'field'>): string => `${of} ${field}`;

describe('failover-defaults.md', () => {
  it.each(KNOBS)('says of $of $field that it is $value when nothing is said, once, and why', (knob) => {
    const rows = ROWS.filter((row) => named(row) === named(knob));
    expect(rows.map(({ value }) => value)).toEqual([knob.value]);
    for (const { why } of rows) expect(why).toMatch(/^(as above|the same)\b|.{11}/);
  });

  it('says it of nothing that is not there', () => {
    const isThere = (row: Row): boolean =>
      KNOBS.some((knob) => named(knob) === named(row) || named(knob).startsWith(`${named(row)}.`));
    expect(ROWS.filter((row) => !isThere(row)).map(named)).toEqual([]);
    expect(AT_FIELDS.length).toBeGreaterThan(4);
  });

  it('gives the reasons of the configuration as its page does', () => {
    const reasons = ON_PAGE.filter(({ of }) => of === CONFIGURATION).map(({ field, why }) => [field, why]);
    expect(reasons).toEqual(reasons.map(([field = '']) => [field, REASONS[field]?.why]));
  });

  it('leaves out of these kinds only what they have', () => {
    const paths = Object.entries(NOT_ABOUT_MOVES).flatMap(([kind, all]) => all.map((path) => [kind, path] as const));
    expect(paths.filter(([kind, path]) => fieldIn(schemaOf(kind), `spec.${path}`) === undefined)).toEqual([]);
  });

  it('means both kinds of placement policies', () => {
    const failoverOf = (kind: string): unknown => fieldIn(schemaOf(kind), 'spec.failover');
    expect(failoverOf('ClusterPlacementPolicy')).toEqual(failoverOf('PlacementPolicy'));
  });

  it('says how long after an edit Eager acts', () => {
    const afterMs = displacedAfterMs({ activation: 'Eager' }).get('PolicyChanged') ?? 0;
    expect(PAGE).toContain(`With \`Eager\` it counts after ${durationInWords(afterMs).replace('s', ' s')}`);
  });
});
