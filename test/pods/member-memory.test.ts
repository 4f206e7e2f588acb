import { expect, it } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import { conditionOf } from '../../src/kube/conditions.ts';
import type { Condition } from '../../src/kube/core-v1.ts';
import { hostStatus, MEMBER_SCHEDULED_CONDITION } from '../../src/pods/host-status.ts';
import { hostPod, memberPod, running } from '../fixtures/pods.ts';
import { eachInPodWorld, type PodWorld, WEB } from '../fixtures/pod-world.ts';

let world: PodWorld;
eachInPodWorld((begun) => (world = begun));

const NOW = '2026-01-01T00:02:00Z';
const CONTEXT = { member: 'east', network: 'Flat', inSync: true } as const;

it.each([
  ['True', 'member=below namespace=shop name=web-0 uid=lower'],
  ['False', 'not here'],
  ['Unknown', 'member=below namespace=shop name=web-0 since=1'],
] as const)('what a member says in our own condition (%s) changes no memory of the host', async (status, message) => {
  await world.stored(world.host, hostPod());
  await world.start();
  await world.follow(1_000);
  const remembered = world.mirrored();
  expect(remembered?.status).toBe('True');
  const conditions = [{ type: MIRRORED_CONDITION, status, reason: 'Created', message, lastTransitionTime: NOW }];
  world.member.edit(WEB, { status: { phase: 'Running', containerStatuses: [running('app')], conditions } });
  await world.follow(5_000);
  world.host.seen.length = 0;
  await world.follow(120_000);
  expect([world.mirrored(), world.host.requests('PATCH').length]).toEqual([remembered, 0]);
  world.member.delete(WEB);
  world.memberPods.relist();
  await world.follow(5_000);
  expect(world.creations).toHaveLength(1);
  expect(world.podIn(world.host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
});

it('since when the member finds no node is known over a restart, and written once, whatever the member says of it', async () => {
  await world.stored(world.host, hostPod());
  await world.start();
  await world.follow(1_000);
  const unscheduled = (lastTransitionTime: string): void => {
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime }];
    world.member.edit(WEB, { status: { phase: 'Pending', conditions } });
  };
  const since = (): number => {
    const shown = conditionOf(world.podIn(world.host), MEMBER_SCHEDULED_CONDITION);
    return Date.parse(shown?.lastTransitionTime ?? '');
  };
  const began = Date.now();
  unscheduled('2020-01-01T00:00:00Z');
  await world.follow(5_000);
  const first = since();
  expect(first).toBeGreaterThanOrEqual(began - 1_000);
  expect(first).toBeLessThanOrEqual(Date.now());
  world.host.seen.length = 0;
  await world.end();
  await world.start();
  unscheduled('2040-01-01T00:00:00Z');
  await world.follow(60_000);
  expect([since(), world.host.requests('PATCH').length]).toEqual([first, 0]);
});

it('no condition of our group comes up, nor one that the host’s own readiness gates wait for', () => {
  const conditions: Condition[] = [
    'spillway.dev/Mirrored',
    'spillway.dev/MemberScheduled',
    'spillway.dev/gate',
    'example.com/lb',
    'example.com/other',
  ].map((type) => ({ type, status: 'True', message: 'of the member' }));
  const readinessGates = [{ conditionType: 'example.com/lb' }];
  const member = memberPod({ status: { phase: 'Running', conditions } });
  const result = hostStatus(hostPod({ spec: { readinessGates } }), member, CONTEXT, NOW);
  const said = result.conditions?.filter(({ message }) => message === 'of the member').map(({ type }) => type);
  expect(said).toEqual(['example.com/other']);
});
