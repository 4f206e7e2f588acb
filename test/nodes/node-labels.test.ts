import { expect, it } from 'vitest';
import { mayLabelItself } from '../../src/nodes/node-labels.ts';

it.each([
  ['type', true],
  ['team.example.com/a', true],
  ['spillway.dev/member', true],
  ['mykubernetes.io/a', true],
  ['kubernetes.io/hostname', true],
  ['topology.kubernetes.io/zone', true],
  ['node.kubernetes.io/exclude-from-external-load-balancers', true],
  ['a.kubelet.kubernetes.io/b', true],
  ['kubernetes.io/role', false],
  ['node-role.kubernetes.io/worker', false],
  ['topology.kubernetes.io/rack', false],
  ['apps.k8s.io/a', false],
  ['k8s.io/a', false],
  ['node-restriction.kubernetes.io/a', false],
  ['a.node-restriction.kubernetes.io/b', false],
])('a node may put %s on itself: %s', (key, may) => {
  expect(mayLabelItself(key)).toBe(may);
});
