import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { openApiSchema, type SchemaNode } from '../../src/api/crd.ts';
import { CLUSTER_DEFAULTS } from '../../src/api/failover.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { NOT_READY_TAINT, UNREACHABLE_TAINT } from '../../src/api/marks.ts';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import { managerConfigSchema } from '../../src/config.ts';
import { replacedAfterMs } from '../../src/descheduler/member-lost.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { afterProbe, NOT_PROBED, type Reachability } from '../../src/members/reachability.ts';
import { compilePolicy } from '../../src/placement/policy-selection.ts';

const PAGE = readFileSync('docs/guides/from-karmada.md', 'utf8');

/** Karmada's fields, of its API of 1.19. */
const PROPAGATION = [
  'resourceSelectors',
  'association',
  'propagateDeps',
  'placement',
  'priority',
  'preemption',
  'dependentOverrides',
  'schedulerName',
  'failover',
  'conflictResolution',
  'activationPreference',
  'suspension',
  'preserveResourcesOnDeletion',
  'schedulePriority',
  'placement.clusterAffinity',
  'placement.clusterAffinities',
  'placement.clusterTolerations',
  'placement.spreadConstraints',
  'placement.replicaScheduling',
  'placement.workloadAffinity',
  'placement.replicaScheduling.replicaSchedulingType',
  'placement.replicaScheduling.replicaDivisionPreference',
  'placement.replicaScheduling.weightPreference.staticWeightList',
  'placement.replicaScheduling.weightPreference.dynamicWeight',
  'failover.application.decisionConditions.tolerationSeconds',
  'failover.application.purgeMode',
  'failover.application.gracePeriodSeconds',
  'failover.application.statePreservation.rules',
  'failover.cluster.purgeMode',
  'failover.cluster.statePreservation.rules',
];
const TAINTING = ['targetClusters', 'addOnConditions', 'removeOnConditions', 'taints'];
const REBALANCING = [
  'spec.workloads',
  'spec.ttlSecondsAfterFinished',
  'status.observedWorkloads',
  'status.observedGeneration',
];
const OVERRIDERS = ['image', 'command', 'args', 'labels', 'annotations', 'field'].map((name) => `${name}Overrider`);

/** Rows of the table below a heading: Karmada's fields, and ours. */
function rows(heading: string): { karmada: string[]; ours: string[] }[] {
  const section = PAGE.slice(PAGE.indexOf(`## ${heading}`)).split('\n## ')[0] ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| `'));
  const codes = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
  return lines.map((line) => {
    const [, karmada = '', ours = ''] = line.split('|');
    return { karmada: codes(karmada), ours: codes(ours) };
  });
}

function schemaOf(kind: string): SchemaNode {
  const found = KINDS.find(({ resource }) => resource.kind === kind);
  if (found === undefined) throw new Error(kind);
  return openApiSchema(found.schema);
}

function has(schema: SchemaNode, path: string): boolean {
  let node: SchemaNode | undefined = schema;
  for (const name of path.replaceAll('[]', '').split('.')) {
    node = node?.properties?.[name];
    if (node?.items !== undefined) node = node.items;
  }
  return node !== undefined;
}

describe('the page about Karmada', () => {
  it.each([
    ['Placement', 'PlacementPolicy', 15],
    ['Overrides', 'OverridePolicy', 9],
    ['ClusterTaintPolicy', 'ClusterTaintPolicy', 4],
    ['Rebalancing', 'WorkloadRebalancer', 4],
  ])('%s: names fields that there are', (heading, kind, least) => {
    const ours = rows(heading).flatMap((row) => row.ours);
    expect(ours.length).toBeGreaterThanOrEqual(least);
    expect(ours.filter((path) => !has(schemaOf(kind), path))).toEqual([]);
  });

  it('names fields with the same name by the same name', () => {
    const same = rows('Placement').filter(({ ours }) => ours.length === 1);
    for (const { karmada, ours } of same) {
      const [first = ''] = karmada;
      const [own = ''] = ours;
      expect(`spec.${first}`.startsWith(own), `${first}: ${own}`).toBe(true);
      const rest = [first, ...karmada.slice(1).map((field) => `${first.replace(/\.[^.]+$/, '')}${field}`)];
      for (const path of rest) expect(has(schemaOf('PlacementPolicy'), `spec.${path}`), path).toBe(true);
    }
  });

  it.each([
    ['Placement', PROPAGATION],
    ['ClusterTaintPolicy', TAINTING],
    ['Rebalancing', REBALANCING],
  ])('%s: speaks about every field of Karmada', (heading, fields) => {
    const told = rows(heading).flatMap(({ karmada }) => karmada.map((field) => field.replaceAll('[]', '')));
    const isTold = (field: string): boolean =>
      told.some((one) => one === field || one.startsWith(`${field}.`) || `.${field}` === one);
    expect(fields.filter((field) => !isTold(field))).toEqual([]);
  });

  it('speaks about every overrider', () => {
    const overriders = rows('Overrides').flatMap(({ karmada }) => karmada);
    expect([...OVERRIDERS, 'plaintext'].filter((name) => !overriders.includes(`overriders.${name}[]`))).toEqual([]);
  });

  it('Failover: names fields that there are, and defaults as they are', () => {
    const section = PAGE.slice(PAGE.indexOf('\n## Failover\n') + 1).split('\n## ')[0] ?? '';
    const fields = [...section.matchAll(/`((?:failover\.)?(?:onMemberLost|onUnschedulable|cluster)\.(?!karmada)\w+)/g)];
    const paths = fields.map(([, path = '']) => `spec.failover.${path.replace('failover.', '')}`);
    expect(new Set(paths).size).toBeGreaterThan(4);
    expect(paths.filter((path) => !has(schemaOf('PlacementPolicy'), path))).toEqual([]);
    const { movesPerSecond, movesPerSecondPerMember } = managerConfigSchema.parse({}).descheduler;
    expect(section).toMatch(new RegExp(`descheduler\\.movesPerSecond\`\\][^ ]* ${movesPerSecond} `));
    expect(section).toContain(`\`descheduler.movesPerSecondPerMember\` ${movesPerSecondPerMember},`);
    for (const taint of [NOT_READY_TAINT, UNREACHABLE_TAINT]) expect(section).toContain(`\`${taint}\``);
    const minutes = replacedAfterMs({ failover: undefined }) / 60_000;
    expect(section).toContain(`when their member has been lost for ${minutes} minutes`);
    expect(PAGE).toContain(`[replaced when their member has been lost for ${minutes} minutes](#failover)`);
    expect(section).toContain(`\`failover.cluster.gracePeriodSeconds\` of each policy, ${CLUSTER_DEFAULTS.gracePeriodSeconds} by default`);
  });

  it('says how many probes in a row, and seconds, it takes in place of the thresholds of Karmada', () => {
    const row = PAGE.split('\n').find((line) => line.startsWith('| `--cluster-failure-threshold`')) ?? '';
    const { properties: probe = {} } = schemaOf('MemberCluster').properties?.['spec']?.properties?.['probe'] ?? {};
    const said = new Map(
      [...row.matchAll(/`spec\.probe\.(\w+)` (\d+)/g)].map(([, name = '', value]) => [name, Number(value)] as const),
    );
    for (const [name, value] of said) expect([name, value]).toEqual([name, probe[name]?.default]);
    expect(said.size).toBe(5);
    const timesOf = (name: string): number => said.get(name) ?? Number.NaN;
    const periodSeconds = timesOf('periodSeconds');
    const turnsAfter = (good: boolean, thresholds: { failureThreshold: number; successThreshold: number }): number => {
      const failure = { reason: 'Timeout', message: '' };
      const probed = (state: Reachability, answers: boolean): Reachability =>
        afterProbe(state, answers ? undefined : failure, thresholds, { wall: 0, monotonic: 0 });
      let state = probed(NOT_PROBED, !good);
      let probes = 0;
      for (; state.reachable !== good; probes++) state = probed(state, good);
      return (probes - 1) * periodSeconds;
    };
    const own = { failureThreshold: timesOf('failureThreshold'), successThreshold: timesOf('successThreshold') };
    expect(row).toContain(`at the third failed probe, ${turnsAfter(false, own)} s after the first`);
    expect(turnsAfter(true, own)).toBe(0);
    const [, both = ''] = /make both (\d)/.exec(row) ?? [];
    const karmadas = { failureThreshold: Number(both), successThreshold: Number(both) };
    expect([turnsAfter(false, karmadas), turnsAfter(true, karmadas)]).toEqual([30, 30]);
  });

  it('shows a policy that is accepted, and divides as the one of Karmada', () => {
    const [karmada, ours] = [...PAGE.matchAll(/^```yaml\n(.*?)^```/gms)].map(
      ([, text = '']) => parse(text) as KubeObject & { spec: { placement: object } },
    );
    expect(ours?.spec.placement).toEqual(karmada?.spec.placement);
    if (ours === undefined) throw new Error('no policy');
    const parsed = parsePlacementPolicy(ours);
    expect('policy' in parsed ? compilePolicy(parsed.policy) : parsed).not.toHaveProperty('problems');
  });
});
