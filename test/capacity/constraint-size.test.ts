import { describe, expect, test } from 'vitest';
import { whyTooManyConstraints } from '../../src/capacity/constraint-size.ts';
import { fitRequestOf } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import type { Pod, PodAffinityTerm, PodSpec } from '../../src/kube/core-v1.ts';
import { countedLabels } from '../fixtures/counted-labels.ts';
import { memberNode } from '../fixtures/member-nodes.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const requirements = (count: number, of = 'a') =>
  Array.from({ length: count }, (_, i) => ({ key: `${of}${i}`, operator: 'DoesNotExist' as const }));
const term = (count: number, of?: string): PodAffinityTerm => ({
  topologyKey: HOSTNAME,
  namespaceSelector: {},
  labelSelector: { matchExpressions: requirements(count, of) },
});
const near = (...terms: PodAffinityTerm[]): Partial<PodSpec> => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
});
const spread = (whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway', count: number): Partial<PodSpec> => ({
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: HOSTNAME, whenUnsatisfiable, labelSelector: { matchExpressions: requirements(count) } },
  ],
});
const nodes = (count: number): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: HOSTNAME, operator: 'In', values: Array.from({ length: count }, (_, i) => `n${i}`) },
            ],
          },
        ],
      },
    },
  },
});

function pod(name: string, spec: Partial<PodSpec> = {}, labels: Record<string, string> = {}): Pod {
  return { metadata: { name, namespace: 'shop', uid: name, labels }, spec: { containers: [{ name: 'm' }], ...spec } };
}

function room(): MemberCapacity {
  const live = new MemberCapacity({ hostId: 'h', pools: [] });
  for (let i = 0; i < 10; i += 1) live.nodeHandler.added(memberNode(`n${i}`));
  return live;
}

describe('what a pod asks of nodes and other pods', () => {
  test.each([
    ['pod affinity', near(term(255)), near(term(256))],
    ['a spread constraint', spread('DoNotSchedule', 255), spread('DoNotSchedule', 256)],
    ['names of nodes', nodes(254), nodes(255)],
    [
      'tolerations',
      { tolerations: Array.from({ length: 256 }, () => ({ operator: 'Exists' as const })) },
      { tolerations: Array.from({ length: 257 }, () => ({ operator: 'Exists' as const })) },
    ],
    ['namespaces', near({ ...term(0), namespaces: Array.from({ length: 255 }, (_, i) => `n${i}`) }), near(term(300))],
    ['terms', near(...Array.from({ length: 32 }, () => term(1))), near(...Array.from({ length: 33 }, () => term(1)))],
  ])('is bounded: %s', (_, most, more) => {
    expect(whyTooManyConstraints(pod('p', most).spec)).toBeUndefined();
    expect(whyTooManyConstraints(pod('p', more).spec)).toMatch(/ virtual nodes take pods with \d+ at most$/);
  });

  test('is not what it only prefers', () => {
    const preferred = [{ weight: 1, podAffinityTerm: term(10_000) }];
    const affinity = { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } };
    const one = pod('p', { affinity, ...spread('ScheduleAnyway', 10_000) });
    expect(whyTooManyConstraints(one.spec)).toBeUndefined();
    expect(fitRequestOf(one, 'v').key.length).toBeLessThan(1_000);
  });

  test('counts as nothing beyond that', () => {
    const live = room();
    const request = fitRequestOf(pod('p', near(term(20_000))), 'v');
    expect(request.key.length).toBeLessThan(1_000);
    expect(live.fits(request)).toEqual({ fits: true, nodes: 10 });
  });
});

describe('each pod that comes or goes is looked at', () => {
  test('as often as there are rules of others, however much these say', () => {
    const live = room();
    for (let i = 0; i < 200; i += 1) live.fits(fitRequestOf(pod(`c${i}`, near(term(250, `r${i}a`))), 'v'));
    const { labels, looks } = countedLabels({ app: 'web' });
    live.podHandler.added(pod('p', { nodeName: 'n0' }, labels));
    // Of each of 200 rules and 250 requirements it would be 50,000.
    expect(looks()).toBeLessThan(2_000);
  });

  test('for no more terms than 256, in how many rules ever', () => {
    const live = room();
    for (let i = 0; i < 100; i += 1) {
      const terms = Array.from({ length: 30 }, (_, k) => term(1, `r${i}k${k}a`));
      live.fits(fitRequestOf(pod(`c${i}`, near(...terms)), 'v'));
    }
    const { labels, looks } = countedLabels({ app: 'web' });
    live.podHandler.added(pod('p', { nodeName: 'n0' }, labels));
    expect(looks()).toBeLessThan(600);
  });
});
