import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ExchangeWorld, soon } from './exchange-world.ts';

let world: ExchangeWorld;
beforeEach(async () => {
  world = await ExchangeWorld.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
});

const PATH = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop';
const ALL = ['host', 'east', 'west'] as const;

test('namespaces that are known late, after a restart, take nothing away', async () => {
  world.offer('east', 'db', '10.1.0.1');
  world.export('east', 'db');
  for (const cluster of ALL) await soon(() => expect(world.led(cluster, 'db')).toEqual(['10.1.0.1 <- east']));
  await soon(() => expect(world.importOf('east', 'db')?.status?.clusters).toHaveLength(1));
  await soon(() => expect(world.importOf('west', 'db')?.status?.clusters).toHaveLength(1));
  await soon(() => expect(world.told('east', 'db')).toContain('Ready=True Exported'));
  await world.stop();
  world.forgetWrites();
  world.apis.east.fault = ({ path }) => (path === '/api/v1/namespaces' ? { code: 503 } : undefined);
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
  await sleep(1_500);
  expect(world.writes()).toEqual([]);
});

test.each([
  ['that does not answer', false],
  ['in whose place another cluster answers', true],
])('what a member exported leads nowhere when it is lost, also after a restart: one %s', async (_, reachable) => {
  world.offer('east', 'db', '10.1.0.1');
  world.export('east', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']));
  await world.stop();
  Object.assign(world.members.east, { reachable, isPinned: false, isLost: reachable });
  world.apis.east.fault = () => (reachable ? undefined : 'reset');
  world.run();
  if (!reachable) {
    await sleep(1_500);
    expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']);
    world.members.east.isLost = true;
  }
  for (const cluster of ['host', 'west'] as const) await soon(() => expect(world.led(cluster, 'db')).toEqual([]));
  expect(world.importOf('west', 'db')).toBeDefined();
  expect(world.led('east', 'db')).toEqual(['10.1.0.1 <- east']);
});

test('what a member exported before it was lost leads nowhere when it comes back, until it was read anew', async () => {
  world.offer('east', 'db', '10.1.0.1');
  world.export('east', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']));
  world.break('east');
  Object.assign(world.members.east, { reachable: false, isLost: true });
  for (const cluster of ['host', 'west'] as const) await soon(() => expect(world.led(cluster, 'db')).toEqual([]));
  world.write('east', 'PATCH', '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/db-1', {
    endpoints: [{ addresses: ['10.1.0.2'], conditions: { ready: true } }],
  });
  world.forgetWrites();
  const isOfSlices = ({ path }: { path: string }): boolean => path.endsWith('/endpointslices');
  world.apis.east.fault = (request) => (isOfSlices(request) ? { code: 503 } : undefined);
  Object.assign(world.members.east, { reachable: true, isLost: false });
  await sleep(2_500);
  expect(world.led('west', 'db')).toEqual([]);
  world.apis.east.fault = undefined;
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.1.0.2 <- east']));
  expect(JSON.stringify([world.apis.host.seen, world.apis.west.seen])).not.toContain('10.1.0.1');
  expect(world.exchanges?.east.finding()?.reason).toBe('Exchanged');
});

test.each(['host', 'east'] as const)(
  'a right that was taken away while Services are exchanged is told: in %s',
  async (cluster) => {
    world.offer('east', 'db', '10.1.0.1');
    world.export('east', 'db');
    await soon(() => expect(world.exchanges?.east.finding()?.reason).toBe('Exchanged'));
    await soon(() => expect(world.led('west', 'db')).toEqual(['10.1.0.1 <- east']));
    world.forgetWrites();
    const isOfSlices = ({ path }: { path: string }): boolean => path === '/apis/discovery.k8s.io/v1/endpointslices';
    const isOurs = ({ query }: { query: Record<string, string> }): boolean => !query['labelSelector']?.startsWith('!');
    const refusal = { code: 403, reason: 'Forbidden', message: 'endpointslices is forbidden: User "u" cannot list' };
    world.break(cluster, (request) => (isOfSlices(request) ? refusal : undefined));
    // Each of the two that read them has been refused.
    const times = (ofOurs: boolean): number =>
      world.apis[cluster].seen.filter((one) => isOfSlices(one) && isOurs(one) === ofOurs).length;
    await soon(() => expect(Math.min(times(true), times(false))).toBeGreaterThan(1));
    expect(world.exchanges?.east.finding()?.reason).toBe('Exchanged');
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 130_000);
    await soon(() => expect(world.exchanges?.east.finding()?.reason).toBe('ExchangeRightMissing'));
    expect(world.exchanges?.west.finding()?.reason).toBe(cluster === 'host' ? 'ExchangeRightMissing' : 'Exchanged');
    world.apis[cluster].fault = undefined;
    await soon(() => expect(world.exchanges?.east.finding()?.reason).toBe('Exchanged'));
  },
);

test('of two MemberClusters for one cluster, the one that leaves lets the other one have what stands there', async () => {
  world.members.east.wanted = false;
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']));
  await world.stop();
  world.apis.east = world.apis.west;
  Object.assign(world.members.west, { wanted: false, isShared: true, wereExchanged: true });
  world.members.east.wanted = true;
  world.run();
  await soon(() => expect(world.exchanges?.east.finding()?.reason).toBe('Exchanged'));
  await soon(() => expect(world.exchanges?.east.inMember()).toHaveLength(3));
  await soon(() => expect(world.exchanges?.west.inMember()).toEqual([]));
  await sleep(500);
  world.forgetWrites();
  await sleep(1_500);
  expect(world.writes()).toEqual([]);
  expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']);
});

test('whoever writes the status of a ServiceExport keeps that name out, and nothing else', async () => {
  for (const cluster of ['host', 'west'] as const) {
    const managedFields = [{ manager: 'tenant', operation: 'Update', subresource: 'status', fieldsType: 'FieldsV1' }];
    world.write(cluster, 'POST', `${PATH}/serviceexports`, { metadata: { name: `of-${cluster}`, managedFields } });
    world.offer(cluster, `of-${cluster}`, '10.9.0.1');
  }
  for (const name of ['of-west', 'of-host', 'db']) {
    world.offer('east', name, '10.1.0.1');
    world.export('east', name);
  }
  for (const cluster of ALL) await soon(() => expect(world.led(cluster, 'db')).toEqual(['10.1.0.1 <- east']));
  await soon(() => expect(world.led('host', 'of-west')).toEqual(['10.1.0.1 <- east']));
  await soon(() => expect(world.led('west', 'of-host')).toEqual(['10.1.0.1 <- east']));
  expect(world.led('west', 'of-west')).toEqual([]);
  expect(world.importOf('west', 'of-west')).toBeUndefined();
  for (const cluster of ['host', 'west'] as const) expect(world.told(cluster, `of-${cluster}`)).toEqual([]);
  const taken = { reason: 'ImportTaken', message: expect.stringContaining('was written by tenant') as string };
  expect(world.exchanges?.west.finding()).toMatchObject(taken);
  await sleep(1_500);
  world.forgetWrites();
  await sleep(1_500);
  expect(world.writes()).toEqual([]);
});

test('whoever takes our label off a ServiceImport puts nobody else in charge', async () => {
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  for (const cluster of ALL) await soon(() => expect(world.importOf(cluster, 'db')?.status?.clusters).toHaveLength(1));
  for (const cluster of ['host', 'west'] as const) {
    const metadata = { labels: { 'spillway.dev/host': null } };
    world.write(cluster, 'PATCH', `${PATH}/serviceimports/db`, { metadata });
    await soon(() =>
      expect(world.importOf(cluster, 'db')?.metadata.labels).toHaveProperty(['spillway.dev/host'], 'us'),
    );
  }
  expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']));
});

test("a ServiceImport that is somebody else's by now has nothing of ours behind it any more", async () => {
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.importOf('west', 'db')?.status?.clusters).toHaveLength(1));
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']));
  // While nobody looks, or it would be made again.
  await world.stop();
  world.write('west', 'DELETE', `${PATH}/serviceimports/db`, {});
  const spec = { type: 'ClusterSetIP', ports: [{ port: 1 }], ips: ['192.0.2.1'] };
  world.write('west', 'POST', `${PATH}/serviceimports`, { metadata: { name: 'db' }, spec });
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('ImportTaken'));
  await soon(() => expect(world.led('west', 'db')).toEqual([]));
  await soon(() => expect(world.ours('west')).toEqual([]));
  expect(world.importOf('west', 'db')?.spec).toEqual(spec);
  expect(world.led('host', 'db')).toEqual(['10.0.0.1 <- local']);
});

test('a Service that has the name of ours, or lost our labels, keeps the name out, and both clusters say so', async () => {
  await world.stop();
  world.limits = { problemMs: 500 };
  world.run();
  world.offer('east', 'db', '10.1.0.1');
  world.export('east', 'db');
  for (const cluster of ALL) await soon(() => expect(world.led(cluster, 'db')).toEqual(['10.1.0.1 <- east']));
  const derived = world.importOf('west', 'db')?.metadata.annotations?.['multicluster.kubernetes.io/derived-service'];
  const path = `/api/v1/namespaces/shop/services/${derived ?? ''}`;
  const metadata = { labels: { 'spillway.dev/host': null } };
  for (const cluster of ['host', 'west'] as const) world.write(cluster, 'PATCH', path, { metadata });
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('ImportTaken'));
  expect(world.exchanges?.west.finding()?.message).toContain(`Service shop/${derived ?? ''} that is not ours`);
  await soon(() => expect(world.led('west', 'db')).toEqual([]));
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.told('host', 'db')).toEqual(['Valid=True Valid', 'Ready=False Failed']));
  for (const cluster of ['host', 'west'] as const) world.write(cluster, 'DELETE', path, {});
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local', '10.1.0.1 <- east']));
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
});

test('what the host exports goes when another implementation comes, and comes back when that one goes', async () => {
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']));
  await sleep(1_500);
  const spec = { type: 'ClusterSetIP', ports: [{ port: 1 }] };
  const status = { clusters: [{ cluster: 'c' }] };
  world.write('host', 'POST', `${PATH}/serviceimports`, { metadata: { name: 'theirs' }, spec, status });
  for (const cluster of ALL) await soon(() => expect(world.ours(cluster)).toEqual([]));
  world.write('host', 'DELETE', `${PATH}/serviceimports/theirs`, {});
  for (const cluster of ALL) await soon(() => expect(world.led(cluster, 'db')).toEqual(['10.0.0.1 <- local']));
});

test('endpoints are kept up to date where a change of the Service behind them is refused', async () => {
  for (const cluster of ['host', 'east'] as const) {
    world.offer(cluster, 'db', cluster === 'host' ? '10.0.0.1' : '10.1.0.1');
    world.export(cluster, 'db');
  }
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local', '10.1.0.1 <- east']));
  const message = 'Service "derived" is invalid';
  world.apis.west.fault = ({ method, path }) =>
    method !== 'GET' && path.includes('/services/') ? { code: 422, reason: 'Invalid', message } : undefined;
  const spec = { internalTrafficPolicy: 'Local' };
  world.write('host', 'PATCH', '/api/v1/namespaces/shop/services/db', { spec });
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('ImportRefused'));
  world.write('host', 'PATCH', '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/db-1', {
    endpoints: [{ addresses: ['10.0.0.2'], conditions: { ready: true } }],
  });
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.2 <- local', '10.1.0.1 <- east']));
});

test('a member that leaves is cleaned once it answers, though it did not when the program began', async () => {
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']));
  await world.stop();
  Object.assign(world.members.west, { wanted: false, wereExchanged: true, reachable: false });
  world.apis.west.fault = () => 'reset';
  world.run();
  await sleep(2_500);
  expect(world.exchanges?.west.finding()).toBeUndefined();
  world.apis.west.fault = undefined;
  world.members.west.reachable = true;
  await soon(() => expect(world.ours('west')).toEqual([]));
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('NotExchanged'));
});

test('a member whose owner took the right away is let go', async () => {
  Object.assign(world.members.west, { wanted: false });
  await world.stop();
  world.members.west.wereExchanged = true;
  world.apis.west.fault = ({ path }) =>
    path.startsWith('/apis/multicluster')
      ? { code: 403, reason: 'Forbidden', message: 'is forbidden: User' }
      : undefined;
  world.run();
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('NotExchanged'));
});

test.each([
  ['wanted', false],
  ['isIsolated', true],
  ['isShared', true],
])('ServiceExports of a cluster that takes no part any more are told so: %s', async (what, value) => {
  world.members.east.wanted = false;
  for (const cluster of ['host', 'west'] as const) {
    world.offer(cluster, `of-${cluster}`, '10.0.0.1');
    world.export(cluster, `of-${cluster}`);
    await soon(() => expect(world.told(cluster, `of-${cluster}`)).toContain('Ready=True Exported'));
  }
  Object.assign(world.members.west, { [what]: value });
  await soon(() => expect(world.told('west', 'of-west')).toEqual(['Valid=True Valid', 'Ready=False Failed']));
  await soon(() => expect(world.ours('west')).toEqual([]));
  if (what === 'wanted')
    await soon(() => expect(world.told('host', 'of-host')).toEqual(['Valid=True Valid', 'Ready=False Failed']));
  Object.assign(world.members.west, { [what]: !value });
  for (const cluster of ['host', 'west'] as const)
    await soon(() => expect(world.told(cluster, `of-${cluster}`)).toContain('Ready=True Exported'));
});

test('of too many exports the oldest go on, others come when there is room, and namespaces that are not lent count nothing', async () => {
  await world.stop();
  world.limits = { maxExports: 2, problemMs: 500 };
  for (const name of ['x', 'y']) {
    const inPrivate = `${PATH.replace('shop', 'private')}/serviceexports`;
    world.write('east', 'POST', inPrivate, { metadata: { name } });
  }
  for (const name of ['a', 'b', 'c']) world.offer('east', name, '10.1.0.1');
  for (const name of ['a', 'b', 'c']) world.export('east', name);
  world.run();
  for (const name of ['a', 'b']) await soon(() => expect(world.led('west', name)).toEqual(['10.1.0.1 <- east']));
  await soon(() => expect(world.told('east', 'c')).toEqual(['Valid=True Valid', 'Ready=False Failed']));
  expect(world.importOf('west', 'c')).toBeUndefined();
  world.unexport('east', 'a');
  await soon(() => expect(world.led('west', 'c')).toEqual(['10.1.0.1 <- east']));
});

test('what a cluster left is taken away though the host has no room to write, and the ServiceExport is told', async () => {
  world.offer('east', 'db', '10.1.0.1');
  world.export('east', 'db');
  await soon(() => expect(world.led('host', 'db')).toEqual(['10.1.0.1 <- east']));
  await world.stop();
  world.members.east.wanted = false;
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  const message = 'metadata.annotations: Too long: may not be more than 262144 bytes';
  world.apis.host.fault = ({ method, body }) =>
    method === 'PATCH' && /export.local":"/.test(JSON.stringify(body))
      ? { code: 422, reason: 'Invalid', message }
      : undefined;
  world.run();
  for (const cluster of ['host', 'west'] as const) await soon(() => expect(world.led(cluster, 'db')).toEqual([]));
  world.apis.host.fault = ({ method }) => (method === 'POST' ? { code: 422, reason: 'Invalid', message } : undefined);
  world.export('host', 'more');
  world.offer('host', 'more', '10.0.0.1');
  await soon(() => expect(world.told('host', 'more')).toEqual(['Valid=True Valid', 'Ready=False Failed']));
});

test('what a cluster stores differently is not sent again, and what somebody changes of it is put right', async () => {
  const stored = { Service: 0, EndpointSlice: 0, ServiceImport: 0 };
  // As a webhook does that changes what is sent.
  world.apis.west.fault = (request) => {
    const { method, path, body } = request;
    if (method === 'GET' || path.endsWith('/status')) return undefined;
    const sent = structuredClone(body) as { kind?: string; spec?: Record<string, unknown>; endpoints?: object[] };
    if (path.includes('/services')) Object.assign(sent.spec ?? {}, { ipFamilyPolicy: 'RequireDualStack' });
    if (path.includes('/serviceimports')) Object.assign(sent.spec ?? {}, { trafficDistribution: 'PreferClose' });
    for (const endpoint of sent.endpoints ?? []) Object.assign(endpoint, { zone: 'z9' });
    request.body = sent;
    for (const kind of ['Service', 'EndpointSlice', 'ServiceImport'] as const)
      if (path.includes(`/${kind.toLowerCase()}s`)) stored[kind] += 1;
    return undefined;
  };
  world.offer('host', 'db', '10.0.0.1');
  world.export('host', 'db');
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local']));
  await soon(() => expect(world.importOf('west', 'db')?.status?.clusters).toHaveLength(1));
  await sleep(2_500);
  expect(stored).toEqual({ Service: 1, EndpointSlice: 1, ServiceImport: 1 });
  const derived = world.services('west').find(({ metadata }) => metadata.name.startsWith('derived-'));
  world.write('west', 'PATCH', `/api/v1/namespaces/shop/services/${derived?.metadata.name ?? ''}`, {
    spec: { selector: { app: 'evil' } },
  });
  await soon(() => expect(world.services('west').some(({ spec }) => spec?.selector !== undefined)).toBe(false));
  await sleep(1_500);
  expect(stored).toEqual({ Service: 2, EndpointSlice: 1, ServiceImport: 1 });
});

test('an EndpointSlice that lost our labels is told, and holds up none of the others', async () => {
  await world.stop();
  world.limits = { problemMs: 500 };
  world.run();
  for (const cluster of ['host', 'east'] as const) {
    world.offer(cluster, 'db', cluster === 'host' ? '10.0.0.1' : '10.1.0.1');
    world.export(cluster, 'db');
  }
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local', '10.1.0.1 <- east']));
  const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';
  const [path = ''] = [...world.apis.west.objects].flatMap(([key, { metadata }]) =>
    metadata.labels?.['multicluster.kubernetes.io/source-cluster'] === 'local' ? key : [],
  );
  const metadata = { labels: { 'spillway.dev/host': null } };
  world.write('west', 'PATCH', path, { metadata });
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('ImportTaken'));
  expect(world.exchanges?.west.finding()?.message).toContain(`EndpointSlice shop/${path.split('/').at(-1) ?? ''} that`);
  world.write('east', 'PATCH', `${slices}/db-1`, {
    endpoints: [{ addresses: ['10.1.0.2'], conditions: { ready: true } }],
  });
  await soon(() => expect(world.led('west', 'db')).toContain('10.1.0.2 <- east'));
  world.write('west', 'DELETE', path, {});
  await soon(() => expect(world.exchanges?.west.finding()?.reason).toBe('Exchanged'));
  await soon(() => expect(world.led('west', 'db')).toEqual(['10.0.0.1 <- local', '10.1.0.2 <- east']));
  world.write('host', 'PATCH', path, { metadata });
  await soon(() => expect(world.told('host', 'db').at(-1)).toBe('Ready=False Failed'));
});
