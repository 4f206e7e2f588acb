import { describe, expect, it } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import { conditionOf } from '../../src/kube/conditions.ts';
import type { Condition, Pod, PodStatus } from '../../src/kube/core-v1.ts';
import {
  hostAnnotations,
  hostStatus,
  MEMBER_SCHEDULED_CONDITION,
  mirroredUid,
  type StatusContext,
} from '../../src/pods/host-status.ts';
import { statusPatch } from '../../src/pods/status-patch.ts';
import { hostPod, memberPod, running } from '../fixtures/pods.ts';

const NOW = '2026-01-01T00:02:00Z';
const context: StatusContext = { member: 'east', network: 'Flat', inSync: true };
const ready = (status: 'True' | 'False' = 'True', extra: Partial<Condition> = {}): Condition => ({
  type: 'Ready',
  status,
  lastTransitionTime: '2026-01-01T00:00:05Z',
  ...extra,
});

describe('the status a host pod gets', () => {
  it("is the member's, unknown fields included, without what belongs to the host", () => {
    const status = {
      phase: 'Running' as const,
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
      hostIP: '172.16.0.2',
      qosClass: 'Guaranteed',
      futureField: { a: 1 },
    };
    const result = hostStatus(hostPod(), memberPod({ status }), context, NOW);
    expect(result).toMatchObject({ phase: 'Running', podIP: '10.0.0.1', hostIP: '172.16.0.2', futureField: { a: 1 } });
    expect(result).not.toHaveProperty('qosClass');
  });

  it('remembers where the member pod is', () => {
    const result = hostStatus(hostPod(), memberPod(), context, NOW);
    expect(mirroredUid({ ...hostPod(), status: result })).toBe('member-uid');
    expect(mirroredUid(hostPod())).toBeUndefined();
  });

  it('tells the PriorityClass in the member, and is not written anew for it where it was not told', () => {
    const ofClass = (priorityClassName: string): Pod => {
      const copy = memberPod();
      return { ...copy, spec: { ...copy.spec, priorityClassName } };
    };
    const told = (host: Pod, copy: Pod) =>
      conditionOf({ ...host, status: hostStatus(host, copy, context, NOW) }, MIRRORED_CONDITION)?.message ?? '';
    const before = told(hostPod(), memberPod());
    expect(before).toMatch(/ uid=member-uid$/);
    expect(told(hostPod(), ofClass('burst-high'))).toBe(`${before} priorityClass=burst-high`);
    const known = hostPod({ status: hostStatus(hostPod(), memberPod(), context, NOW) });
    expect(told(known, ofClass('burst-high'))).toBe(before);
    // What a member may not make of it: another place.
    expect(told(hostPod(), ofClass('x uid=forged'))).toBe(before);
  });

  it("shows that the member finds no node, in the member's words, and leaves PodScheduled to the host", () => {
    const conditions: Condition[] = [
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' },
    ];
    const result = hostStatus(hostPod(), memberPod({ status: { phase: 'Pending', conditions } }), context, NOW);
    expect(result.reason).toBe('MemberUnschedulable');
    expect(result.message).toBe('cluster "east": 0/3 nodes are available');
    expect(result.conditions?.map((condition) => condition.type)).toEqual([
      MEMBER_SCHEDULED_CONDITION,
      MIRRORED_CONDITION,
    ]);
  });

  describe('since when the member finds no node', () => {
    const HOURS = ['2025-12-31T22:00:00Z', '2026-01-01T02:00:00Z'];
    const CREATED = '2026-01-01T00:01:00Z';
    const LATER = '2026-01-01T00:05:00Z';
    const unscheduled = (lastTransitionTime: string, reason = 'Unschedulable'): Pod => {
      const conditions: Condition[] = [{ type: 'PodScheduled', status: 'False', reason, lastTransitionTime }];
      return memberPod({ status: { phase: 'Pending', conditions } });
    };
    const showing = (lastTransitionTime: string, creationTimestamp = CREATED): Pod => {
      const status = hostStatus(hostPod(), unscheduled(NOW), context, NOW);
      const conditions = status.conditions?.map((one) =>
        one.type === MEMBER_SCHEDULED_CONDITION ? { ...one, lastTransitionTime } : one,
      );
      return hostPod({ metadata: { creationTimestamp }, status: { ...status, ...(conditions && { conditions }) } });
    };
    const since = (host: Pod, copy: Pod, now: string): string | undefined =>
      conditionOf({ status: hostStatus(host, copy, context, now) }, MEMBER_SCHEDULED_CONDITION)?.lastTransitionTime;

    it.each(HOURS)('is from when the host knows it, though the clock of the member says %s', (said) => {
      const host = hostPod({ metadata: { creationTimestamp: CREATED } });
      expect(since(host, unscheduled(said), NOW)).toBe(NOW);
    });

    it('stays with the pod, whatever the reason is, and is not written anew for what the member says of it', () => {
      const host = showing(NOW);
      expect(since(host, unscheduled(NOW, 'SchedulerError'), LATER)).toBe(NOW);
      for (const said of HOURS) {
        expect(statusPatch(host, hostStatus(host, unscheduled(said), context, LATER))).toBeUndefined();
      }
    });

    it('begins anew when there was a node meanwhile', () => {
      const found = memberPod({ status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] } });
      const host = showing(NOW);
      const between = { ...host, status: hostStatus(host, found, context, NOW) };
      expect(since(between, unscheduled(NOW), LATER)).toBe(LATER);
    });

    it.each([
      ['from before the pod was made', '2025-12-31T22:00:00Z', CREATED],
      ['that is yet to come', '2026-01-01T02:00:00Z', LATER],
    ])('is put right once where a manager of before wrote a time %s', (_, shown, right) => {
      expect(since(showing(shown), unscheduled(shown), LATER)).toBe(right);
      const host = showing(right);
      expect(statusPatch(host, hostStatus(host, unscheduled(shown), context, '2026-01-01T00:06:00Z'))).toBeUndefined();
    });

    it('is not written again and again where the clock of the host is ahead of ours', () => {
      const ahead = '2026-01-01T00:10:00Z';
      const made = hostPod({ metadata: { creationTimestamp: ahead } });
      expect(since(made, unscheduled(NOW), NOW)).toBe(ahead);
      const host = showing(ahead, ahead);
      expect(statusPatch(host, hostStatus(host, unscheduled(NOW), context, LATER))).toBeUndefined();
    });
  });

  it('takes that back when a node was found', () => {
    const host = hostPod({
      status: {
        phase: 'Pending',
        reason: 'MemberUnschedulable',
        message: 'm',
        conditions: [{ type: MEMBER_SCHEDULED_CONDITION, status: 'False' }],
      },
    });
    const patch = statusPatch(
      host,
      hostStatus(
        host,
        memberPod({ status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] } }),
        context,
        NOW,
      ),
    );
    expect(patch?.['status']).toMatchObject({ reason: null, message: null });
    expect(patch).toHaveProperty('status.conditions');
    const status = patch?.['status'] as { conditions: unknown[] } | undefined;
    expect(status?.conditions).toContainEqual({
      type: MEMBER_SCHEDULED_CONDITION,
      $patch: 'delete',
    });
  });

  it("is not ready before the host's readiness gates are", () => {
    const gated = hostPod({ spec: { readinessGates: [{ conditionType: 'lb' }] } });
    const member = memberPod({ status: { phase: 'Running', conditions: [ready()] } });
    expect(conditionOf({ status: hostStatus(gated, member, context, NOW) }, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ReadinessGatesNotReady',
    });
    const open: Pod = { ...gated, status: { conditions: [{ type: 'lb', status: 'True' }, ready('False')] } };
    expect(conditionOf({ status: hostStatus(open, member, context, NOW) }, 'Ready')).toMatchObject({
      status: 'True',
      lastTransitionTime: NOW,
    });
  });

  it('is not ready while the member is lost, and everything else stays', () => {
    const member = memberPod({
      status: { phase: 'Running', containerStatuses: [running('app')], conditions: [ready()] },
    });
    const of = (began: string | undefined) => hostStatus(hostPod(), member, { ...context, memberLost: { began } }, NOW);
    const result = of('2026-01-01T00:00:00Z');
    expect(conditionOf({ status: result }, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'MemberUnreachable',
      message: 'Cluster "east" has not answered since 2026-01-01T00:00:00Z; the pod may still be running there.',
    });
    expect(conditionOf({ status: of(undefined) }, 'Ready')?.message).toBe(
      'Cluster "east" does not answer; the pod may still be running there.',
    );
    expect(result).toMatchObject({ phase: 'Running', containerStatuses: [running('app')] });
  });

  it('hides addresses that cannot be reached on isolated members', () => {
    const member = memberPod({ status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] } });
    const result = hostStatus(hostPod(), member, { ...context, network: 'Isolated' }, NOW);
    expect(result.podIP).toBeUndefined();
    expect(result.podIPs).toBeUndefined();
    const told = hostAnnotations(member, { network: 'Isolated' });
    expect(told).toEqual({ 'spillway.dev/member-pod-ip': '10.0.0.1' });
    const host = hostPod();
    expect(statusPatch(host, host.status ?? {}, told)).toEqual({
      metadata: { uid: 'host-uid', annotations: told },
      status: {},
    });
    host.metadata.annotations = { 'spillway.dev/member-pod-ip': '10.0.0.1' };
    expect(statusPatch(host, host.status ?? {}, told)).toBeUndefined();
    const flat = hostAnnotations(member, { network: 'Flat' });
    expect(statusPatch(host, host.status ?? {}, flat)).toMatchObject({
      metadata: { annotations: { 'spillway.dev/member-pod-ip': null } },
    });
  });

  it('passes on no address that an endpoint cannot have: the host would write no endpoint of its Services any more', () => {
    const told = (status: PodStatus) => {
      const member = memberPod({ status });
      const { podIP, podIPs } = hostStatus(hostPod(), member, context, NOW);
      return { podIP, podIPs, annotation: hostAnnotations(member, context)['spillway.dev/member-pod-ip'] };
    };
    const ips = (...some: string[]): PodStatus => ({ podIP: some[0] ?? '', podIPs: some.map((ip) => ({ ip })) });
    for (const special of ['169.254.169.254', '127.0.0.1', '0.0.0.0', 'fe80::1', '::1'])
      expect(told(ips(special))).toEqual({ podIP: undefined, podIPs: undefined, annotation: special });
    for (const text of ['', 'web.example', `fd00::1%${'x'.repeat(300_000)}`])
      expect(told(ips(text))).toEqual({ podIP: undefined, podIPs: undefined, annotation: null });
    expect(told(ips('fe80::1', '10.0.0.1'))).toEqual({
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
      annotation: 'fe80::1',
    });
    expect(told(ips('10.0.0.1', 'fd00::1'))).toEqual({ ...ips('10.0.0.1', 'fd00::1'), annotation: null });
    expect(told({ ...ips('fd00::1'), podIP: '127.0.0.1' })).toEqual({ ...ips('fd00::1'), annotation: '127.0.0.1' });
  });

  it('never goes backwards in restarts and start time', () => {
    const host = hostPod({ status: { startTime: '2026-01-01T00:00:00Z', containerStatuses: [running('app', 5)] } });
    const member = memberPod({ status: { startTime: '2026-01-01T09:00:00Z', containerStatuses: [running('app', 2)] } });
    const result = hostStatus(host, member, context, NOW);
    expect(result.startTime).toBe('2026-01-01T00:00:00Z');
    expect(result.containerStatuses?.[0]?.restartCount).toBe(5);
  });

  it('never takes back containers, nor that they have run, when the member pod shows none', () => {
    const before = [running('app', 5), running('side', 1)];
    const host = hostPod({ status: { phase: 'Running', containerStatuses: before, initContainerStatuses: before } });
    const wiped = hostStatus(host, memberPod({ status: {} }), context, NOW);
    const unready = before.map((status) => ({ ...status, ready: false }));
    expect(wiped).toMatchObject({ phase: 'Running', containerStatuses: unready, initContainerStatuses: unready });
    expect(statusPatch(host, wiped)?.['status']).not.toHaveProperty('phase');
    const one = { phase: 'Running' as const, containerStatuses: [running('side', 2)] };
    const names = hostStatus(host, memberPod({ status: one }), context, NOW).containerStatuses?.map(
      ({ name, restartCount }) => [name, restartCount],
    );
    expect(names).toEqual([
      ['side', 2],
      ['app', 5],
    ]);
  });

  it('shows containers of a failed pod as lost that are not reported any more', () => {
    const host = hostPod({ status: { phase: 'Running', containerStatuses: [running('app', 5)] } });
    const evicted = { phase: 'Failed' as const, reason: 'Evicted' };
    const [app] = hostStatus(host, memberPod({ status: evicted }), context, NOW).containerStatuses ?? [];
    expect(app).toMatchObject({
      restartCount: 5,
      state: { terminated: { exitCode: 137, reason: 'MemberStatusLost' } },
    });
  });

  it('believes the member that a pod is Pending which only somebody else called Running', () => {
    const host = hostPod({ status: { phase: 'Running' } });
    expect(hostStatus(host, memberPod({ status: { phase: 'Pending' } }), context, NOW).phase).toBe('Pending');
  });

  it("reports the host's generation as observed once the member has seen the newest", () => {
    const host = hostPod({ metadata: { generation: 7 }, status: { observedGeneration: 6 } });
    const member = memberPod({
      metadata: { generation: 3 },
      status: { phase: 'Running', observedGeneration: 3, conditions: [ready('True', { observedGeneration: 3 })] },
    });
    const synced = hostStatus(host, member, context, NOW);
    expect(synced.observedGeneration).toBe(7);
    expect(conditionOf({ status: synced }, 'Ready')?.observedGeneration).toBe(7);
    expect(hostStatus(host, member, { ...context, inSync: false }, NOW).observedGeneration).toBe(6);
  });
});

describe('the patch that brings it about', () => {
  it('is nothing when nothing differs', () => {
    const host = hostPod();
    const status = hostStatus(host, memberPod(), context, NOW);
    expect(
      statusPatch(
        { ...host, status: { ...host.status, ...status } },
        hostStatus({ ...host, status }, memberPod(), context, NOW),
      ),
    ).toBeUndefined();
  });

  it('never takes the generation from a condition, which API servers keep', () => {
    // The deletion after a preemption is a new generation: what the member observed is not the newest any more.
    const observing = (generation: number): Pod => {
      const target: Condition = { type: 'DisruptionTarget', status: 'True', observedGeneration: 1 };
      return memberPod({ metadata: { generation }, status: { phase: 'Running', conditions: [target] } });
    };
    const before = hostPod({ metadata: { generation: 1 } });
    const status = hostStatus(before, observing(1), context, NOW);
    expect(conditionOf({ status }, 'DisruptionTarget')?.observedGeneration).toBe(1);
    const host = hostPod({ metadata: { generation: 1 }, status });
    expect(statusPatch(host, hostStatus(host, observing(2), context, NOW))).toBeUndefined();
    const other = hostStatus(host, observing(2), context, NOW);
    other.conditions?.forEach((one) => (one.message = 'x'));
    expect(JSON.stringify(statusPatch(host, other))).not.toContain('"observedGeneration":null');
  });

  it('names only what differs and replaces address lists as a whole', () => {
    const host = hostPod({
      status: {
        phase: 'Running',
        podIPs: [{ ip: '10.0.0.1' }],
        startTime: 's',
        conditions: [{ type: 'PodScheduled', status: 'True' }],
      },
    });
    const patch = statusPatch(host, { phase: 'Running', startTime: 's', podIPs: [{ ip: '10.0.0.2' }], conditions: [] });
    expect(patch).toEqual({
      metadata: { uid: 'host-uid' },
      status: { podIPs: [{ ip: '10.0.0.2' }, { $patch: 'replace' }] },
    });
  });

  it('replaces maps as a whole, so that entries can go', () => {
    const host = hostPod({ status: { phase: 'Running', resources: { requests: { cpu: '1' } } } });
    const patch = statusPatch(host, { phase: 'Running', resources: {} });
    expect(patch?.['status']).toEqual({ resources: { $patch: 'replace' } });
  });

  it('never deletes conditions that others own', () => {
    const host = hostPod({
      status: { conditions: [{ type: 'PodScheduled', status: 'True' }, { type: 'lb', status: 'True' }, ready()] },
    });
    const patch = statusPatch(host, { conditions: [] });
    expect(patch?.['status']).toEqual({ conditions: [{ type: 'Ready', $patch: 'delete' }] });
  });

  it('clears a reason that a condition no longer has', () => {
    const host = hostPod({ status: { conditions: [ready('False', { reason: 'ContainersNotReady', message: 'm' })] } });
    const patch = statusPatch(host, { conditions: [ready('True')] });
    expect(patch?.['status']).toEqual({ conditions: [{ ...ready('True'), reason: null, message: null }] });
  });
});
