import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeRequest } from '../../src/kube/client.ts';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import { conditionOf } from '../../src/kube/conditions.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';
import { eachInPodWorld, PodWorld, WEB } from '../fixtures/pod-world.ts';

const once = (): Pod => hostPod({ spec: { restartPolicy: 'Never' } });
const RUNNING = { status: memberPod().status } as unknown as { status: Record<string, unknown> };

let world: PodWorld;
eachInPodWorld((begun) => (world = begun));

/** The first status for which that holds gets no answer, and is carried out so late. */
function late(which: (body: Pod) => boolean, carriedOutMs: number): void {
  let isOver = false;
  world.unansweredByHost = ({ body }: KubeRequest) => {
    if (isOver || !which(body as Pod)) return undefined;
    isOver = true;
    return { carriedOutMs };
  };
}
/** Somebody else writes to the status of the host pod. */
function edited(message: string): void {
  const { conditions = [] } = world.podIn(world.host).status ?? {};
  const others = conditions.filter(({ type }) => type !== 'example.com/Other');
  const own = { type: 'example.com/Other', status: 'True', message };
  world.host.edit(WEB, { status: { conditions: [...others, own] } });
}
/** What has ended stays as it ended, and what is known to have a copy is never again not known to. */
function nothingTakenBack(): void {
  const past = world.host.history.filter(({ path }) => path === WEB).map(({ event }) => event.object as unknown as Pod);
  const since = (is: (pod: Pod) => boolean): Pod[] => {
    const first = past.findIndex(is);
    return first < 0 ? [] : past.slice(first);
  };
  const ended = since(({ status }) => status?.phase === 'Succeeded' || status?.phase === 'Failed');
  const known = since((pod) => conditionOf(pod, MIRRORED_CONDITION)?.status === 'True');
  expect(new Set(ended.map(({ status }) => status?.phase)).size).toBeLessThan(2);
  expect(new Set(known.map((pod) => conditionOf(pod, MIRRORED_CONDITION)?.message)).size).toBeLessThan(2);
}
const phase = (): string | undefined => world.podIn(world.host).status?.phase;
const writes = (): number => world.host.requests('PATCH').length;

describe('a status that gets no answer and is carried out late', () => {
  it('does not take back the end of a pod', async () => {
    await world.stored(world.host, once());
    await world.start();
    late(({ status }) => status?.phase === 'Running', 80_000);
    world.member.edit(WEB, RUNNING);
    await world.follow(5_000);
    world.member.edit(WEB, { status: { phase: 'Succeeded' } });
    await world.follow(40_000);
    expect(phase()).toBe('Succeeded');
    await world.follow(60_000);
    nothingTakenBack();
    expect(world.creations).toHaveLength(1);
  });

  it('does not take back that there is a copy: neither what held the pod back before', async () => {
    await world.stored(world.host, hostPod());
    let refuses = true;
    world.member.fault = ({ method }) =>
      method === 'POST' && refuses ? { code: 403, reason: 'Forbidden', message: 'exceeded quota: pods' } : undefined;
    late(({ status }) => status?.reason === 'MemberQuotaExceeded', 80_000);
    await world.start();
    await world.follow(5_000);
    refuses = false;
    await world.follow(60_000);
    expect(world.mirrored()?.status).toBe('True');
    await world.follow(60_000);
    nothingTakenBack();
  });

  it('nor the word that it was about to be made', async () => {
    await world.stored(world.host, once());
    late((body) => conditionOf(body, MIRRORED_CONDITION)?.status === 'Unknown', 80_000);
    await world.start();
    await world.follow(60_000);
    expect(world.mirrored()?.status).toBe('True');
    await world.follow(60_000);
    nothingTakenBack();
  });

  it('never takes anything back, whatever is late and how much', async () => {
    await world.end();
    const fate = fc.option(fc.integer({ min: 1, max: 90_000 }), { freq: 2 });
    const life = fc.array(
      fc.record({
        after: fc.integer({ min: 0, max: 40_000 }),
        what: fc.constantFrom('runs', 'ends', 'goes', 'others write', 'restart'),
      }),
      { maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fate, { maxLength: 8 }), life, fc.boolean(), async (fates, steps, ends) => {
        world = new PodWorld();
        await world.stored(world.host, ends ? once() : hostPod());
        const answers = [...fates];
        world.unansweredByHost = () => {
          const carriedOutMs = answers.shift() ?? undefined;
          return carriedOutMs === undefined ? undefined : { carriedOutMs };
        };
        await world.start();
        let others = 0;
        for (const { after, what } of steps) {
          await world.follow(after);
          if (what === 'restart') {
            await world.end();
            await world.start();
          } else if (what === 'others write') {
            edited(String(others++));
          } else if (world.member.objects.has(WEB)) {
            if (what === 'goes') world.member.delete(WEB);
            else world.member.edit(WEB, what === 'runs' ? RUNNING : { status: { phase: 'Succeeded' } });
          }
        }
        await world.follow(200_000);
        await world.end();
        nothingTakenBack();
        expect(world.violations.seen).toEqual([]);
      }),
      { numRuns: 60 },
    );
    // For what comes after each test.
    world = new PodWorld();
    await world.start();
  });
});

describe('a status for a pod that has changed meanwhile', () => {
  const refused = (): number => world.host.history.length;

  it('costs an ordinary pod nothing: two status patches, and no other request', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(3_000);
    world.member.edit(WEB, RUNNING);
    await world.follow(60_000);
    expect(phase()).toBe('Running');
    expect(world.host.seen.map(({ method }) => method)).toEqual(['PATCH', 'PATCH']);
    // Each of them had an effect.
    expect(refused()).toBe(3);
    expect(world.member.seen.map(({ method }) => method)).toEqual(['POST']);
  });

  it('is written as soon as the cache has the change', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(3_000);
    const before = writes();
    world.member.edit(WEB, RUNNING);
    world.memberPods.catchUp();
    edited('a');
    await vi.advanceTimersByTimeAsync(100);
    expect([writes() - before, phase()]).toEqual([1, 'Pending']);
    world.hostPods.catchUp();
    await vi.advanceTimersByTimeAsync(10);
    expect([writes() - before, phase()]).toEqual([2, 'Running']);
    expect(world.host.requests('GET')).toEqual([]);
  });

  it('is written past a cache that stays behind: one read', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(3_000);
    world.hostPods.blind = true;
    edited('a');
    const before = writes();
    world.member.edit(WEB, RUNNING);
    await world.follow(2_000);
    expect(phase()).toBe('Running');
    expect([writes() - before, world.host.requests('GET').length]).toEqual([2, 1]);
    await world.follow(60_000);
    expect([writes() - before, world.host.requests('GET').length]).toEqual([2, 1]);
  });

  /** As changes of its copy would wake it up. */
  async function wokenUp(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      world.controller.requeue('shop/web-0');
      await world.follow(250);
    }
  }

  it('is looked for once in a second when the pod is gone and the cache does not know it', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(3_000);
    world.hostPods.blind = true;
    edited('a');
    const before = writes();
    world.member.edit(WEB, RUNNING);
    await world.follow(500);
    world.host.delete(WEB);
    await wokenUp(10_000);
    expect(writes() - before).toBe(1);
    expect(world.host.requests('GET').length).toBeLessThan(12);
  });

  it('waits for the cache when the host is in an older state than that', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    const older = world.host.objects.get(WEB);
    if (older === undefined) throw new Error('no host pod');
    await world.follow(3_000);
    world.hostPods.blind = true;
    world.host.objects.set(WEB, older);
    const before = writes();
    world.member.edit(WEB, RUNNING);
    await wokenUp(10_000);
    expect([writes() - before, phase()]).toEqual([1, 'Pending']);
    expect(world.host.requests('GET').length).toBeLessThan(12);
    world.hostPods.blind = false;
    world.hostPods.relist();
    await world.follow(2_000);
    expect(phase()).toBe('Running');
  });

  it('is tried once in a second while somebody else writes all the time, and gets through when there is a gap', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(3_000);
    world.member.edit(WEB, { status: { ...RUNNING.status, phase: 'Succeeded' } });
    const before = writes();
    for (let passed = 0; passed < 10_000; passed += 50) {
      world.hostPods.catchUp();
      world.memberPods.catchUp();
      edited(String(passed));
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(phase()).toBe('Pending');
    expect(writes() - before).toBeLessThan(16);
    await world.follow(1_250);
    expect(phase()).toBe('Succeeded');
    expect(writes() - before).toBeLessThan(18);
  });

  it('does not end the deletion of a pod before what became of it is written', async () => {
    const finalizers = ['batch.kubernetes.io/job-tracking'];
    await world.stored(world.host, hostPod({ metadata: { finalizers }, spec: { restartPolicy: 'Never' } }));
    await world.start();
    await world.follow(3_000);
    const deletionTimestamp = new Date().toISOString();
    world.host.edit(WEB, { metadata: { deletionTimestamp, deletionGracePeriodSeconds: 30 } });
    world.hostPods.catchUp();
    edited('a');
    await vi.advanceTimersByTimeAsync(100);
    expect(world.host.requests('DELETE')).toEqual([]);
    await world.follow(2_000);
    expect([phase(), world.host.requests('DELETE').length]).toEqual(['Failed', 1]);
  });
});
