import { describe, expect, it } from 'vitest';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import { parseMemberCluster } from '../../src/api/member-cluster.ts';
import { compileAffinity } from '../../src/placement/cluster-affinity.ts';
import { clusterOf, localCluster, PRICE_ANNOTATION } from '../../src/api/cluster.ts';
import { cluster, Fleet } from './fleet.ts';

const east = cluster('east', { labels: { tier: 'gold' }, provider: 'acme', region: 'eu', zones: ['eu-1', 'eu-2'] });
const bare = cluster('bare');
const matches = (affinity: Parameters<typeof compileAffinity>[0], one = east): boolean =>
  compileAffinity(affinity)(one) === undefined;
const field = (key: 'provider' | 'region' | 'zone', operator: 'In' | 'NotIn', ...values: string[]) => ({
  fieldSelector: { matchExpressions: [{ key, operator, values }] },
});

describe('cluster affinity', () => {
  it.each([
    ['nothing matches every cluster', {}, east, true],
    ['and local', {}, localCluster(), true],
    ['names', { clusterNames: ['east', 'west'] }, east, true],
    ['other names', { clusterNames: ['west'] }, east, false],
    ['no names are like none given', { clusterNames: [] }, east, true],
    ['exclude comes first', { clusterNames: ['east'], exclude: ['east'] }, east, false],
    ['labels', { labelSelector: { matchLabels: { tier: 'gold' } } }, east, true],
    ['other labels', { labelSelector: { matchLabels: { tier: 'tin' } } }, east, false],
    [
      'labels and names both',
      { labelSelector: { matchLabels: { tier: 'gold' } }, clusterNames: ['west'] },
      east,
      false,
    ],
    ['In of a field', field('region', 'In', 'eu', 'us'), east, true],
    ['In of an absent field', field('region', 'In', 'eu'), bare, false],
    ['NotIn of an absent field', field('provider', 'NotIn', 'acme'), bare, true],
    ['NotIn', field('provider', 'NotIn', 'acme'), east, false],
    ['In of zones needs one of them', field('zone', 'In', 'eu-2'), east, true],
    ['NotIn of zones needs all of them to be others', field('zone', 'NotIn', 'eu-2'), east, false],
    ['NotIn of zones', field('zone', 'NotIn', 'eu-3'), east, true],
  ])('%s', (_name, affinity, one, expected) => {
    expect(matches(affinity, one)).toBe(expected);
  });

  it('says why in words', () => {
    expect(compileAffinity(field('zone', 'In', 'us-1', 'us-2'))(east)).toBe(
      'the policy asks for zone us-1 or us-2, its zone is eu-1, eu-2',
    );
    expect(compileAffinity(field('region', 'NotIn', 'eu'))(east)).toBe(
      'the policy asks for region other than eu, its region is eu',
    );
    expect(compileAffinity(field('region', 'In', 'eu'))(bare)).toBe(
      'the policy asks for region eu, its region is not known',
    );
  });

  it('throws for a label selector that is none', () => {
    expect(() => compileAffinity({ labelSelector: { matchLabels: { 'a b': 'c' } } })).toThrow(
      '"a b" is not a label key',
    );
  });
});

describe('taints', () => {
  const gpu = { key: 'gpu', value: 'a100', effect: 'NoSchedule' };
  const clusters = [cluster('a', { taints: [gpu] }), cluster('b')];
  const room = { a: 100, b: 1 };

  it('keep pods away that do not tolerate them', () => {
    const fleet = new Fleet({ placement: {}, clusters, room });
    expect(fleet.scale(2)).toEqual({ b: 1 });
    expect(fleet.decide().refusals[0]).toEqual({
      cluster: 'a',
      reason: 'Tainted',
      message: 'it has cluster taint gpu=a100:NoSchedule, which no policy of the pod tolerates',
    });
  });

  it.each([
    ['the policy', { clusterTolerations: [{ key: 'gpu', operator: 'Exists' }] }],
    ['the policy, with a value', { clusterTolerations: [{ key: 'gpu', value: 'a100', effect: 'NoSchedule' }] }],
  ])('are tolerated by %s', (_name, placement) => {
    expect(new Fleet({ placement, clusters, room }).scale(2)).toEqual({ a: 2 });
  });

  it('keep them away where the first toleration that counts is for a time only: they would be moved out again', () => {
    const taints = [{ key: 'gpu', effect: 'NoExecute' }] as const;
    const forGood = { key: 'gpu', operator: 'Exists' } as const;
    const forATime = { ...forGood, effect: 'NoExecute', tolerationSeconds: 5 } as const;
    const why = (...clusterTolerations: object[]): unknown =>
      new Fleet({
        placement: { clusterTolerations },
        clusters: [cluster('a', { taints: [...taints] })],
        room,
      }).decide().refusals[0]?.reason;
    expect(why(forATime, forGood)).toBe('Tainted');
    expect(why(forGood, forATime)).toBeUndefined();
  });

  it('keep them away where another value is tolerated', () => {
    const placement = { clusterTolerations: [{ key: 'gpu', value: 'h100' }] };
    expect(new Fleet({ placement, clusters, room }).scale(1)).toEqual({ b: 1 });
  });
});

describe('a member as policies see it', () => {
  const member = (metadata: object, spec: object, ready?: { status: string; reason: string }): MemberCluster => {
    const conditions = ready && [{ type: 'Ready', lastTransitionTime: '2026-01-01T00:00:00Z', message: '', ...ready }];
    const parsed = parseMemberCluster({
      metadata: { name: 'east', ...metadata },
      spec: { credentials: { secretRef: { namespace: 'fleet', name: 'east' } }, ...spec },
      ...(conditions ? { status: { conditions } } : {}),
    } as never);
    if ('problems' in parsed) throw new Error(parsed.problems.join());
    return parsed.member;
  };
  const good = { status: 'True', reason: 'Ready' };

  it('has the labels of both places, fields, taints and price', () => {
    const metadata = { labels: { a: '1', b: '1' }, annotations: { 'spillway.dev/price': '0.42' } };
    const taints = [{ key: 'k', effect: 'NoSchedule' }];
    const spec = {
      labels: { b: '2' },
      region: 'eu',
      zones: ['z'],
      provider: 'acme',
      taints: [{ key: 'of-nodes', effect: 'NoSchedule' }],
      clusterTaints: taints,
    };
    expect(clusterOf(member(metadata, spec, good))).toEqual({
      name: 'east',
      labels: { a: '1', b: '2' },
      provider: 'acme',
      region: 'eu',
      zones: ['z'],
      taints,
      unavailable: undefined,
      price: 0.42,
    });
  });

  it.each([
    [{}, {}, undefined, 'it has not been contacted yet'],
    [{}, {}, { status: 'False', reason: 'Timeout' }, 'it is not ready (Timeout)'],
    [{}, { unschedulable: true }, good, 'it takes no new pods (spec.unschedulable)'],
    [{ deletionTimestamp: '2026-01-01T00:00:00Z' }, {}, good, 'it is being removed'],
  ])('takes no pods: %j %j %j', (metadata, spec, ready, why) => {
    expect(clusterOf(member(metadata, spec, ready)).unavailable).toBe(why);
  });

  it.each(['free', '-1', '1e3', '', '9'.repeat(400), '1234567890123', `0.${'1'.repeat(13)}`])(
    'has no price for %j',
    (price) => {
      expect(clusterOf(member({ annotations: { [PRICE_ANNOTATION]: price } }, {}, good)).price).toBeUndefined();
    },
  );
});
