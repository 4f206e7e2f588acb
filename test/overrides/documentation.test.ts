import { describe, expect, it } from 'vitest';
import { type OverridePolicy, type OverridePolicyKind, parseOverridePolicy } from '../../src/api/override-policy.ts';
import { overridersSchema } from '../../src/api/overriders.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { applyOverrides } from '../../src/overrides/apply-overrides.ts';
import { documented, manifestsOn } from '../fixtures/documented.ts';
import { contextOf, EAST, rendered } from './rendered-pod.ts';

const PAGE = documented('concepts/overrides.md');
const EXAMPLES = manifestsOn('concepts/overrides.md').filter(
  ({ apiVersion }) => apiVersion === 'spillway.dev/v1alpha1',
);

function example(name: string): OverridePolicy {
  const raw = EXAMPLES.find(({ metadata }) => metadata.name === name);
  if (raw === undefined) throw new Error(`the page has no example ${name}`);
  const result = parseOverridePolicy(raw.kind as OverridePolicyKind, raw);
  if ('problems' in result) throw new Error(result.problems.join('; '));
  return result.policy;
}
function applied<T extends KubeObject>(name: string, object: T, context = contextOf()): T {
  const outcome = applyOverrides(object, [example(name)], context);
  if (!('object' in outcome)) throw new Error(JSON.stringify(outcome));
  return outcome.object;
}

describe('the page about overrides', () => {
  it('has examples that are policies', () => {
    expect(EXAMPLES.map(({ metadata }) => metadata.name)).toEqual([
      'eu-registry',
      'gold',
      'regional-settings',
      'databases-on-ssd',
    ]);
    for (const { metadata } of EXAMPLES) example(metadata.name);
  });

  it('says what the examples do', () => {
    const eu = applied('eu-registry', rendered());
    expect([...eu.spec.containers, ...(eu.spec.initContainers ?? [])].map(({ image }) => image)).toEqual([
      'mirror.eu-1.example:5000/web:v1',
      'mirror.eu-1.example:5000/side:v2',
      'mirror.eu-1.example:5000/busybox',
    ]);
    expect(eu.spec.imagePullSecrets).toEqual([{ name: 'pull-east' }]);
    const elsewhere = { ...contextOf(), member: { ...EAST, region: 'us-1' } };
    expect(applied('eu-registry', rendered(), elsewhere)).toEqual(rendered());
    const gold: Pod = applied('gold', rendered());
    expect(gold.spec.containers[0]?.env).toContainEqual({ name: 'CLUSTER', value: 'east' });
    expect(gold.spec.containers[0]?.resources).toEqual({
      requests: { cpu: '100m', memory: '2Gi' },
      limits: { memory: '2Gi' },
    });
    const config = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'web-settings' },
      data: { 'app.yaml': '# ours\ndatabase:\n  host: none\n' },
    };
    const identities = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'web-settings', labels: {} }] as const;
    const regional = applied('regional-settings', config, { subject: { namespace: 'shop', identities }, member: EAST });
    expect(regional.data['app.yaml']).toBe('# ours\ndatabase:\n  host: db.eu-1.internal\n');
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'db' },
      spec: { storageClassName: 'spillway' },
    };
    const owned = [{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', name: 'db', labels: { app: 'db' } }] as const;
    const onSsd = applied('databases-on-ssd', claim, {
      subject: { namespace: 'shop', identities: owned },
      member: EAST,
    });
    expect(onSsd.spec.storageClassName).toBe('premium-ssd');
  });

  it('lists the overriders in the order in which they are applied', () => {
    const names = Object.keys(overridersSchema.shape);
    const order = [...(/^5\. In a rule:([\s\S]*?);/m.exec(PAGE)?.[1] ?? '').matchAll(/`(\w+)`/g)].map(
      ([, name]) => name,
    );
    expect(order).toEqual(names);
    for (const name of names) expect(PAGE).toMatch(new RegExp(`^\\| .*\`${name}\``, 'm'));
  });
});
