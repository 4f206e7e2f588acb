import { expect, test } from 'vitest';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import { compilePolicy, type CompiledPolicy } from '../../src/placement/policy-selection.ts';
import { GonePolicies } from '../../src/scheduler/gone-policies.ts';

let now = 0;
const MINUTE = 60_000;

function policy(name: string, namespace: string | undefined, chosen: string): CompiledPolicy {
  const object = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: namespace === undefined ? 'ClusterPlacementPolicy' : 'PlacementPolicy',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec: { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: chosen }], placement: {} },
  };
  const parsed = parsePlacementPolicy(object);
  if ('problems' in parsed) throw new Error(parsed.problems.join());
  const compiled = compilePolicy(parsed.policy);
  if ('problems' in compiled) throw new Error(compiled.problems.join());
  return compiled;
}

test('of one that is edited again and again the first is kept, and the last', () => {
  const gone = new GonePolicies(() => now);
  const edits = Array.from({ length: 1_000 }, (_, i) => policy('p', 'shop', `web-${String(i)}`));
  for (const [i, before] of edits.entries()) gone.changed(before, edits[i + 1]);
  expect(gone.inSight('shop')).toEqual([edits[0], edits.at(-1)]);
  now += MINUTE;
  expect(gone.inSight('shop')).toEqual([]);
});

test('whoever makes and deletes many makes it cost no more for other namespaces, and little for their own', () => {
  const gone = new GonePolicies(() => now);
  for (let i = 0; i < 3_000; i += 1) gone.changed(policy(`p${String(i)}`, 'shop', 'web'), undefined);
  const all = policy('all', undefined, 'web');
  gone.changed(all, undefined);
  expect(gone.inSight('shop')).toHaveLength(1_001);
  expect(gone.inSight('other')).toEqual([all]);
});
