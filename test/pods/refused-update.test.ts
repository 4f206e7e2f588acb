import { describe, expect, it } from 'vitest';
import { hostPod } from '../fixtures/pods.ts';
import { eachInPodWorld, type PodWorld, WEB } from '../fixtures/pod-world.ts';

describe('a change of which the member refuses a part', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  const SPEC = { containers: [{ name: 'app', image: 'busybox' }] };
  const ephemeralContainers = [{ name: 'debug', image: 'busybox' }];
  const debugs = (): unknown => world.podIn(world.member).spec.ephemeralContainers;
  async function refused(): Promise<void> {
    await world.stored(world.host, hostPod({ spec: SPEC }));
    await world.start();
    await world.follow(3_000);
    world.member.fault = ({ path }) =>
      path.endsWith('/ephemeralcontainers')
        ? { code: 403, reason: 'Forbidden', message: 'violates PodSecurity' }
        : undefined;
    world.host.edit(WEB, { spec: { ...SPEC, ephemeralContainers } });
    await world.follow(5_000);
    expect(world.events.join()).toContain('MemberUpdateRefused');
    expect(debugs()).toBeUndefined();
  }

  it('keeps no later change from the copy', async () => {
    await refused();
    const tolerations = [{ key: 'example.com/maintenance', operator: 'Exists' }];
    world.host.edit(WEB, { metadata: { labels: { tier: 'a' } }, spec: { ...SPEC, ephemeralContainers, tolerations } });
    await world.follow(60_000);
    const { metadata, spec } = world.podIn(world.member);
    expect(metadata.labels).toMatchObject({ tier: 'a' });
    expect(spec.tolerations).toEqual(expect.arrayContaining([expect.objectContaining({ key: tolerations[0]?.key })]));
    expect(debugs()).toBeUndefined();
  });

  it('is tried again, and complete once the member takes it', async () => {
    await refused();
    world.member.fault = undefined;
    await world.follow(300_000);
    expect(debugs()).toMatchObject(ephemeralContainers);
    const sent = world.member.requests('PATCH').length;
    await world.follow(300_000);
    expect(world.member.requests('PATCH')).toHaveLength(sent);
  });
});
