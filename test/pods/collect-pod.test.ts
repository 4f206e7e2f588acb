import { beforeEach, describe, expect, it } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { asOfNow, judgeOrphan, type CollectVerdict } from '../../src/pods/collect-pod.ts';
import { DeletionBreaker } from '../../src/pods/deletion-breaker.ts';
import type { PodMemory } from '../../src/pods/pod-memory.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';

const PATH = '/api/v1/namespaces/shop/pods';
const SIGNAL = new AbortController().signal;

describe('whether a member pod without a fitting host pod may go', () => {
  let host: MemoryApi;
  let memory: PodMemory;
  let now: number;
  let seen: string | undefined;
  let keptBefore: 'HostWentBack' | undefined;
  let breaker: DeletionBreaker;
  let isHost: boolean;
  let isThere: boolean;
  beforeEach(() => {
    host = new MemoryApi();
    memory = { attempts: 0 };
    now = 1_000_000;
    seen = undefined;
    keptBefore = undefined;
    isHost = true;
    isThere = true;
    breaker = new DeletionBreaker({ monotonic: () => now });
  });
  const judge = async (pod: Pod = memberPod(), deletionSeen = false): Promise<CollectVerdict> =>
    await judgeOrphan(
      pod,
      {
        host: host.client('host'),
        nodeName: 'east',
        memory,
        deletionSeen,
        hostVersion: () => seen,
        keptBefore: () => keptBefore,
        breaker,
        isThere: () => isThere,
        ownPods: () => 10,
        missingGraceMs: 60_000,
        confirmHost: () => Promise.resolve(isHost),
        monotonic: () => now,
      },
      SIGNAL,
    );
  /** The host pod as the host has it; answers its member pod. */
  async function exists(pod: Pod): Promise<Pod> {
    const { uid: _, resourceVersion: __, ...metadata } = pod.metadata;
    await host.client().request({ method: 'POST', path: PATH, body: { ...pod, metadata } });
    const { uid = '' } = (host.objects.get(`${PATH}/web-0`) as unknown as Pod).metadata;
    return memberPod({ metadata: { labels: { ...memberPod().metadata.labels, 'spillway.dev/uid': uid } } });
  }

  it('keeps it while its host pod lives, whatever the cache says', async () => {
    expect(await judge(await exists(hostPod()), true)).toMatchObject({ delete: false, againMs: 1000 });
  });

  it.each([
    ['is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, 'deleting'],
    ['has finished', { status: { phase: 'Failed' as const } }, 'finished'],
  ])('deletes it when its host pod %s', async (_, parts, says) => {
    expect(await judge(await exists(hostPod(parts)))).toMatchObject({ delete: true, evidence: { says } });
  });

  it('deletes it when another pod has the name by now', async () => {
    await exists(hostPod());
    const evidence = { of: 'host-uid', says: 'replaced' };
    expect(await judge(memberPod())).toMatchObject({ delete: true, evidence });
  });

  it('deletes it at once when the deletion of its host pod was watched', async () => {
    const evidence = { of: 'host-uid', says: 'deletion-watched' };
    expect(await judge(memberPod(), true)).toMatchObject({ delete: true, evidence });
  });

  it('I3: what another cluster lacks, or has under that name, is no reason', async () => {
    isHost = false;
    memory.hostMissingSince = 0;
    expect(await judge()).toMatchObject({ delete: false });
    expect(await judge(memberPod(), true)).toMatchObject({ delete: false });
    seen = '1000000';
    expect(await judge()).not.toHaveProperty('kept');
    await exists(hostPod());
    expect(await judge(memberPod())).toMatchObject({ delete: false });
    expect(breaker.open).toBe(false);
    isHost = true;
    expect(await judge(memberPod())).toMatchObject({ delete: true, evidence: { says: 'replaced' } });
  });

  it('waits out a time of doubt when its host pod is merely missing', async () => {
    expect(await judge()).toMatchObject({ delete: false, againMs: 60_000 });
    now += 59_000;
    expect(await judge()).toMatchObject({ delete: false, againMs: 1_000 });
    now += 1_000;
    expect(await judge()).toMatchObject({ delete: true, evidence: { says: 'missing' } });
  });

  it('begins the doubt anew when the host pod showed up in between', async () => {
    await judge();
    now += 30_000;
    await exists(hostPod());
    await judge();
    host.delete(`${PATH}/web-0`);
    now += 30_000;
    expect(await judge()).toMatchObject({ delete: false, againMs: 60_000 });
  });

  it('keeps it when the host has gone back in time, even if the deletion was watched', async () => {
    seen = '1000000';
    now += 120_000;
    expect(await judge(memberPod(), true)).toMatchObject({ delete: false, kept: 'HostWentBack' });
  });

  it('keeps it when the host is older than the pod, although this process has seen nothing before', async () => {
    const annotations = { ...memberPod().metadata.annotations, 'spillway.dev/host-version': '1000' };
    const pod = memberPod({ metadata: { annotations } });
    now += 120_000;
    memory.hostMissingSince = 0;
    expect(await judge(pod)).toMatchObject({ delete: false, kept: 'HostWentBack' });
    // Its versions catch up in time; what it has forgotten does not come back by that.
    for (let i = 0; i < 1000; i += 1) {
      const body = { metadata: { name: `other-${i}`, namespace: 'shop' } };
      await host.client().request({ method: 'POST', path: '/api/v1/namespaces/shop/configmaps', body });
    }
    keptBefore = 'HostWentBack';
    expect(await judge(pod)).toMatchObject({ delete: false, kept: 'HostWentBack' });
    keptBefore = undefined;
    expect(await judge(pod)).toMatchObject({ delete: true });
  });

  it('takes no host for one that went back because its watch is ahead of the answer when that is here', async () => {
    host.fault = () => {
      // What the watch brings while the answer is under way.
      seen = '1000000';
      return undefined;
    };
    expect(await judge(memberPod(), true)).toMatchObject({ delete: true, evidence: { says: 'deletion-watched' } });
  });

  it('compares versions that no number can hold', async () => {
    seen = '9007199254740993000';
    expect(await judge(memberPod(), true)).toMatchObject({ kept: 'HostWentBack' });
  });

  it('keeps it once the breaker is open, until an operator confirms it', async () => {
    for (let i = 0; i < 6; i += 1) breaker.permit(`other-${i}`, 10);
    memory.hostMissingSince = 0;
    expect(await judge()).toMatchObject({ delete: false, kept: 'BreakerOpen' });
    breaker.confirm(['member-uid']);
    expect(await judge()).toMatchObject({ delete: true, evidence: { says: 'missing' } });
  });

  it('keeps those, too, that were judged just before the breaker opened', async () => {
    memory.hostMissingSince = 0;
    const pods = Array.from({ length: 6 }, (_, index) => memberPod({ metadata: { uid: `member-${index}` } }));
    const judged = await Promise.all(pods.map(async (pod) => await judge(pod)));
    expect(judged.map((verdict) => verdict.delete)).toEqual([true, true, true, true, true, false]);
    const now = judged.map((verdict, index) => asOfNow(verdict, `member-${index}`, breaker));
    expect(now.map((verdict) => 'kept' in verdict && verdict.kept)).toEqual(pods.map(() => 'BreakerOpen'));
  });

  it('asks for no permit for one that went meanwhile, and does not keep it', async () => {
    memory.hostMissingSince = 0;
    isThere = false;
    for (let index = 0; index < 12; index++) {
      const verdict = await judge(memberPod({ metadata: { uid: `member-${index}` } }));
      expect(verdict).toEqual({ delete: false, why: 'it is gone from the member meanwhile', againMs: 1000 });
    }
    expect(breaker.open).toBe(false);
  });
});
