import { beforeEach, describe, expect, it } from 'vitest';
import type { InvariantId } from '../../src/api/invariants.ts';
import { HOST_LABEL, MIRRORED_CONDITION, NODE_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { Pod, PodStatus } from '../../src/kube/core-v1.ts';
import { heldBack } from '../../src/pods/creation-intent.ts';
import { DeletionBreaker } from '../../src/pods/deletion-breaker.ts';
import type { AbsenceEvidence, StatusSource } from '../../src/pods/evidence.ts';
import { lostStatus } from '../../src/pods/lost-status.ts';
import { PodWrites } from '../../src/pods/pod-writes.ts';
import { statusPatch } from '../../src/pods/status-patch.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { HOST_ID, hostPod, memberPod, running, terminated } from '../fixtures/pods.ts';
import { Violations } from '../fixtures/violations.ts';

const SIGNAL = new AbortController().signal;
const NOW = '2026-01-01T00:02:00Z';
const WATCHED: AbsenceEvidence = { of: 'host-uid', how: 'watched', at: 0 };
const DELETED = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 0 };
const ABSENT: StatusSource = { from: 'absence', evidence: WATCHED };

describe('writes to pods', () => {
  let host: MemoryApi;
  let member: MemoryApi;
  let present: Pod[];
  let synced: boolean;
  let memberSynced: boolean;
  let now: number;
  let breaker: DeletionBreaker;
  let violations: Violations;
  let writes: PodWrites;
  /** The word that nothing runs there counts; and of which pods it is stored that they were ended. */
  let isFenced: boolean;
  let told: string[];

  beforeEach(() => {
    host = new MemoryApi();
    member = new MemoryApi();
    present = [];
    [synced, memberSynced] = [true, true];
    now = 1_000_000;
    breaker = new DeletionBreaker({ monotonic: () => now });
    violations = new Violations();
    [isFenced, told] = [false, []];
    const cache = {
      get hasSynced() {
        return synced;
      },
      byIndex: (_: string, value: string) => (value === 'east/shop/web-0' ? present : []),
    };
    writes = new PodWrites({
      host: host.client('host'),
      hostPods: cache,
      member: {
        client: member.client('member'),
        pods: {
          get hasSynced() {
            return synced && memberSynced;
          },
          byIndex: cache.byIndex,
        },
      },
      hostId: HOST_ID,
      nodeName: 'east',
      breaker,
      fencing: { isFenced: () => isFenced, isTold: (uid) => told.includes(uid) },
      invariants: violations,
      monotonic: () => now,
    });
  });

  /** Puts a pod into a store and returns it as stored. */
  async function stored(api: MemoryApi, pod: Pod): Promise<Pod> {
    const { uid: _, resourceVersion: __, ...metadata } = pod.metadata;
    const body = { ...pod, metadata };
    const path = '/api/v1/namespaces/shop/pods';
    await api.client().request({ method: 'POST', path, body });
    api.seen.length = 0;
    return structuredClone(api.objects.get(`${path}/web-0`)) as unknown as Pod;
  }
  const sent = () =>
    [...host.seen, ...member.seen].filter(({ method }) => method !== 'GET').map(({ method }) => method);

  async function isStopped(invariant: InvariantId, write: Promise<unknown>): Promise<void> {
    await expect(write).rejects.toMatchObject({ name: 'InvariantError', invariant });
    expect(violations.seen).toEqual([invariant]);
    expect(sent()).toEqual([]);
  }
  async function isSent(method: string, write: Promise<unknown>): Promise<void> {
    await write;
    expect(violations.seen).toEqual([]);
    expect(sent()).toEqual([method]);
  }

  describe('deleting a member pod', () => {
    const labelled = (labels: Record<string, string>): Pod =>
      memberPod({ metadata: { labels: { ...memberPod().metadata.labels, ...labels } } });

    it('goes with evidence about its host pod', async () => {
      const pod = await stored(member, memberPod());
      await isSent('DELETE', writes.deleteMember(pod, { of: 'host-uid', says: 'deleting' }, 30, SIGNAL));
      expect(member.seen[0]?.body).toMatchObject({
        gracePeriodSeconds: 30,
        preconditions: { uid: pod.metadata.uid },
      });
    });

    it.each([
      ['on evidence about another host pod', memberPod(), 'former-uid'],
      ["of another host's pod", labelled({ [HOST_LABEL]: 'other' }), 'host-uid'],
      ["of another virtual node's pod", labelled({ [NODE_LABEL]: 'west' }), 'host-uid'],
      ['of a pod without our marks', labelled({ [UID_LABEL]: '' }), ''],
      ['without a UID', memberPod({ metadata: { uid: '' } }), 'host-uid'],
    ])('I1: is stopped %s', async (_, pod, of) => {
      await isStopped('I1', writes.deleteMember(pod, { of, says: 'deletion-watched' }, undefined, SIGNAL));
    });

    it.each([
      ['no other copy', []],
      ['none but itself', ['member-uid']],
      ['one of another host pod', ['another']],
    ])('I6: is stopped as a second copy with %s', async (_, there) => {
      const labels = { ...memberPod().metadata.labels, [UID_LABEL]: 'former-uid' };
      present = there.map((uid) => memberPod({ metadata: uid === 'another' ? { uid, labels } : { uid } }));
      const evidence = { of: 'host-uid', says: 'second-copy', kept: there[0] ?? 'another' } as const;
      await isStopped('I6', writes.deleteMember(memberPod(), evidence, undefined, SIGNAL));
    });

    it('goes as a second copy beside a first one', async () => {
      const pod = await stored(member, memberPod());
      present = [memberPod({ metadata: { uid: 'first', namespace: 'elsewhere' } }), pod];
      const evidence = { of: 'host-uid', says: 'second-copy', kept: 'first' } as const;
      await isSent('DELETE', writes.deleteMember(pod, evidence, undefined, SIGNAL));
    });

    it('I2: is stopped for a host pod that is merely missing, unless the breaker permits it', async () => {
      const pod = await stored(member, memberPod());
      const missing = { of: 'host-uid', says: 'missing' } as const;
      await isStopped('I2', writes.deleteMember(pod, missing, undefined, SIGNAL));
      violations.seen.length = 0;
      breaker.permit(pod.metadata.uid ?? '', 1);
      await isSent('DELETE', writes.deleteMember(pod, missing, undefined, SIGNAL));
    });
  });

  describe('changing a member pod', () => {
    const update = (labels: Record<string, string>) =>
      ({ kind: 'patch', type: 'strategic', patch: { metadata: { labels } } }) as const;

    it('I1: is stopped for a pod that is not ours', async () => {
      const pod = memberPod({ metadata: { labels: {} } });
      await isStopped('I1', writes.updateMember(pod, update({ a: 'b' }), SIGNAL));
    });

    it('I8: is noticed when it changed nothing', async () => {
      const pod = await stored(member, memberPod());
      await writes.updateMember(pod, update({ [UID_LABEL]: 'host-uid' }), SIGNAL);
      expect(violations.seen).toEqual(['I8']);
    });

    it('goes when it changes something', async () => {
      const pod = await stored(member, memberPod());
      await isSent('PATCH', writes.updateMember(pod, update({ a: 'b' }), SIGNAL));
    });
  });

  describe('creating a member pod', () => {
    const wanted = (): Pod => {
      const { uid: _, resourceVersion: __, ...metadata } = memberPod().metadata;
      return { ...memberPod(), metadata };
    };
    const mirrored = { type: MIRRORED_CONDITION, status: 'True' as const, message: 'uid=former' };

    it('goes for a new host pod', async () => {
      await isSent('POST', writes.createMember(hostPod(), wanted(), SIGNAL));
    });

    it.each([
      ['had one', { phase: 'Running', conditions: [mirrored] }],
      ['has succeeded', { phase: 'Succeeded' }],
      ['has failed', { phase: 'Failed' }],
    ])('I4: is stopped for a host pod that %s', async (_, status) => {
      await isStopped('I4', writes.createMember(hostPod({ status: status as PodStatus }), wanted(), SIGNAL));
    });

    it('I4: is stopped for one that must not run twice, unless its host pod says that it is being made', async () => {
      const once = hostPod({ spec: { restartPolicy: 'Never' } });
      await isStopped('I4', writes.createMember(once, wanted(), SIGNAL));
      violations.seen.length = 0;
      await writes.createMember(once, wanted(), SIGNAL, { rehearsed: true });
      expect(member.objects.size).toBe(0);
      const intent = { member: 'east', namespace: 'shop', name: 'web-0', since: '1' };
      const conditions = [{ type: MIRRORED_CONDITION, ...heldBack('Creating.', intent) }];
      const begun = { ...once, status: { conditions } };
      await writes.createMember(begun, wanted(), SIGNAL);
      expect([member.objects.size, violations.seen]).toEqual([1, []]);
    });

    it('I6: is stopped while a former pod of that name is there', async () => {
      present = [memberPod({ metadata: { labels: { ...memberPod().metadata.labels, [UID_LABEL]: 'former-uid' } } })];
      await isStopped('I6', writes.createMember(hostPod(), wanted(), SIGNAL));
    });

    it('I6: is stopped while one may come to life in another namespace', async () => {
      await isStopped('I6', writes.createMember(hostPod(), wanted(), SIGNAL, { unansweredIn: 'elsewhere' }));
      violations.seen.length = 0;
      await isSent('POST', writes.createMember(hostPod(), wanted(), SIGNAL, { unansweredIn: 'shop' }));
    });

    it('I6: is stopped elsewhere than it was written down', async () => {
      const intent = { member: 'east', namespace: 'elsewhere', name: 'web-0', since: '1' };
      const conditions = [{ type: MIRRORED_CONDITION, ...heldBack('Creating.', intent) }];
      const once = hostPod({ spec: { restartPolicy: 'Never' }, status: { conditions } });
      await isStopped('I6', writes.createMember(once, wanted(), SIGNAL));
      violations.seen.length = 0;
      // What is not written down any more, because nobody owns it by now.
      await isSent('POST', writes.createMember(hostPod({ status: { conditions } }), wanted(), SIGNAL));
    });

    it('answers the pod that an earlier request made', async () => {
      present = [memberPod()];
      expect(await writes.createMember(hostPod(), wanted(), SIGNAL)).toBe(present[0]);
      expect(sent()).toEqual([]);
    });

    it.each([
      ['labels', { labels: { [HOST_LABEL]: HOST_ID, [NODE_LABEL]: 'east' } }],
      ['annotations', { annotations: {} }],
    ])('I15: is stopped without our %s', async (_, metadata) => {
      const unmarked = { ...wanted(), metadata: { ...wanted().metadata, ...metadata } };
      await isStopped('I15', writes.createMember(hostPod(), unmarked, SIGNAL));
    });
  });

  describe('patching the status of a host pod', () => {
    const patch = (pod: Pod, status: PodStatus, source: StatusSource) =>
      writes.patchHostStatus(pod, { metadata: { uid: pod.metadata.uid }, status }, source, SIGNAL);
    const said = (status: PodStatus): StatusSource => ({ from: 'member', status });
    const live = (more: PodStatus = {}): Pod =>
      hostPod({ status: { phase: 'Running', containerStatuses: [running('app', 3)], ...more } });

    it('goes with what the member said', async () => {
      const pod = await stored(host, live());
      const status: PodStatus = {
        phase: 'Succeeded',
        containerStatuses: [{ ...terminated('app', 0), restartCount: 3 }],
      };
      await isSent('PATCH', patch(pod, status, said(status)));
    });

    it.each(['Succeeded', 'Failed'])('I4: is stopped for a pod that is %s', async (phase) => {
      const pod = live({ phase: phase as 'Failed' });
      await isStopped('I4', patch(pod, { phase: 'Running' }, said({ phase: 'Running' })));
    });

    it('I5: is stopped for a success that the member did not report', async () => {
      await isStopped('I5', patch(live(), { phase: 'Succeeded' }, said({ phase: 'Failed' })));
    });

    it.each([0, 1])('I5: is stopped for exit code %s that the member did not report', async (code) => {
      const status: PodStatus = { containerStatuses: [{ ...terminated('app', code), restartCount: 3 }] };
      await isStopped('I5', patch(live(), status, said({ containerStatuses: [running('app', 3)] })));
    });

    it('goes with lost ends when the pod is known to be gone', async () => {
      const pod = await stored(host, live());
      const evidence: AbsenceEvidence = { of: pod.metadata.uid ?? '', how: 'read', at: now };
      const body = statusPatch(pod, lostStatus(pod, 'MemberPodLost', 'gone', NOW)) ?? {};
      await isSent('PATCH', writes.patchHostStatus(pod, body, { from: 'absence', evidence }, SIGNAL));
      const after = [...host.objects.values()][0] as unknown as Pod;
      expect(after.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({ exitCode: 137 });
    });

    it.each([
      ['nothing is known', { from: 'hold' }],
      ['another pod is gone', { from: 'absence', evidence: { of: 'former-uid', how: 'watched', at: 0 } }],
      ['it was gone long ago', { from: 'absence', evidence: { of: 'host-uid', how: 'read', at: 0 } }],
    ])('I9: does not call a pod lost when %s', async (_, source) => {
      await isStopped('I9', patch(live(), { phase: 'Failed' }, source as StatusSource));
    });

    it('I19: is stopped when a restart count would go down', async () => {
      const status: PodStatus = { containerStatuses: [running('app', 2)] };
      await isStopped('I19', patch(live(), status, said(status)));
    });

    it.each([
      ['are taken away', null],
      ['lack one', [running('side', 1)]],
    ])('I19: is stopped when container statuses %s', async (_, containerStatuses) => {
      const pod = live({ containerStatuses: [running('app', 3), running('side', 1)] });
      await isStopped('I19', patch(pod, { containerStatuses } as PodStatus, said({})));
    });

    it('I19: is stopped when a pod whose containers have run would be Pending again', async () => {
      await isStopped('I19', patch(live(), { phase: 'Pending' }, said({ phase: 'Pending' })));
    });

    it('a pod of which a stranger said that it runs becomes Pending again', async () => {
      const pod = await stored(host, live({ containerStatuses: [] }));
      await isSent('PATCH', patch(pod, { phase: 'Pending' }, said({ phase: 'Pending' })));
    });

    it('I19: is stopped when the start time would change', async () => {
      const pod = live({ startTime: '2026-01-01T00:00:00Z' });
      await isStopped('I19', patch(pod, { startTime: NOW }, said({ startTime: NOW })));
    });

    it('I8: is noticed when it changed nothing', async () => {
      const pod = await stored(host, live());
      await patch(pod, { phase: 'Running' }, said({ phase: 'Running' }));
      expect(violations.seen).toEqual(['I8']);
    });
  });

  describe('removing a host pod', () => {
    it('goes at the end of its deletion', async () => {
      const pod = await stored(host, hostPod({ metadata: DELETED }));
      await isSent('DELETE', writes.removeHost(pod, { ...WATCHED, of: pod.metadata.uid ?? '' }, SIGNAL));
      expect(host.seen[0]?.body).toMatchObject({ gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } });
    });

    it('I9: is stopped when nobody deleted it', async () => {
      await isStopped('I9', writes.removeHost(hostPod(), WATCHED, SIGNAL));
    });

    it.each([
      ['about another pod', { ...WATCHED, of: 'former-uid' }],
      ['of long ago', { of: 'host-uid', how: 'read' as const, at: 0 }],
      ['from before the end of a creation without an answer', { ...WATCHED, unansweredUntil: WATCHED.at + 1 }],
    ])('I9: is stopped on evidence %s', async (_, evidence) => {
      await isStopped('I9', writes.removeHost(hostPod({ metadata: DELETED }), evidence, SIGNAL));
    });
  });

  describe('by the word of an administrator that nothing runs there any more', () => {
    const evidenceOf = (pod: Pod): AbsenceEvidence => ({ of: pod.metadata.uid ?? '', how: 'fenced', at: now });

    it('a host pod that is being deleted goes, though the member was never heard of', async () => {
      const pod = await stored(host, hostPod({ metadata: DELETED }));
      [isFenced, told, memberSynced] = [true, [pod.metadata.uid ?? ''], false];
      await isSent('DELETE', writes.removeHost(pod, evidenceOf(pod), SIGNAL));
    });

    it('it is called lost', async () => {
      const status: PodStatus = { phase: 'Running', containerStatuses: [running('app', 3)] };
      const pod = await stored(host, hostPod({ metadata: { ...DELETED, deletionGracePeriodSeconds: 30 }, status }));
      [isFenced, told] = [true, [pod.metadata.uid ?? '']];
      const body = statusPatch(pod, lostStatus(pod, 'MemberStatusLost', 'gone', NOW)) ?? {};
      const source: StatusSource = { from: 'absence', evidence: evidenceOf(pod) };
      await isSent('PATCH', writes.patchHostStatus(pod, body, source, SIGNAL));
    });

    it('I7: is stopped before the host pods are known', async () => {
      const pod = await stored(host, hostPod({ metadata: DELETED }));
      [isFenced, told, synced] = [true, [pod.metadata.uid ?? ''], false];
      await isStopped('I7', writes.removeHost(pod, evidenceOf(pod), SIGNAL));
    });

    it.each([
      ['the word does not count', false, true, DELETED],
      ['it is not stored that a copy which comes back is to end', true, false, DELETED],
      ['nobody deletes it', true, true, {}],
    ])('I9: is stopped while %s', async (_, counts, isStored, metadata) => {
      const pod = hostPod({ metadata });
      [isFenced, told] = [counts, isStored ? [pod.metadata.uid ?? ''] : []];
      await isStopped('I9', writes.removeHost(pod, evidenceOf(pod), SIGNAL));
      violations.seen.length = 0;
      const source: StatusSource = { from: 'absence', evidence: evidenceOf(pod) };
      await isStopped('I9', writes.patchHostStatus(pod, { status: { phase: 'Failed' } }, source, SIGNAL));
    });

    it('I9: is stopped on evidence about another pod', async () => {
      [isFenced, told] = [true, ['host-uid', 'former-uid']];
      const evidence: AbsenceEvidence = { of: 'former-uid', how: 'fenced', at: now };
      await isStopped('I9', writes.removeHost(hostPod({ metadata: DELETED }), evidence, SIGNAL));
    });
  });

  it('I7: nothing is sent before the caches are complete', async () => {
    synced = false;
    const update = { kind: 'patch', type: 'strategic', patch: {} } as const;
    const attempts = [
      writes.createMember(hostPod(), memberPod(), SIGNAL),
      writes.updateMember(memberPod(), update, SIGNAL),
      writes.deleteMember(memberPod(), { of: 'host-uid', says: 'deleting' }, undefined, SIGNAL),
      writes.patchHostStatus(hostPod(), { status: {} }, ABSENT, SIGNAL),
      writes.removeHost(hostPod({ metadata: DELETED }), WATCHED, SIGNAL),
    ];
    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject({ invariant: 'I7' });
    expect(violations.seen).toHaveLength(5);
    expect(sent()).toEqual([]);
  });
});
