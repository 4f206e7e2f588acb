import { describe, expect, it, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { hasBegun, refusedPodsStep } from '../../src/placement/refused-pod.ts';
import type { RefusedPod, RefusedPodsFacts } from '../../src/placement/refused-pod.ts';

const NOW = Date.parse('2026-01-01T00:05:00Z');
const SECOND = 1_000;

describe('which pods make way, and when', () => {
  const refused = (uid: string, more: Partial<RefusedPod> = {}): RefusedPod => ({
    uid,
    cluster: 'east',
    createdAt: NOW - 31 * SECOND,
    at: NOW - 30 * SECOND,
    ...more,
  });
  const avoidedFor = (ms: number, since = NOW - 30 * SECOND): RefusedPodsFacts['avoided'] => [
    { cluster: 'east', reason: 'MemberQuotaExceeded', message: '', since, until: NOW + ms },
  ];
  const step = (facts: Partial<RefusedPodsFacts>): ReturnType<typeof refusedPodsStep> =>
    refusedPodsStep({ refused: [refused('a')], avoided: avoidedFor(60 * SECOND), underWay: 0, now: NOW, ...facts });

  it('is the longest refused first', () => {
    const { ready } = step({ refused: [refused('b'), refused('c', { at: NOW - 40 * SECOND }), refused('a')] });
    expect(ready).toEqual(['c', 'a', 'b']);
  });

  it('waits for ten seconds: what is free again in a moment is no cause', () => {
    expect(step({ refused: [refused('a', { at: NOW - 9_999 })] }).ready).toEqual([]);
    expect(step({ refused: [refused('a', { at: NOW - 10_000 })] }).ready).toEqual(['a']);
    expect(step({ refused: [refused('a', { at: NOW + 5_000 })] }).ready).toEqual([]);
  });

  it('happens only while the member is avoided, and will be until the next pod has its place', () => {
    expect(step({ avoided: [] }).ready).toEqual([]);
    expect(step({ avoided: avoidedFor(60 * SECOND).map((one) => ({ ...one, cluster: 'west' })) }).ready).toEqual([]);
    expect(step({ avoided: avoidedFor(14_999) }).ready).toEqual([]);
    expect(step({ avoided: avoidedFor(15_000) }).ready).toEqual(['a']);
  });

  it('does not happen again to a pod that came in place of one that made way', () => {
    const late = refused('late', { createdAt: NOW - 15 * SECOND, at: NOW - 14 * SECOND });
    expect(step({ refused: [late] }).ready).toEqual([]);
    expect(step({ refused: [{ ...late, createdAt: NOW - 21 * SECOND }] }).ready).toEqual(['late']);
    // A time after which it is avoided anew: it may be tried once more.
    expect(step({ refused: [late], avoided: avoidedFor(60 * SECOND, NOW - 14 * SECOND) }).ready).toEqual(['late']);
  });

  it('happens to three at a time, those counted in that have no place yet', () => {
    expect([0, 1, 2, 3, 7].map((underWay) => step({ underWay }).atMost)).toEqual([3, 2, 1, 0, 0]);
  });

  it('says no where a time cannot be read', () => {
    expect(step({ refused: [refused('a', { at: Number.NaN })] }).ready).toEqual([]);
    expect(step({ refused: [refused('a', { createdAt: Number.NaN })] }).ready).toEqual([]);
  });
});

function pod(more: { metadata?: object; spec?: object; status?: object } = {}): Pod {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'set', controller: true };
  return {
    metadata: { name: 'web-1-a', namespace: 'shop', uid: 'a', ownerReferences: [owner], ...more.metadata },
    spec: { containers: [], nodeName: 'east', ...more.spec },
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }], ...more.status },
  };
}

describe('whether anything of a pod may have run', () => {
  test('a pod that was never more than Pending has not begun', () => {
    expect(hasBegun(pod())).toBe(false);
    const waiting = { name: 'main', image: '', imageID: '', ready: false, restartCount: 0, started: false };
    const containerStatuses = [{ ...waiting, state: { waiting: { reason: 'ContainerCreating' } } }];
    expect(hasBegun(pod({ status: { containerStatuses } }))).toBe(false);
  });

  const container = (more: object): object[] => [
    { name: 'main', image: '', imageID: '', ready: false, restartCount: 0, ...more },
  ];
  test.each([
    ['a deletion', pod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
    ['phase Running', pod({ status: { phase: 'Running' } })],
    ['phase Succeeded', pod({ status: { phase: 'Succeeded' } })],
    ['no phase', pod({ status: { phase: undefined } })],
    ['a start time', pod({ status: { startTime: '2026-01-01T00:00:00Z' } })],
    ['a container that runs', pod({ status: { containerStatuses: container({ state: { running: {} } }) } })],
    ['one that ended', pod({ status: { containerStatuses: container({ state: { terminated: {} } }) } })],
    ['one that ended before', pod({ status: { containerStatuses: container({ lastState: { terminated: {} } }) } })],
    ['a restart', pod({ status: { containerStatuses: container({ restartCount: 1 }) } })],
    ['a start', pod({ status: { containerStatuses: container({ started: true }) } })],
    ['an init container', pod({ status: { initContainerStatuses: container({ state: { terminated: {} } }) } })],
    ['an ephemeral one', pod({ status: { ephemeralContainerStatuses: container({ state: { running: {} } }) } })],
  ])('%s says that it may', (_what, begun) => {
    expect(hasBegun(begun)).toBe(true);
  });
});
