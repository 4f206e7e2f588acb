import { describe, expect, it } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { heldBack, intentOf, intentPatch, needsIntent, wordsOf } from '../../src/pods/creation-intent.ts';
import { SLOW_CREATION_MS } from '../../src/pods/slow-creation.ts';
import { hostPod } from '../fixtures/pods.ts';
import { eachInPodWorld, PODS, type PodWorld, WEB } from '../fixtures/pod-world.ts';

const NOW = '2026-01-01T00:02:00Z';
const once = (): Pod => hostPod({ spec: { restartPolicy: 'Never' } });
const owned = (kind: string, apiVersion: string): Pod =>
  hostPod({ metadata: { ownerReferences: [{ apiVersion, kind, name: 'web', uid: 'u', controller: true }] } });

describe('which pods are written down before they are made', () => {
  it.each(
    [
      ['one that is to run to its end', once(), true],
      ['one that is to run to success', hostPod({ spec: { restartPolicy: 'OnFailure' } }), true],
      [
        'one with a claim',
        hostPod({ spec: { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'a' } }] } }),
        true,
      ],
      ['one with a claim of its own', hostPod({ spec: { volumes: [{ name: 'a', ephemeral: {} }] } }), true],
      ['one of a StatefulSet', owned('StatefulSet', 'apps/v1'), true],
      ['one of a ReplicaSet', owned('ReplicaSet', 'apps/v1'), false],
      ['one of somebody else’s StatefulSet', owned('StatefulSet', 'example.com/v1'), false],
      ['one that is restarted always', hostPod({ spec: { restartPolicy: 'Always' } }), false],
      ['one with an empty volume', hostPod({ spec: { volumes: [{ name: 'a', emptyDir: {} }] } }), false],
    ].map(([what, pod, needed]) => ({ what, pod: pod as Pod, needed })),
  )('$what: $needed', ({ pod, needed }) => {
    expect(needsIntent(pod)).toBe(needed);
  });
});

it('an intent is read back as it was written, behind whatever words', () => {
  const intent = { member: 'east', namespace: 'shop', name: 'web-0', since: '12345' };
  const said = heldBack('refused (member=a namespace=b name=c since=1) by a policy', intent);
  const conditions = [{ type: MIRRORED_CONDITION, reason: 'MemberUnavailable', ...said }];
  const pod = hostPod({ status: { conditions } });
  expect(intentOf(pod)).toEqual(intent);
  expect(wordsOf(conditions[0])).toBe('refused (member=a namespace=b name=c since=1) by a policy');
  expect(intentOf(hostPod())).toBeUndefined();
  const renewed = intentPatch(pod, { ...intent, since: '12346' }, NOW);
  expect(renewed).toMatchObject({
    metadata: { uid: 'host-uid' },
    status: { conditions: [{ status: 'Unknown', reason: 'MemberUnavailable', lastTransitionTime: NOW }] },
  });
  // Words that somebody else has put there say that something was begun, and not where.
  const garbled = hostPod({ status: { conditions: [{ type: MIRRORED_CONDITION, status: 'Unknown', message: 'eh' }] } });
  expect(intentOf(garbled)).toEqual({ member: '', namespace: '', name: '', since: '' });
});

describe('a pod that must not run twice', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  const refusePatches = (from: number): void => {
    let seen = 0;
    world.host.fault = ({ method }) =>
      method === 'PATCH' && ++seen > from ? { code: 503, reason: 'ServiceUnavailable' } : undefined;
  };
  const statuses = (): number => world.host.requests('PATCH').length;

  it('is written down before it is made: one status patch more than another pod', async () => {
    await world.stored(world.host, hostPod({ metadata: { name: 'other' } }));
    await world.stored(world.host, once());
    const order: string[] = [];
    world.host.fault = ({ method, path }) => void order.push(`host ${method} ${path.split('/').at(-2)}`);
    world.member.fault = ({ method, body }) =>
      void order.push(`member ${method} ${(body as Pod | undefined)?.metadata.name}`);
    await world.start();
    await world.follow(10_000);
    expect(order.filter((call) => call.includes('other'))).toEqual(['member POST other', 'host PATCH other']);
    expect(order.filter((call) => call.includes('web-0'))).toEqual([
      'host PATCH web-0',
      'member POST web-0',
      'host PATCH web-0',
    ]);
    expect([world.mirrored()?.status, intentOf(world.podIn(world.host))]).toEqual(['True', undefined]);
    expect(world.events).toEqual([]);
  });

  it('is not made while the host takes no word of it', async () => {
    await world.stored(world.host, once());
    refusePatches(0);
    await world.start();
    await world.follow(60_000);
    expect(world.creations).toEqual([]);
    world.host.fault = undefined;
    await world.follow(120_000);
    expect(world.creations).toHaveLength(1);
  });

  it('is not made again after a restart when it came and went before the host could say that it had been there', async () => {
    await world.stored(world.host, once());
    refusePatches(1);
    await world.start();
    await world.follow(1_000);
    expect(world.creations).toHaveLength(1);
    world.member.edit(WEB, { status: { phase: 'Succeeded' } });
    await world.follow(1_000);
    await world.end();
    world.member.delete(WEB);
    world.host.fault = undefined;
    await world.start();
    await world.follow(10_000);
    expect(world.creations).toHaveLength(1);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
  });

  it('is made after a crash between the word and the deed, although another pod has had the name meanwhile', async () => {
    await world.stored(world.host, once());
    // The process ends before it has sent anything.
    world.member.fault = ({ method }) => (method === 'POST' ? 'hang' : undefined);
    await world.start();
    await world.follow(1_000);
    expect(world.mirrored()).toMatchObject({ status: 'Unknown', reason: 'Creating' });
    await world.end();
    world.member.fault = undefined;
    await world.stored(world.member, hostPod());
    world.member.delete(WEB);
    await world.start();
    // What the former process may have sent could be carried out still, even after another copy has come and gone.
    await world.follow(60_000);
    expect([world.creations.length, world.mirrored()?.status]).toEqual([0, 'Unknown']);
    await world.follow(60_000);
    expect([world.creations.length, world.mirrored()?.status]).toEqual([1, 'True']);
  });

  it('stays written down when it is told, while it is being made, that this takes long', async () => {
    await world.stored(world.host, once());
    let isFirst = true;
    world.member.fault = ({ method }) => {
      if (method !== 'POST' || !isFirst) return undefined;
      isFirst = false;
      world.slowNamespacesMs = SLOW_CREATION_MS + 500;
      world.slowHostMs = 1_000;
      world.unanswered = {};
      return { code: 429, reason: 'TooManyRequests', message: 'wait' };
    };
    await world.start();
    await world.follow(SLOW_CREATION_MS + 3_000);
    expect(world.mirrored()).toMatchObject({
      status: 'Unknown',
      reason: 'MemberUnavailable',
      message: expect.stringContaining('namespace=shop'),
    });
  });

  it('is given up when the member remembers no more what came of it', async () => {
    await world.stored(world.host, once());
    world.member.fault = ({ method }) => (method === 'POST' ? 'hang' : undefined);
    await world.start();
    await world.follow(1_000);
    await world.end();
    world.member.fault = undefined;
    await world.stored(world.member, hostPod({ metadata: { name: 'any' } }));
    world.oldestVersion = world.member.version;
    await world.start();
    await world.follow(60_000);
    // What the former process sent may come to life yet: then it is this pod's copy, not a second one.
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Pending', reason: 'CreationUnanswered' });
    await world.follow(60_000);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
    expect([world.creations.length, world.mirrored()?.status]).toEqual([0, 'Unknown']);
  });

  it('is given up when the member never says how far its answer goes', async () => {
    await world.stored(world.host, once());
    world.member.fault = ({ method }) => (method === 'POST' ? 'hang' : undefined);
    await world.start();
    await world.follow(1_000);
    await world.end();
    world.member.fault = undefined;
    await world.stored(world.member, hostPod({ metadata: { name: 'any' } }));
    world.watchedVersion = () => 1;
    await world.start();
    await world.follow(180_000);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
    expect(world.creations).toEqual([]);
  });

  it('is looked for before the next try after one without an answer, and found lost when it came and went', async () => {
    await world.stored(world.host, once());
    world.unanswered = { carriedOutMs: 1_000 };
    await world.start();
    await world.follow(500);
    world.memberPods.blind = true;
    await world.follow(2_000);
    world.member.delete(WEB);
    world.unanswered = undefined;
    await world.follow(60_000);
    expect([world.creations.length, world.watches]).toEqual([1, 1]);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
  });

  it('is made in the end when creations had no answer for long: few words, and never two copies', async () => {
    await world.stored(world.host, once());
    world.unanswered = {};
    await world.start();
    await world.follow(600_000);
    expect(world.mirrored()).toMatchObject({ status: 'Unknown', reason: 'MemberUnavailable' });
    expect(intentOf(world.podIn(world.host))).toMatchObject({ namespace: 'shop', name: 'web-0' });
    // Not more than one in a minute, and those that say what is wrong.
    expect(statuses()).toBeLessThan(14);
    world.unanswered = undefined;
    await world.follow(180_000);
    expect([world.creations.length, world.mirrored()?.status]).toEqual([1, 'True']);
  });

  it('is offered without effect while the member refuses it, and nothing is written for that', async () => {
    await world.stored(world.host, once());
    const message = 'exceeded quota: pods';
    world.member.fault = ({ method }) => (method === 'POST' ? { code: 403, reason: 'Forbidden', message } : undefined);
    await world.start();
    await world.follow(1_000);
    // Nothing is there, and that is known: the member's answer says so.
    expect(world.mirrored()).toMatchObject({ status: 'False', reason: 'MemberQuotaExceeded' });
    expect([statuses(), world.creations.length]).toEqual([2, 1]);
    await world.follow(600_000);
    expect([statuses(), world.creations.length]).toEqual([2, 1]);
    expect(world.member.requests('POST').length).toBeGreaterThan(10);
    await world.end();
    await world.start();
    await world.follow(120_000);
    expect([statuses(), world.creations.length]).toEqual([2, 1]);
    world.member.fault = undefined;
    await world.follow(90_000);
    expect([statuses(), world.creations.length, world.mirrored()?.status]).toEqual([4, 2, 'True']);
  });

  it('is made without a rehearsal where a webhook of the member takes none', async () => {
    await world.stored(world.host, once());
    let refuses = true;
    world.member.fault = ({ method, query }) => {
      if (method !== 'POST') return undefined;
      if (query['dryRun'] !== undefined) {
        const message = 'admission webhook "a.example.com" does not support dry run';
        return { code: 400, reason: 'BadRequest', message };
      }
      return refuses ? { code: 403, reason: 'Forbidden', message: 'exceeded quota: pods' } : undefined;
    };
    await world.start();
    await world.follow(5_000);
    refuses = false;
    await world.follow(60_000);
    expect(world.mirrored()?.status).toBe('True');
  });

  it('keeps the word of what was begun while it is held back for something else', async () => {
    await world.stored(world.host, once());
    world.unanswered = {};
    await world.start();
    await world.follow(1_000);
    await world.end();
    const intent = intentOf(world.podIn(world.host));
    expect(intent).toBeDefined();
    world.unanswered = undefined;
    world.reachable = false;
    await world.start();
    await world.follow(10_000);
    expect(world.podIn(world.host).status?.reason).toBe('MemberUnreachable');
    expect(intentOf(world.podIn(world.host))).toEqual(intent);
    expect(world.mirrored()?.status).toBe('Unknown');
  });

  it('stays begun while it is refused, as long as an earlier creation may come to something', async () => {
    await world.stored(world.host, once());
    world.unanswered = {};
    await world.start();
    await world.follow(5_000);
    world.unanswered = undefined;
    const message = 'exceeded quota: pods';
    world.member.fault = ({ method }) => (method === 'POST' ? { code: 403, reason: 'Forbidden', message } : undefined);
    await world.follow(45_000);
    expect(world.mirrored()).toMatchObject({ status: 'Unknown', reason: 'MemberUnavailable' });
    await world.follow(180_000);
    expect(world.mirrored()).toMatchObject({ status: 'False', reason: 'MemberQuotaExceeded' });
    expect(statuses()).toBeLessThan(8);
  });

  it('is looked for again when nothing can come of an earlier creation any more: one look before is not the last word', async () => {
    await world.stored(world.host, once());
    world.unanswered = { carriedOutMs: 60_000 };
    await world.start();
    await world.follow(5_000);
    world.unanswered = undefined;
    await world.stored(world.member, hostPod({ metadata: { name: 'any' } }));
    const missing = { reason: 'MandatoryConfigMapNotFound', message: 'not there' };
    world.dependents = { ready: false, pending: false, ...missing };
    await world.follow(30_000);
    // Nothing has come of it by now, and it is not tried again yet.
    const said = world.mirrored();
    expect([world.watches, said?.status, said?.reason]).toEqual([1, 'Unknown', 'MemberUnavailable']);
    world.memberPods.blind = true;
    await world.follow(30_000);
    expect(world.member.objects.has(WEB)).toBe(true);
    world.member.delete(WEB);
    // Tries may be a minute apart by now.
    await world.follow(200_000);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
    expect(world.creations).toHaveLength(1);
  });

  it('is looked for again after a refusal, too, when an earlier creation was carried out late', async () => {
    await world.stored(world.host, once());
    world.unanswered = { carriedOutMs: 85_000 };
    await world.start();
    await world.follow(5_000);
    world.unanswered = undefined;
    await world.stored(world.member, hostPod({ metadata: { name: 'any' } }));
    const message = 'exceeded quota: pods';
    world.member.fault = ({ method, path }) =>
      method === 'POST' && path === PODS && Date.now() < began + 84_000
        ? { code: 403, reason: 'Forbidden', message }
        : undefined;
    const began = Date.now() - 5_000;
    for (let passed = 5; passed < 80; passed++) {
      // As changes of the pod would.
      world.controller.requeue('shop/web-0');
      await world.follow(1_000);
    }
    world.memberPods.blind = true;
    await world.follow(6_000);
    world.member.delete(WEB);
    await world.follow(240_000);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
    const made = world.member.history.filter(({ path, event }) => path === WEB && event.type === 'ADDED');
    expect(made).toHaveLength(1);
  });

  it('is not spoken of while it is being written down, however slow the host is', async () => {
    await world.stored(world.host, once());
    world.slowHostMs = 6_000;
    await world.start();
    await world.follow(11_500);
    expect([world.creations.length, statuses(), world.mirrored()?.reason]).toEqual([1, 1, 'Creating']);
    expect(world.events).toEqual([]);
  });

  it('is not made when it is being deleted by the time that it is written down', async () => {
    await world.stored(world.host, once());
    world.slowHostMs = 3_000;
    await world.start();
    await world.follow(1_000);
    world.hostPods.blind = true;
    world.host.edit(WEB, { metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 } });
    await world.follow(10_000);
    expect(world.creations).toEqual([]);
  });

  it('is written about once when many are made, and not at all on a restart', async () => {
    for (let index = 0; index < 20; index++) {
      const metadata = { name: `job-${index}` };
      await world.stored(world.host, hostPod({ metadata, spec: { restartPolicy: 'OnFailure' } }));
    }
    await world.start();
    await world.follow(10_000);
    expect([world.creations.length, statuses()]).toEqual([20, 40]);
    expect(world.watches).toBe(0);
    await world.end();
    world.host.seen.length = 0;
    world.member.seen.length = 0;
    await world.start();
    await world.follow(60_000);
    expect([world.host.seen, world.member.seen]).toEqual([[], []]);
    expect(world.mirrored(`${PODS}/job-7`)?.status).toBe('True');
  });
});
