import { describe, expect, it, vi } from 'vitest';
import { HOST_NAME_ANNOTATION } from '../../src/api/marks.ts';
import { monotonic } from '../../src/kube/clock.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';
import { eachInPodWorld, type PodWorld, WEB } from '../fixtures/pod-world.ts';

let world: PodWorld;
eachInPodWorld((begun) => (world = begun));

const HALF_AN_HOUR = 1_800_000;

/** Somebody sets the wall clock of this machine, and all pods are looked at; time goes on as before. */
function jump(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
  world.controller.requeueAll();
}

/** Copies whose host pods nobody has seen. */
async function orphans(count: number, from = 0): Promise<void> {
  for (let index = from; index < from + count; index++) {
    const annotations = { ...memberPod().metadata.annotations, [HOST_NAME_ANNOTATION]: `orphan-${index}` };
    await world.stored(world.member, memberPod({ metadata: { name: `orphan-${index}`, annotations } }));
  }
}
const copies = (): number => world.member.objects.size;
const phase = (): string | undefined => world.podIn(world.host).status?.phase;

describe.each([
  ['forward', HALF_AN_HOUR],
  ['back', -HALF_AN_HOUR],
])('a wall clock that jumps %s', (_, byMs) => {
  it('neither shortens nor lengthens the doubt about a host pod that is missing', async () => {
    await orphans(1);
    await world.start();
    await world.follow(5_000);
    jump(byMs);
    await world.follow(50_000);
    expect(copies()).toBe(1);
    await world.follow(10_000);
    expect(copies()).toBe(0);
  });

  it('lets the deletion breaker count as before, and for as long', async () => {
    await orphans(4);
    await world.start();
    await world.follow(70_000);
    expect(copies()).toBe(0);
    jump(byMs);
    await orphans(2, 4);
    await world.follow(70_000);
    expect(world.controller.orphanedPods).toMatchObject({ open: true, uids: { length: 2 } });
  });

  it('lets the deletion breaker forget what is five minutes ago, and nothing else', async () => {
    await orphans(5);
    await world.start();
    await world.follow(70_000);
    jump(byMs);
    await world.follow(300_000);
    await orphans(5, 5);
    await world.follow(70_000);
    expect([copies(), world.controller.orphanedPods.open]).toEqual([0, false]);
  });

  it('neither shortens nor lengthens the rest after which an open breaker closes', async () => {
    world.breakerOpen = true;
    await world.copied(await world.stored(world.host, hostPod()));
    await world.start();
    await world.follow(120_000);
    jump(byMs);
    await world.follow(170_000);
    expect(world.controller.orphanedPods.open).toBe(true);
    await world.follow(160_000);
    expect(world.controller.orphanedPods.open).toBe(false);
  });

  it('lets a host pod wait neither too short nor too long for what may come of a creation', async () => {
    await world.stored(world.host, hostPod());
    world.unanswered = {};
    await world.start();
    await world.follow(5_000);
    world.host.edit(WEB, {
      metadata: { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 30 },
    });
    await world.follow(40_000);
    jump(byMs);
    await world.follow(40_000);
    expect(world.host.objects.has(WEB)).toBe(true);
    await world.follow(10_000);
    expect(world.host.objects.has(WEB)).toBe(false);
  });

  it('lets a copy that came and went unseen be missed in time', async () => {
    await world.stored(world.host, hostPod());
    world.memberPods.blind = true;
    await world.start();
    jump(byMs);
    const asked = (): number => world.member.requests('GET', WEB).length;
    await world.follow(10_000);
    expect([phase(), asked()]).toEqual(['Pending', 0]);
    await world.member.client().request({ method: 'DELETE', path: WEB, body: { gracePeriodSeconds: 0 } });
    await world.follow(30_000);
    expect([phase(), asked()]).toEqual(['Failed', 1]);
  });

  it('makes no evidence old or young: what was read this moment counts', async () => {
    const pod = await world.stored(world.host, hostPod());
    await world.copied(pod);
    await world.start();
    await world.follow(5_000);
    world.memberPods.blind = true;
    await world.member.client().request({ method: 'DELETE', path: WEB, body: { gracePeriodSeconds: 0 } });
    world.memberPods.relist();
    world.member.fault = ({ method, path }) => {
      if (method === 'GET' && path === WEB) jump(byMs);
      return undefined;
    };
    await world.follow(20_000);
    expect(phase()).toBe('Failed');
    expect(world.member.requests('GET', WEB)).toHaveLength(1);
  });

  it('hides no deletion that fell out of the queue', async () => {
    const deletionTimestamp = '2026-01-01T00:02:00Z';
    const pod = await world.stored(world.host, hostPod({ metadata: { deletionTimestamp } }));
    await world.copied(pod);
    world.frozen = 'not yet';
    await world.start();
    await world.follow(1_000);
    vi.setSystemTime(Date.now() + byMs);
    // Nobody wakes the key when this ends.
    world.frozen = undefined;
    await world.follow(240_000);
    expect(copies()).toBe(1);
    await world.follow(180_000);
    expect([copies(), world.violations.seen.splice(0)]).toEqual([0, ['I14']]);
  });

  it('puts off no status that waits for a moment', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    // The copy is there, its first status is kept back for half a second.
    jump(byMs);
    expect(world.mirrored()).toBeUndefined();
    await world.follow(1_000);
    expect(world.mirrored()?.status).toBe('True');
  });

  it('shows pods of a silent member as not ready after the time that was set, since when it truly was silent', async () => {
    await world.stored(world.host, hostPod());
    await world.start();
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:02Z' }];
    world.member.edit(WEB, { status: { phase: 'Running', conditions } });
    await world.follow(5_000);
    world.unreachableSince = { wall: Date.now(), monotonic: monotonic() };
    world.outageBegan = '2026-01-01T00:00:20Z';
    world.reachable = false;
    world.controller.requeueAll();
    await world.follow(10_000);
    jump(byMs);
    await world.follow(45_000);
    const ready = (): string | undefined =>
      world.podIn(world.host).status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    expect(ready()).toBe('True');
    await world.follow(10_000);
    expect(ready()).not.toBe('True');
    expect(JSON.stringify(world.podIn(world.host).status)).toContain('has not answered since 2026-01-01T00:00:20Z;');
  });
});
