import { describe, expect, it } from 'vitest';
import { UID_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ApiError, TransportError, type TransportErrorKind } from '../../src/kube/errors.ts';
import { openAfterMs } from '../../src/pods/unanswered-creation.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';
import { eachInPodWorld, PODS, type PodWorld, WEB } from '../fixtures/pod-world.ts';

const WHERE = { cluster: 'east', method: 'POST', path: PODS };
const said = (code: number, message: string): ApiError =>
  new ApiError({ ...WHERE, code, status: { kind: 'Status', code, message } });
const broke = (kind: TransportErrorKind, detail: string): TransportError =>
  new TransportError({ ...WHERE, kind, detail });

it.each([
  ['no answer in time', broke('timeout', 'nothing within 30000 ms'), 60_000],
  ['a broken connection', broke('reset', 'ECONNRESET'), 60_000],
  ['an answer without sense', broke('malformed', 'HTML'), 60_000],
  ['an established connection whose way is gone', broke('refused', 'read EHOSTUNREACH'), 60_000],
  ['a connection that was never made', broke('refused', 'connect ECONNREFUSED 10.0.0.1:6443'), 0],
  ['a name that nobody knows', broke('dns', 'ENOTFOUND'), 0],
  ['a database that does not answer', said(500, 'etcdserver: request timed out'), 60_000],
  ['a server error', said(500, 'internal error'), 5_000],
  ['a server that is not ready', said(503, 'not ready'), 5_000],
  ['a server out of time', said(504, 'timeout'), 60_000],
  ['a proxy that lost the server', said(502, 'bad gateway'), 60_000],
  ['a webhook that does not answer', said(500, 'Internal error occurred: failed calling webhook "a"'), 0],
  ['too many requests', said(429, 'wait'), 0],
  ['a refusal', said(403, 'exceeded quota'), 0],
  ['an invalid pod', said(422, 'invalid'), 0],
])('after %s a creation may come to something for so long: %#', (_, error, openMs) => {
  expect(openAfterMs(error)).toBe(openMs);
});

describe('a host pod that is deleted while the creation of its copy has no answer', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  const deleted = (name = 'web-0'): void =>
    world.host.edit(`${PODS}/${name}`, {
      metadata: { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 30 },
    });

  it('stays until the copy that comes to life late has gone, and says why', async () => {
    await world.stored(world.host, hostPod());
    world.unanswered = { carriedOutMs: 40_000 };
    await world.start();
    await world.follow(5_000);
    deleted();
    await world.follow(31_000);
    expect(world.podIn(world.host).status).toMatchObject({ phase: 'Pending', reason: 'CreationUnanswered' });
    expect(world.events.filter((reason) => reason === 'CreationUnanswered')).toHaveLength(1);
    await world.follow(10_000);
    expect(world.member.requests('DELETE')).toHaveLength(1);
    await world.follow(2_000);
    expect([world.host.objects.size, world.member.objects.size]).toEqual([0, 0]);
  });

  it('goes a minute after the creation was given up, past a live read, when nothing has come of it', async () => {
    await world.stored(world.host, hostPod());
    world.unanswered = {};
    await world.start();
    await world.follow(5_000);
    deleted();
    await world.follow(80_000);
    expect(world.host.objects.has(WEB)).toBe(true);
    await world.follow(10_000);
    expect(world.host.objects.has(WEB)).toBe(false);
    expect(world.host.requests('DELETE')).toHaveLength(1);
    // That the member is slow, that it gave no answer, and why the pod stays.
    expect(world.host.requests('PATCH')).toHaveLength(3);
  });

  it('goes at once when the creation was refused', async () => {
    await world.stored(world.host, hostPod());
    world.member.fault = ({ method }) =>
      method === 'POST' ? { code: 403, reason: 'Forbidden', message: 'exceeded quota: pods' } : undefined;
    await world.start();
    await world.follow(5_000);
    deleted();
    await world.follow(1_000);
    expect(world.host.objects.has(WEB)).toBe(false);
  });

  it('goes at once when its copy, of the one creation that there was, has been seen to go', async () => {
    await world.stored(world.host, hostPod());
    world.unanswered = { carriedOutMs: 100 };
    await world.start();
    await world.follow(31_000);
    world.unanswered = undefined;
    deleted();
    await world.follow(1_000);
    expect([world.host.objects.size, world.member.objects.size, world.member.requests('POST').length]).toEqual([
      0, 0, 1,
    ]);
  });

  it('waits for the one that was sent: no other is made meanwhile that would leave its name to it', async () => {
    await world.stored(world.host, hostPod({ spec: { restartPolicy: 'Never' } }));
    world.unanswered = { carriedOutMs: 80_000 };
    await world.start();
    await world.follow(5_000);
    world.unanswered = undefined;
    await world.follow(35_000);
    expect(world.member.objects.size).toBe(0);
    deleted();
    await world.follow(35_000);
    expect([world.member.objects.size, world.host.objects.has(WEB)]).toEqual([0, true]);
    await world.follow(20_000);
    expect([world.member.objects.size, world.host.objects.size]).toEqual([0, 0]);
    const made = world.member.history.filter(({ path, event }) => path === WEB && event.type === 'ADDED');
    expect([made.length, world.member.requests('DELETE').length]).toEqual([1, 1]);
  });

  it('a burst of such leaves no copy behind and trips no breaker', async () => {
    for (let index = 0; index < 20; index++)
      await world.stored(world.host, hostPod({ metadata: { name: `web-${index}` } }));
    world.unanswered = { carriedOutMs: 40_000 };
    await world.start();
    await world.follow(20_000);
    for (let index = 0; index < 20; index++) deleted(`web-${index}`);
    await world.follow(120_000);
    expect([world.host.objects.size, world.member.objects.size]).toEqual([0, 0]);
    expect(world.controller.orphanedPods).toMatchObject({ open: false, uids: [] });
  });

  it('a copy that comes to life after all, when the host pod has gone, goes at once', async () => {
    const copies: Pod[] = [];
    for (let index = 0; index < 20; index++) {
      const name = `web-${index}`;
      const of = await world.stored(world.host, hostPod({ metadata: { name } }));
      const labels = { ...memberPod().metadata.labels, [UID_LABEL]: of.metadata.uid ?? '' };
      const annotations = { ...memberPod().metadata.annotations, 'spillway.dev/host-name': name };
      copies.push(memberPod({ metadata: { name, labels, annotations } }));
      deleted(name);
    }
    await world.start();
    await world.follow(5_000);
    expect(world.host.objects.size).toBe(0);
    for (const copy of copies) await world.stored(world.member, copy);
    await world.follow(10_000);
    expect([world.member.objects.size, world.controller.orphanedPods.open]).toEqual([0, false]);
  });

  it('waits after a restart, too, where it is written down that a creation was begun', async () => {
    await world.stored(world.host, hostPod({ spec: { restartPolicy: 'Never' } }));
    world.unanswered = { carriedOutMs: 130_000 };
    await world.start();
    await world.follow(5_000);
    await world.end();
    world.unanswered = undefined;
    deleted();
    await world.start();
    await world.follow(60_000);
    expect(world.podIn(world.host).status).toMatchObject({ reason: 'CreationUnanswered' });
    await world.follow(30_000);
    expect([world.host.objects.size, world.member.objects.size]).toEqual([0, 0]);
    expect(world.member.requests('DELETE')).toHaveLength(1);
  });
});
