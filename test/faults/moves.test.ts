import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { controllerOf } from '../../src/kube/owner-references.ts';
import type { ProxiedRequest } from '../fixtures/fault-proxy.ts';
import { eventsOf, type Fields, kubectl, podsOf, read } from '../fixtures/live-pods.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import { deployment, settled, whereAre } from '../fixtures/scheduling.ts';
import { CrashScenarios } from './crash-scenarios.ts';
import { killAtEverySite } from './every-site.ts';
import { isWriteOf, OF_A_MOVE, writeInWords } from './kinds-of-writes.ts';
import { report, violationsOf, wait } from './lab.ts';
import { isGoing, isReleased, MovesLab, NAMES, THIRD } from './moves-lab.ts';
import { holdNth, type Moment } from './nth-write.ts';

/** More than a move has; the loop ends at the first number that is not reached. */
const MOST_SITES = 60;
/** Longer than the Leases of the program last. */
const CUT_MS = 20_000;

let lab: MovesLab;
beforeAll(async () => {
  lab = await MovesLab.start();
});
afterAll(async () => {
  await lab?.close();
});
beforeEach(async () => {
  await lab.calm();
});

/** It runs in west, and nothing is left of it in east. */
async function isMoved(namespace: string): Promise<boolean> {
  return (await lab.isAlone(namespace, 'west')) !== undefined;
}

describe('the mover is killed', () => {
  /** Moves one pod, and kills the program at its n-th write since of those that match, if there is one. Answers which that was. */
  async function moveAndKill(
    namespace: string,
    when: Moment,
    site: number,
    kind?: string,
  ): Promise<string | undefined> {
    await lab.prepare(namespace);
    await lab.host.apply([deployment(namespace, 'web', 1, '100m')]);
    await settled(lab.host, namespace, 'web', { east: 1 });
    let words: string | undefined;
    const what = `the move is over, killed ${when} write ${String(site)}`;
    const isOver = async (): Promise<boolean> => await isMoved(namespace);
    const isOwn = isWriteOf(namespace);
    const matches = (request: ProxiedRequest, side: string): boolean =>
      isOwn(request) && (kind === undefined || kind === writeInWords(side, request));
    const fewest = await fewestReady(lab.host, namespace, 'web', async () => {
      const held = holdNth(lab.proxies, matches, site, when);
      await lab.taint(true);
      await until(what, async () => held.found !== undefined || (await isOver()), { timeoutMs: 60_000 });
      held.remove();
      if (held.found === undefined) return;
      words = writeInWords(held.found.side, held.found.request);
      await lab.crash();
      await until(`${what}, ${words}`, isOver, { timeoutMs: 120_000 });
    });
    expect(fewest, what).toBe(1);
    lab.expectMovedOnce(namespace);
    await lab.taint(false);
    await kubectl(lab.host, ['delete', 'namespace', namespace, '--wait=false']);
    return words;
  }

  test('F67: at every write of a graceful move', { timeout: 2_400_000 }, async (context) => {
    const sites: string[] = [];
    const killed = async (name: string, when: Moment, site: number, kind?: string): Promise<boolean> => {
      const words = await moveAndKill(`moves-${when}-${name}`, when, site, kind);
      if (words === undefined) return false;
      console.info(`${when} ${name}: ${words}`);
      sites.push(`${when} ${words}`);
      return true;
    };
    for (const when of ['before', 'after'] as const) {
      for (let site = 1; site <= MOST_SITES && (await killed(String(site), when, site)); site++);
    }
    // Writes come in another order now and then, so that one may never have been the n-th.
    for (const when of ['before', 'after'] as const) {
      for (const [index, kind] of OF_A_MOVE.entries()) {
        if (sites.includes(`${when} ${kind}`)) continue;
        expect(await killed(`kind-${String(index)}`, when, 1, kind), `${when} ${kind}`).toBe(true);
      }
    }
    expect(violationsOf(lab.spillway)).toEqual([]);
    const kinds = new Set(sites.map((site) => site.replace(/^\w+ /, ''))).size;
    const figures = `${String(sites.length)} crash sites, ${String(kinds)} kinds of writes; at each 1 eviction, 1 pod in its place, 1 Ready all the time`;
    report(context, ['F67'], 'found and finished, nothing orphaned', figures);
  });

  test(
    'F67: at every write of orders, of what is handed on and given back, of a loss and a heal, and of moves that go directly',
    { timeout: 2_400_000 },
    async (context) => {
      const scenarios = new CrashScenarios(lab);
      const ended = new AbortController();
      const following = scenarios.follow(ended.signal);
      const killed = await killAtEverySite(lab, scenarios.all).finally(() => ended.abort());
      await Promise.allSettled(following);
      expect(violationsOf(lab.spillway)).toEqual([]);
      const sites = [...killed].map(([{ what }, { length }]) => `${String(length)} of ${what}`).join(', ');
      const kinds = new Set([...killed].flatMap(([{ id }, all]) => all.map(({ kind }) => `${id} ${kind}`))).size;
      const figures = `and of other moves what is not the same as there, at ${sites} (kinds of writes, by move: ${String(kinds)}); at each never two evictions for a move, 1 pod at the end, which its ReplicaSet counts, every order over with its result`;
      report(context, ['F67'], 'found and finished, nothing orphaned', figures);
    },
  );
});

describe('a line is cut in the middle of a move', () => {
  /** One pod that serves in east, under a policy with that. */
  async function serving(namespace: string, failover: Fields = {}): Promise<Pod> {
    await lab.prepare(namespace, failover);
    return await lab.serves(namespace);
  }

  /** It is to leave. */
  async function releasedNow(namespace: string): Promise<void> {
    await lab.taint(true);
    await until('one is released, and another one waits in west', async () => {
      const released = (await podsOf(lab.host, namespace)).some(isReleased);
      return released && (await lab.ungated(namespace)).some(({ spec }) => spec.nodeName === 'west');
    });
  }

  /** @returns how long that took, in ms. */
  async function movedWhenOpen(namespace: string, side: string): Promise<number> {
    const began = Date.now();
    await until(
      `it is in west after the line to ${side} was cut`,
      async () => {
        await lab.openAll(namespace);
        return await isMoved(namespace);
      },
      { timeoutMs: 120_000 },
    );
    return Date.now() - began;
  }

  test.for(['host', ...NAMES])('F68: to %s', async (side, context) => {
    const namespace = `cut-${side}`;
    await serving(namespace);
    let tookMs = 0;
    const fewest = await fewestReady(lab.host, namespace, 'web', async () => {
      await releasedNow(namespace);
      lab.cut(side);
      await wait(CUT_MS);
      expect(lab.evictions(namespace)).toEqual([]);
      expect((await podsOf(lab.host, namespace)).filter(isReleased)).toHaveLength(1);
      lab.proxies[side]?.clear();
      tookMs = await movedWhenOpen(namespace, side);
    });
    expect(fewest).toBe(1);
    lab.expectMovedOnce(namespace);
    expect(violationsOf(lab.spillway)).toEqual([]);
    const figures = `line to ${side} cut for ${String(CUT_MS / 1_000)} s: moved ${(tookMs / 1_000).toFixed(1)} s after it, 1 eviction, 1 Ready all the time`;
    report(context, ['F68'], 'waits, and goes on', figures);
  });

  /** Over long before the line is back. */
  const GRACE_SECONDS = 8;

  test('F68: to east, for longer than gracePeriodSeconds: the time is not up, whatever onTimeout says, and begins anew', async (context) => {
    const namespace = 'cut-east-in-time';
    await serving(namespace, { cluster: { gracePeriodSeconds: GRACE_SECONDS, onTimeout: 'Evict' } });
    let tookMs = 0;
    const fewest = await fewestReady(lab.host, namespace, 'web', async () => {
      await releasedNow(namespace);
      lab.cut('east');
      await wait(CUT_MS);
      lab.proxies['east']?.clear();
      await wait((GRACE_SECONDS * 1_000) / 2);
      expect(lab.evictions(namespace)).toEqual([]);
      tookMs = await movedWhenOpen(namespace, 'east');
    });
    expect(fewest).toBe(1);
    lab.expectMovedOnce(namespace);
    expect(violationsOf(lab.spillway)).toEqual([]);
    const figures = `line to east cut for ${String(CUT_MS / 1_000)} s with gracePeriodSeconds ${String(GRACE_SECONDS)} and onTimeout Evict: no eviction until ${String(GRACE_SECONDS / 2)} s after it, moved ${(tookMs / 1_000).toFixed(1)} s later, 1 Ready all the time`;
    report(context, ['F68'], 'waits, and goes on', figures);
  });

  test('F68: to west, for longer than gracePeriodSeconds: what serves is given back', async (context) => {
    const namespace = 'cut-west-in-time';
    const only = await serving(namespace, { cluster: { gracePeriodSeconds: GRACE_SECONDS, onTimeout: 'GiveBack' } });
    const own = async (): Promise<Pod[]> => (await podsOf(lab.host, namespace)).filter((pod) => !isGoing(pod));
    let tookMs = 0;
    const fewest = await fewestReady(lab.host, namespace, 'web', async () => {
      await releasedNow(namespace);
      lab.cut('west');
      const since = Date.now();
      await until('its ReplicaSet has it again, and it alone', async () => {
        const [first, ...others] = await own();
        const isBack = first !== undefined && !isReleased(first) && controllerOf(first) !== undefined;
        return isBack && others.length === 0 && first.metadata.uid === only.metadata.uid;
      });
      tookMs = Date.now() - since;
      await wait(CUT_MS - tookMs);
      lab.proxies['west']?.clear();
      await until('nothing is left in west', async () => {
        const copies = await podsOf(lab.memberOf('west'), namespace);
        return copies.length === 0 && (await podsOf(lab.host, namespace)).length === 1;
      });
    });
    expect(fewest).toBe(1);
    expect(lab.evictions(namespace)).toEqual([]);
    expect(violationsOf(lab.spillway)).toEqual([]);
    const figures = `line to west cut for ${String(CUT_MS / 1_000)} s with gracePeriodSeconds ${String(GRACE_SECONDS)}: given back after ${(tookMs / 1_000).toFixed(1)} s, 0 evictions, 1 Ready all the time, nothing left in west`;
    report(context, ['F68'], 'waits, and goes on', figures);
  });
});

describe('most members are cut off', () => {
  /** A member is looked at for 15 s before its pods are moved, and the policy says 1 s. */
  const LONG_MS = 30_000;
  const PODS = 3;

  const paused = async (): Promise<number> => {
    const text = await (await fetch(`${lab.spillway.url}/metrics`)).text();
    return Number(/^spillway_descheduler_paused\S* (\d+)$/m.exec(text)?.[1]);
  };
  /** Condition MovesAllowed of a member, as `False MovesPaused: message`; nothing when it has none. */
  const movesAllowed = async (name: string): Promise<string> => {
    const member = await read<MemberCluster>(lab.host, `/apis/spillway.dev/v1alpha1/memberclusters/${name}`);
    const found = member?.status?.conditions?.find(({ type }) => type === 'MovesAllowed');
    return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`;
  };
  const untilAllowed = async (name: string): Promise<void> => {
    await until(`MovesAllowed of ${name} is True`, async () => {
      const now = await movesAllowed(name);
      if (now.startsWith('True NotPaused: ')) return true;
      throw new Error(`it is ${now}`);
    });
  };

  test('F56: two of three at once, though all pods would fit into the third', async (context) => {
    const namespace = 'cut-most';
    await lab.prepare(namespace, { onMemberLost: { after: '1s' } });
    await lab.host.apply([deployment(namespace, 'web', PODS, '100m')]);
    await settled(lab.host, namespace, 'web', { east: PODS });
    const uids = async (): Promise<Set<string | undefined>> =>
      new Set((await podsOf(lab.host, namespace)).map(({ metadata }) => metadata.uid));
    const before = await uids();
    for (const name of ['east', THIRD]) lab.cut(name);
    await until('moves are paused', async () => (await paused()) === 1, { timeoutMs: 60_000 });
    const since = Date.now();
    const told = await until('it is told of both', async () => {
      const all = await eventsOf(lab.host, 'default', 'east', 'MemberCluster');
      return all.find(({ reason }) => reason === 'MovesPaused')?.message;
    });
    expect(told).toMatch(/2 of 3 members do not answer.*spec\.clusterTaints/);
    for (const name of ['east', THIRD]) {
      const said = await until(`${name} says so`, async () => {
        const now = await movesAllowed(name);
        return now.startsWith('False MovesPaused: ') ? now : undefined;
      });
      expect(said).toContain('2 of 3 members do not answer');
      // Ready to be pasted.
      const way = `kubectl patch membercluster ${name} --type=merge -p '{"spec":{"clusterTaints":[{"key":"gone","effect":"NoExecute"}]}}'`;
      expect(said).toContain(way);
    }
    expect(await movesAllowed('west')).toBe('');
    await wait(LONG_MS - (Date.now() - since));
    expect(await uids()).toEqual(before);
    expect(lab.evictions(namespace)).toEqual([]);
    expect(await movesAllowed('east')).toMatch(/^False MovesPaused: /);

    lab.proxies[THIRD]?.clear();
    const answers = Date.now();
    await until(
      'one of three is lost: its pods are replaced',
      async () => {
        return whereAre(await podsOf(lab.host, namespace))['west'] === PODS;
      },
      { timeoutMs: 90_000 },
    );
    const tookMs = Date.now() - answers;
    expect(await paused()).toBe(0);
    // Also of the one that is lost still.
    for (const name of ['east', THIRD]) await untilAllowed(name);
    expect(lab.evictions(namespace)).toHaveLength(PODS);
    lab.proxies['east']?.clear();
    await until(
      'one copy is left of each',
      async () => {
        const copies = await Promise.all(NAMES.map(async (name) => await podsOf(lab.memberOf(name), namespace)));
        return copies.map(({ length }) => length).join() === `0,${String(PODS)}`;
      },
      { timeoutMs: 60_000 },
    );
    for (const name of ['east', THIRD]) await untilAllowed(name);
    expect(violationsOf(lab.spillway)).toEqual([]);
    const figures = `2 of 3 for ${String(LONG_MS / 1_000)} s: 0 evictions; when 1 of them answered, ${String(PODS)} pods of the other replaced within ${(tookMs / 1_000).toFixed(1)} s`;
    report(context, ['F56'], 'nothing is evicted', figures);
  });
});
