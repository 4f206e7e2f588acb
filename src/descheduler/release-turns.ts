import { isFinished } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type Left, type ReleaseCase, releaseStep } from './release-rules.ts';
import {
  type EvictReason,
  missingOf,
  readyOf,
  type ReleaseFacts,
  type ReleaseStep,
  type ReplicaSetFacts,
} from './release-step.ts';

/**
 * One step for each released pod of a ReplicaSet, oldest release first. A Ready one is evicted only while, without it, at least as
 * many pods are Ready as the ReplicaSet wants or, if it had fewer at the time of the release, as it had then, one in its place among them. Of those whose member answers
 * again one is given back at a time, when the ReplicaSet has no pod too many.
 */
export function releaseSteps(facts: ReleaseFacts): ReleaseStep[] {
  const { set, released } = facts;
  const staying = released.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const count = staying.filter((pod) => !waitsForMember(pod)).length;
  let left = atFirst(facts);
  return staying.toSorted(byRelease).map((pod): ReleaseStep => {
    if (set === undefined) return { pod, kind: 'evict', why: 'Gone' };
    const unwanted = whyUnwanted(pod, set);
    if (unwanted !== undefined) return { pod, kind: 'evict', why: unwanted };
    const own = isReady(pod) ? 1 : 0;
    const waits = waitsForMember(pod);
    const heal = waits ? facts.heal(pod) : ((own === 0 ? facts.stranded(pod) : undefined) ?? 'replaced');
    const one: ReleaseCase = { pod, facts, set, own, waits, heal, count };
    const step = releaseStep(one, left);
    left = after(step, one, left);
    return step;
  });
}

/** What the ReplicaSet has too many of goes. A watch can be silent without an error, so what it says itself counts, too. */
function atFirst({ set, owned, released }: ReleaseFacts): Left {
  const { replicas, ready: said, available } = set ?? { replicas: Number.POSITIVE_INFINITY };
  const standing = Math.min(readyOf(owned), replicas);
  const ready = Math.min(standing, said ?? standing, available ?? standing) + readyOf(released);
  return { ready, room: missingOf(set, owned), replaced: 0 };
}

/** What its step leaves to those after it. */
function after(step: ReleaseStep, { own, waits }: ReleaseCase, { ready, room, replaced }: Left): Left {
  // One of the two goes, the original or the other one.
  if (step.kind === 'choose') return { ready: room === 0 ? ready - 1 : ready, room: room - 1, replaced };
  if (step.kind !== 'evict') return { ready, room, replaced };
  return {
    ready: ready - own,
    // Each of those that may go for others may be one that does: how many do is counted as they go (room-for-others.ts).
    room,
    replaced: step.why === 'Replaced' && !waits ? replaced + 1 : replaced,
  };
}

/** Why nobody wants it, wherever it is. */
function whyUnwanted(pod: Pod, { replicas }: ReplicaSetFacts): EvictReason | undefined {
  if (isFinished(pod)) return 'Finished';
  return replicas === 0 ? 'NoReplicas' : undefined;
}

function waitsForMember(pod: Pod): boolean {
  return releasedFrom(pod)?.lost === true;
}

function byRelease(a: Pod, b: Pod): number {
  return releasedAt(a) - releasedAt(b) || ((a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1);
}

function releasedAt(pod: Pod): number {
  return Date.parse(releasedFrom(pod)?.at ?? '') || 0;
}
