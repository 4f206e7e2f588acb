import { beforeEach, describe, expect, it, vi } from 'vitest';
import { HOST_NAME_ANNOTATION, UID_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';
import { eachInPodWorld, PODS, type PodWorld, WEB } from '../fixtures/pod-world.ts';

let world: PodWorld;
eachInPodWorld((begun) => (world = begun));

it.each([
  ['another namespace', 'elsewhere'],
  ['nowhere', undefined],
])('a copy is looked for where it was made although new ones go to %s', async (_, namespace) => {
  await world.stored(world.host, hostPod());
  await world.start();
  await world.follow(1_000);
  expect(world.mirrored()?.message).toContain('namespace=shop');
  await world.end();
  world.memberNamespaceOf = () => namespace;
  world.member.delete(WEB);
  world.member.seen.length = 0;
  await world.start();
  await world.follow(5_000);
  expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
  const asked = world.member.seen.map(({ method, path }) => `${method} ${path}`);
  expect(asked).toEqual([`GET ${WEB}`]);
});

const ELSEWHERE = '/api/v1/namespaces/elsewhere/pods/web-0';
const copies = (): string[] => [...world.member.objects.keys()].filter((path) => path.includes('/pods/'));
const deleted = (): void =>
  world.host.edit(WEB, {
    metadata: { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 30 },
  });

describe.each(['Always', 'Never'] as const)('a creation of a pod (%s) without an answer', (restartPolicy) => {
  beforeEach(async () => {
    await world.stored(world.host, hostPod({ spec: { restartPolicy } }));
  });
  const edited = async (carriedOutMs?: number): Promise<void> => {
    world.unanswered = carriedOutMs === undefined ? {} : { carriedOutMs };
    await world.start();
    await world.follow(20_000);
    world.memberNamespaceOf = () => 'elsewhere';
    world.unanswered = undefined;
  };

  it('keeps it from being made in another namespace, and the copy that comes to life late is the one', async () => {
    await edited(50_000);
    await world.follow(25_000);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Pending', reason: 'CreationUnanswered' });
    await world.follow(60_000);
    expect([copies(), world.creations.length]).toEqual([[WEB], 1]);
    expect(world.mirrored()?.message).toContain('namespace=shop');
  });

  it('lets it be made in the new namespace a minute after it was given up', async () => {
    await edited();
    await world.follow(65_000);
    expect(copies()).toEqual([]);
    await world.follow(20_000);
    expect([copies(), world.creations.length]).toEqual([[ELSEWHERE], 1]);
    expect(world.mirrored()?.message).toContain('namespace=elsewhere');
  });

  it('is looked for in the namespace that it was for before the deleted host pod goes', async () => {
    await edited(89_000);
    deleted();
    await world.follow(68_900);
    world.memberPods.blind = true;
    await world.follow(20_000);
    expect([world.host.objects.has(WEB), world.member.requests('GET', WEB).length > 0]).toEqual([true, true]);
    expect(world.member.requests('GET', ELSEWHERE)).toEqual([]);
  });
});

it('a copy that was made is looked for where it was made, before the host pod says so', async () => {
  await world.stored(world.host, hostPod());
  world.memberPods.blind = true;
  await world.start();
  expect(copies()).toEqual([WEB]);
  world.memberNamespaceOf = () => 'elsewhere';
  await world.follow(60_000);
  expect(world.podIn(world.host).status?.phase).toBe('Pending');
  expect([copies(), world.creations.length]).toEqual([[WEB], 1]);
});

it('a copy of a former process that no list shows is looked for where it may be, before the deleted host pod goes', async () => {
  await world.stored(world.host, hostPod());
  world.memberPods.blind = true;
  await world.start();
  expect(copies()).toEqual([WEB]);
  await world.end();
  [world.memberNamespaceOf, world.formerNamespaces] = [() => 'elsewhere', ['shop']];
  deleted();
  await world.start();
  await world.follow(20_000);
  expect(world.member.requests('GET', ELSEWHERE)).not.toEqual([]);
  expect([world.host.objects.has(WEB), world.member.requests('DELETE', WEB).length > 0]).toEqual([true, true]);
});

it('a creation of a former process is waited for in its namespace', async () => {
  await world.stored(world.host, hostPod({ spec: { restartPolicy: 'Never' } }));
  world.unanswered = { carriedOutMs: 75_000 };
  await world.start();
  await world.follow(2_000);
  await world.end();
  world.unanswered = undefined;
  world.memberNamespaceOf = () => 'elsewhere';
  await world.start();
  await world.follow(60_000);
  expect([copies(), world.creations.length]).toEqual([[WEB], 1]);
  expect(world.mirrored()?.message).toContain('namespace=shop');
});

describe('of two copies of one host pod', () => {
  const another = async (of: Pod, parts: Partial<Pod['metadata']> = {}): Promise<void> => {
    const labels = { ...memberPod().metadata.labels, [UID_LABEL]: of.metadata.uid ?? '' };
    const { uid: _, resourceVersion: __, ...metadata } = memberPod().metadata;
    const body = { ...memberPod(), metadata: { ...metadata, namespace: 'elsewhere', labels, ...parts } };
    const path = `/api/v1/namespaces/${body.metadata.namespace}/pods`;
    await world.member.client().request({ method: 'POST', path, body });
  };

  it('the one that the host pod remembers stays, and how the other one ends says nothing', async () => {
    const of = await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(1_000);
    await another(of);
    const { metadata, ...rest } = world.podIn(world.member, ELSEWHERE);
    const older = { ...metadata, creationTimestamp: '2020-01-01T00:00:00Z', finalizers: ['example.com/slow'] };
    world.member.put(ELSEWHERE, { ...rest, metadata: older });
    await world.follow(1_000);
    world.member.edit(WEB, { status: { phase: 'Running' } });
    world.member.edit(ELSEWHERE, { status: { phase: 'Succeeded' } });
    await world.follow(1_000);
    world.member.delete(ELSEWHERE);
    await world.follow(5_000);
    expect([copies(), world.mirrored()?.message?.includes('namespace=shop')]).toEqual([[WEB], true]);
    expect(world.member.requests('DELETE').map(({ path }) => path)).toEqual([ELSEWHERE]);
    expect(world.podIn(world.host).status?.phase).toBe('Running');
    // The cache finds out that the other one is gone, too.
    world.member.delete(WEB);
    world.memberPods.relist();
    await world.follow(5_000);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
  });

  it('the older one stays when the host pod remembers none', async () => {
    const of = await world.stored(world.host, hostPod());
    await another(of);
    await vi.advanceTimersByTimeAsync(5_000);
    await world.copied(of);
    await world.start();
    await world.follow(1_000);
    expect(world.member.requests('DELETE').map(({ path }) => path)).toEqual([WEB]);
    expect(world.mirrored()?.message).toContain('namespace=elsewhere');
  });

  it.each([
    ['gone', false],
    ['another one by now', true],
  ])('the second one stays while the first one is really %s', async (_, isThere) => {
    const of = await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(1_000);
    await another(of);
    world.memberPods.catchUp();
    world.member.delete(WEB);
    if (isThere) await world.stored(world.member, memberPod());
    await vi.advanceTimersByTimeAsync(5_000);
    expect(world.member.requests('DELETE')).toEqual([]);
  });

  it('the older one stays, too, when the cache shows it only after the other one was made', async () => {
    const of = await world.stored(world.host, hostPod());
    await another(of);
    await vi.advanceTimersByTimeAsync(5_000);
    world.memberPods.blind = true;
    await world.start();
    expect(copies()).toEqual([ELSEWHERE, WEB]);
    world.memberPods.relist();
    world.memberPods.blind = false;
    await world.follow(5_000);
    expect(copies()).toEqual([ELSEWHERE]);
    expect(world.mirrored()?.message).toContain('namespace=elsewhere');
  });

  it('the one that has another name is left alone: somebody copied it', async () => {
    const of = await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(1_000);
    const annotations = { ...memberPod().metadata.annotations, [HOST_NAME_ANNOTATION]: 'web-0' };
    await another(of, { namespace: 'shop', name: 'web-0-copy', annotations });
    await world.follow(5_000);
    expect([copies(), world.member.requests('DELETE')]).toEqual([[WEB, `${PODS}/web-0-copy`], []]);
  });

  it('both end when the host pod is deleted, and it goes after them', async () => {
    const of = await world.stored(world.host, hostPod());
    await world.start();
    await world.follow(1_000);
    await another(of);
    deleted();
    await world.follow(5_000);
    expect([copies(), world.host.objects.has(WEB)]).toEqual([[], false]);
  });
});
