import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually, ScopeWorld } from '../fixtures/member-scope.ts';

const RUNNING = { phase: 'Running', startTime: '2026-01-01T00:00:00Z' };

describe('the name of a virtual node', () => {
  let world: ScopeWorld;
  beforeEach(async () => {
    world = await ScopeWorld.start();
  });
  afterEach(async () => {
    await world.close();
  });
  const makeRealNode = (name: string) =>
    world.make('host', '/api/v1/nodes', { kind: 'Node', metadata: { name }, spec: { providerID: `aws:///${name}` } });
  const pods = (where: 'host' | 'member') => world.writes(where).filter((text) => text.includes('/pods'));

  it.each(['ServiceAccount', 'NodeCertificate', 'Auto'] as const)(
    'is left alone with its pods while a real node has it (%s)',
    async (mode) => {
      makeRealNode('worker-1');
      world.makePod('payments', 'worker-1', { status: RUNNING });
      const deletionTimestamp = new Date(Date.now() + 3_600_000).toISOString();
      world.makePod('database', 'worker-1', {
        metadata: { deletionTimestamp, deletionGracePeriodSeconds: 3600 },
        status: RUNNING,
      });
      // The manager may do what nodes do.
      const handle = world.host.handle.bind(world.host);
      world.host.handle = (request) =>
        request.path.endsWith('/selfsubjectaccessreviews') ? { status: { allowed: true } } : handle(request);
      const { scope, connection, services, events } = world.scope('worker-1', { mode });
      await eventually(() => expect(scope.problem()?.reason).toBe('NodeNameTaken'));
      expect(scope.problem()?.message).toContain('"worker-1" exists and was not made for cluster "worker-1"');
      expect(scope.problem()?.message).toContain('rename the MemberCluster or its pool, or remove that Node');
      expect(scope.takenNames()).toEqual(['worker-1']);
      await eventually(() => expect(connection.synced()).toBe(true));
      // Where the node has no certificate the manager looks on its behalf, and sees whose it is.
      if (mode !== 'NodeCertificate')
        await eventually(() => expect(events.join()).toContain('Warning NodeNameTaken: a Node named "worker-1"'));
      // What is known of pods does not wait for the node that is not ours.
      if (mode === 'ServiceAccount') await eventually(() => expect(scope.podCounts()).toMatchObject({ total: 0 }));
      expect([...pods('host'), ...pods('member')]).toEqual([]);
      expect(world.host.requests('GET', '/pods')).toEqual([]);
      expect(services.rooms.get('worker-1', 'worker-1')).toBeUndefined();
    },
  );

  it('is given up when somebody else makes its Node anew, and taken up again when it is ours again', async () => {
    const { scope, services } = world.scope('east');
    await eventually(() => expect(world.node('east')).toBeDefined());
    world.makePod('web-0', 'east');
    await eventually(() => expect(world.copy('web-0')).toBeDefined());
    world.host.delete('/api/v1/nodes/east');
    makeRealNode('east');
    await eventually(() => expect(scope.problem()?.reason).toBe('NodeNameTaken'));
    expect(scope.takenNames()).toEqual(['east']);
    await eventually(() => expect(services.rooms.get('east', 'east')).toBeUndefined());
    world.makePod('theirs', 'east');
    world.host.edit('/api/v1/namespaces/shop/pods/web-0', {
      metadata: { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 },
    });
    world.host.edit('/api/v1/nodes/east', { spec: { providerID: 'spillway://east/east' } });
    const before = world.host.version;
    await eventually(() => expect(world.copy('web-0')).toBeUndefined());
    await eventually(() => expect(world.copy('theirs')).toBeDefined());
    expect(scope.problem()).toBeUndefined();
    expect(scope.takenNames()).toEqual([]);
    // Nothing of that happened while the Node was somebody else's.
    const meanwhile = world.host.history.filter(
      ({ path, version }) => path.includes('/pods/theirs') && version < before,
    );
    expect(meanwhile.map(({ event }) => event.type)).toEqual(['ADDED']);
  });

  it('that a real node took while nobody looked, and the spec gave up: copies are left, and people are told of them', async () => {
    const first = world.scope('east', { spec: { virtualNodes: [{ name: 'x' }] } });
    await eventually(() => expect(world.node('east-x')).toBeDefined());
    world.makePod('job', 'east-x');
    await eventually(() => expect(world.copy('job')).toBeDefined());
    await first.stop();
    world.host.delete('/api/v1/nodes/east-x');
    makeRealNode('east-x');
    world.host.delete('/api/v1/namespaces/shop/pods/job');
    const { scope, events } = world.scope('east', { spec: { virtualNodes: [{ name: 'y' }] } });
    await eventually(() => expect(events.join()).toContain('Warning VirtualNodeRetiring: Virtual node east-x is not'));
    const taken = 'a Node named "east-x" exists and was not made for cluster "east"';
    expect(scope.retiring()).toEqual([{ name: 'east-x', pods: 1, taken }]);
    expect(events.join()).toContain(
      `1 copy of a pod of it is left in the member, though ${taken}. Pods of that Node are`,
    );
    expect(events.join()).toContain('kubectl delete pods -A -l spillway.dev/node=NODE');
    expect(world.copy('job')?.metadata.deletionTimestamp).toBeUndefined();
    // As it says.
    world.member.delete('/api/v1/namespaces/shop/pods/job');
    await eventually(() => expect(scope.retiring()).toEqual([]));
    expect(events.filter((text) => text.includes('VirtualNodeRetiring'))).toHaveLength(1);
    expect(world.node('east-x')?.spec?.providerID).toBe('aws:///east-x');
  });

  it.each([
    ['pool', { virtualNodes: [{ name: 'gpu' }] }, 'pool-gpu', {}],
    ['pool-gpu', {}, 'pool', { virtualNodes: [{ name: 'gpu' }, { name: 'cpu' }] }],
  ])('stays with whom it came to first, also over a restart: %s', async (first, firstSpec, second, secondSpec) => {
    const one = world.scope(first, { spec: firstSpec });
    await eventually(() => expect(world.node('pool-gpu')).toBeDefined());
    world.makePod('web-0', 'pool-gpu');
    await eventually(() => expect(world.copy('web-0')).toBeDefined());
    const two = world.scope(second, { spec: secondSpec });
    const refused = (running: typeof two) =>
      eventually(() => expect(running.scope.problem()?.message).toContain(`stands for cluster "${first}"`));
    await refused(two);
    await Promise.all([one.stop(), two.stop()]);
    const again = world.scope(second, { spec: secondSpec });
    await refused(again);
    expect(again.scope.problem()?.reason).toBe('NodeNameTaken');
    const owner = world.scope(first, { spec: firstSpec });
    world.makePod('web-1', 'pool-gpu');
    await eventually(() => expect(world.copy('web-1')).toBeDefined());
    expect(owner.scope.problem()).toBeUndefined();
    expect(world.node('pool-gpu')?.metadata.labels).toMatchObject({ 'spillway.dev/member': first });
    // Its other pools work.
    if (second === 'pool') {
      world.makePod('batch-0', 'pool-cpu');
      await eventually(() => expect(world.copy('batch-0')).toBeDefined());
    }
  });

  it('is not taken from its owner by another who waits for it when its Node is deleted', async () => {
    world.scope('pool', { spec: { virtualNodes: [{ name: 'gpu' }] } });
    await eventually(() => expect(world.node('pool-gpu')).toBeDefined());
    const other = world.scope('pool-gpu');
    await eventually(() => expect(other.scope.problem()?.reason).toBe('NodeNameTaken'));
    const uid = world.node('pool-gpu')?.metadata.uid;
    // Its owner is slow.
    world.host.fault = ({ method, path, body }) => {
      const labels = (body as { metadata?: { labels?: Record<string, string> } } | undefined)?.metadata?.labels;
      if (method !== 'POST' || !path.endsWith('/nodes') || labels?.['spillway.dev/member'] !== 'pool') return undefined;
      world.host.fault = undefined;
      return { code: 503 };
    };
    world.host.delete('/api/v1/nodes/pool-gpu');
    await eventually(() => expect(world.node('pool-gpu')).toBeDefined());
    expect(world.node('pool-gpu')?.metadata.uid).not.toBe(uid);
    expect(world.node('pool-gpu')?.metadata.labels).toMatchObject({ 'spillway.dev/member': 'pool' });
  });
});
