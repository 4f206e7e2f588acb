import { LOCAL } from '../../api/cluster-tiers.ts';
import {
  GANG_GATE,
  GANG_LABEL,
  GANG_PLACED_ANNOTATION,
  GANG_SIZE_ANNOTATION,
  GANG_TIMEOUT_ANNOTATION,
  MEMBER_LABEL,
} from '../../api/marks.ts';
import { isFinished } from '../../api/pod-phase.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { succeededKin } from './gang-kin.ts';

/** More pods than this are no gang that could ever be placed. */
const LARGEST = 10_000;
const DEFAULT_TIMEOUT_S = 120;
const TIMEOUT_S = { least: 5, most: 24 * 3600 };
/** Pods that make a gang complete only together with those that succeeded wait so long for others that come with them. */
const TOGETHER_MS = 5_000;

/** A clock of another replica may be ahead by so much. */
const AHEAD_MS = 10_000;

/** What is to be done for a gang now. Times are wall clock in ms. */
export type GangStep =
  /** Nobody is there, or everybody has a node. */
  | { readonly do: 'nothing' }
  | { readonly do: 'refuse'; readonly problem: string }
  /** Pods are missing, or some may come yet that are to go with these; nothing is held for those that are there. */
  | {
      readonly do: 'gather';
      readonly present: number;
      /** Of those that are missing: made, but behind a gate that somebody else has set. */
      readonly behindOthers: number;
      readonly succeeded: number;
      readonly size: number;
    }
  /**
   * `pods` wait for a place. `at`: where the others are, and these have to go too; `late` of these have no node yet.
   * `since`: when the place was given to those that the `pods` come with, if it was.
   */
  | {
      readonly do: 'place';
      readonly pods: readonly Pod[];
      readonly at: string | undefined;
      readonly since: number | undefined;
      readonly late: readonly Pod[];
      readonly timeoutMs: number;
    }
  /** All have the place; `pods` are still behind the gate. */
  | { readonly do: 'open'; readonly pods: readonly Pod[]; readonly at: string }
  /** `pods` have the place but no node; until then their room is kept. */
  | { readonly do: 'hold'; readonly pods: readonly Pod[]; readonly at: string; readonly until: number }
  /** `overdue` did not get a node in time, as far as their status tells: `pods` give back what they have. */
  | { readonly do: 'giveUp'; readonly pods: readonly Pod[]; readonly overdue: readonly Pod[]; readonly at: string };

/** When a gang is looked at, and what is known beyond its pods. */
export interface GangSight {
  /** Wall clock in ms. */
  readonly now: number;
  /** Nobody's time is up before then (wall clock in ms): what pods show may be as old as the last time the host was seen. */
  readonly judgeFrom: number;
  /** Pods that must not be taken for late: they are known to have a node, or it cannot be told. */
  readonly spared: ReadonlySet<Pod>;
}

/**
 * Reads from the pods of a gang alone how far it is, so that nothing has to be remembered. Pods are pinned to the place one
 * by one behind their gates, and only when as many as the gang needs are pinned, all gates are opened. Those of the same gang
 * that succeeded count as if they were there (as `minMember` of other gang schedulers counts them): one that is made anew
 * would wait for them for ever. One behind the gate of somebody else is not there yet: no scheduler would look at it, and its room would
 * be kept from others for nothing. `all`: but for those that are being deleted.
 */
export function gangStep(all: readonly Pod[], sight: GangSight): GangStep {
  const pods = all.filter((pod) => !isFinished(pod));
  if (pods.length === 0) return { do: 'nothing' };
  const terms = termsOf(pods);
  if ('problem' in terms) return { do: 'refuse', problem: terms.problem };
  const { size, timeoutMs } = terms;
  const behind = pods.filter((pod) => isGated(pod) && waitsForOthers(pod)).length;
  const gated = pods.filter((pod) => isGated(pod) && !waitsForOthers(pod));
  const waiting = gated.filter((pod) => !isPlaced(pod));
  const pinned = gated.filter(isPlaced);
  const open = pods.filter((pod) => isPlaced(pod) && !isGated(pod));
  const succeeded = succeededKin(pods, all.filter(isFinished));
  const [first] = [...open, ...pinned];
  if (first === undefined) {
    const present = waiting.length;
    if (present + behind === 0) return { do: 'nothing' };
    const isEnough = present >= size || (present > 0 && present + succeeded >= size && !mayMoreCome(waiting, sight));
    if (!isEnough) return { do: 'gather', present, behindOthers: behind, succeeded, size };
    return { do: 'place', pods: waiting, at: undefined, since: undefined, late: [], timeoutMs };
  }
  const at = pinnedTo(first);
  if (open.length > 0 && pinned.length > 0) return { do: 'open', pods: pinned, at };
  return open.length > 0
    ? whileOpen({ open, waiting, at, timeoutMs }, sight)
    : beforeOpen({ pinned, waiting, at, timeoutMs, missing: size - succeeded, size }, sight);
}

/** No gate was opened yet: either all pods of the gang get the place, or those that have it give it back. */
function beforeOpen(
  {
    pinned,
    waiting,
    at,
    timeoutMs,
    missing,
    size,
  }: { pinned: Pod[]; waiting: Pod[]; at: string; timeoutMs: number; missing: number; size: number },
  { now, judgeFrom }: GangSight,
): GangStep {
  const isComplete = pinned.length >= (waiting.length > 0 ? size : missing);
  if (isComplete) return { do: 'open', pods: pinned, at };
  const since = Math.min(...pinned.map(placedAt));
  const until = Math.max(since + timeoutMs, judgeFrom);
  if (until <= now) return { do: 'giveUp', pods: pinned, overdue: [], at };
  return waiting.length > 0
    ? { do: 'place', pods: waiting, at, since, late: pinned, timeoutMs }
    : { do: 'hold', pods: pinned, at, until };
}

/**
 * Those that came first stand for the gang: when one of them has no node in time, all give theirs back. Those that joined
 * later, or stand in for one that failed, go by themselves.
 */
function whileOpen(
  { open, waiting, at, timeoutMs }: { open: Pod[]; waiting: Pod[]; at: string; timeoutMs: number },
  { now, judgeFrom, spared }: GangSight,
): GangStep {
  const late = open.filter((pod) => !hasNode(pod));
  const untilOf = (pod: Pod): number => Math.max(placedAt(pod) + timeoutMs, judgeFrom);
  const judged = late.filter((pod) => !spared.has(pod));
  const overdue = judged.filter((pod) => untilOf(pod) <= now);
  if (overdue.length > 0) {
    const founded = Math.min(...open.map(placedAt));
    const all = overdue.some((pod) => placedAt(pod) === founded);
    return { do: 'giveUp', pods: all ? open : overdue, overdue, at };
  }
  const kept = late.filter((pod) => !waitsForOthers(pod));
  if (waiting.length > 0) return { do: 'place', pods: waiting, at, since: undefined, late: kept, timeoutMs };
  if (late.length === 0) return { do: 'nothing' };
  return { do: 'hold', pods: kept, at, until: Math.min(...judged.map(untilOf), now + timeoutMs) };
}

/** The place of a pod as its gang was given it. */
export interface GivenPlace {
  readonly cluster: string;
  /** Wall clock in ms. */
  readonly at: number;
  readonly timeoutMs: number;
}

/**
 * Undefined: it has none, has a node, or no scheduler looks at it; or its place is said to be from a time that is yet to come. It has it
 * still when its time is up, until somebody takes it away.
 */
export function givenPlace(pod: Pod, now: number): GivenPlace | undefined {
  const { metadata, spec } = pod;
  const isOfGang = metadata.labels?.[GANG_LABEL] !== undefined && isPlaced(pod);
  if (!isOfGang || (spec.nodeName ?? '') !== '' || metadata.deletionTimestamp !== undefined) return undefined;
  if (isFinished(pod) || waitsForOthers(pod)) return undefined;
  const timeoutMs = timeoutOf(metadata.annotations?.[GANG_TIMEOUT_ANNOTATION]);
  const at = placedAt(pod);
  if (timeoutMs === undefined || at > now + AHEAD_MS) return undefined;
  return { cluster: pinnedTo(pod), at, timeoutMs };
}

function pinnedTo({ spec }: Pod): string {
  return spec.nodeSelector?.[MEMBER_LABEL] ?? LOCAL;
}

/** Pods of one gang come one after the other. */
function mayMoreCome(waiting: readonly Pod[], { now }: GangSight): boolean {
  return waiting.some((pod) => now - createdAt(pod) < TOGETHER_MS);
}

export function createdAt({ metadata }: Pod): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}

export function isGated({ spec }: Pod): boolean {
  return (spec.schedulingGates ?? []).some(({ name }) => name === GANG_GATE);
}

/** Somebody else has set a gate, too: no scheduler looks at the pod until that one is gone. */
function waitsForOthers({ spec }: Pod): boolean {
  return (spec.schedulingGates ?? []).some(({ name }) => name !== GANG_GATE);
}

function isPlaced({ metadata }: Pod): boolean {
  return metadata.annotations?.[GANG_PLACED_ANNOTATION] !== undefined;
}

/** All pods of a gang have to say the same. */
function termsOf(pods: readonly Pod[]): { size: number; timeoutMs: number } | { problem: string } {
  if (pods.length > LARGEST)
    return { problem: `it has ${String(pods.length)} pods, which is more than ${String(LARGEST)}` };
  const said = (key: string): (string | undefined)[] => [
    ...new Set(pods.map(({ metadata }) => metadata.annotations?.[key])),
  ];
  const sizes = said(GANG_SIZE_ANNOTATION);
  const timeouts = said(GANG_TIMEOUT_ANNOTATION);
  if (sizes.length > 1) return { problem: `its pods do not agree in annotation ${GANG_SIZE_ANNOTATION}` };
  if (timeouts.length > 1) return { problem: `its pods do not agree in annotation ${GANG_TIMEOUT_ANNOTATION}` };
  const size = whole(sizes[0], 1, LARGEST);
  if (size === undefined) {
    return { problem: `annotation ${GANG_SIZE_ANNOTATION} of its pods must be a number from 1 to ${String(LARGEST)}` };
  }
  const { least, most } = TIMEOUT_S;
  const timeoutMs = timeoutOf(timeouts[0]);
  return timeoutMs === undefined
    ? { problem: `annotation ${GANG_TIMEOUT_ANNOTATION} must be a number from ${String(least)} to ${String(most)}` }
    : { size, timeoutMs };
}

function timeoutOf(text: string | undefined): number | undefined {
  const seconds = text === undefined ? DEFAULT_TIMEOUT_S : whole(text, TIMEOUT_S.least, TIMEOUT_S.most);
  return seconds === undefined ? undefined : seconds * 1000;
}

function whole(text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined || !/^[0-9]{1,9}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= least && value <= most ? value : undefined;
}

/** A kubelet has taken it, in the member too: that one starts it sets the time, which then never changes. */
function hasNode({ spec, status }: Pod): boolean {
  return (spec.nodeName ?? '') !== '' && status?.startTime !== undefined;
}

function placedAt({ metadata }: Pod): number {
  const at = Date.parse(metadata.annotations?.[GANG_PLACED_ANNOTATION] ?? '');
  return Number.isNaN(at) ? 0 : at;
}
