import { describe, expect, it } from 'vitest';
import { releasedText } from '../../src/api/released.ts';
import { drainPlan } from '../../src/cli/drain-plan.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { hostPod } from '../fixtures/pods.ts';

const owned = (kind: string): Partial<Pod['metadata']> => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'web', uid: 'u', controller: true }],
});
const PODS = {
  plain: hostPod({ metadata: { name: 'plain', ...owned('ReplicaSet') } }),
  alone: hostPod({ metadata: { name: 'alone' } }),
  data: hostPod({
    metadata: { name: 'data', ...owned('ReplicaSet') },
    spec: { volumes: [{ name: 'tmp', emptyDir: {} }] },
  }),
  daemon: hostPod({ metadata: { name: 'daemon', ...owned('DaemonSet') } }),
  leaving: hostPod({ metadata: { name: 'leaving', deletionTimestamp: '2026-01-01T00:00:00Z' } }),
  finished: hostPod({ metadata: { name: 'finished' }, status: { phase: 'Succeeded' } }),
};

const names = (list: readonly { metadata: { name: string } }[]): string[] => list.map(({ metadata }) => metadata.name);

describe('draining a member', () => {
  it('evicts what comes back elsewhere, and refuses what would be lost', () => {
    const plan = drainPlan(Object.values(PODS), { force: false, deleteEmptydirData: false });
    expect(names(plan.evict)).toEqual(['plain', 'leaving', 'finished']);
    expect(names(plan.skipped.map(({ pod }) => pod))).toEqual(['daemon']);
    expect(plan.refused.map(({ pod, why }) => [pod.metadata.name, why])).toEqual([
      ['alone', expect.stringMatching(/--force/)],
      ['data', expect.stringMatching(/--delete-emptydir-data/)],
    ]);
  });

  it('evicts what is out of its ReplicaSet only as another one takes its place', () => {
    const mark = { hash: '7d', replicaSet: 'web-7d', uid: 'u', at: '2026-01-01T00:00:00Z', ready: 1 };
    const annotations = { 'spillway.dev/released': releasedText(mark) };
    const plan = drainPlan([hostPod({ metadata: { name: 'moving', annotations } })], {
      force: false,
      deleteEmptydirData: false,
    });
    expect([names(plan.evict), plan.refused]).toEqual([['moving'], []]);
  });

  it('evicts all but pods of DaemonSets where the person says so', () => {
    const plan = drainPlan(Object.values(PODS), { force: true, deleteEmptydirData: true });
    expect(names(plan.evict)).toEqual(['plain', 'alone', 'data', 'leaving', 'finished']);
    expect(plan.refused).toEqual([]);
  });
});
