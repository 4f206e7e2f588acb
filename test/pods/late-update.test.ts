import { describe, expect, it, vi } from 'vitest';
import type { KubeRequest } from '../../src/kube/client.ts';
import { hostPod } from '../fixtures/pods.ts';
import { eachInPodWorld, type PodWorld, WEB } from '../fixtures/pod-world.ts';

describe('a change of a copy that gets no answer and is carried out late', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  const withCpu = (cpu: string) => ({
    containers: [{ name: 'app', image: 'busybox', resources: { requests: { cpu } } }],
  });
  const late = (which: (request: KubeRequest) => boolean): void => {
    let isOver = false;
    world.unansweredByMember = (request) => {
      if (isOver || request.method !== 'PATCH' || !which(request)) return undefined;
      isOver = true;
      return { carriedOutMs: 80_000 };
    };
  };
  async function runs(): Promise<void> {
    await world.stored(world.host, hostPod({ spec: withCpu('1') }));
    await world.start();
    await world.follow(3_000);
  }

  it('does not take back a later resize', async () => {
    await runs();
    late(({ path }) => path.endsWith('/resize'));
    world.host.edit(WEB, { spec: withCpu('2') });
    await world.follow(40_000);
    world.host.edit(WEB, { spec: withCpu('3') });
    await world.follow(20_000);
    expect(world.podIn(world.member).spec).toMatchObject(withCpu('3'));
    await world.follow(60_000);
    expect(world.podIn(world.member).spec).toMatchObject(withCpu('3'));
  });

  it('is put right where it took back labels: the copy says what it has received', async () => {
    await runs();
    late(({ path }) => path === WEB);
    world.host.edit(WEB, { metadata: { labels: { tier: 'a' } } });
    await world.follow(40_000);
    world.host.edit(WEB, { metadata: { labels: { tier: 'b' } } });
    await world.follow(80_000);
    expect(world.podIn(world.member).metadata.labels).toMatchObject({ tier: 'b' });
    const tiers = world.member.history
      .filter(({ path }) => path === WEB)
      .map(({ event }) => (event.object.metadata as { labels?: Record<string, string> }).labels?.['tier']);
    expect(tiers.filter((tier, index) => tier !== tiers[index - 1])).toEqual(['a', 'b', 'a', 'b']);
  });

  it('is tried again when the copy has changed meanwhile', async () => {
    await runs();
    world.host.edit(WEB, { spec: withCpu('2') });
    world.hostPods.catchUp();
    world.member.edit(WEB, { status: { phase: 'Running' } });
    await vi.advanceTimersByTimeAsync(100);
    expect(world.podIn(world.member).spec).toMatchObject(withCpu('1'));
    await world.follow(2_000);
    expect(world.podIn(world.member).spec).toMatchObject(withCpu('2'));
    expect(world.events).toEqual([]);
  });

  it('needs no second try behind another change of the same copy', async () => {
    await runs();
    const ephemeralContainers = [{ name: 'debug', image: 'busybox' }];
    world.host.edit(WEB, { spec: { ...withCpu('2'), ephemeralContainers } });
    await world.follow(5_000);
    const sent = world.member.requests('PATCH').map(({ path }) => path.replace(WEB, ''));
    expect(sent).toEqual(['/ephemeralcontainers', '/resize', '']);
  });
});
