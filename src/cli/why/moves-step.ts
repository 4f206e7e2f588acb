import { stopInWords } from '../../api/moves-stopped.ts';
import { type Released, releasedFrom } from '../../api/released.ts';
import { isFinished } from '../../api/pod-phase.ts';
import { counted } from '../../kube/counted.ts';
import { clusterInWords } from '../../api/cluster.ts';
import { ageSince } from '../age.ts';
import { SEVERAL_CLUSTERS } from '../../placement/folded-moves.ts';
import type { Step } from './explanation.ts';
import { eventOf, eventTime, type PodFacts } from './pod-facts.ts';
import { isStillTold, refusedEnd, type RefusedEnd } from './refused-end.ts';
import { sentence } from './sentence.ts';

const PAGE = 'concepts/failover.md';
/** What kept the pod where it is, though it was to go. */
export const STAYS: readonly string[] = [
  'PodOfLostMemberHeld',
  'TaintedPodHeld',
  'DrainedPodHeld',
  'OutOfServicePodHeld',
  'UnhealthyPodStays',
  'UnschedulablePodStays',
  'RefusedPodStays',
  'PodNotRepatriated',
  'PodNotRedivided',
  'PodNotSpread',
  'PodNotMovedByPolicy',
  'PodNotRebalanced',
  'PodNotMigrated',
  'ReleasedPodStays',
  'ReleasedPodGivenBack',
  'GangPodHeld',
];
/** Pods of a workload that were moved longer before this one was made have nothing to do with it, in ms. */
const RECENT_MS = 10 * 60_000;

/** Moves that explain why a pod is there, or is still there; none: nothing was moved. */
export function movesSteps(facts: PodFacts): Step[] {
  const refused = refusalOf(facts);
  if (refused !== undefined) return [refusedStep(facts, refused)];
  const says = [...moved(facts), ...stays(facts)];
  return says.length === 0 ? [] : [{ by: 'descheduler', state: 'ok', says: says.join(' '), page: PAGE }];
}

/** Of a pod that was released and is to go, or to be given back: what is against it. */
function refusalOf({ pod, events, now }: PodFacts): RefusedEnd | undefined {
  if (isFinished(pod) || pod.metadata.deletionTimestamp !== undefined) return undefined;
  return releasedFrom(pod) === undefined ? undefined : refusedEnd(events, now);
}

function refusedStep(facts: PodFacts, { since, message }: RefusedEnd): Step {
  const { name, namespace = '' } = facts.pod.metadata;
  const stays = `It stays as it is, for ${ageSince(since, facts.now) ?? 'some time'} now: ${sentence(message)}`;
  return {
    by: 'descheduler',
    state: 'waits',
    says: [...moved(facts), stays].join(' '),
    help: `take away what is against it, as it is tried again by itself; or kubectl delete pod ${name} -n ${namespace}, which asks no disruption budget`,
    page: `${PAGE}#replacement-first`,
  };
}

/** In a few words what is to become of a pod that runs well; undefined: it is to stay. */
export function isToGo({ pod, events, now }: PodFacts): string | undefined {
  const from = releasedFrom(pod);
  if (from?.lost === true) return 'and waits beside the pod that was made in its place';
  if (from !== undefined) return 'until another pod is Ready in its place';
  const held = eventOf(events, ...STAYS);
  return held !== undefined && isStillTold(held, now) ? 'though it was to be moved' : undefined;
}

/** What left its place shortly before this pod was made: a controller has most likely made it in place of that one. */
function moved({ pod, placement, now }: PodFacts): string[] {
  const born = Date.parse(pod.metadata.creationTimestamp ?? '');
  const found = (placement?.status?.moves ?? []).find(
    ({ since, last }) => Date.parse(since) - RECENT_MS < born && born - Date.parse(last) < RECENT_MS,
  );
  if (found === undefined || found.pod === pod.metadata.name) return [];
  const { count, from, last, message, strategy } = found;
  const since = ageSince(last, now);
  const where = from === SEVERAL_CLUSTERS ? from : clusterInWords(from);
  return [
    `${counted(count, 'pod')} of its workload ${count === 1 ? 'was' : 'were'} moved out of ${where}, the last one ` +
      `${since === undefined ? '' : `${since} ago `}(${strategy}): ${sentence(message)}`,
  ];
}

function stays({ pod, events, movesStopped, now }: PodFacts): string[] {
  if (isFinished(pod)) return [];
  const from = releasedFrom(pod);
  const released = from === undefined ? [] : [whyReleased(from)];
  // It goes, whatever kept it until then.
  if (pod.metadata.deletionTimestamp !== undefined) return released;
  const held = eventOf(events, ...STAYS);
  if (movesStopped !== undefined && from === undefined)
    released.push(`Spillway does not move it out of its member: ${stopInWords(movesStopped)}.`);
  if (held === undefined) return released;
  const since = ageSince(eventTime(held), now);
  return [
    ...released,
    `It was to be moved${since === undefined ? '' : `, and ${since} ago`}: ${sentence(held.message ?? '')}`,
  ];
}

function whyReleased({ lost }: Released): string {
  return lost === true
    ? 'Its member was lost, and another pod was made in its place. It waits: when the member answers again, onHeal of its policy says which of the two stays.'
    : 'It is to go: it runs on until another pod is Ready in its place, and is evicted then.';
}
