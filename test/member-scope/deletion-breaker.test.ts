import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { memberStatus, type MemberFacts } from '../../src/members/member-status.ts';
import { wasBreakerOpen } from '../../src/members/written-status.ts';
import { eventually, ScopeWorld, type RunningScope } from '../fixtures/member-scope.ts';

const OPEN = {
  conditions: [
    {
      type: 'DeletionsAllowed',
      status: 'False' as const,
      reason: 'DeletionBreakerOpen',
      message: 'kept',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
};

it('counts what was permitted in this process, however often the virtual node begins anew', async () => {
  const world = await ScopeWorld.start();
  try {
    const running = world.scope('east');
    const asked = vi.spyOn(running.services.deletionPermits, 'of');
    await eventually(() => expect(world.node('east')).toBeDefined());
    world.host.edit('/api/v1/nodes/east', { spec: { providerID: 'aws:///i-1' } });
    await eventually(() => expect(running.scope.problem()?.reason).toBe('NodeNameTaken'));
    world.host.edit('/api/v1/nodes/east', { spec: { providerID: 'spillway://east/east' } });
    await eventually(() => expect(asked.mock.calls).toEqual([['east'], ['east']]));
    const [first, second] = asked.mock.results.map(({ value }) => value);
    expect(second).toBe(first);
    expect(running.services.deletionPermits.of('west')).not.toBe(first);
  } finally {
    await world.close();
  }
});

describe('a deletion breaker that a former process left open', () => {
  let world: ScopeWorld;
  beforeEach(async () => {
    world = await ScopeWorld.start();
  });
  afterEach(async () => {
    await world.close();
  });
  const statusOf = ({ scope, connection }: RunningScope) => {
    const facts: MemberFacts = {
      name: 'east',
      generation: 1,
      problems: [],
      conflict: undefined,
      credentials: { state: 'accepted', secret: 's' },
      reachability: connection.reachability,
      pinned: 'u',
      observed: 'u',
      isHost: false,
      synced: true,
      cacheProblem: undefined,
      version: undefined,
      allocatable: undefined,
      room: undefined,
      pods: undefined,
      keptDeletions: scope.keptDeletions(),
      retiring: scope.retiring(),
    };
    return memberStatus(OPEN, facts, '2026-01-01T00:10:00Z');
  };

  it('is not reported closed while its virtual node waits for a certificate', async () => {
    const running = world.scope('east', { mode: 'NodeCertificate', status: OPEN });
    await eventually(() => expect(running.connection.synced()).toBe(true));
    await eventually(() => expect(world.host.requests('POST', '/certificatesigningrequests')).not.toEqual([]));
    expect(running.scope.keptDeletions()).toBeUndefined();
    const status = statusOf(running);
    expect(status.conditions?.find(({ type }) => type === 'DeletionsAllowed')).toEqual(OPEN.conditions[0]);
    expect(wasBreakerOpen(status)).toBe(true);
  });

  it('stays open when the virtual node begins, and when that begins anew', async () => {
    const running = world.scope('east', { status: OPEN });
    await eventually(() => expect(world.node('east')).toBeDefined());
    expect(running.scope.keptDeletions()).toMatchObject({ open: true });
    world.host.edit('/api/v1/nodes/east', { spec: { providerID: 'aws:///i-1' } });
    await eventually(() => expect(running.scope.problem()?.reason).toBe('NodeNameTaken'));
    expect(running.scope.keptDeletions()).toMatchObject({ open: true });
    world.host.edit('/api/v1/nodes/east', { spec: { providerID: 'spillway://east/east' } });
    await eventually(() => expect(running.scope.problem()).toBeUndefined());
    expect(running.scope.keptDeletions()).toMatchObject({ open: true });
    expect(statusOf(running).conditions).toContainEqual(
      expect.objectContaining({ type: 'DeletionsAllowed', status: 'False' }),
    );
    expect(running.events.filter((text) => text.includes('DeletionBreakerOpen'))).toEqual([]);
  });
});
