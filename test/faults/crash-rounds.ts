import { expect } from 'vitest';
import { until } from '../../hack/until.ts';
import type { ProxiedRequest } from '../fixtures/fault-proxy.ts';
import { kubectl } from '../fixtures/live-pods.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import type { MovesLab } from './moves-lab.ts';
import { type HeldWrite, holdNth, type Moment } from './nth-write.ts';
import { isWriteOf, unnamedWrites, writeInWords } from './kinds-of-writes.ts';

/** A move in a namespace of its own, from its cause to its end. Pods are those of a Deployment `web` that wants one. */
export interface CrashScenario {
  /** Part of the names of its namespaces. */
  readonly id: string;
  /** Of what move the writes are, for the table. */
  readonly what: string;
  /** Where the program is killed. */
  readonly sites: readonly CrashSite[];
  /** How many of these moves are held beside each other. Default 1: the program makes them one after the other. */
  readonly atOnce?: number;
  /** The line to a member is cut for it: no other one that needs that is made meanwhile. It takes a while, so the others begin later. */
  readonly cutsLine?: true;
  /** The fewest pods that are Ready at any moment. */
  readonly fewest: number;
  /** Until its pod runs. */
  arrange(namespace: string): Promise<void>;
  /** What comes before it begins, once the pods of all run. */
  lead?(namespace: string): Promise<void>;
  begin(namespace: string): Promise<void>;
  /** @throws how it is instead */
  isOver(namespace: string): Promise<boolean>;
  /** What has to hold at the end, and for what happened until then. */
  expectWell(namespace: string): Promise<void>;
}

/** The program is killed before or after the `nth` write of that kind, like `POST pods/eviction (host)`. */
export interface CrashSite {
  readonly kind: string;
  readonly nth: number;
  readonly when: Moment;
}

/** One of the moves of a round. */
interface Lane {
  readonly scenario: CrashScenario;
  readonly namespace: string;
  readonly site: CrashSite;
}

const MOMENTS = ['before', 'after'] as const;
/** Requests of the program last for 30 s at most. What is not reached by then, as others were held before it, is tried in another round. */
const HELD_MS = 22_000;

/**
 * Several moves at a time, each held at its site; when all are, the program is killed, once. Each of them is found and finished. The one
 * kill says of each move as much as one of its own would: they have nothing in common but the program. `named`: kinds of writes at which the program is
 * killed in one round or another: no move makes another kind. @returns which were reached
 */
export async function crashRound(lab: MovesLab, lanes: readonly Lane[], named: readonly string[]): Promise<boolean[]> {
  await lab.calm();
  await Promise.all(lanes.map(({ scenario, namespace }) => scenario.arrange(namespace)));
  await Promise.all(lanes.map(async ({ scenario, namespace }) => await scenario.lead?.(namespace)));
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const counting = lanes.map(({ namespace }) => fewestReady(lab.host, namespace, 'web', () => ended));
  const held = lanes.map((lane) => holdOf(lab, lane));
  const seenSince = lab.seenFromNow();
  const isThrough = async (index: number): Promise<boolean> =>
    held[index]?.found !== undefined || (await lanes[index]?.scenario.isOver(lanes[index].namespace)) === true;
  const areThrough = async (some: readonly number[], timeoutMs: number): Promise<void> => {
    await Promise.all(
      // What is not there by then comes in another round.
      some.map(
        async (index) => await until('it is held', () => isThrough(index), { timeoutMs }).catch(() => undefined),
      ),
    );
  };
  try {
    const all = lanes.map((_, index) => index);
    const slow = all.filter((index) => lanes[index]?.scenario.cutsLine === true);
    for (const some of [slow, all.filter((index) => !slow.includes(index))]) {
      await Promise.all(some.map(async (index) => await lanes[index]?.scenario.begin(lanes[index].namespace)));
      await areThrough(some, some === slow ? 90_000 : HELD_MS);
    }
    for (const one of held) one.remove();
    if (held.some(({ found }) => found !== undefined)) await lab.crash();
    await Promise.all(
      lanes.map(async ({ scenario, namespace, site }) => {
        const what = `${scenario.what} is over, killed ${siteInWords(site)}`;
        await until(what, () => scenario.isOver(namespace), { timeoutMs: 150_000 });
      }),
    );
  } finally {
    end();
    await Promise.allSettled(counting);
  }
  const seen = seenSince();
  for (const [index, { scenario, namespace, site }] of lanes.entries()) {
    expect(unnamedWrites(seen, namespace, named), `${namespace}: the program is killed at none of these`).toEqual([]);
    const where = `${namespace} ${siteInWords(site)}\n${lab.told(namespace)}`;
    expect(await counting[index], where).toBeGreaterThanOrEqual(scenario.fewest);
    await scenario.expectWell(namespace);
    await kubectl(lab.host, ['delete', 'namespace', namespace, '--wait=false']);
  }
  return held.map(({ found }) => found !== undefined);
}

/** Before and after each of the first so many writes of a kind. */
export function each(kind: string, most = 1): CrashSite[] {
  return Array.from({ length: most }, (_, index) => index + 1).flatMap((nth) =>
    MOMENTS.map((when) => ({ kind, nth, when })),
  );
}

/** Before or after the first write of a kind that is the same in all moves. */
export function once(when: Moment, kind: string): CrashSite {
  return { kind, nth: 1, when };
}

export function siteInWords({ when, kind, nth }: CrashSite): string {
  return `${when} ${kind} ${String(nth)}`;
}

function holdOf(lab: MovesLab, { namespace, site }: Lane): HeldWrite {
  const isOwn = isWriteOf(namespace);
  const matches = (request: ProxiedRequest, side: string): boolean =>
    isOwn(request) && writeInWords(side, request) === site.kind;
  return holdNth(lab.proxies, matches, site.nth, site.when);
}
