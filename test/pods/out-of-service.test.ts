import { beforeEach, describe, expect, it } from 'vitest';
import { HOST_NAME_ANNOTATION, MIRRORED_CONDITION, UID_LABEL } from '../../src/api/marks.ts';
import { conditionOf } from '../../src/kube/conditions.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { mirroredMessage } from '../../src/pods/host-status.ts';
import type { FencingPort } from '../../src/pods/pod-ports.ts';
import { eachInPodWorld, type PodWorld, PODS, WEB } from '../fixtures/pod-world.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';

const NOW = '2026-01-01T00:02:00Z';
const DELETED = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 };

let world: PodWorld;
eachInPodWorld((one) => (world = one));

/** What is stored in the host outlives the process. */
let stored: Set<string>;
let isFenced: boolean;
let isRead: boolean;
let hasRoom: boolean;
/** How often it was asked whether something is to end first. */
let asked: number;
beforeEach(() => {
  [stored, asked] = [new Set(), 0];
  [isFenced, isRead, hasRoom] = [true, true, true];
  const fencing: FencingPort = {
    isFenced: () => isFenced,
    get isRead() {
      return isRead;
    },
    get told() {
      asked += 1;
      return stored;
    },
    isTold: (uid) => stored.has(uid),
    tell: ({ metadata: { uid = '' } }) => {
      if (hasRoom) stored = new Set([...stored, uid]);
      return Promise.resolve(hasRoom);
    },
  };
  world.fencing = fencing;
});

/** A pod with a copy that runs, and the line to its member is cut. */
async function lost(name = 'web-0'): Promise<{ host: Pod; copy: Pod }> {
  const bound = await world.stored(world.host, hostPod({ metadata: { name } }));
  world.member.fault = undefined;
  const copy = await copyOf(bound);
  const conditions = [{ type: MIRRORED_CONDITION, status: 'True', message: mirroredMessage('east', copy) }];
  world.host.edit(`${PODS}/${name}`, { status: { ...copy.status, conditions } });
  cut();
  return { host: bound, copy };
}

async function copyOf({ metadata: { name, uid = '' } }: Pod): Promise<Pod> {
  const { labels, annotations } = memberPod().metadata;
  const metadata = {
    name,
    labels: { ...labels, [UID_LABEL]: uid },
    annotations: { ...annotations, [HOST_NAME_ANNOTATION]: name },
  };
  const copy = memberPod({ metadata });
  const conditions = [{ type: 'Ready', status: 'True' as const }];
  return await world.stored(world.member, { ...copy, status: { ...copy.status, conditions } });
}

function cut(): void {
  world.reachable = false;
  world.member.fault = () => ({ code: 503, message: 'no way' });
  world.member.seen.length = 0;
}

/** It answers again, as it was. */
function heal(): void {
  isFenced = false;
  world.reachable = true;
  world.member.fault = undefined;
  world.member.seen.length = 0;
  world.controller.requeueAll();
}

const writes = () =>
  world.member.seen.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`);

describe('by the word of an administrator', () => {
  it('a pod that is being deleted is gone at once, and nothing else happens', async () => {
    const { host } = await lost();
    await lost('web-1');
    world.host.edit(WEB, { metadata: DELETED });
    await world.start();
    await world.follow(1_000);
    expect([world.host.objects.has(WEB), world.host.objects.has(`${PODS}/web-1`)]).toEqual([false, true]);
    expect([...stored]).toEqual([host.metadata.uid]);
  });

  it('that does not count, it stays', async () => {
    await lost();
    world.host.edit(WEB, { metadata: DELETED });
    isFenced = false;
    await world.start();
    await world.follow(60_000);
    expect([world.host.objects.has(WEB), stored.size]).toEqual([true, 0]);
  });

  it('it goes, too, when this process has never heard of the member', async () => {
    await lost();
    world.host.edit(WEB, { metadata: DELETED });
    world.frozen = 'the member is not known to be the pinned cluster';
    await world.start();
    await world.follow(1_000);
    expect(world.host.objects.has(WEB)).toBe(false);
  });

  it('it stays when it cannot be stored that it was ended, and says so', async () => {
    await lost();
    world.host.edit(WEB, { metadata: DELETED });
    hasRoom = false;
    await world.start();
    await world.follow(1_000);
    expect(world.host.objects.has(WEB)).toBe(true);
    expect(world.events).toContain('OutOfServiceFull');
  });

  it('one with a finalizer says that nobody knows how it ended', async () => {
    await lost();
    world.host.edit(WEB, { metadata: { ...DELETED, finalizers: ['batch.kubernetes.io/job-tracking'] } });
    await world.start();
    await world.follow(1_000);
    expect(world.podIn(world.host)).toMatchObject({
      metadata: { deletionGracePeriodSeconds: 0 },
      status: { phase: 'Failed', reason: 'MemberStatusLost' },
    });
  });

  it('others are told of as ever while the member does not answer', async () => {
    await lost();
    await lost('web-1');
    await world.start();
    heal();
    await world.follow(3_000);
    cut();
    isFenced = true;
    world.host.edit(WEB, { metadata: DELETED });
    await world.follow(1_000);
    world.unreachableSince = { wall: Date.now() - 120_000, monotonic: -120_000 };
    world.controller.requeueAll();
    await world.follow(3_000);
    expect([...stored]).toHaveLength(1);
    expect(conditionOf(world.podIn(world.host, `${PODS}/web-1`), 'Ready')).toMatchObject({
      status: 'False',
      reason: 'MemberUnreachable',
    });
  });

  it.each([
    ['', {}],
    [' of a Job', { finalizers: ['batch.kubernetes.io/job-tracking'] }],
  ])('a member that answers in between ends its copy in order, and no pod%s is called lost', async (_, more) => {
    await lost();
    world.host.edit(WEB, { metadata: { ...DELETED, ...more } });
    const tell = world.fencing.tell.bind(world.fencing);
    // The line is back in the moment between what is stored and what is sent.
    world.fencing.tell = async (pod, signal) => {
      const answer = await tell(pod, signal);
      heal();
      return answer;
    };
    await world.start();
    await world.follow(1_000);
    expect(world.member.requests('DELETE')).toHaveLength(1);
    expect(world.events).toEqual([]);
  });

  it.each(['meanwhile', 'while the member does not let it be deleted'])(
    'a copy that has ended by itself %s keeps nothing else from going on',
    async (when) => {
      const { copy } = await lost();
      await world.stored(world.host, hostPod({ metadata: { name: 'new' } }));
      world.host.edit(WEB, { metadata: { ...DELETED, finalizers: ['batch.kubernetes.io/job-tracking'] } });
      const end = () => world.member.edit(WEB, { status: { ...copy.status, phase: 'Succeeded' } });
      if (when === 'meanwhile') end();
      const tell = world.fencing.tell.bind(world.fencing);
      world.fencing.tell = async (pod, signal) => {
        const answer = await tell(pod, signal);
        heal();
        if (when !== 'meanwhile') {
          world.member.fault = ({ method }) => (method === 'DELETE' ? { code: 500, message: 'a webhook' } : undefined);
        }
        return answer;
      };
      await world.start();
      await world.follow(5_000);
      if (when !== 'meanwhile') {
        expect(world.creations).toEqual([]);
        end();
        await world.follow(2_000);
        world.member.fault = undefined;
      }
      await world.follow(15_000);
      expect(world.podIn(world.host).status?.phase).toBe('Succeeded');
      expect(world.creations.map(({ body }) => (body as Pod).metadata.name)).toEqual(['new']);
      expect(world.member.requests('DELETE').length).toBeGreaterThan(0);
      expect(world.member.objects.has(WEB)).toBe(false);
    },
  );
});

describe('a member that comes back with copies of pods that were ended', () => {
  async function ended(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await lost(name);
      world.host.edit(`${PODS}/${name}`, { metadata: DELETED });
    }
    await world.start();
    await world.follow(2_000);
    expect(world.host.objects.size).toBe(0);
  }
  const NAMES = Array.from({ length: 20 }, (_, index) => `web-${index}`);

  it.each(['the same process', 'another one'])(
    'ends all of them, without a minute of doubt or a breaker: %s',
    async (who) => {
      await ended(NAMES);
      if (who === 'another one') {
        await world.end();
        await world.start();
      }
      heal();
      await world.follow(2_000);
      expect(world.member.requests('DELETE')).toHaveLength(20);
      expect(world.controller.orphanedPods).toMatchObject({ uids: [], open: false });
    },
  );

  it('without that being stored they would be kept', async () => {
    await ended(NAMES);
    stored = new Set();
    await world.end();
    await world.start();
    heal();
    await world.follow(90_000);
    expect(world.member.requests('DELETE').length).toBeLessThan(10);
    expect(world.controller.orphanedPods.open).toBe(true);
  });

  it('tells all of them to end before anything is made or told of others', async () => {
    await ended(['web-1', 'web-2']);
    const other = await world.stored(world.host, hostPod({ metadata: { name: 'other' } }));
    await world.stored(world.host, hostPod({ metadata: { name: 'new' } }));
    world.member.fault = undefined;
    await copyOf(other);
    cut();
    // The host does not say for a while what it knows of the two.
    world.host.fault = ({ method, path }) => (method === 'GET' && path === PODS ? { code: 503 } : undefined);
    heal();
    await world.follow(3_000);
    expect(writes()).toEqual([]);
    expect(world.host.requests('PATCH')).toEqual([]);
    world.host.fault = undefined;
    await world.follow(10_000);
    const [first, second, ...rest] = writes();
    expect(new Set([first, second])).toEqual(new Set([`DELETE ${PODS}/web-1`, `DELETE ${PODS}/web-2`]));
    expect(rest).toContain(`POST ${PODS}`);
    expect(world.host.requests('PATCH').length).toBeGreaterThan(0);
  });

  it('those that wait for that are not looked at all the time, and go on as soon as the last one is told', async () => {
    await ended(['web-1']);
    for (let index = 0; index < 20; index += 1) {
      await world.stored(world.host, hostPod({ metadata: { name: `new-${index}` } }));
    }
    // The host does not say for a while what it knows of the one.
    world.host.fault = ({ method, path }) => (method === 'GET' && path.startsWith(PODS) ? { code: 503 } : undefined);
    heal();
    await world.follow(1_000);
    asked = 0;
    await world.follow(25_000);
    expect([writes(), asked]).toEqual([[], expect.toSatisfy((times: number) => times <= 20)]);
    world.host.fault = undefined;
    world.controller.requeue('shop/web-1');
    await world.follow(1_000);
    expect(world.creations).toHaveLength(20);
  });

  describe('and does not let one of them be deleted', () => {
    const refuses = (fault: { code: number; reason?: string; message: string }): void => {
      world.member.fault = ({ method, path }) => (method === 'DELETE' && path.endsWith('/web-1') ? fault : undefined);
    };
    const made = () => world.creations.map(({ body }) => (body as Pod).metadata.name);

    async function back(): Promise<void> {
      await ended(['web-1', 'web-2']);
      await world.stored(world.host, hostPod({ metadata: { name: 'new' } }));
      // Its controller has made it anew.
      await world.stored(world.host, hostPod({ metadata: { name: 'web-1' } }));
      heal();
    }

    it('goes on with all others, and says so, and that one is tried again', async () => {
      await back();
      refuses({ code: 403, reason: 'Forbidden', message: 'a policy denied the request: protected' });
      await world.follow(3_000);
      expect(made()).toEqual(['new']);
      expect(world.podIn(world.host, `${PODS}/new`).status?.conditions).toBeDefined();
      expect(world.controller.notEnded).toEqual([
        { copy: 'shop/web-1', why: expect.stringContaining('protected') as string },
      ]);
      world.member.fault = undefined;
      await world.follow(60_000);
      expect(made()).toEqual(['new', 'web-1']);
      expect(world.controller.notEnded).toEqual([]);
    });

    it('for a time, as of a webhook that begins with it: the others wait', async () => {
      await back();
      refuses({ code: 500, message: 'failed calling webhook' });
      await world.follow(20_000);
      expect([made(), world.controller.notEnded]).toEqual([[], []]);
      world.member.fault = undefined;
      await world.follow(40_000);
      expect(made()).toEqual(expect.arrayContaining(['new', 'web-1']));
    });

    it('for long, as of a webhook that does not come back: the others go on', async () => {
      await back();
      refuses({ code: 500, message: 'failed calling webhook' });
      await world.follow(90_000);
      expect([made(), world.controller.notEnded]).toMatchObject([['new'], [{ copy: 'shop/web-1' }]]);
      // What it was given once counts for one return.
      cut();
      world.controller.requeueAll();
      await world.follow(1_000);
      expect(world.controller.notEnded).toEqual([]);
    });
  });

  it('nothing is done before it is known what was ended', async () => {
    await world.stored(world.host, hostPod());
    [isFenced, isRead] = [false, false];
    await world.start();
    await world.follow(5_000);
    expect(writes()).toEqual([]);
    isRead = true;
    world.controller.requeueAll();
    await world.follow(2_000);
    expect(writes()).toEqual([`POST ${PODS}`]);
  });

  it('is not for a new pod of that name: its own copy is made once the former one is gone', async () => {
    await ended(['web-0']);
    const { uid } = (await world.stored(world.host, hostPod())).metadata;
    heal();
    await world.follow(5_000);
    expect(world.member.requests('DELETE')).toHaveLength(1);
    expect(world.podIn(world.member).metadata.labels?.[UID_LABEL]).toBe(uid);
  });
});
