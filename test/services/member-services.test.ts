import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, MEMBER_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { send, ServiceWorld, until } from './service-world.ts';

let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
});

const STRANGER = '/api/v1/namespaces/shop/services';
const waitingPod = (more: object = {}): Pod => ({
  metadata: { name: 'new', namespace: 'shop' },
  spec: { containers: [{ name: 'app', image: 'busybox' }], ...more },
});

it('writes a Service and its slice where pods are, then nothing more, and nothing when it is started anew', async () => {
  world.offer('web', { type: 'LoadBalancer', selector: { app: 'web' } });
  world.lead('web', ['10.0.0.1']);
  world.offer('other', {}, 'data');
  world.run('a');
  const first = world.start();
  await until(() => world.led('web').length === 1);
  await world.atRest();
  expect(world.writes()).toEqual([`POST shop/services`, `POST shop/endpointslices`]);
  expect(first.services.finding()).toMatchObject({ status: 'True', reason: 'Mirrored' });
  await first.stop();
  world.forgetWrites();
  world.start();
  await world.atRest();
  expect(world.writes()).toEqual([]);
  expect(world.copy('other', 'data')).toBeUndefined();
});

it('takes Services along whose pods are elsewhere where the MemberCluster names their namespace', async () => {
  world.offer('db', {}, 'data');
  world.start('east', { always: ['data'] });
  await until(() => world.copy('db', 'data') !== undefined);
});

it.each<[string, Partial<Record<'unmapped' | 'notLent', string[]>>, RegExp]>([
  ['is mapped to none there', { unmapped: ['data'] }, /maps them to none there: data\./],
  [
    'is there and not lent',
    { notLent: ['data'] },
    /as they should: data\/db\. namespace data exists there and is not ours\./,
  ],
])('tells of a listed namespace that %s, and keeps Services of the others', async (_what, options, message) => {
  world.offer('db', {}, 'data');
  world.offer('web');
  const running = world.start('east', { always: ['data', 'shop'], ...options });
  await until(() => running.services.finding()?.reason === 'NamespaceNotAllowed');
  expect(running.services.finding()?.message).toMatch(message);
  await until(() => world.copy('web') !== undefined);
  expect(world.copy('db', 'data')).toBeUndefined();
  Object.assign(running, { unmapped: [], notLent: [] });
  running.services.changed();
  await until(() => world.copy('db', 'data') !== undefined && running.services.finding()?.reason === 'Mirrored');
});

it('tells the zone of an endpoint as its node has it, also when that gets it later', async () => {
  send(world.member, 'POST', '/api/v1/nodes', { metadata: { name: 'n1' } });
  world.offer('web');
  world.run('a');
  world.leadToPods('web', { a: '10.1.0.1' });
  world.start();
  const zone = (): string | undefined => world.slices('web')[0]?.endpoints?.[0]?.zone;
  await until(() => world.led('web').length === 1);
  await world.atRest();
  expect(zone()).toBeUndefined();
  send(world.member, 'PATCH', '/api/v1/nodes/n1', { metadata: { labels: { 'topology.kubernetes.io/zone': 'z1' } } });
  await until(() => zone() === 'z1');
});

it('gathers many changes of one Service into few writes', async () => {
  world.offer('web');
  world.run('a');
  world.start();
  await until(() => world.copy('web') !== undefined);
  await world.atRest();
  world.forgetWrites();
  for (let i = 1; i <= 200; i++) {
    world.lead(
      'web',
      Array.from({ length: i }, (_, n) => `10.0.${n >> 8}.${n & 255}`),
    );
    if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await until(() => world.led('web').length === 200);
  expect(world.writes().length).toBeLessThan(20);
});

it('never writes the API server of the host, nor what belongs to the cluster itself', async () => {
  send(world.host, 'POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  world.offer('kubernetes', {}, 'default');
  world.offer('web', {}, 'default');
  world.start('east', { always: ['default', 'kube-system'] });
  await until(() => world.copy('web', 'default') !== undefined);
  await world.atRest();
  expect(world.writes()).toEqual(['POST default/services']);
});

it.each([
  ['somebody else', {}],
  [
    'another host',
    {
      labels: { [HOST_LABEL]: 'them', [MEMBER_LABEL]: 'east' },
      annotations: { [HOST_NAMESPACE_ANNOTATION]: 'shop', [HOST_NAME_ANNOTATION]: 'web' },
    },
  ],
])(
  'leaves a Service of %s and whatever leads to it alone, tells of it once, and takes the name when it is free',
  async (_whose, marks) => {
    send(world.member, 'POST', STRANGER, { metadata: { name: 'web', ...marks }, spec: { ports: [{ port: 1 }] } });
    const before = JSON.stringify(world.copy('web'));
    world.offer('web');
    world.lead('web', ['10.0.0.1']);
    world.run('a');
    const { services } = world.start();
    await until(() => services.finding()?.reason === 'NameTaken');
    world.lead('web', ['10.0.0.1', '10.0.0.2']);
    await world.atRest();
    expect(world.slices('web')).toEqual([]);
    expect(JSON.stringify(world.copy('web'))).toBe(before);
    expect(world.events).toEqual(['Warning NameTaken']);
    expect(services.require(waitingPod())).toEqual({ ready: true });
    send(world.member, 'DELETE', `${STRANGER}/web`, {});
    world.lead('web', ['10.0.0.1']);
    await until(() => world.led('web').length === 1);
    await until(() => services.finding()?.reason === 'Mirrored');
  },
);

it('takes its slices away when somebody else takes the name of a Service', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.run('a');
  world.start();
  await until(() => world.led('web').length === 1);
  send(world.member, 'DELETE', `${STRANGER}/web`, {});
  send(world.member, 'POST', STRANGER, { metadata: { name: 'web' }, spec: { ports: [{ port: 1 }] } });
  await until(() => world.slices('web').length === 0);
  expect(world.copy('web')?.metadata.labels).toBeUndefined();
});

it.each([
  ['host', 'services', 'HostServicesUnknown'],
  ['host', 'endpointslices', 'HostServicesUnknown'],
  ['member', 'endpointslices', 'ServiceRightMissing'],
] as const)('tells of a right that was taken away while it runs: in %s, to read %s', async (where, plural, reason) => {
  world.offer('web');
  world.run('a');
  const { services } = world.start();
  await until(() => services.finding()?.reason === 'Mirrored');
  world.host.seen.length = world.member.seen.length = 0;
  const isRead = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'GET' && path.endsWith(`/v1/${plural}`);
  const refusal = { code: 403, reason: 'Forbidden', message: `${plural} is forbidden: User "u" cannot list` };
  world.break(world[where], (request) => (isRead(request) ? refusal : undefined));
  await until(() => world[where].seen.filter(isRead).length > 1);
  expect(services.finding()?.reason).toBe('Mirrored');
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 130_000);
  await until(() => services.finding()?.reason === reason);
  world[where].fault = undefined;
  await vi.waitFor(() => expect(services.finding()?.reason).toBe('Mirrored'), { timeout: 10_000, interval: 10 });
});

it('mends what somebody changed of a copy', async () => {
  world.offer('web');
  world.run('a');
  world.start();
  await until(() => world.copy('web') !== undefined);
  send(world.member, 'PATCH', `${STRANGER}/web`, { spec: { selector: { app: 'x' } } });
  await until(() => world.copy('web')?.spec?.selector === undefined);
});

it('takes all of it away a while after the last pod, and what is gone from the host at once', async () => {
  world.offer('web');
  world.offer('gone');
  for (const name of ['web', 'gone']) world.lead(name, ['10.0.0.1']);
  world.run('a');
  world.start();
  await until(() => world.led('web').length === 1 && world.led('gone').length === 1);
  world.withdraw('gone');
  await until(() => world.copy('gone') === undefined && world.slices('gone').length === 0);
  expect(world.copy('web')).toBeDefined();
  world.end('a');
  await until(() => world.copy('web') === undefined && world.slices('web').length === 0);
});

it('takes all of it away when none is to be there any more, and says so', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.run('a');
  const running = world.start();
  await until(() => world.led('web').length === 1);
  running.mode = 'None';
  running.services.changed();
  await until(() => world.copy('web') === undefined && world.slices('web').length === 0);
  await until(() => running.services.finding()?.reason === 'NotMirrored');
  expect(running.services.seenFrom('shop', 'shop')).toBeUndefined();
});

it('rests while none are to be there, and begins when that is edited', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.run('a');
  const running = world.start('east', { mode: 'None' });
  // What may be left of before is looked at first.
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  const timers = vi.spyOn(globalThis, 'setTimeout');
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(timers.mock.calls.filter(([, ms]) => ms === 1_000)).toEqual([]);
  timers.mockRestore();
  expect(world.copy('web')).toBeUndefined();
  running.mode = 'Mirror';
  running.services.changed();
  await until(() => world.led('web').length === 1);
});

it('two MemberClusters that stand for one cluster do not write by turns, and the one that is left takes over', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.run('a');
  const east = world.start('east', { sharing: ['west'] });
  await until(() => world.led('web').length === 1);
  const west = world.start('west', { sharing: ['east'] });
  await world.atRest();
  world.forgetWrites();
  world.lead('web', ['10.0.0.1', '10.0.0.2']);
  await until(() => world.led('web').length === 2);
  await world.atRest();
  expect(world.writes()).toHaveLength(1);
  expect(world.copy('web')?.metadata.labels).toEqual({ [HOST_LABEL]: 'us', [MEMBER_LABEL]: 'east' });
  await east.stop();
  west.sharing = [];
  west.services.changed();
  await until(() => world.copy('web')?.metadata.labels?.[MEMBER_LABEL] === 'west');
  await until(() => world.slices('web').every(({ metadata }) => metadata.labels?.[MEMBER_LABEL] === 'west'));
  expect(world.led('web')).toEqual(['10.0.0.1', '10.0.0.2']);
});

it('lets pods wait for the addresses of Services, and only those that get variables', async () => {
  world.offer('web');
  world.offer('names', { clusterIP: 'None' });
  const running = world.start();
  world.run('new', { copy: false });
  expect(running.services.require(waitingPod({ enableServiceLinks: false }))).toEqual({ ready: true });
  expect(running.services.require(waitingPod())).toMatchObject({ ready: false });
  await until(() => running.requeued.includes('shop/new'));
  expect(running.services.require(waitingPod())).toEqual({ ready: true });
  send(world.member, 'PATCH', `${STRANGER}/web`, { spec: { clusterIP: '10.96.0.7' } });
  await until(() => running.services.seenFrom('shop', 'shop')?.[0]?.spec?.clusterIP === '10.96.0.7');
});

it('does not hold pods up where the right is missing, and says so', async () => {
  world.offer('web');
  world.run('a');
  world.member.fault = ({ method, path }) =>
    method === 'POST' && path.endsWith('/services')
      ? { code: 403, reason: 'Forbidden', message: 'services is forbidden: User "x" cannot create' }
      : undefined;
  const { services } = world.start();
  await until(() => services.finding()?.reason === 'NamespaceRightMissing');
  expect(services.require(waitingPod())).toEqual({ ready: true });
});

it('lets only that namespace wait in which the right is missing, and looks at all of it when it is there', async () => {
  const inData = '/api/v1/namespaces/data/services';
  for (const name of ['one', 'two']) world.offer(name, {}, 'data');
  world.member.fault = ({ method, path }) =>
    method === 'POST' && path === inData
      ? { code: 403, reason: 'Forbidden', message: 'services is forbidden: User "x" cannot create' }
      : undefined;
  const { services } = world.start('east', { always: ['data'] });
  await until(() => services.finding()?.reason === 'NamespaceRightMissing');
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  await until(() => !services.require(waitingPod()).ready);
  world.run('a');
  await until(() => world.led('web').length === 1);
  world.lead('web', ['10.0.0.1', '10.0.0.2']);
  await until(() => world.led('web').length === 2);
  expect(services.finding()).toMatchObject({
    reason: 'NamespaceRightMissing',
    message: /these namespaces .*: data \(cluster member: services is forbidden/,
  });
  expect(services.require({ ...waitingPod(), metadata: { name: 'new', namespace: 'data' } })).toEqual({ ready: true });
  world.member.fault = undefined;
  await until(() => world.copy('one', 'data') !== undefined && world.copy('two', 'data') !== undefined);
  await until(() => services.finding()?.reason === 'Mirrored');
});

it('keeps up the other Services of a namespace in which one is refused for ever, and goes on telling of that', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.run('a');
  const { services } = world.start();
  await until(() => world.led('web').length === 1);
  const isBad = ({ method, body }: { method: string; body?: unknown }): boolean =>
    method === 'POST' && (body as { metadata?: { name?: string } } | undefined)?.metadata?.name === 'bad';
  const message = 'services "bad" is forbidden: User "x" cannot create';
  world.member.fault = (request) => (isBad(request) ? { code: 403, reason: 'Forbidden', message } : undefined);
  world.offer('bad');
  await until(() => services.finding()?.reason === 'NamespaceRightMissing');
  const reasons = new Set<string | undefined>();
  const looking = setInterval(() => reasons.add(services.finding()?.reason), 5);
  for (const ip of ['10.0.0.2', '10.0.0.3', '10.0.0.4']) {
    world.lead('web', [ip]);
    await until(() => world.led('web').join() === ip);
  }
  clearInterval(looking);
  expect([...reasons]).toEqual(['NamespaceRightMissing']);
  world.member.fault = undefined;
  await until(() => world.copy('bad') !== undefined && services.finding()?.reason === 'Mirrored');
});

/** As where a webhook on Services does not run. */
function breakWebhook(): void {
  const message = 'failed calling webhook "v.example": connection refused';
  world.member.fault = ({ method, path }) =>
    method === 'POST' && path === STRANGER ? { code: 500, reason: 'InternalError', message } : undefined;
}
const refused = (): number => world.writes().filter((write) => write === 'POST shop/services').length;

it('holds no pods up for a Service that the member goes on not to take by errors that may pass, and tells of it', async () => {
  breakWebhook();
  world.offer('web');
  world.run('a');
  const { services, requeued } = world.start();
  await until(() => refused() > 0);
  expect(services.require(waitingPod())).toMatchObject({ ready: false });
  await until(() => requeued.includes('shop/new'));
  expect(services.require(waitingPod())).toEqual({ ready: true });
  const message = /shop\/web\. .*failed calling webhook .* \(500 InternalError, transient\)/;
  expect(services.finding()).toMatchObject({ reason: 'ServiceRefused', message: expect.stringMatching(message) });
  expect(world.events).toEqual(['Warning ServiceRefused']);
  world.member.fault = undefined;
  services.changed();
  await until(() => services.finding()?.reason === 'Mirrored');
  expect(world.copy('web')).toBeDefined();
});

it('does not take errors before and after an outage of the member for one that lasts', async () => {
  breakWebhook();
  world.offer('web');
  world.run('a');
  const running = world.start();
  await until(() => refused() > 0);
  running.reachable = false;
  running.services.changed();
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  const before = refused();
  running.reachable = true;
  running.services.changed();
  await until(() => refused() > before);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(running.services.finding()?.reason).toBe('Mirrored');
  expect(running.services.require(waitingPod())).toMatchObject({ ready: false });
});

it('leads to the pods of the member alone where it is isolated', async () => {
  world.offer('web', { selector: { app: 'web' } });
  world.lead('web', ['10.0.0.1']);
  world.run('a', { ip: '10.9.0.1' });
  world.start('east', { network: 'Isolated' });
  await until(() => world.led('web').join() === '10.9.0.1');
  world.run('b', { ip: '10.9.0.2' });
  await until(() => world.led('web').join() === '10.9.0.1,10.9.0.2');
});

/** A Service that the member says to be a copy of one of the host. */
function show(name: string, annotations: Record<string, string>, more: object = {}): void {
  const metadata = { name, labels: { [HOST_LABEL]: 'us' }, annotations, ...more };
  send(world.member, 'POST', STRANGER, { metadata, spec: { ports: [{ port: 1 }] } });
}
const asked = (): number =>
  world.host.seen.filter(({ query }) => query['fieldSelector']?.startsWith('metadata.')).length;

it('asks the host for nothing that it cannot have, whatever a member says to be a copy of it', async () => {
  const bad = ['', 'A', 'a_b', 'a/b', 'a.b', 'x'.repeat(64), '../a', 'a,metadata.namespace!=b'];
  for (const [i, name] of bad.entries()) {
    show(`n-${String(i)}`, { [HOST_NAMESPACE_ANNOTATION]: 'shop', [HOST_NAME_ANNOTATION]: name });
    show(`s-${String(i)}`, { [HOST_NAMESPACE_ANNOTATION]: name, [HOST_NAME_ANNOTATION]: 'web' });
  }
  show('none', {});
  show('no-namespace', { [HOST_NAME_ANNOTATION]: 'web' });
  show('last', { [HOST_NAMESPACE_ANNOTATION]: 'shop', [HOST_NAME_ANNOTATION]: 'last' });
  world.start();
  await until(() => world.copy('last') === undefined);
  await world.atRest();
  expect(asked()).toBe(1);
  expect(world.writes()).toEqual(['DELETE services/last']);
});

it.each([
  ['goes on showing', undefined],
  ['does not find as it showed it', { code: 409, reason: 'Conflict' }],
])('lets a Service rest that is gone from the host and that the member %s', async (_what, fault) => {
  const annotations = { [HOST_NAMESPACE_ANNOTATION]: 'shop', [HOST_NAME_ANNOTATION]: 'gone' };
  world.member.fault = ({ method }) => (method === 'DELETE' ? fault : undefined);
  show('gone', annotations, { finalizers: ['example.test/never'] });
  world.start();
  await until(() => asked() > 0);
  const since = performance.now();
  for (let i = 0; i < 60; i++) {
    send(world.member, 'PATCH', `${STRANGER}/gone`, { metadata: { annotations: { i: String(i) } } });
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  expect(asked()).toBeLessThanOrEqual(2 + (performance.now() - since) / 200);
  expect(asked()).toBeGreaterThan(1);
});
