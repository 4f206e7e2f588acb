import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { eventually, ScopeWorld } from '../fixtures/member-scope.ts';

const CPU = { virtualNodes: [{ name: 'cpu' }] };
const now = performance.now.bind(performance);
const DAEMON = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }],
};

describe('a virtual node that is not in the spec any more', () => {
  let world: ScopeWorld;
  beforeEach(async () => {
    world = await ScopeWorld.start();
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await world.close();
  });
  /** As if so much time had passed since the start of the test, in ms. */
  const pass = (ms: number): void => {
    vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
  };
  const deletePod = (name: string) =>
    world.host.edit(`/api/v1/namespaces/shop/pods/${name}`, {
      metadata: { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 },
    });

  it('is served, cordoned and without room while pods are on it, says so, and goes when it is empty', async () => {
    const { scope, services, events, violations, edit } = world.scope('east');
    await eventually(() => expect(services.rooms.get('east', 'east')).toBeDefined());
    world.makePod('web-0', 'east');
    world.makePod('agent', 'east', { metadata: DAEMON });
    await eventually(() => expect(world.copy('web-0')).toBeDefined());
    edit(CPU);
    await eventually(() => expect(world.node('east-cpu')).toBeDefined());
    await eventually(() => expect(world.node('east')?.spec?.unschedulable).toBe(true));
    expect(services.rooms.get('east', 'east')).toBeUndefined();
    expect(services.rooms.get('east-cpu', 'east')).toBeDefined();
    await eventually(() => expect(events.join()).toContain('Warning VirtualNodeRetiring: Virtual node east is not'));
    expect(scope.retiring()).toEqual([{ name: 'east', pods: 1 }]);
    expect(scope.problem()).toBeUndefined();
    await eventually(() => expect(scope.roomsKnown()).toBe(true));
    // It is kept alive and its pods are followed.
    await eventually(() =>
      expect(world.host.requests('PUT', '/leases/east').concat(world.host.requests('POST', '/leases'))).not.toEqual([]),
    );
    world.member.edit('/api/v1/namespaces/shop/pods/web-0', { status: { phase: 'Running' } });
    await eventually(() => expect(world.hostPod('web-0')?.status?.phase).toBe('Running'));
    pass(60_000);
    deletePod('web-0');
    await eventually(() => expect(world.copy('web-0')).toBeUndefined());
    await eventually(() => expect(world.hostPod('web-0')).toBeUndefined());
    await eventually(() => expect(scope.retiring()).toEqual([{ name: 'east', pods: 0 }]));
    // It has to be empty for a while.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(world.host.requests('DELETE', '/nodes/east')).toEqual([]);
    expect(world.node('east')).toBeDefined();
    pass(180_000);
    await eventually(() => expect(world.node('east')).toBeUndefined());
    // What only goes with the Node is seen to its end, and the Node is not made anew.
    expect(scope.retiring()).toHaveLength(1);
    world.host.delete('/api/v1/namespaces/shop/pods/agent');
    // A copy of it may come to life yet.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(scope.retiring()).toEqual([{ name: 'east', pods: 0 }]);
    pass(300_000);
    await eventually(() => expect(events.join()).toContain('Normal VirtualNodeRemoved: Virtual node east '));
    await eventually(() => expect(scope.retiring()).toEqual([]));
    expect(world.node('east')).toBeUndefined();
    expect(violations.seen).toEqual([]);
  }, 60_000);

  it('goes by the node selector that its pool had, also after a restart', async () => {
    world.make('member', '/api/v1/nodes', {
      kind: 'Node',
      metadata: { name: 'm-1', labels: { gpu: 'true' } },
      status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu: '8', pods: '110' } },
    });
    const first = world.scope('east', { spec: { virtualNodes: [{ name: 'gpu', nodeSelector: { gpu: 'true' } }] } });
    await eventually(() => expect(world.node('east-gpu')).toBeDefined());
    world.makePod('web-0', 'east-gpu');
    await eventually(() =>
      expect(world.copy('web-0')?.spec.affinity ?? world.copy('web-0')?.spec.nodeSelector).toBeDefined(),
    );
    const placed = world.copy('web-0')?.spec;
    await first.stop();
    world.scope('east', { spec: CPU });
    await eventually(() => expect(world.node('east-gpu')?.spec?.unschedulable).toBe(true));
    // Bound a moment before the cordon.
    world.makePod('web-1', 'east-gpu');
    await eventually(() => expect(world.copy('web-1')).toBeDefined());
    const where = ({ affinity, nodeSelector }: NonNullable<typeof placed>): object => ({ affinity, nodeSelector });
    expect(where(world.copy('web-1')?.spec ?? { containers: [] })).toEqual(where(placed ?? { containers: [] }));
  });

  it('is found again after a restart, by its Node or by copies alone, and takes no harm', async () => {
    const first = world.scope('east', { spec: { virtualNodes: [{ name: 'gpu' }, { name: 'old' }] } });
    await eventually(() => expect(world.node('east-gpu')).toBeDefined());
    world.makePod('web-0', 'east-gpu');
    world.makePod('web-1', 'east-old');
    await eventually(() => expect([world.copy('web-0'), world.copy('web-1')]).not.toContain(undefined));
    await first.stop();
    // Nobody kept it, so somebody removed it with its pod.
    world.host.delete('/api/v1/nodes/east-old');
    deletePod('web-1');
    const { scope, services } = world.scope('east', { spec: CPU });
    await eventually(() => expect(world.node('east-gpu')?.spec?.unschedulable).toBe(true));
    deletePod('web-0');
    await eventually(() => expect([world.copy('web-0'), world.copy('web-1')]).toEqual([undefined, undefined]));
    await eventually(() => expect([world.hostPod('web-0'), world.hostPod('web-1')]).toEqual([undefined, undefined]));
    expect(world.node('east-old')).toBeUndefined();
    expect(services.rooms.get('east-gpu', 'east')).toBeUndefined();
    expect(scope.retiring().map(({ name }) => name)).toEqual(['east-gpu', 'east-old']);
  });

  it('is made anew when somebody deletes its Node while pods are on it, and only then', async () => {
    const { edit, scope } = world.scope('east');
    await eventually(() => expect(world.node('east')).toBeDefined());
    world.makePod('web-0', 'east');
    await eventually(() => expect(world.copy('web-0')).toBeDefined());
    edit(CPU);
    await eventually(() => expect(world.node('east')?.spec?.unschedulable).toBe(true));
    const uid = world.node('east')?.metadata.uid;
    world.host.delete('/api/v1/nodes/east');
    await eventually(() => expect(world.node('east')).toBeDefined());
    expect(world.node('east')?.metadata.uid).not.toBe(uid);
    expect(world.node('east')?.spec?.unschedulable).toBe(true);
    deletePod('web-0');
    await eventually(() => expect(scope.retiring()).toEqual([{ name: 'east', pods: 0 }]));
    const made = world.host.requests('POST', '/nodes').length;
    world.host.delete('/api/v1/nodes/east');
    await eventually(() => expect(scope.retiring()).toEqual([{ name: 'east', pods: 0 }]));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    pass(100_000);
    await eventually(() => expect(scope.retiring()).toEqual([]));
    expect(world.host.requests('POST', '/nodes')).toHaveLength(made);
  });

  it('is not given up while a creation may be carried out, and comes back for a copy that comes to life even later', async () => {
    const { scope, edit } = world.scope('east');
    await eventually(() => expect(world.node('east')).toBeDefined());
    const creations = () => world.member.requests('POST', '/pods').length;
    world.member.fault = ({ method, path }) =>
      method === 'POST' && path.endsWith('/pods') && creations() === 1 ? 'reset-after' : undefined;
    world.makePod('web-0', 'east');
    await eventually(() => expect(world.copy('web-0')).toBeDefined());
    const late = structuredClone(world.copy('web-0'));
    edit(CPU);
    await eventually(() => expect(world.node('east')?.spec?.unschedulable).toBe(true));
    // By force.
    world.host.delete('/api/v1/namespaces/shop/pods/web-0');
    await eventually(() => expect(world.copy('web-0')).toBeUndefined());
    await eventually(() => expect(scope.retiring()).toEqual([{ name: 'east', pods: 0 }]));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    pass(20_000);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(scope.retiring()).toEqual([{ name: 'east', pods: 0 }]);
    pass(100_000);
    await eventually(() => expect(scope.retiring()).toEqual([]));
    const { uid: _, resourceVersion: __, creationTimestamp: ___, ...metadata } = late?.metadata ?? { name: '' };
    world.make('member', '/api/v1/namespaces/shop/pods', { ...late, metadata });
    await eventually(() => expect(scope.retiring()).toEqual([{ name: 'east', pods: 1 }]));
  }, 60_000);

  it('goes soon when it is empty and nothing can come of any creation', async () => {
    const { scope, edit, events } = world.scope('east');
    await eventually(() => expect(world.node('east')).toBeDefined());
    world.makePod('web-0', 'east');
    await eventually(() => expect(world.copy('web-0')).toBeDefined());
    edit(CPU);
    deletePod('web-0');
    await eventually(() => expect(scope.retiring()).toEqual([{ name: 'east', pods: 0 }]));
    pass(6_000);
    await eventually(() => expect(scope.retiring()).toEqual([]));
    expect(world.node('east')).toBeUndefined();
    expect(events.join()).toContain('Normal VirtualNodeRemoved: Virtual node east ');
  });

  it('works as before when it is put back into the spec, and retires anew when it is taken out again', async () => {
    const { scope, services, edit, events } = world.scope('east');
    await eventually(() => expect(world.node('east')).toBeDefined());
    world.makePod('web-0', 'east');
    await eventually(() => expect(world.copy('web-0')).toBeDefined());
    edit(CPU);
    await eventually(() => expect(world.node('east')?.spec?.unschedulable).toBe(true));
    const told = () => events.filter((event) => event.includes('VirtualNodeRetiring: Virtual node east is')).length;
    await eventually(() => expect(told()).toBe(1));
    edit({});
    await eventually(() => expect(world.node('east')?.spec?.unschedulable).not.toBe(true));
    await eventually(() => expect(services.rooms.get('east', 'east')).toBeDefined());
    expect(scope.retiring().map(({ name }) => name)).toEqual(['east-cpu']);
    edit(CPU);
    await eventually(() => expect(told()).toBe(2));
    expect(world.member.requests('DELETE')).toEqual([]);
  });

  it('is not looked for among the virtual nodes of others, nor believed by any label of the member', async () => {
    const other = world.scope('east-2');
    await eventually(() => expect(world.node('east-2')).toBeDefined());
    world.makePod('theirs', 'east-2');
    await eventually(() => expect(world.copy('theirs')).toBeDefined());
    const labels = (node: string) => ({
      'spillway.dev/host': 'us',
      'spillway.dev/node': node,
      'spillway.dev/uid': 'u',
    });
    for (const [index, node] of ['westward', 'east-Up', `east-${'x'.repeat(40)}`, 'worker-1'].entries()) {
      world.make('member', '/api/v1/namespaces/shop/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `p-${index}`, namespace: 'shop', labels: labels(node) },
        spec: { containers: [{ name: 'app', image: 'busybox' }] },
      });
    }
    const { scope } = world.scope('east');
    await eventually(() => expect(scope.podCounts()).toMatchObject({ total: 0 }));
    await eventually(() => expect(scope.retiring()).toEqual([]));
    expect(scope.problem()).toBeUndefined();
    expect([...world.host.objects.keys()].filter((key) => key.startsWith('/api/v1/nodes/'))).toEqual([
      '/api/v1/nodes/east-2',
      '/api/v1/nodes/east',
    ]);
    expect(other.scope.problem()).toBeUndefined();
  });
});
