import { expect, test } from 'vitest';
import { MovesFuse } from '../../src/descheduler/moves-fuse.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', uid: 'w' } };
const pod = (name: string, deletionTimestamp?: string): Pod => ({
  metadata: { name, uid: name, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
  spec: { containers: [] },
  status: { phase: 'Running' },
});
const here = ['a', 'b'].map((name) => pod(name));

function most(pods: readonly Pod[], replicas: number | undefined): number | undefined {
  const fuse = new MovesFuse({
    placed: {
      rulesOf: () => ({ workload, replicas, failover: undefined, clusterTolerations: [] }),
      ofWorkload: () => pods,
    },
    records: { withinAnHour: () => 1_000, fewEnoughInMs: () => 5 },
    perPodPerHour: 5,
  });
  return fuse.tooOften(pod('a'))?.most;
}

test('pods that were moved, and are Terminating for as long as their member does not answer, do not raise the limit', () => {
  const gone = Array.from({ length: 50 }, (_, index) => pod(`gone-${String(index)}`, '2026-01-01T00:00:00Z'));
  expect(most([...here, ...gone], 2)).toBe(10);
  expect(most([...here, ...gone], undefined)).toBe(10);
  expect(most(gone, undefined)).toBe(5);
});

test('it is by what the workload asks for, or has, whichever is more', () => {
  expect(most(here, 4)).toBe(20);
  expect(most([...here, pod('c')], 2)).toBe(15);
});
