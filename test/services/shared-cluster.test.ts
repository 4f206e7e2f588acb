import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MEMBER_LABEL } from '../../src/api/marks.ts';
import { OtherWriters } from '../../src/services/other-writers.ts';
import { type RunningServices, send, ServiceWorld, until } from './service-world.ts';

let world: ServiceWorld;
beforeEach(async () => {
  world = await ServiceWorld.start();
});
afterEach(async () => {
  await world.close();
});

const writerOf = (name: string, namespace?: string): string | undefined =>
  world.copy(name, namespace)?.metadata.labels?.[MEMBER_LABEL];
/** Of the two that stand for the cluster; pods of each are on the node of its name. */
const start = (name: 'east' | 'west', network: RunningServices['network'] = 'Flat'): RunningServices =>
  world.start(name, { network, node: name, sharing: name === 'east' ? ['west'] : ['east'] });

/** The member is as it is said for a while, and nothing is written. */
async function staysSo(): Promise<void> {
  world.forgetWrites();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(world.writes()).toEqual([]);
}

describe('of two MemberClusters of one cluster', () => {
  beforeEach(() => {
    world.offer('web', { selector: { app: 'web' } });
    world.lead('web', ['10.0.0.1']);
    world.run('a', { ip: '10.9.0.1' });
    world.run('b', { ip: '10.9.0.2', node: 'west' });
  });

  it('each that is Isolated leads to its own pods, by the Service that one of them sees to', async () => {
    start('east', 'Isolated');
    await until(() => world.led('web').join() === '10.9.0.1');
    const west = start('west', 'Isolated');
    await until(() => world.led('web').join() === '10.9.0.1,10.9.0.2');
    expect(writerOf('web')).toBe('east');
    await staysSo();
    world.end('b');
    await until(() => world.led('web').join() === '10.9.0.1');
    await west.stop();
  });

  it.each([
    ['Flat', 'Isolated', '10.0.0.1,10.9.0.2'],
    ['Isolated', 'Flat', '10.0.0.1,10.9.0.1'],
  ] as const)('one %s, then one %s: the Flat one sees to it, and the other leads to its own pods', async (...the) => {
    const [first, second, all] = the;
    start('east', first);
    await until(() => world.led('web').length === 1);
    start('west', second);
    await until(() => world.led('web').join() === all);
    expect(writerOf('web')).toBe(first === 'Flat' ? 'east' : 'west');
    await staysSo();
  });

  it('one takes over from the other that cannot write any more, but nothing that it does not need itself', async () => {
    world.offer('db', {}, 'data');
    world.offer('old', {}, 'data');
    const east = start('east');
    east.always = ['data'];
    await until(
      () => world.led('web').length === 1 && ['db', 'old'].every((name) => writerOf(name, 'data') === 'east'),
    );
    start('west');
    await east.stop();
    world.lead('web', ['10.0.0.2']);
    await staysSo();
    east.writes = false;
    await until(() => world.led('web').join() === '10.0.0.2');
    expect(writerOf('web')).toBe('west');
    world.withdraw('old', 'data');
    await until(() => world.copy('old', 'data') === undefined);
    expect(writerOf('db', 'data')).toBe('east');
    east.writes = true;
    await staysSo();
  });
});

describe('of two MemberClusters of one cluster with namespaces of their own there', () => {
  const inPrefixed = (name: string): string[] => world.led(name, 'iso-shop');
  beforeEach(async () => {
    send(world.member, 'POST', '/api/v1/namespaces', { metadata: { name: 'iso-shop' } });
    world.offer('web', { selector: { app: 'web' } });
    world.lead('web', ['10.0.0.1']);
    world.run('a', { ip: '10.9.0.1', prefix: 'iso-' });
    world.start('east', { network: 'Isolated', sharing: ['west'], prefix: 'iso-' });
    await until(() => inPrefixed('web').join() === '10.9.0.1');
  });

  it.each([
    ['Flat', '10.0.0.1'],
    ['Isolated', '10.9.0.2'],
  ] as const)('one that is %s leaves those of the other alone, and makes none for its pods', async (network, led) => {
    start('west', network);
    await staysSo();
    world.offer('db', { selector: { app: 'web' } });
    world.lead('db', ['10.0.0.1']);
    await until(() => inPrefixed('db').join() === '10.9.0.1');
    world.run('b', { ip: '10.9.0.2', node: 'west' });
    await until(() => ['web', 'db'].every((name) => world.led(name).join() === led));
    await staysSo();
    expect(['web', 'db'].map((name) => inPrefixed(name).join())).toEqual(['10.9.0.1', '10.9.0.1']);
    expect(['shop', 'iso-shop'].map((namespace) => writerOf('db', namespace))).toEqual(['west', 'east']);
  });
});

it('one that is to have none any more leaves them until another one that has pods there has taken over', async () => {
  world.offer('web');
  world.lead('web', ['10.0.0.1']);
  world.run('a');
  world.run('b', { node: 'west' });
  const east = start('east');
  await until(() => world.led('web').length === 1);
  start('west');
  const uid = world.copy('web')?.metadata.uid;
  east.mode = 'None';
  east.writes = false;
  east.services.changed();
  await until(() => writerOf('web') === 'west');
  await until(() => east.services.inMember().length === 0);
  await until(() => east.services.finding()?.reason === 'NotMirrored');
  expect(world.copy('web')?.metadata.uid).toBe(uid);
  expect(world.led('web')).toEqual(['10.0.0.1']);
});

describe('another one that wrote a Service', () => {
  type Told = ReturnType<ConstructorParameters<typeof OtherWriters>[0]['toldOf']>;
  const copy = { metadata: { name: 'web', labels: { [MEMBER_LABEL]: 'west' } } };
  const FLAT = { network: 'Flat', writes: true } as const;
  const told: { east: Told; west: Told } = { east: FLAT, west: FLAT };
  const others = (stalledMs: number, shared = true): OtherWriters =>
    new OtherWriters(
      {
        name: 'east',
        sharesCluster: (name) => shared && name === 'west',
        toldOf: (name) => (name === 'east' || name === 'west' ? told[name] : undefined),
      },
      stalledMs,
    );
  const seenTo = (stalledMs = 0): boolean => {
    const some = others(stalledMs);
    some.isSeenTo(copy);
    some.look();
    return some.isSeenTo(copy);
  };
  beforeEach(() => {
    Object.assign(told, { east: FLAT, west: FLAT });
  });

  it.each<[string, Told, Told, boolean]>([
    ['can write', FLAT, FLAT, true],
    ['cannot', FLAT, { ...FLAT, writes: false }, false],
    ['cannot, as this one cannot', { ...FLAT, writes: false }, { ...FLAT, writes: false }, true],
    ['is not known', FLAT, undefined, true],
    ['is Isolated', FLAT, { network: 'Isolated', writes: true }, false],
    ['is Isolated, as this one is', { network: 'Isolated', writes: true }, { network: 'Isolated', writes: true }, true],
    [
      'is Isolated, while this one cannot write',
      { ...FLAT, writes: false },
      { network: 'Isolated', writes: true },
      true,
    ],
    ['is Flat, while this one is not', { network: 'Isolated', writes: true }, FLAT, true],
  ])('and %s', (_, east, west, isSeenTo) => {
    Object.assign(told, { east, west });
    expect(seenTo()).toBe(isSeenTo);
  });

  it('has stalled after a while only, for which this one could write, and never again once it can', () => {
    told.west = { ...FLAT, writes: false };
    expect(seenTo(60_000)).toBe(true);
    const some = others(0);
    some.isAbandoned(copy);
    expect([some.look(), some.look()]).toEqual([true, false]);
    expect(some.isAbandoned(copy)).toBe(true);
    told.west = FLAT;
    expect(some.isAbandoned(copy)).toBe(false);
  });

  it('has left slices that are to stay unless both lead where the host says', () => {
    told.west = { ...FLAT, writes: false };
    const isToStay = (): boolean => {
      const some = others(0);
      some.isToStay(copy);
      some.look();
      return some.isToStay(copy);
    };
    expect(isToStay()).toBe(false);
    told.west = { network: 'Isolated', writes: false };
    expect(isToStay()).toBe(true);
    told.west = FLAT;
    expect(isToStay()).toBe(true);
  });

  it('is none of these where it stands for another cluster', () => {
    const some = others(0, false);
    expect([some.isOthers(copy), some.isSeenTo(copy), some.isToStay(copy), some.isAbandoned(copy)]).not.toContain(true);
  });
});
