import { describe, expect, it } from 'vitest';
import { conditionOf } from '../../src/kube/conditions.ts';
import type { Condition } from '../../src/kube/core-v1.ts';
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

describe('while a change does not reach the copy', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  const told = (): Condition | undefined => conditionOf(world.podIn(world.host), 'Ready');
  const change = (tier: string): unknown => world.host.edit(WEB, { metadata: { labels: { tier } } });
  const says = (status: 'True' | 'False', message = ''): unknown =>
    world.member.edit(WEB, { status: { phase: 'Running', conditions: [{ type: 'Ready', status, message }] } });

  async function runs(): Promise<void> {
    await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(3_000);
    says('True');
    await world.follow(3_000);
    expect(told()?.status).toBe('True');
    world.member.seen.length = 0;
  }
  async function isRefused(): Promise<void> {
    await runs();
    world.member.fault = ({ method }) =>
      method === 'PATCH' ? { code: 403, reason: 'Forbidden', message: 'a policy denied the request' } : undefined;
    change('a');
    await world.follow(3_000);
    expect(world.events).toContain('MemberUpdateRefused');
  }

  it('as it is refused, what the copy says is told', async () => {
    await isRefused();
    says('False');
    await world.follow(3_000);
    expect(told()?.status).toBe('False');
  });

  it('as it is refused, news of the copy are no reason to send it again, but another change is', async () => {
    await isRefused();
    await world.follow(60_000);
    const sent = world.member.requests('PATCH').length;
    for (let index = 0; index < 20; index += 1) {
      says('False', `probe ${index}`);
      await world.follow(500);
    }
    expect(told()?.message).toBe('probe 19');
    expect(world.member.requests('PATCH').length - sent).toBeLessThan(3);
    world.member.fault = undefined;
    change('b');
    await world.follow(1_000);
    expect(world.podIn(world.member).metadata.labels).toMatchObject({ tier: 'b' });
  });

  it('as something that it needs is gone, what the copy says is told', async () => {
    await runs();
    world.dependents = { ready: false, pending: false, reason: 'ConfigMapMissing', message: 'it is not there' };
    change('a');
    says('False');
    await world.follow(3_000);
    expect(told()?.status).toBe('False');
    expect(world.events).toContain('ConfigMapMissing');
    world.dependents = { ready: true };
    await world.follow(60_000);
    expect(world.podIn(world.member).metadata.labels).toMatchObject({ tier: 'a' });
  });

  it('as the member does not answer, that is told in time, and nothing is sent', async () => {
    await runs();
    [world.reachable, world.member.fault] = [false, () => ({ code: 503 })];
    world.unreachableSince = { wall: Date.now(), monotonic: performance.now() };
    change('a');
    await world.follow(59_000);
    expect(told()?.status).toBe('True');
    await world.follow(2_000);
    expect(told()).toMatchObject({ status: 'False', reason: 'MemberUnreachable' });
    expect(world.events).toContain('MemberUpdateDelayed');
    expect(world.member.requests('PATCH')).toEqual([]);
    [world.reachable, world.member.fault, world.unreachableSince] = [true, undefined, undefined];
    world.controller.requeueAll();
    await world.follow(3_000);
    expect(told()?.status).toBe('True');
    expect(world.podIn(world.member).metadata.labels).toMatchObject({ tier: 'a' });
  });

  it('as the member takes it and does not keep it, what the copy says is told, and it is sent ever more rarely', async () => {
    await runs();
    const patched = world.member.handle.bind(world.member);
    // As by an admission webhook.
    world.member.handle = (request) => {
      if (request.method !== 'PATCH') return patched(request);
      const body = request.body as { metadata: { annotations?: object; labels?: object } };
      const { annotations: _, labels: __, ...metadata } = body.metadata;
      return patched({
        ...request,
        body: { metadata: { ...metadata, labels: { seen: String(world.member.version) } } },
      });
    };
    change('a');
    says('False');
    await world.follow(60_000);
    expect(told()?.status).toBe('False');
    expect(world.events).toContain('MemberUpdateDelayed');
    expect(world.member.requests('PATCH').length).toBeLessThan(15);
  });
});
