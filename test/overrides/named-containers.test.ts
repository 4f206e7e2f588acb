import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { addedContainers } from '../../src/overrides/added-containers.ts';
import { alikePods } from '../../src/overrides/alike-pods.ts';
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
    alikeIn: alikePods((member, namespace) =>
      places[member]?.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace),
    ),
    identitiesOf: identitiesOfPod,
    added: addedContainers([one]),
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
      expect(found(naming('ap'), HERE, { added: addedContainers([other]) })).toEqual([]);
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

  it('but not of pods that have nothing else than those that are known', () => {
    const unread = webPod({ containers: [{ name: 'app' }] });
    const identitiesOf: KnownPods['identitiesOf'] = (one) => (one === unread ? undefined : identitiesOfPod(one));
    for (const east of [
      [unread, pod],
      [pod, unread],
    ])
      expect(found(naming('ap'), { east, west: [] }, { identitiesOf })).toEqual([words('ap')]);
    const other = webPod({ containers: [{ name: 'ap' }] });
    const places = { east: [pod, other], west: [] };
    const unreadOther = { before, identitiesOf: (one: Pod) => (one === other ? undefined : identitiesOfPod(one)) };
    expect(found(naming('ap'), places, unreadOther)).toEqual([before[0]]);
  });
});

describe('of many containers that no pod has', () => {
  const longest = (letter: string, index: number) => letter.repeat(60) + String(index).padStart(3, '0');
  const envs = (count: number, of = (index: number) => `no-${String(index)}`) => ({
    envOverrider: Array.from({ length: count }, (_, index) => env(of(index))),
  });
  /** All that a policy may name: four kinds of 32 in each of 16 rules. */
  const all = (): OverridePolicy => {
    const { envOverrider } = envs(32, (index) => longest('n', index));
    const value = ['x'];
    const overriders = {
      commandOverrider: envOverrider.map(({ containerName }) => ({ containerName, operator: 'replace', value })),
      argsOverrider: envOverrider.map(({ containerName }) => ({ containerName, operator: 'add', value })),
      envOverrider,
      resourcesOverrider: envOverrider.map(({ containerName }) => ({
        containerName,
        operator: 'add',
        limits: { cpu: '1' },
      })),
    };
    return policy('OverridePolicy', 'p', { overrideRules: Array.from({ length: 16 }, () => ({ overriders })) });
  };

  it('ten are told, and how many more', () => {
    const path = 'spec.overrideRules[0].overriders';
    const warnings = found(policy('OverridePolicy', 'p', { overrideRules: [{ overriders: envs(12) }] }), HERE);
    expect(warnings).toHaveLength(11);
    expect(warnings[9]).toMatch(`${path}.envOverrider[9].containerName: no pod that it is for has a container "no-9"`);
    expect(warnings[10]).toBe(`${path}: of containers that no pod has which it is for, there are 2 more`);
    const ten = policy('OverridePolicy', 'p', { overrideRules: [{ overriders: envs(10) }] });
    expect(found(ten, HERE)).toEqual(warnings.slice(0, 10));
  });

  it('of several rules some of each are told, and by far less than a condition takes', () => {
    const containers = Array.from({ length: 9 }, (_, index) => ({ name: longest('c', index) }));
    const warnings = found(all(), { east: [webPod({ containers })], west: [] });
    expect(warnings.map((one) => one.split(': ')[0])).toEqual(
      Array.from({ length: 16 }, (_, rule) => `spec.overrideRules[${String(rule)}].overriders`).flatMap((path) => [
        `${path}.commandOverrider[0].containerName`,
        path,
      ]),
    );
    expect(warnings[31]).toMatch(/, there are 127 more$/);
    expect(warnings.join('; ').length).toBeLessThan(16_384);
  });

  it('those who know the pods of one rule each come to say the same', () => {
    const overriders = envs(8);
    const overrideRules = ['east', 'west'].map((member) => ({
      overriders,
      targetCluster: { clusterNames: [member] },
    }));
    const halves = policy('OverridePolicy', 'p', { overrideRules });
    const whole = found(halves, { east: [pod], west: [pod] });
    expect(whole).toHaveLength(12);
    const byEast = (said: string[]) => found(halves, { east: [pod] }, { before: said });
    const byWest = (said: string[]) => found(halves, { west: [pod] }, { before: said });
    expect(byWest(byEast([]))).toEqual(whole);
    expect(byEast(whole)).toEqual(whole);
    expect(byWest(whole)).toEqual(whole);
    // What is there now is counted no more.
    const there = webPod({ containers: overriders.envOverrider.map(({ containerName: name }) => ({ name })) });
    expect(found(halves, { east: [there] }, { before: whole })).toEqual(whole.slice(6));
  });

  it('each pod is looked at once, however many a policy names, and by how many policies', () => {
    let [read, asked] = [0, 0];
    const pods = Array.from({ length: 100 }, () => {
      const { spec, ...rest } = webPod();
      const counted = {
        ...rest,
        get spec() {
          read += 1;
          return spec;
        },
      };
      return counted satisfies Pod;
    });
    const alikeIn = alikePods((member) => (member === 'east' ? pods : []));
    // While that is not known of one pod, the next one is asked.
    const identitiesOf: KnownPods['identitiesOf'] = () => {
      asked += 1;
      return undefined;
    };
    for (let policies = 1; policies <= 3; policies += 1) {
      found(all(), {}, { alikeIn, identitiesOf });
      expect(asked).toBe(policies * pods.length);
    }
    expect(read).toBeLessThan(300);
  });
});
