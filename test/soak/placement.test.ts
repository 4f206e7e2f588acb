import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BurstLoad } from '../../hack/burst-load.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { workloadOf } from '../../src/placement/owner-chain.ts';
import { RandomScheduling } from '../fixtures/random-scheduling.ts';
import { errorsOf } from '../fixtures/topology.ts';
import { Happenings, type Round } from './happenings.ts';
import { History } from './history.ts';
import { type Lab, startLab } from './lab.ts';
import { Lasting } from './lasting.ts';
import { collectPreemptions, type DivisionVerdict, divisions, escapes, evictions, waiting, whole } from './oracles.ts';
import { chainOf, isOfDaemonSet, placeOf, readState, type State } from './state.ts';
import { type Made, makeWorkloads } from './workloads.ts';

/**
 * 300 workloads of all kinds on a host and three members with pools of GPU and spot nodes, in which everything changes at random: sizes,
 * versions, policies, priorities, members that are lost and back, gangs, tenants who cheat. Whenever it has calmed down, every pod
 * is where the division says, those that wait have to, no eviction was in vain, and all of it cost few writes.
 */
const SEED = Number(process.env['SOAK_SEED'] ?? Date.now() % 1_000_000);
const MINUTES = Number(process.env['SOAK_MINUTES'] ?? 10);
/** By then all is calm and as it should be, even on a machine with much else to do. */
const CALM_MS = 600_000;
/** Writes of Spillway at the host for each pod that got a place behind a virtual node; those that only time brings (Leases) apart. */
const WRITES_A_POD = 8;

const workspace = Workspace.create();
const random = new RandomScheduling(SEED);
const preemptions = new Map<string, Set<string>>();
/** Workloads, by UID, whose pods may be elsewhere than a division from nothing would have them, with the reason. */
const disturbed = new Map<string, string>();
/** UIDs of those that got pods, or lost some, while rules or clusters were others. */
const dividedOtherwise = new Set<string>();
/** UIDs of those divided by room of which it is not known any more what room there was when their pods came. */
const changed = new Set<string>();
/** Of all workloads that could be in a wrong place, the part that is compared with its division: in each round, and in all of them. */
const LEAST = { each: 1 / 10, mean: 1 / 5 };
const parts: number[] = [];
const totals = {
  looks: 0,
  divisions: 0,
  byRoom: 0,
  plans: 0,
  waits: 0,
  whole: 0,
  preemptions: 0,
  /** Of these, for pods that are behind virtual nodes. */
  behind: 0,
  moves: 0,
  stayed: 0,
};
let lab: Lab;
let history: History;
let made: Made[];

beforeAll(async () => {
  console.log(`seed ${SEED}: SOAK_SEED=${SEED} begins in the same way`);
  lab = await startLab(workspace);
  history = new History(lab.host.api);
  lab.audit.take(lab.users);
  made = await makeWorkloads(lab.host, random);
}, 600_000);
afterAll(async () => {
  for (const way of lab?.ways.values() ?? []) await way.close();
  await lab?.tenant.close();
  await history?.close();
  await workspace.close();
}, 120_000);

/** How often a member was lost so far: its lease, or the way to it. */
function losses(): number {
  const lines = readFileSync(lab.spillway.process.spec.logFile, 'utf8').split('\n');
  return lines.filter((line) => /"msg":"(?:lease lost|the member is unreachable)/.test(line)).length;
}

/** Of the pods that came or got their place since, their workloads: while a member was out of reach, its seats went to others. */
function disturbSince(state: State, since: number, reason: string): void {
  for (const { metadata } of state.owners.values()) {
    if (metadata.namespace === 'room') changed.add(metadata.uid ?? '');
    // Seats of pods that wait are given to others as well, and stay with these.
    if (metadata.namespace === 'limits') dividedOtherwise.add(metadata.uid ?? '');
  }
  for (const pod of state.pods) {
    const placed = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime;
    if (![pod.metadata.creationTimestamp, placed].some((time) => Date.parse(time ?? '') >= since)) continue;
    const { uid = '' } = workloadOf(chainOf(state, pod)).object.metadata;
    disturbed.set(uid, reason);
    dividedOtherwise.add(uid);
  }
}

/** When the clusters were looked at, or a little before that, and how often a member had been lost by then. */
interface Looked {
  readonly since: number;
  readonly lossesBefore: number;
}

const looked = (earlierMs = 2_000): Looked => ({ since: Date.now() - earlierMs, lossesBefore: losses() });

/** What happened since the last calm moment. */
interface Meanwhile extends Looked {
  readonly shrunk: ReadonlySet<string>;
  readonly backAt: number | undefined;
}

/** Waits until everything is as it should be. */
async function calm(
  what: string,
  { since, lossesBefore, shrunk, backAt }: Meanwhile,
): Promise<{ state: State; divided: DivisionVerdict; at: Looked }> {
  let wrong: string[] = [];
  /** What was the last to get right. */
  let last: string[] = [];
  const lasting = new Lasting();
  const found = await until(
    what,
    async () => {
      history.check();
      const at = looked();
      const now = await readState(lab);
      await collectPreemptions(lab.host, preemptions);
      if (losses() > lossesBefore) disturbSince(now, since, 'a member was lost meanwhile');
      noteEvicted(now, since, shrunk);
      const waits = waiting(now);
      const counted = whole(now);
      const divided = divisions(now, disturbed, changed, dividedOtherwise);
      const evicted = evictions(now, history, preemptions, { since, backAt });
      const stayed = escapes(now, history);
      // A member that is not back yet would be lost for what the next round does, and nobody would know.
      const away = now.clusters.flatMap(({ name, unavailable }) =>
        unavailable === undefined ? [] : [`member ${name} is not back: ${unavailable}`],
      );
      wrong = [...away, ...[waits, counted, divided, evicted, stayed].flatMap((verdict) => verdict.wrong)];
      lasting.saw(wrong);
      if (wrong.length > 0) {
        last = wrong;
        return undefined;
      }
      totals.looks += 1;
      totals.waits += waits.looked;
      totals.whole += counted.looked;
      totals.divisions += divided.looked;
      totals.byRoom += divided.byRoom;
      totals.plans += divided.plans;
      totals.preemptions = evicted.looked;
      totals.behind = evicted.behind;
      totals.moves = evicted.moves;
      totals.stayed = stayed.looked;
      return { state: now, divided, at };
    },
    { timeoutMs: CALM_MS, intervalMs: 3_000 },
  ).catch((error: unknown) => {
    const longest = lasting.longest(10).join('\n');
    const still = wrong.slice(0, 40).join('\n');
    throw new Error(`${what}, seed ${SEED}: ${wrong.length} are wrong still:\n${still}\nthe longest:\n${longest}`, {
      cause: error,
    });
  });
  if (last.length > 0) console.log(`the last of what was not right yet: ${last.slice(0, 3).join('; ')}`);
  const longest = lasting.longest(8);
  if (longest.length > 0) console.log(['what took the longest to get right:', ...longest].join('\n'));
  return found;
}

/** A ReplicaSet that shrinks takes pods that wait first, whatever the division says of them. */
function noteEvicted(state: State, since: number, shrunk: ReadonlySet<string>): void {
  for (const { owner, disrupted } of history.lives.values()) {
    if (disrupted === undefined || disrupted.at < since || owner === undefined) continue;
    const set = state.owners.get(owner);
    const uid = set?.metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? owner;
    if (shrunk.has(uid)) disturbed.set(uid, 'it shrank while pods of it were evicted');
  }
}

/** Those that shrink while pods of theirs wait, or are not ready, lose these first; a StatefulSet always those with the last numbers. */
function notReady(state: State): Set<string> {
  const isOpen = ({ spec, status }: State['pods'][number]): boolean =>
    spec.nodeName === undefined || status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True';
  return new Set(state.pods.filter(isOpen).map((pod) => workloadOf(chainOf(state, pod)).object.metadata.uid ?? ''));
}

function note(before: State, round: Round): void {
  const open = notReady(before);
  for (const uid of round.shrunk) {
    const isSet = before.owners.get(uid)?.kind === 'StatefulSet';
    if (isSet || open.has(uid)) disturbed.set(uid, 'it shrank in an order of its own');
  }
  for (const [uid, reason] of round.disturbed) disturbed.set(uid, reason);
  for (const uid of round.changed) changed.add(uid);
  for (const uid of round.lost ? [...round.shrunk, ...round.rolledOut] : []) dividedOtherwise.add(uid);
  // All of its pods are made anew, by the rules and in the clusters that there are.
  if (!round.lost) for (const uid of round.rolledOut) if (!round.disturbed.has(uid)) disturbed.delete(uid);
}

test(
  `pods are in the right place at every calm moment of ${MINUTES} minutes`,
  { timeout: MINUTES * 60_000 + 1_500_000 },
  async () => {
    const loads = made
      .filter(({ namespace }) => namespace === 'scaled')
      .map(({ name }) => new BurstLoad(lab.host, 'scaled', name));
    const stop = new AbortController();
    const loading = loads.map(async (load) => await load.run(stop.signal));
    try {
      const none = { shrunk: new Set<string>(), backAt: undefined };
      let { state, at } = await calm('everything has its place', { ...looked(60_000), ...none });
      const happenings = new Happenings(lab, random, made, loads);
      const began = Date.now();
      for (let number = 1; Date.now() - began < MINUTES * 60_000; number += 1) {
        const round = await happenings.next(state, disturbed);
        expect(round.cheated, `what a tenant tried in round ${number}`).toEqual([]);
        note(state, round);
        const acted = Date.now();
        const { shrunk, backAt } = round;
        // Judging takes time, in which pods come that were not judged: they count with the round.
        const found = await calm(`round ${number} (${round.done.join('; ')}) has calmed down`, {
          ...at,
          shrunk,
          backAt,
        });
        ({ state, at } = found);
        const { looked: compared, divisible, byRoom } = found.divided;
        parts.push(compared / divisible);
        const waits = state.pods.filter(({ spec }) => spec.nodeName === undefined).length;
        console.log(
          `round ${number}: ${round.done.length} things done, calm after ${((Date.now() - acted) / 1000).toFixed(0)} s; ` +
            `${state.pods.length} pods, ${waits} wait, ${compared} of ${divisible} workloads were compared with their division, ` +
            `${byRoom} of them with that by room`,
        );
        expect(compared / divisible, `the part that was compared in round ${number}`).toBeGreaterThan(LEAST.each);
      }
      tell(state);
    } finally {
      stop.abort();
      await Promise.all(loading);
    }
    expect(errorsOf(lab.spillway)).toEqual([]);
  },
);

/** The figures of the run, and whether it wrote as little as is stated. */
function tell(state: State): void {
  const away = [...history.lives.values()].filter(
    ({ node, owner }) => node !== undefined && !isOfDaemonSet(state, owner) && placeOf(state, node) !== 'local',
  ).length;
  const counts = [...lab.audit.take(lab.users)].filter(([key]) => /^(?:create|update|patch|delete) /.test(key));
  const writes = counts.filter(
    ([key]) => !key.endsWith(' leases') && !key.includes('reviews') && !key.includes('token'),
  );
  const all = writes.reduce((sum, [, count]) => sum + count, 0);
  const list = writes.toSorted(([, a], [, b]) => b - a).map(([key, count]) => `${key} ${count}`);
  console.log(
    [
      `seed ${SEED}: ${made.length} workloads, ${history.lives.size} pods, ${away} of them placed behind virtual nodes`,
      `${totals.looks} calm moments: ${totals.divisions} divisions, ${totals.byRoom} of them by room, and ${totals.plans} plans compared, ${totals.waits} waits judged`,
      `${totals.preemptions} preemptions, ${totals.behind} of them behind virtual nodes, and ${totals.moves} moves, none in vain; ${totals.stayed} pods stayed that had to`,
      `${(all / away).toFixed(2)} writes at the host for each placed pod: ${list.join(', ')}`,
    ].join('\n'),
  );
  expect(all / away).toBeLessThan(WRITES_A_POD);
  expect(parts.reduce((sum, part) => sum + part, 0) / parts.length).toBeGreaterThan(LEAST.mean);
  for (const [what, count] of Object.entries(totals)) expect(count, what).toBeGreaterThan(0);
}
