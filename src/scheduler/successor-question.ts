import type { Pod } from '../kube/core-v1.ts';
import type { Decision, PlacementFacts } from '../placement/decision.ts';
import { nextPlace } from '../placement/next-place.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import type { Rules } from '../placement/policy-selection.ts';
import { successorOf } from '../placement/refused-pod.ts';
import { podsAfter, roomsAfter, type SupposedMove } from '../placement/supposed-moves.ts';
import { type PodCounts, withoutOne } from '../placement/workload.ts';
import type { HostView } from './host-view.ts';
import type { PlacementQuestion, PlacementQuestions } from './placement-questions.ts';

/** The pod that comes instead of one that makes way, or has made way. */
export interface Successor {
  readonly next: Pod;
  /** UID of the former one. */
  readonly formerUid: string;
  readonly chain: OwnerChain;
  readonly rules: Rules;
}

/** What is to be taken for so, other than the caches have it. */
export interface Supposed extends Partial<Pick<PlacementFacts, 'avoided' | 'migrating' | 'remembered'>> {
  /** Pods of the workload, the former one among them. */
  readonly pods?: PodCounts;
  /** Moves of others of its pods that are taken for made. */
  readonly after?: readonly SupposedMove[];
  /** Until when its cluster is avoided, wall clock in ms; then the next pod has waited for so long. */
  readonly avoidedUntil?: number | undefined;
  /** Nobody reads why members have no room. */
  readonly wordless?: boolean;
}

/**
 * What a scheduler would be told about it: any node may be meant, and the seat that the former one has yet is free. One that is being
 * deleted has none any more; nobody else's is taken for it.
 */
export function askAboutSuccessor(
  { view, questions, clock }: { view: HostView; questions: PlacementQuestions; clock: () => number },
  { next, formerUid, chain, rules }: Successor,
  { pods: supposed, after = [], avoidedUntil, wordless = false, ...others }: Supposed = {},
): { facts: PlacementFacts; members: PlacementQuestion['members']; decision: Decision } {
  const now = clock();
  const pod = successorOf(next, avoidedUntil ?? now, now);
  const asked = questions.ask(pod, chain, rules, questions.everyOpenNode(pod), wordless);
  const all = podsAfter(supposed ?? asked.facts.workload.pods, after, (uid) => view.seats.seatOf(uid)?.revision);
  const seat = view.seats.seatOf(formerUid);
  const pods = seat?.cluster === undefined ? all : withoutOne(all, seat.revision, seat.cluster);
  const rooms = roomsAfter(asked.facts.rooms, after);
  const facts = { ...asked.facts, rooms, ...others, workload: { ...asked.facts.workload, pods } };
  return { facts, members: asked.members, decision: nextPlace(facts) };
}
