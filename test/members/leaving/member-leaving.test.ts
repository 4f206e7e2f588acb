import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemberLeaving, type MemberLeavingOptions } from '../../../src/members/leaving/member-leaving.ts';
import type { UndeletedList } from '../../../src/members/undeleted-in-words.ts';
import { inEvents, type Remains } from '../../../src/members/leaving/remains.ts';

const NOTHING: Remains = { pods: [], copies: [], others: [], unseen: [] };

/** All that a leaving member asks about, as a test sets it, and what became of it. */
class World {
  leaves = true;
  givenUp = false;
  forced = false;
  unreachable: string | undefined;
  nodes: { name: string; pods: number | undefined; undeleted?: UndeletedList }[] = [];
  nodesKnown = true;
  pods = 0;
  claims: string[] | undefined = [];
  known: string[] = [];
  written: string[] = [];
  remains: Remains = NOTHING;
  namespaces: string[] = [];
  kept = new Map<string, string>();
  readonly events: string[] = [];
  readonly done: string[] = [];

  start(signal: AbortSignal): MemberLeaving {
    const options: MemberLeavingOptions = {
      member: () => ({ name: 'east', uid: 'u-1', hostId: 'h1', forced: this.forced, forceAfterSeconds: 300 }),
      leaves: () => this.leaves,
      givenUp: () => this.givenUp,
      unreachable: () => this.unreachable,
      nodes: () => this.nodes,
      nodesKnown: () => this.nodesKnown,
      podCount: () => this.pods,
      claims: () => this.claims,
      knownRemains: () => this.known,
      writtenRemains: () => this.written,
      readRemains: () => Promise.resolve(this.remains),
      namespaces: () => this.namespaces,
      removeNamespace: (name) => {
        this.done.push(`namespace ${name}`);
        return Promise.resolve(this.kept.get(name));
      },
      removeRequests: () => {
        this.done.push('requests');
        return Promise.resolve();
      },
      mayWrite: () => true,
      event: (type, reason, message) => void this.events.push(`${type} ${reason}: ${message}`),
      logger: pino({ level: 'silent' }),
    };
    const leaving = new MemberLeaving(options);
    void leaving.run(signal);
    return leaving;
  }
}

describe('a member that leaves', () => {
  let world: World;
  let stop: AbortController;
  beforeEach(() => {
    vi.useFakeTimers();
    world = new World();
    stop = new AbortController();
  });
  afterEach(() => {
    stop.abort();
    vi.useRealTimers();
  });
  const pass = async (): Promise<void> => void (await vi.advanceTimersByTimeAsync(5_000));

  it('names copies that were told to end and do not', async () => {
    const first = [{ copy: 'shop/a', since: '2026-01-01T00:00:00Z', heldBy: 'finalizer a/b' }];
    world.nodes = [{ name: 'east', pods: 1, undeleted: { count: 1, first } }];
    world.pods = 1;
    const leaving = world.start(stop.signal);
    await pass();
    expect(leaving.state?.message).toContain(
      '1 pod is there (virtual node east). What the member was told to delete, and still has: shop/a (since 2026-01-01T00:00:00Z: finalizer a/b).',
    );
  });

  it('goes step by step, and does nothing in the member before all of its pods, claims and copies are gone', async () => {
    world.nodes = [{ name: 'east', pods: 2 }];
    world.pods = 2;
    const leaving = world.start(stop.signal);
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'PodsRemain', pods: 2, done: false });
    expect(leaving.state?.message).toContain('2 pods are there (virtual node east).');
    expect(leaving.state?.message).toContain('kubectl drain east ');
    for (const mode of ['drain', 'detach'])
      expect(leaving.state?.message).toContain(`kubectl spillway leave east --mode=${mode}.`);
    expect(leaving.state?.message).not.toContain('force-leave');
    world.nodes = [{ name: 'east', pods: 0 }];
    world.pods = 0;
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'NodesRemain', pods: 0 });
    world.nodes = [];
    world.claims = ['shop/data'];
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'ClaimsRemain', claims: 1 });
    expect(leaving.state?.message).toContain('1 claim of this cluster has its data there: shop/data.');
    world.claims = [];
    world.remains = { ...NOTHING, pods: ['Pod shop/late'], copies: ['Secret shop/key'] };
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'CopiesRemain', pods: 1, copies: 1 });
    expect(world.done).toEqual([]);
    world.remains = { ...NOTHING, others: ['PersistentVolumeClaim shop/data'] };
    world.namespaces = ['shop', 'empty'];
    world.kept.set('shop', 'holds Service theirs');
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'NothingRemains', done: true });
    expect(world.done).toEqual(['namespace shop', 'namespace empty', 'requests']);
    expect(world.events.at(-1)).toBe(
      'Normal Left: The member has left: no virtual node, pod, copy of a ConfigMap, Secret or Service, or disruption budget of it is left. ' +
        'What stays there: PersistentVolumeClaim shop/data, Namespace shop (holds Service theirs).',
    );
    expect(world.events.map((event) => event.split(' ', 2).join(' '))).toEqual([
      'Normal Leaving:',
      'Normal Leaving:',
      'Normal Leaving:',
      'Normal Leaving:',
      'Normal Left:',
    ]);
  });

  it('does nothing while former virtual nodes or claims are not known, or it does not answer', async () => {
    world.nodesKnown = false;
    const leaving = world.start(stop.signal);
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'NodesRemain', done: false });
    world.nodesKnown = true;
    world.claims = undefined;
    await pass();
    expect(leaving.state?.done).toBe(false);
    world.claims = [];
    world.unreachable = 'connection refused';
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'MemberUnreachable', done: false });
    expect(leaving.state?.message).toContain(
      'kubectl annotate --overwrite membercluster east spillway.dev/force-leave=u-1',
    );
    expect(leaving.state?.message).toContain('counts once it could not be asked for 300 s without a break: kubectl');
    world.forced = true;
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'MemberUnreachable', done: false });
    expect(leaving.state?.message).toMatch(
      /force-leave counts once it could not be asked for 300 s without a break; a restart of Spillway begins that anew\.$/,
    );
    expect(world.done).toEqual([]);
  });

  it('does not say that nothing is left where nobody could look', async () => {
    world.remains = { ...NOTHING, unseen: ['Secrets of namespace shop (which may not be listed)'] };
    world.start(stop.signal);
    await pass();
    expect(world.events.at(-1)).toBe(
      'Normal Left: The member has left: no virtual node, pod, copy of a ConfigMap, Secret or Service, or disruption budget of it is left ' +
        'where Spillway may look. What may remain there: Secrets of namespace shop (which may not be listed).',
    );
  });

  it('says nothing of one that does not leave', async () => {
    world.leaves = false;
    const leaving = world.start(stop.signal);
    await pass();
    expect([leaving.state, world.events]).toEqual([undefined, []]);
  });

  it('is given up with all names that were ever known, once its virtual nodes are gone', async () => {
    world.givenUp = true;
    world.unreachable = 'connection refused';
    world.nodes = [{ name: 'east', pods: undefined }];
    world.pods = 2;
    world.known = ['Pod shop/a', 'Secret shop/key'];
    world.written = ['Pod shop/of-a-former-process'];
    const leaving = world.start(stop.signal);
    await pass();
    const mayRemain = ['Pod shop/a', 'Pod shop/of-a-former-process', 'Secret shop/key'];
    expect(leaving.state).toMatchObject({ reason: 'GivenUp', done: false, pods: 2, mayRemain });
    world.known = [];
    world.nodes = [];
    await pass();
    expect(leaving.state).toMatchObject({ reason: 'GivenUp', done: true, mayRemain });
    expect(world.done).toEqual([]);
    expect(world.events.at(-1)).toBe(`Warning MayRemain: May remain in the member: ${mayRemain.join(', ')}`);
  });
});

it('names are told in few Events, none too long, and the last says how many are left out', () => {
  const names = Array.from({ length: 1_000 }, (_, index) => `Pod shop/a-rather-long-name-${index}`);
  const texts = inEvents(names);
  expect(texts).toHaveLength(8);
  expect(Math.max(...texts.map((text) => text.length))).toBeLessThan(900);
  const told = texts.join(', ').split(', ').length;
  expect(texts.at(-1)).toMatch(new RegExp(` and ${1_000 - told} more$`));
  expect(inEvents(names.slice(0, 30)).join(', ').split(', ')).toEqual(names.slice(0, 30));
  expect(inEvents([])).toEqual([]);
});
