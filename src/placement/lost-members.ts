import { clusterInWords, NOT_CONTACTED } from '../api/cluster.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { isAnswering, mayBeLost } from '../api/unreachable.ts';
import { conditionOf } from '../kube/conditions.ts';
import { timestamp } from '../kube/timestamps.ts';

/** A member as far as its loss is concerned. */
export interface MemberReachability {
  readonly name: string;
  /** Undefined while nobody has asked it. */
  readonly reachable: boolean | undefined;
  /** What keeps it from being reachable may mean that it is gone: it is not one that answers, but too slowly or too little. */
  readonly mayBeLost: boolean;
  /** It answers, be it too slowly or too little to be reachable. */
  readonly answers: boolean;
  /** Since when it is reachable, or is not, as who asks it wrote it: wall clock in ms. */
  readonly since: number;
}

export interface LostMembers {
  /** Since when, by name. */
  readonly lost: ReadonlyMap<string, number>;
  /** Why nothing is moved for it, in words. */
  readonly paused: string | undefined;
}

/**
 * With more than this part of all members gone the fault is more likely here. Kubernetes' node lifecycle controller has the
 * same figure (`--unhealthy-zone-threshold`) for the nodes of a zone.
 */
const LARGEST_PART = 0.55;

/** By its condition Reachable, which whoever acts for the member writes; what it was before it was asked again, it is. */
export function reachabilityOf({ metadata, status }: MemberCluster): MemberReachability {
  const { name } = metadata;
  const condition = conditionOf({ status }, 'Reachable');
  const since = Date.parse(condition?.lastTransitionTime ?? '');
  if (condition === undefined || condition.status === 'Unknown')
    return { name, reachable: undefined, mayBeLost: false, answers: false, since: 0 };
  return {
    name,
    reachable: condition.status === 'True',
    mayBeLost: mayBeLost(condition.reason),
    // A gateway that many members are behind may say that, too.
    answers: condition.status === 'True' || (isAnswering(condition.reason) && condition.reason !== 'ServerError'),
    since: Number.isNaN(since) ? 0 : since,
  };
}

/** When the outage of a member began, as its condition says (RFC 3339); undefined: it is reachable, or nobody has written yet that it is not. */
export function outageBegan(member: MemberCluster): string | undefined {
  const { reachable, since } = reachabilityOf(member);
  return reachable === false && since > 0 ? timestamp(since) : undefined;
}

export function isLost({ reachable, mayBeLost }: MemberReachability): boolean {
  return reachable === false && mayBeLost;
}

/**
 * Why nobody knows how pods in the member are now, though it may well serve: it is not reachable, for a reason by which it is not lost. Undefined for all
 * others.
 */
export function whyUnheard(member: MemberReachability): string | undefined {
  if (member.reachable !== false || isLost(member)) return undefined;
  return `${clusterInWords(member.name)} is not reachable, and not lost either: what it said last may be old`;
}

/**
 * Why nobody knows whether the member answers: it has yet to be asked, as one whose MemberCluster was made anew. It may have been lost before that, and then what its
 * pods may not do holds. Undefined for all others.
 */
export function whyUnasked({ name, reachable }: MemberReachability): string | undefined {
  return reachable === undefined ? `${clusterInWords(name)}: ${NOT_CONTACTED}` : undefined;
}

/**
 * Which members are lost, and whether so many do not answer at once, or cannot even be asked, that it is no reason to move
 * anything. One that answers, and is busy, says that the way out of here works: it keeps nobody from another one.
 */
export function lostMembers(members: readonly MemberReachability[]): LostMembers {
  const asked = members.filter(({ reachable }) => reachable !== undefined);
  const gone = asked.filter(isGone);
  const lost = new Map(gone.filter(isLost).map(({ name, since }) => [name, since]));
  if (gone.length <= asked.length * LARGEST_PART) return { lost, paused: undefined };
  const many =
    gone.length === asked.length ? 'no member answers' : `${gone.length} of ${asked.length} members do not answer`;
  return { lost, paused: `${many}: the fault may be on this side, so nothing is moved for it` };
}

/**
 * Why pods of that member are not moved although it is lost, in words; undefined when nothing of this kind holds them. Of one that answers, as
 * nearly all do, the others are not asked for: each member is looked at every few seconds.
 */
export function whyMovesPaused(member: MemberCluster, all: () => readonly MemberCluster[]): string | undefined {
  const own = reachabilityOf(member);
  return isGone(own) && isLost(own) ? lostMembers(all().map(reachabilityOf)).paused : undefined;
}

function isGone({ reachable, answers }: MemberReachability): boolean {
  return reachable === false && !answers;
}
