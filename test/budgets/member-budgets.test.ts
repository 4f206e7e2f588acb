import { afterEach, expect, it, vi } from 'vitest';
import { HOST_LABEL, MEMBER_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import { CacheRoom } from '../../src/kube/cache-room.ts';
import { BudgetWorld, BUDGETS, send } from './budget-world.ts';

let world: BudgetWorld;
afterEach(async () => {
  await world.close();
});

const WAIT = { timeout: 5_000, interval: 10 };
/** Longer than anything that is put off. */
const LONG_MS = 700;

async function until(what: () => boolean, wait = WAIT): Promise<void> {
  await vi.waitFor(() => expect(what()).toBe(true), wait);
}

/** Nothing is written any more. */
async function atRest(): Promise<void> {
  let before: number;
  do {
    before = world.writes().length;
    await new Promise((resolve) => setTimeout(resolve, LONG_MS));
  } while (world.writes().length !== before);
}

/** Two pods in each of two members, of which three are to be there: one may be evicted. */
async function twoMembers(): Promise<void> {
  world = await BudgetWorld.start('east', 'west');
  for (const member of ['east', 'west']) for (const i of [1, 2]) world.run(`${member}-${i}`, member, { node: `${i}` });
  world.protect('web', 3);
}

it('keeps a budget in the member that covers the copies, whatever their labels, and lets as many go as the host does', async () => {
  world = await BudgetWorld.start('east');
  world.run('a', 'east');
  world.run('b', 'east', { copyLabels: { app: 'renamed' } });
  send(world.member('east'), 'POST', '/api/v1/namespaces/shop/pods', {
    metadata: { name: 'stranger', labels: { app: 'web' } },
    spec: { containers: [{ name: 'app', image: 'busybox' }] },
  });
  world.protect('web', 1, { unhealthyPodEvictionPolicy: 'AlwaysAllow' });
  world.start('east');
  await until(() => world.mirror('east')?.spec.minAvailable === 1);
  const { metadata, spec } = world.mirror('east') ?? {};
  expect(metadata?.labels).toEqual({ [HOST_LABEL]: 'us', [MEMBER_LABEL]: 'east' });
  const uids = ['a', 'b'].map(
    (name) => world.host.objects.get(`/api/v1/namespaces/shop/pods/${name}`)?.metadata.uid ?? '',
  );
  expect(spec?.selector).toEqual({
    matchLabels: { [HOST_LABEL]: 'us' },
    matchExpressions: [{ key: UID_LABEL, operator: 'In', values: uids.toSorted() }],
  });
  expect(spec?.unhealthyPodEvictionPolicy).toBe('AlwaysAllow');
  expect(world.claims()).toEqual({ east: { allowed: 1 } });
  expect(world.allowed()).toEqual([1]);
});

it('divides what the host allows among members, and writes nothing when it is started anew', async () => {
  await twoMembers();
  const running = [world.start('east'), world.start('west')];
  await until(() => ['0,1', '1,0'].includes(world.allowed().join()));
  await atRest();
  for (const one of running) await one.stop();
  world.forgetWrites();
  world.start('east');
  world.start('west');
  await atRest();
  expect(world.writes()).toEqual([]);
});

it('writes nothing for an eviction and what replaces the pod, and lets no other go before the host has counted anew', async () => {
  world = await BudgetWorld.start('east');
  for (const name of ['a', 'b', 'c']) world.run(name, 'east');
  world.protect('web', 2);
  world.start('east');
  await until(() => world.allowed().join() === '1');
  await atRest();
  world.forgetWrites();
  expect(world.evict('east', 'a')).toBe(true);
  world.count(world.member('east'));
  // The host does not know of it: its budget still allows one.
  await atRest();
  expect(world.allowed()).toEqual([0]);
  // The pod has failed, and still nobody has counted.
  world.report(world.host, 'a', false, 'Failed');
  await atRest();
  expect(world.allowed()).toEqual([0]);
  world.count(world.host);
  await atRest();
  expect(world.writes()).toEqual([]);
  world.run('d', 'east');
  world.count(world.host);
  await until(() => world.allowed().join() === '1');
  await atRest();
  // It has to name the new one.
  expect(world.writes().filter((one) => one.startsWith('host'))).toEqual([]);
  expect(world.writes().length).toBeLessThanOrEqual(2);
});

it('lets the member evict more only when that has been so for a while', async () => {
  world = await BudgetWorld.start('east');
  for (const name of ['a', 'b']) world.run(name, 'east');
  world.protect('web', 2);
  world.start('east', 'Mirror', 1_000);
  await until(() => world.mirror('east')?.spec.minAvailable === 2);
  send(world.host, 'PATCH', `${BUDGETS}/web`, { spec: { minAvailable: 1 } });
  world.count(world.host);
  // It has claimed one then.
  await until(() => world.claims() !== undefined);
  const claimedAt = performance.now();
  await until(() => world.mirror('east')?.spec.minAvailable === 1);
  expect(performance.now() - claimedAt).toBeGreaterThan(900);
});

it('gives a member whose node is drained what others have: they narrow their budgets before they give it up', async () => {
  await twoMembers();
  world.start('east');
  await until(() => world.allowed().join() === '1,0');
  await atRest();
  world.forgetWrites();
  world.start('west');
  world.cordon('west', '1');
  // At no time both.
  await vi.waitFor(() => {
    const [east = 0, west = 0] = world.allowed();
    expect(east + west).toBeLessThanOrEqual(1);
    expect(west).toBe(1);
  }, WAIT);
  expect(world.claims()).toEqual({ west: { allowed: 1, draining: true } });
  const order = world.writes().filter((one) => one.startsWith('east'));
  expect(order).toEqual(['east PUT web']);
});

it('gives nothing up that the member has not let be narrowed', async () => {
  await twoMembers();
  world.start('east');
  await until(() => world.allowed().join() === '1,0');
  world.member('east').fault = ({ method }) => (method === 'PUT' ? { code: 500, reason: 'InternalError' } : undefined);
  world.start('west');
  world.cordon('west', '1');
  await until(() => world.member('east').seen.filter(({ method }) => method === 'PUT').length > 1);
  await new Promise((resolve) => setTimeout(resolve, LONG_MS));
  expect(world.allowed()).toEqual([1, 0]);
  expect(world.claims()).toMatchObject({ east: { allowed: 1 }, west: { allowed: 0 } });
  world.member('east').fault = undefined;
  await until(() => world.allowed().join() === '0,1');
});

it('lets none go while the controller of the host has not judged the budget as it is', async () => {
  world = await BudgetWorld.start('east');
  for (const name of ['a', 'b']) world.run(name, 'east');
  world.protect('web', 1);
  world.start('east');
  await until(() => world.allowed().join() === '1');
  send(world.host, 'PATCH', `${BUDGETS}/web`, { spec: { minAvailable: 2 } });
  await until(() => world.allowed().join() === '0');
  send(world.host, 'PATCH', `${BUDGETS}/web`, { spec: { minAvailable: 0 } });
  world.count(world.host);
  await until(() => world.allowed().join() === '2');
});

it('leaves budgets of others alone, and takes another name where one has it', async () => {
  world = await BudgetWorld.start('east');
  const spec = { minAvailable: 7, selector: { matchLabels: { app: 'other' } } };
  send(world.member('east'), 'POST', BUDGETS, { metadata: { name: 'web' }, spec });
  world.run('a', 'east');
  world.protect('web', 1);
  const running = world.start('east');
  const names = (): string[] =>
    [...world.member('east').objects.keys()].filter((path) => path.startsWith(`${BUDGETS}/web-`));
  await until(() => names().length === 1);
  expect(world.events).toEqual(['Warning BudgetNameTaken']);
  await running.stop();
  world.start('east');
  send(world.host, 'DELETE', `${BUDGETS}/web`, {});
  await until(() => names().length === 0);
  expect(world.mirror('east')?.spec).toEqual(spec);
});

it('knows a budget that it made although the answer was lost and the watch is silent', async () => {
  world = await BudgetWorld.start('east');
  world.run('a', 'east');
  world.start('east');
  await until(() => world.member('east').requests('GET', '/poddisruptionbudgets').length > 0);
  await atRest();
  const see = world.blind('east', ({ method }) => (method === 'POST' ? 'reset-after' : undefined));
  world.protect('web', 0);
  const isAsked = (): boolean =>
    world.member('east').seen.some(({ query }) => query['fieldSelector'] === 'metadata.name=web');
  await until(isAsked);
  see();
  // The watch that hangs is given up when its time is over.
  await until(() => world.allowed().join() === '1', { ...WAIT, timeout: 15_000 });
  expect(world.events).toEqual([]);
  expect([...world.member('east').objects.keys()].filter((path) => path.startsWith(BUDGETS))).toEqual([
    `${BUDGETS}/web`,
  ]);
});

it('takes its budgets away when they are ignored or gone from the host, and after a while when the last pod is', async () => {
  world = await BudgetWorld.start('east');
  world.run('a', 'east');
  world.protect('web', 0);
  const running = world.start('east');
  const isThere = (): boolean => world.mirror('east') !== undefined && world.claims() !== undefined;
  const isGone = (): boolean => world.mirror('east') === undefined && world.claims() === undefined;
  await until(isThere);
  running.mode = 'Ignore';
  running.budgets.changed();
  await until(isGone);
  expect(running.budgets.finding()?.reason).toBe('Ignored');
  running.mode = 'Mirror';
  running.budgets.changed();
  await until(isThere);
  const path = '/api/v1/namespaces/shop/pods/a';
  for (const api of [world.member('east'), world.host]) send(api, 'DELETE', path, { gracePeriodSeconds: 0 });
  world.count(world.host);
  await until(isGone);
  world.run('b', 'east');
  world.count(world.host);
  await until(isThere);
  send(world.host, 'DELETE', `${BUDGETS}/web`, {});
  await until(() => world.mirror('east') === undefined);
});

it('takes away the budget of a namespace that the last copy has left, while others of it are in another one', async () => {
  world = await BudgetWorld.start('east');
  world.run('a', 'east');
  world.run('b', 'east', { copyNamespace: 'mapped' });
  world.protect('web', 0);
  world.start('east');
  const other = (): boolean =>
    world.member('east').objects.has('/apis/policy/v1/namespaces/mapped/poddisruptionbudgets/web');
  await until(() => world.mirror('east') !== undefined && other());
  for (const api of [world.member('east'), world.host])
    send(api, 'DELETE', '/api/v1/namespaces/shop/pods/a', { gracePeriodSeconds: 0 });
  world.count(world.host);
  await until(() => world.mirror('east') === undefined);
  expect(other()).toBe(true);
});

it('asks a member that ignores budgets for those of before once, and writes nothing there', async () => {
  world = await BudgetWorld.start('east');
  world.run('a', 'east');
  world.protect('web', 0);
  world.start('east', 'Ignore');
  await atRest();
  expect(world.writes()).toEqual([]);
});

it('tells that the right is missing, does not ask all the time, and claims nothing', async () => {
  world = await BudgetWorld.start('east');
  world.run('a', 'east');
  world.protect('web', 0);
  world.member('east').fault = ({ method }) => (method === 'POST' ? { code: 403, reason: 'Forbidden' } : undefined);
  const running = world.start('east');
  await until(() => running.budgets.finding()?.reason === 'BudgetRightMissing');
  expect(running.budgets.finding()?.message).toContain('cluster "east" refuses to keep them');
  await atRest();
  expect(world.writes()).toEqual(['east POST poddisruptionbudgets']);
  expect(world.claims()).toBeUndefined();
});

it('holds nobody up while its member does not answer', async () => {
  await twoMembers();
  world.start('east');
  await until(() => world.allowed().join() === '1,0');
  world.member('east').fault = ({ method }) => (method === 'PUT' ? { code: 500, reason: 'InternalError' } : undefined);
  const west = world.start('west');
  world.cordon('west', '1');
  await until(() => JSON.stringify(world.claims()).includes('west'));
  west.reachable = false;
  west.budgets.changed();
  await until(() => !JSON.stringify(world.claims()).includes('west'));
  expect(world.claims()).toEqual({ east: { allowed: 1 } });
});

it('tells that memory is full where a budget is not brought up to date for that, and sends nothing in vain', async () => {
  const bytes = 4 * 1024 * 1024;
  world = await BudgetWorld.start('east');
  const room = new CacheRoom(bytes).share();
  world.room = room;
  world.run('a', 'east');
  world.protect('web', 0);
  const { budgets } = world.start('east');
  await until(() => world.mirror('east') !== undefined && budgets.finding()?.reason === 'Mirrored');
  await atRest();
  world.forgetWrites();
  room.change(bytes);
  world.protect('new', 0);
  await until(() => budgets.finding()?.reason === 'CacheLimit');
  const words = /no room in memory for more poddisruptionbudgets of cluster member.*a larger heap/;
  expect(budgets.finding()?.message).toMatch(words);
  expect(world.writes().filter((write) => write.startsWith('east'))).toEqual([]);
  room.change(-bytes);
  budgets.changed();
  await until(() => world.mirror('east', 'new') !== undefined && budgets.finding()?.reason === 'Mirrored');
});
