import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { scoringConfig } from '../../src/api/scoring.ts';
import { parsePlacementScore } from '../../src/api/placement-score.ts';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { compilePolicy } from '../../src/placement/policy-selection.ts';
import { cluster, Fleet } from './fleet.ts';

const PAGE = readFileSync('docs/concepts/placement.md', 'utf8');
const examples = new Map(
  [...PAGE.matchAll(/^```yaml\n(.*?)^```/gms)]
    .flatMap(([, text = '']) =>
      parseAllDocuments(text).map((document) => document.toJS() as KubeObject & { spec: { placement: object } }),
    )
    .filter(({ kind }) => kind === 'PlacementPolicy')
    .map((example) => [example.metadata.name, example]),
);
const clusters = [cluster('local'), cluster('east', { region: 'eu' }), cluster('west', { region: 'us' })];

/** The rows of the first table after a text: the number in the first cell, and a count for each of the other columns. */
function table(after: string): [number, Record<string, number>][] {
  const [, , ...rows] =
    PAGE.slice(PAGE.indexOf(after))
      .match(/^\|.*\|$(?:\n\|.*\|$)*/m)?.[0]
      .split('\n') ?? [];
  return rows.map((row) => {
    const [first = '', ...cells] = row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const counts = cells
      .map((cell, index) => [clusters[index]?.name ?? '', Number(cell)] as const)
      .filter(([, count]) => count > 0);
    return [Number(/\d+/.exec(first)?.[0]), Object.fromEntries(counts)];
  });
}

describe('the page about placement', () => {
  it('says beside Karmada what becomes of new pods whose group of clusters is full, or cannot be used', () => {
    const [, said = ''] = /^\| `clusterAffinities`: a term fails,.*?\|(.*)\|$/m.exec(PAGE) ?? [];
    const placement = {
      clusterAffinities: ['east', 'west'].map((name) => ({ affinityName: name, clusterNames: [name] })),
    };
    const fleet = new Fleet({ placement, clusters, room: { east: 2, west: 9 } });
    fleet.scale(2);
    expect([fleet.scale(3), said]).toEqual([{ east: 2 }, expect.stringContaining('new ones wait there')]);
    fleet.clusters = [cluster('east', { unavailable: 'it is not ready' }), cluster('west')];
    expect([fleet.scale(3), said]).toEqual([
      { east: 2, west: 1 },
      expect.stringContaining("unless none of the group's clusters can be used at all"),
    ]);
  });

  it('shows the configured weights as they are, and a score that is accepted', () => {
    const documents = [...PAGE.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = '']) => parse(text) as KubeObject);
    const configured = documents.find((one) => 'scheduler' in one) as { scheduler?: unknown } | undefined;
    expect(configured?.scheduler).toEqual({ scoring: scoringConfig.parse({}) });
    const score = documents.find(({ kind }) => kind === 'PlacementScore');
    expect(score === undefined ? undefined : parsePlacementScore(score)).toHaveProperty('score');
  });

  it('shows policies that are accepted', () => {
    expect([...examples.keys()]).toEqual(['burst', 'one-region', 'limits', 'try-next']);
    for (const example of examples.values()) {
      const parsed = parsePlacementPolicy(example);
      expect('policy' in parsed ? compilePolicy(parsed.policy) : parsed).not.toHaveProperty('problems');
    }
  });

  it.each([
    ['burst', 'With room for 10 such pods', { local: 10 }],
    ['limits', 'name: limits', {}],
  ])('tells what policy %s does', (name, after, room) => {
    const fleet = new Fleet({ placement: examples.get(name)?.spec.placement ?? {}, clusters, room });
    const rows = table(after);
    expect(rows.length).toBeGreaterThan(2);
    for (const [replicas, counts] of rows) expect([replicas, fleet.scale(replicas)]).toEqual([replicas, counts]);
  });

  it('keeps a workload in one region', () => {
    const fleet = new Fleet({
      placement: examples.get('one-region')?.spec.placement ?? {},
      clusters,
      room: { east: 2 },
    });
    expect(fleet.scale(3)).toEqual({ west: 3 });
  });

  it('shows messages as they are', () => {
    const fleet = new Fleet({ placement: examples.get('burst')?.spec.placement ?? {}, clusters, room: { local: 0 } });
    fleet.scale(4);
    const { refusals } = fleet.decide();
    const full = refusals.find(({ reason }) => reason === 'AtMax')?.message ?? 'none';
    expect(PAGE).toContain(full.replaceAll('east', 'west'));
  });
});
