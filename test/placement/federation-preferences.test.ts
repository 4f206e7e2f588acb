import { describe, expect, it } from 'vitest';
import { federationPreferences } from '../../src/placement/federation-preferences.ts';
import type { OwnerChain } from '../../src/placement/owner-chain.ts';
import { cluster } from './fleet.ts';
import { object, webPod } from './policies.ts';

const prefix = 'federation.kubernetes.io';
const parse = (chain: OwnerChain) => {
  const found = federationPreferences(chain);
  if (found === undefined || 'problem' in found) throw new Error(found?.problem ?? 'nothing found');
  return found;
};
const limits = (chain: OwnerChain, name: string): object | undefined => {
  const { division } = parse(chain).placement;
  if (division.kind !== 'preferences') throw new Error(division.kind);
  return division.limitsOf(cluster(name));
};
const deployment = (text: string, more: Record<string, string> = {}) =>
  webPod({ annotations: { [`${prefix}/deployment-preferences`]: text, ...more } });

describe('federation preferences', () => {
  it('are none without an annotation', () => {
    expect(federationPreferences(webPod())).toBeUndefined();
    expect(federationPreferences(webPod({ annotations: { [`${prefix}/job-preferences`]: '{}' } }))).toBeUndefined();
  });

  it('mean what clusterPreferences of a policy mean', () => {
    const chain = deployment(
      '{"rebalance":true,"clusters":{"*":{"weight":1},"east":{"minReplicas":2,"maxReplicas":4}}}',
    );
    expect(parse(chain).placement.division).toMatchObject({
      kind: 'preferences',
      rebalance: true,
      remainder: false,
      waitWhenFull: false,
    });
    expect(limits(chain, 'east')).toEqual({ minReplicas: 2, maxReplicas: 4, weight: 0 });
    expect(limits(chain, 'west')).toEqual({ minReplicas: 0, weight: 1 });
  });

  it('weigh all clusters the same when none is listed, and give nothing to those not listed', () => {
    expect(limits(deployment('{}'), 'any')).toEqual({ minReplicas: 0, weight: 1 });
    expect(limits(deployment('{"clusters":{"east":{"weight":1,"maxReplicas":null}}}'), 'west')).toBeUndefined();
    expect(limits(deployment('{"clusters":{"east":{"weight":1,"maxReplicas":null}}}'), 'east')).toEqual({
      minReplicas: 0,
      weight: 1,
    });
    expect(limits(deployment('{"clusters":null}'), 'any')).toEqual({ minReplicas: 0, weight: 1 });
  });

  it.each([
    ['ReplicaSet', 'apps/v1', 'replica-set-preferences'],
    ['Job', 'batch/v1', 'job-preferences'],
  ])('are read from a %s', (kind, apiVersion, key) => {
    const annotations = { [`${prefix}/${key}`]: '{"clusters":{"east":{"weight":1}}}' };
    const chain: OwnerChain = [object('v1', 'Pod', 'p'), object(apiVersion, kind, 'x', {}, { annotations })];
    expect(parse(chain).key).toBe(`${prefix}/${key}`);
  });

  it('can choose clusters by label', () => {
    const selector =
      '[{"key":"pci","operator":"In","values":["true"]},{"key":"env","operator":"==","values":["test"]},{"key":"old","operator":"DoesNotExist"},{"key":"size","operator":"Gt","values":["3"]}]';
    const chain = deployment('{}', { 'federation.alpha.kubernetes.io/cluster-selector': selector });
    const whyNot = parse(chain).placement.groups[0].tiers[0]?.whyNot;
    const labels = { pci: 'true', env: 'test', size: '4' };
    expect(whyNot?.(cluster('a', { labels }))).toBeUndefined();
    for (const other of [{ ...labels, old: 'x' }, { ...labels, size: '3' }, { ...labels, env: 'prod' }, {}]) {
      expect(whyNot?.(cluster('a', { labels: other }))).toContain('asks for other labels');
    }
    const alone = webPod({ annotations: { 'federation.alpha.kubernetes.io/cluster-selector': selector } });
    expect(limits(alone, 'any')).toEqual({ minReplicas: 0, weight: 1 });
  });

  it.each([
    ['no JSON', '{', 'cannot be read'],
    ['a list', '[]', 'cannot be used: value: '],
    ['a negative weight', '{"clusters":{"a":{"weight":-1}}}', 'clusters.a.weight'],
    ['a word for a number', '{"clusters":{"a":{"minReplicas":"two"}}}', 'clusters.a.minReplicas'],
    [
      'a most below the fewest',
      '{"clusters":{"a":{"minReplicas":3,"maxReplicas":2}}}',
      'clusters.a.maxReplicas: must not be less',
    ],
    ['a word for a switch', '{"rebalance":"yes"}', 'rebalance'],
  ])('are ignored when they are %s', (_name, text, words) => {
    const found = federationPreferences(deployment(text));
    expect(found).toEqual({ key: `${prefix}/deployment-preferences`, problem: expect.stringContaining(words) });
  });

  it.each([
    '{',
    '{}',
    '[{"key":"a","operator":"Like","values":["b"]}]',
    '[{"key":"a","operator":"In"}]',
    '[{"key":"a b","operator":"Exists"}]',
  ])('are ignored with the cluster selector %s', (selector) => {
    const found = federationPreferences(
      deployment('{}', { 'federation.alpha.kubernetes.io/cluster-selector': selector }),
    );
    expect(found).toHaveProperty('problem', expect.stringContaining('cluster-selector'));
  });
});
