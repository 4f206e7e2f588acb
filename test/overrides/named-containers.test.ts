import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { containerWarnings, type KnownPods } from '../../src/overrides/named-containers.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import { EAST, policy, webPod } from './rendered-pod.ts';

const WEST = { ...EAST, name: 'west' };
const env = (containerName?: string) => ({
  operator: 'add',
  value: [{ name: 'A', value: 'b' }],
  ...(containerName === undefined ? {} : { containerName }),
});
const IN_EAST = { targetCluster: { clusterNames: ['east'] } };
const naming = (containerName: string, more: object = {}): OverridePolicy =>
  policy('OverridePolicy', 'p', { overrideRules: [{ overriders: { envOverrider: [env(containerName)] }, ...more }] });
const words = (name: string, there = 'app, init, side') =>
  `spec.overrideRules[0].overriders.envOverrider[0].containerName: no pod that it is for has a container "${name}", there are ${there}`;

type Places = Record<string, Pod[] | undefined>;
function found(one: OverridePolicy, places: Places, more: Partial<KnownPods> = {}): string[] {
  return containerWarnings(one, {
    members: [EAST, WEST],
    podsIn: (member, namespace) =>
      places[member]?.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace),
    identitiesOf: identitiesOfPod,
    policies: [one],
    before: [],
    ...more,
  });
}
const pod = webPod();
const HERE: Places = { east: [pod], west: [] };

describe('a container that a rule names', () => {
  it.each(['app', 'side', 'init'])('%s is one of some pod', (name) => {
    expect(found(naming(name), HERE)).toEqual([]);
  });

  it('and that no pod has is told with its path, and with those there are', () => {
    expect(found(naming('ap'), HERE)).toEqual([words('ap')]);
    const kinds = {
      commandOverrider: [{ containerName: 'a', operator: 'replace', value: ['x'] }],
      argsOverrider: [{ containerName: 'app', operator: 'add', value: ['x'] }],
      envOverrider: [env(), env('b')],
      resourcesOverrider: [{ containerName: 'c', operator: 'add', limits: { cpu: '1' } }],
    };
    const all = policy('ClusterOverridePolicy', 'all', { overrideRules: [{ overriders: {} }, { overriders: kinds }] });
    expect(found(all, HERE).map((one) => one.split(':')[0])).toEqual([
      'spec.overrideRules[1].overriders.commandOverrider[0].containerName',
      'spec.overrideRules[1].overriders.envOverrider[1].containerName',
      'spec.overrideRules[1].overriders.resourcesOverrider[0].containerName',
    ]);
  });

  it('may be one that a policy adds', () => {
    const init = { initContainersOverrider: [{ operator: 'add', value: [{ name: 'ap', image: 'x' }] }] };
    const patch = { plaintext: [{ path: '/spec/containers/-', operator: 'add', value: { name: 'ap', image: 'x' } }] };
    for (const overriders of [init, patch]) {
      const other = policy('ClusterOverridePolicy', 'adds', { overrideRules: [{ overriders }] });
      expect(found(naming('ap'), HERE, { policies: [other] })).toEqual([]);
    }
  });
});

describe('only pods count', () => {
  it('that the policy chooses, in its namespace, where the rule is for', () => {
    const chosen = [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }];
    const others = policy('OverridePolicy', 'p', {
      resourceSelectors: [{ ...chosen[0], name: 'api' }],
      overrideRules: [{ overriders: { envOverrider: [env('ap')] } }],
    });
    expect(found(others, HERE)).toEqual([]);
    const elsewhere = { ...pod, metadata: { ...pod.metadata, namespace: 'bank' } };
    expect(found(naming('ap'), { east: [elsewhere], west: [] })).toEqual([]);
    expect(found(naming('ap', IN_EAST), { east: [], west: [pod] })).toEqual([]);
    expect(found(naming('app', IN_EAST), { east: [webPod({ containers: [{ name: 'x' }] })], west: [pod] })).toEqual([
      words('app', 'init, x'),
    ]);
  });

  it('that have not finished, and without any nothing is said', () => {
    const finished = { ...pod, status: { phase: 'Succeeded' as const } };
    expect(found(naming('ap'), { east: [finished], west: [] })).toEqual([]);
    expect(found(naming('ap'), { east: [], west: [] })).toEqual([]);
  });
});

describe('where not all is known here', () => {
  const before = [words('ap', 'old'), 'spec.overrideRules[0].targetCluster: there is no member esat'];
  const halves: Places = { east: [pod] };

  it('what others found of it stays, and nothing else does', () => {
    expect(found(naming('ap'), halves, { before })).toEqual([before[0]]);
    expect(found(naming('ap'), halves)).toEqual([]);
    expect(found(naming('bp'), halves, { before })).toEqual([]);
    const unread = { before, identitiesOf: () => undefined };
    expect(found(naming('ap'), HERE, unread)).toEqual([before[0]]);
  });

  it('it is enough to know of one pod that has it, or of the members of the rule', () => {
    expect(found(naming('app'), halves, { before: [words('app', 'old')] })).toEqual([]);
    expect(found(naming('ap', IN_EAST), halves)).toEqual([words('ap')]);
  });

  it('labels of an owner that cannot be told are not known either', () => {
    const selector = { apiVersion: 'apps/v1', kind: 'Deployment', labelSelector: { matchLabels: { tier: 'front' } } };
    const byLabels = policy('OverridePolicy', 'p', {
      resourceSelectors: [selector],
      overrideRules: [{ overriders: { envOverrider: [env('ap')] } }],
    });
    expect(found(byLabels, HERE, { before })).toEqual([before[0]]);
  });
});
