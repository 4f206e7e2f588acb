import { afterEach, describe, expect, test, vi } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import { CopyOverrides, type CopyOverridesPort } from '../../src/dependents/copy-overrides.ts';
import { CONTENT_HASH_ANNOTATION, contentHash, copyOf, recordOfCopy } from '../../src/dependents/copy.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { APPLIED_OVERRIDES_ANNOTATION } from '../../src/overrides/override-record.ts';
import { type MirrorSetup, needing, startMirror } from '../fixtures/dependents.ts';
import { EAST, policy } from '../overrides/rendered-pod.ts';

const CONFIG: KubeObject & { data: object } = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'shop', uid: 'u', labels: { team: 'a' } },
  data: { 'app.yaml': 'region: none\n' },
};
const PLACE = { hostId: 'abcdef0123456789', member: 'east', memberNamespace: 't-shop' };
const forConfigs = { resourceSelectors: [{ apiVersion: 'v1', kind: 'ConfigMap' }] };
const region = (value: string, more: object = {}) => ({
  ...forConfigs,
  overrideRules: [
    {
      overriders: {
        fieldOverrider: [{ fieldPath: '/data/app.yaml', yaml: [{ subPath: '/region', operator: 'replace', value }] }],
        ...more,
      },
    },
  ],
});

/** Policies that tests change. */
class Policies implements CopyOverridesPort {
  list: readonly OverridePolicy[] = [];
  cluster = EAST;
  read = true;
  unknown() {
    return this.read ? undefined : {};
  }
  policies(namespace: string) {
    expect(namespace).toBe('shop');
    return this.list;
  }
  member() {
    return this.cluster;
  }
}

describe('a copy', () => {
  const policies = new Policies();
  const overrides = new CopyOverrides(policies);
  const stamp = () => {
    const plan = overrides.planFor('ConfigMap', CONFIG);
    if (typeof plan !== 'object' || !('stamp' in plan)) throw new Error(`no stamp: ${JSON.stringify(plan)}`);
    return plan.stamp;
  };

  test('is stamped with its content alone while nothing changes it', () => {
    policies.list = [];
    expect(stamp()).toBe(contentHash(CONFIG));
    expect(new CopyOverrides().planFor('ConfigMap', CONFIG)).toEqual({ stamp: contentHash(CONFIG) });
    policies.list = [
      policy('ClusterOverridePolicy', 'images', {
        overrideRules: [{ overriders: { imageOverrider: [{ component: 'Tag', operator: 'remove' }] } }],
      }),
    ];
    expect(stamp()).toBe(contentHash(CONFIG));
  });

  test('gets another stamp when a policy, or what it knows of the member, changes', () => {
    const seen = new Set<string>();
    for (const [name, value, cluster] of [
      ['a', 'x', EAST],
      ['a', 'y', EAST],
      ['b', 'y', EAST],
      ['b', '${member.region}', EAST],
      ['b', '${member.region}', { ...EAST, region: 'us-9' }],
    ] as const) {
      policies.list = [policy('OverridePolicy', name, region(value))];
      policies.cluster = cluster;
      seen.add(stamp());
      expect(stamp()).toBe(stamp());
    }
    policies.cluster = EAST;
    expect(seen.size).toBe(5);
    expect([...seen].every((text) => text.startsWith(`${contentHash(CONFIG)}.`))).toBe(true);
  });

  test('is made as the policies say, with a record of it', () => {
    policies.list = [
      policy(
        'OverridePolicy',
        'eu',
        region('${member.region}', { labelsOverrider: [{ operator: 'add', value: { tier: 'x' } }] }),
      ),
    ];
    const base = copyOf('ConfigMap', CONFIG, PLACE);
    const copy = overrides.applyTo('ConfigMap', CONFIG, base);
    expect(copy).toMatchObject({
      data: { 'app.yaml': 'region: eu-1\n' },
      metadata: { labels: { ...base.metadata.labels, tier: 'x' } },
    });
    expect(copy.metadata.annotations?.[CONTENT_HASH_ANNOTATION]).toBe(stamp());
    expect(JSON.parse(copy.metadata.annotations?.[APPLIED_OVERRIDES_ANNOTATION] ?? '')).toMatchObject({
      rules: [{ policy: 'OverridePolicy shop/eu', rule: 0, changes: ['labelsOverrider', 'fieldOverrider'] }],
      keys: { labels: ['tier'], annotations: [] },
    });
    expect(CONFIG.data).toEqual({ 'app.yaml': 'region: none\n' });
  });

  test('loses what a policy put on its metadata together with the policy, and keeps what others put there', () => {
    policies.list = [
      policy(
        'OverridePolicy',
        'eu',
        region('x', {
          labelsOverrider: [{ operator: 'add', value: { tier: 'x' } }],
          annotationsOverrider: [{ operator: 'add', value: { by: 'us' } }],
        }),
      ),
    ];
    const copy = overrides.applyTo('ConfigMap', CONFIG, copyOf('ConfigMap', CONFIG, PLACE));
    const present = {
      ...copy,
      metadata: {
        ...copy.metadata,
        uid: 'm',
        resourceVersion: '1',
        labels: { ...copy.metadata.labels, theirs: 'yes' },
      },
    };
    policies.list = [];
    const next = overrides.applyTo(
      'ConfigMap',
      CONFIG,
      copyOf('ConfigMap', CONFIG, PLACE, recordOfCopy('ConfigMap', present)),
    );
    expect(next.metadata.labels).toEqual({ ...copyOf('ConfigMap', CONFIG, PLACE).metadata.labels, theirs: 'yes' });
    expect(next.metadata.annotations).toEqual(copyOf('ConfigMap', CONFIG, PLACE).metadata.annotations);
  });

  test('is not planned before the policies were read', () => {
    policies.read = false;
    expect(overrides.planFor('ConfigMap', CONFIG)).toBe('unknown');
    policies.read = true;
  });

  test('is refused with the policy, the path and the cluster', () => {
    policies.list = [
      policy('OverridePolicy', 'eu', {
        ...forConfigs,
        overrideRules: [{ overriders: { plaintext: [{ path: '/data/none', operator: 'remove' }] } }],
      }),
    ];
    expect(overrides.planFor('ConfigMap', CONFIG)).toEqual({
      refused:
        'OverridePolicy shop/eu, overrideRules[0].plaintext[0] at /data/none: there is nothing at that path, so ' +
        'ConfigMap shop/a cannot be made in cluster "east". This does not pass by itself. Correct the policy.',
    });
  });
});

describe('the mirror', () => {
  let running: MirrorSetup | undefined;
  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });
  const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 5_000, interval: 2 });
  const web = needing('web', 'ConfigMap/a');

  function start(policies: Policies): MirrorSetup {
    running = startMirror({ overrides: policies });
    running.host.set('ConfigMap', 'shop', 'a', { data: { 'app.yaml': 'region: none\n' } });
    return running;
  }
  const dataOf = ({ member }: MirrorSetup) =>
    (member.objects.get('ConfigMap/t-shop/a') as { data?: object } | undefined)?.data;

  test('follows an edited policy at once, with one write, and its deletion', async () => {
    const policies = new Policies();
    policies.list = [policy('OverridePolicy', 'eu', region('one'))];
    const setup = start(policies);
    setup.mirror.require(web);
    await until(() => expect(setup.mirror.require(web)).toEqual({ ready: true }));
    expect(dataOf(setup)).toEqual({ 'app.yaml': 'region: one\n' });
    policies.list = [policy('OverridePolicy', 'eu', region('two'))];
    setup.mirror.overridesChanged();
    await until(() => expect(dataOf(setup)).toEqual({ 'app.yaml': 'region: two\n' }));
    policies.list = [];
    setup.mirror.overridesChanged();
    await until(() => expect(dataOf(setup)).toEqual({ 'app.yaml': 'region: none\n' }));
    expect(setup.member.writes).toHaveLength(3);
  });

  test('writes nothing until the policies were read', async () => {
    const policies = new Policies();
    policies.read = false;
    const setup = start(policies);
    expect(setup.mirror.require(web)).toMatchObject({ ready: false, pending: true });
    policies.read = true;
    policies.list = [policy('OverridePolicy', 'eu', region('one'))];
    setup.mirror.overridesChanged();
    await until(() => expect(setup.mirror.require(web)).toEqual({ ready: true }));
    expect(setup.member.writes).toEqual(['create ConfigMap/t-shop/a']);
    expect(dataOf(setup)).toEqual({ 'app.yaml': 'region: one\n' });
  });

  test('holds only the pods that need what a policy cannot be applied to, and leaves the copy as it was', async () => {
    const policies = new Policies();
    const setup = start(policies);
    setup.host.set('ConfigMap', 'shop', 'b', { data: {} });
    setup.mirror.require(web);
    await until(() => expect(setup.mirror.require(web)).toEqual({ ready: true }));
    const spec = {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a' }],
      overrideRules: [{ overriders: { plaintext: [{ path: '/data/x', operator: 'remove' }] } }],
    };
    policies.list = [policy('OverridePolicy', 'bad', spec)];
    setup.mirror.overridesChanged();
    await until(() =>
      expect(setup.mirror.require(web)).toMatchObject({
        ready: false,
        pending: false,
        reason: 'OverrideRefused',
        message: expect.stringContaining('OverridePolicy shop/bad') as string,
      }),
    );
    const other = needing('other', 'ConfigMap/b');
    await until(() => expect(setup.mirror.require(other)).toEqual({ ready: true }));
    expect(dataOf(setup)).toEqual({ 'app.yaml': 'region: none\n' });
    setup.ready.length = 0;
    expect(setup.mirror.require(web)).toMatchObject({ ready: false });
    policies.list = [];
    setup.mirror.overridesChanged();
    await until(() => expect(setup.ready).toContain('shop/web'));
    expect(setup.mirror.require(web)).toEqual({ ready: true });
  });
});
