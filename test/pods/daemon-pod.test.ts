import { describe, expect, test } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import { daemonSetsOn, type MemberCluster } from '../../src/api/member-cluster.ts';
import { conditionOf } from '../../src/kube/conditions.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ignoredStatus, ignoresPod, isDaemonPod, isShownIgnored } from '../../src/pods/daemon-pod.ts';
import { type Action, decide, type PodFacts } from '../../src/pods/decide.ts';
import { holdPatch } from '../../src/pods/hold-patch.ts';
import { hostStatus } from '../../src/pods/host-status.ts';
import { refuseRemoval } from '../../src/pods/write-guards.ts';
import { HOST_ID, hostPod, memberPod } from '../fixtures/pods.ts';

const NOW = '2026-01-01T00:02:00Z';
const ownedBy = (kind: string, controller = true, apiVersion = 'apps/v1'): Pod =>
  hostPod({ metadata: { ownerReferences: [{ apiVersion, kind, name: 'agent', uid: 'u', controller }] } });
const daemonPod = (): Pod => ownedBy('DaemonSet');
/** As it is after our status was written. */
const shown = (more: Partial<Pod['metadata']> = {}): Pod => {
  const pod = daemonPod();
  return { ...pod, metadata: { ...pod.metadata, ...more }, status: ignoredStatus(pod, 'east', NOW) };
};

function facts(policy: 'Ignore' | 'Run', more: Partial<PodFacts> = {}): PodFacts {
  return {
    member: 'east',
    hostId: HOST_ID,
    nodeName: 'east',
    reachable: true,
    hostDeletionSeen: () => false,
    outdated: () => false,
    hostStatus: (host, member) => hostStatus(host, member, { member: 'east', network: 'Flat', inSync: true }, NOW),
    ignored: (pod) => ignoresPod(pod, policy),
    hostAnnotations: () => ({}),
    now: NOW,
    ...more,
  };
}

describe('which pods are ignored', () => {
  test('those that a DaemonSet controls', () => {
    expect(isDaemonPod(daemonPod())).toBe(true);
    expect(isDaemonPod(ownedBy('ReplicaSet'))).toBe(false);
    expect(isDaemonPod(ownedBy('DaemonSet', false))).toBe(false);
    expect(isDaemonPod(ownedBy('DaemonSet', true, 'example.com/v1'))).toBe(false);
    expect(isDaemonPod(hostPod())).toBe(false);
  });

  test('unless they are to run, but those of the system always', () => {
    const system = daemonPod();
    system.metadata.namespace = 'kube-system';
    expect([ignoresPod(daemonPod(), 'Ignore'), ignoresPod(daemonPod(), 'Run')]).toEqual([true, false]);
    expect([ignoresPod(system, 'Ignore'), ignoresPod(system, 'Run')]).toEqual([true, true]);
    expect(ignoresPod(ownedBy('ReplicaSet'), 'Ignore')).toBe(false);
  });

  test('a pool may differ from its member', () => {
    const spec = {
      daemonSets: 'Ignore',
      virtualNodes: [
        { name: 'gpu', nodeSelector: {}, daemonSets: 'Run' },
        { name: 'rest', nodeSelector: {} },
      ],
    };
    const member = { metadata: { name: 'east' }, spec } as unknown as MemberCluster;
    expect(daemonSetsOn(member, 'east-gpu')).toBe('Run');
    expect(daemonSetsOn(member, 'east-rest')).toBe('Ignore');
    expect(daemonSetsOn(member, 'east')).toBe('Ignore');
  });
});

describe('what becomes of them', () => {
  test('no copy; ready for the DaemonSet, and the truth for people', () => {
    const action = decide(daemonPod(), undefined, facts('Ignore'));
    const { status } = (action as Extract<Action, { do: 'ignore' }>).patch as { status: Pod['status'] };
    expect(status).toMatchObject({ phase: 'Running', reason: 'DaemonSetIgnored' });
    expect(status?.message).toContain('do not run in cluster "east"');
    expect(conditionOf({ status: status ?? {} }, 'Ready')).toMatchObject({
      status: 'True',
      reason: 'DaemonSetIgnored',
    });
    expect(conditionOf({ status: status ?? {} }, MIRRORED_CONDITION)).toMatchObject({ status: 'False' });
    expect(status).not.toHaveProperty('containerStatuses');
    expect(status).not.toHaveProperty('podIP');
  });

  test('that is said once, whether the member answers or not', () => {
    expect(isShownIgnored(shown())).toBe(true);
    expect(decide(shown(), undefined, facts('Ignore')).do).toBe('nothing');
    expect(decide(shown(), undefined, facts('Ignore', { reachable: false })).do).toBe('nothing');
    expect(decide(daemonPod(), undefined, facts('Ignore', { reachable: false })).do).toBe('ignore');
  });

  test('nor again because the API server added empty fields to a condition', () => {
    const pod = shown();
    const conditions = pod.status?.conditions?.map((one) => ({ ...one, lastProbeTime: null }));
    const served = { ...pod, status: { ...pod.status, conditions: conditions ?? [] } };
    expect(decide(served, undefined, facts('Ignore')).do).toBe('nothing');
  });

  test('nothing at all while frozen', () => {
    expect(decide(daemonPod(), undefined, facts('Ignore', { frozen: 'not synced' })).do).toBe('wait');
  });

  test('a stranger of that name in the member is no concern', () => {
    const stranger = memberPod({ metadata: { labels: {} } });
    expect(decide(daemonPod(), stranger, facts('Ignore')).do).toBe('ignore');
  });

  test('one that runs already goes on when the policy changes', () => {
    const action = decide(daemonPod(), memberPod(), facts('Ignore'));
    expect(action).toMatchObject({ do: 'patch-status', patch: { status: { phase: 'Running' } } });
    expect(JSON.stringify(action)).not.toContain('DaemonSetIgnored');
  });

  test('one that was created and is not seen yet is not ignored', () => {
    expect(decide(daemonPod(), undefined, facts('Ignore', { created: { overdue: false } })).do).toBe('wait');
    expect(decide(daemonPod(), undefined, facts('Ignore', { created: { overdue: true } })).do).toBe('report-lost');
  });

  test('its deletion does not wait for the member, if that is what it shows', () => {
    const gone = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 };
    const action = decide(shown(gone), undefined, facts('Ignore', { reachable: false }));
    expect(action).toMatchObject({ do: 'finish-deletion', status: undefined });
    const evidence = { of: 'host-uid', how: 'never', at: 0 } as const;
    expect(refuseRemoval(shown(gone), evidence, 1)).toBeUndefined();
    expect(refuseRemoval({ ...shown(gone), status: { phase: 'Running' } }, evidence, 1)).toMatchObject({
      invariant: 'I9',
    });
    expect(refuseRemoval(shown(gone), { ...evidence, of: 'another' }, 1)).toMatchObject({ invariant: 'I9' });
  });

  test('with another policy it starts, and is not ready until it runs', () => {
    expect(decide(shown(), undefined, facts('Run')).do).toBe('create');
    expect(holdPatch(shown(), { reason: 'MemberQuotaExceeded', message: 'm' }, NOW)).toMatchObject({
      status: {
        phase: 'Pending',
        conditions: [
          { type: MIRRORED_CONDITION, status: 'False', reason: 'MemberQuotaExceeded' },
          { type: 'Ready', status: 'False', reason: 'MemberQuotaExceeded' },
        ],
      },
    });
  });
});
