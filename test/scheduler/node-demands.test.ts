import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { asksForItself } from '../../src/scheduler/node-demands.ts';

const east: Node = {
  metadata: { name: 'east', labels: { 'spillway.dev/member': 'east', type: 'virtual-kubelet', disk: 'ssd' } },
  spec: { taints: [{ key: 'spillway.dev/virtual-node', effect: 'NoSchedule' }] },
};
const open: Node = { metadata: east.metadata, spec: {} };
const pod = (spec: Partial<Pod['spec']>): Pod => ({ metadata: { name: 'web' }, spec: { containers: [], ...spec } });
const tolerating = { tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' as const }] };
const policies = { 'spillway.dev/burst': 'policies' };

describe('a pod without rules asks for a virtual node', () => {
  it('by tolerating its taint by name', () => {
    expect(asksForItself(pod({}), east)).toBe(false);
    expect(asksForItself(pod(tolerating), east)).toBe(true);
    expect(asksForItself(pod({ tolerations: [{ operator: 'Exists' }] }), east)).toBe(false);
  });
  it('but not where everybody is given that toleration: its workload may be one that is left out', () => {
    expect(asksForItself(pod(tolerating), east, policies)).toBe(false);
    expect(asksForItself(pod(tolerating), east, { 'spillway.dev/burst': 'enabled' })).toBe(false);
  });
  it('by a selector that real nodes do not satisfy', () => {
    expect(asksForItself(pod({ ...tolerating, nodeSelector: { 'spillway.dev/member': 'east' } }), east, policies)).toBe(
      true,
    );
    expect(asksForItself(pod({ ...tolerating, nodeSelector: { disk: 'ssd' } }), east, policies)).toBe(false);
  });
  it('where the node is open to all', () => {
    expect(asksForItself(pod({}), open, policies)).toBe(true);
  });
});
