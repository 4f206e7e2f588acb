import { isFinished } from '../../api/pod-phase.ts';
import type { ContainerStatus, Pod } from '../../kube/core-v1.ts';
import { keyOf } from '../../kube/object.ts';
import { age, ageSince } from '../age.ts';
import type { Explanation, PlaceWords, Step } from './explanation.ts';
import { gatesStep } from './gates-step.ts';
import { kubeletStep, memberSteps } from './member-steps.ts';
import { isToGo, movesSteps } from './moves-step.ts';
import { placesOf } from './places.ts';
import type { PodFacts } from './pod-facts.ts';
import { notDeleted } from './refused-end.ts';
import { REASON_HELP } from './reason-help.ts';
import { knownRules } from './rules-step.ts';
import { memberOf, schedulerStep } from './scheduler-step.ts';
import { decisionWords } from './scheduler-words.ts';

/** More than these would be read by nobody. */
const MOST_HELP = 5;

/** Follows a pod from its creation to the kubelet, and says in plain words how far it came and what it waits for. */
export function explain(facts: PodFacts): Explanation {
  const { pod } = facts;
  const { nodeName } = pod.spec;
  const known = knownRules(facts);
  const gates = gatesStep(facts);
  const isBound = nodeName !== undefined && nodeName !== '';
  const isOpen = !isBound && gates === undefined && !isFinished(pod);
  const places = isOpen ? placesOf(facts, known.rules) : [];
  const scheduler = schedulerStep(facts, known, places);
  const steps: Step[] = [
    ...deletionStep(facts),
    ...(gates === undefined ? [] : [gates]),
    known.step,
    ...movesSteps(facts),
    scheduler,
    ...(isBound ? runSteps(facts, nodeName) : []),
  ];
  const stuck = stuckStep(steps);
  const help = [
    stuck?.help,
    ...(stuck === undefined || stuck.by === 'host scheduler' ? places : []).map((one) => one.help),
  ];
  const pages = [stuck?.page, ...(stuck?.by === 'host scheduler' ? places : []).map((one) => one.page)];
  const ended = finished(pod);
  return {
    pod: keyOf(pod),
    phase: phaseOf(pod),
    answer: ended?.says ?? answer(facts, stuck, places),
    steps,
    places: isBound ? otherPlaces(facts, nodeName) : places,
    help: distinct(ended === undefined ? [...help, scheduler.help] : [ended.help]).slice(0, MOST_HELP),
    pages: distinct(
      ended === undefined ? [...pages, scheduler.help === undefined ? undefined : scheduler.page] : [ended.page],
    ),
  };
}

function runSteps(facts: PodFacts, nodeName: string): Step[] {
  const { pod, nodes } = facts;
  const member = memberOf(facts, nodeName);
  if (isFinished(pod))
    return [
      { by: 'kubelet', state: pod.status?.phase === 'Succeeded' ? 'ok' : 'failed', says: finished(pod)?.says ?? '' },
    ];
  if (member !== undefined) return memberSteps(facts, nodeName, member);
  if (nodes === undefined)
    return [
      {
        by: 'kubelet',
        state: 'unknown',
        says: `Whether node ${nodeName} is a virtual one is not known to you: you may not list nodes.`,
      },
    ];
  return [kubeletStep(facts, '')];
}

/** Of several steps that do not go on, the first in the way of the pod; what merely waits counts when nothing failed. */
function stuckStep(steps: readonly Step[]): Step | undefined {
  return steps.find(({ state }) => state === 'waits' || state === 'failed');
}

function answer(facts: PodFacts, stuck: Step | undefined, places: readonly PlaceWords[]): string {
  const { pod, now } = facts;
  const since = ageSince(pod.metadata.creationTimestamp, now);
  if (stuck === undefined) {
    const member = memberOf(facts, pod.spec.nodeName ?? '');
    const where = member === undefined ? `on node ${pod.spec.nodeName ?? '?'}` : `in member ${member}`;
    return pod.status?.reason === 'DaemonSetIgnored'
      ? `It counts as ready and does not run ${where}, as it is the pod of a DaemonSet.`
      : `It runs ${where}, ${isToGo(facts) ?? 'and all is well'}.`;
  }
  const waits = since === undefined ? 'It waits' : `It has waited for ${since}`;
  switch (stuck.by) {
    case 'deletion':
    case 'policy':
    case 'descheduler':
    case 'Spillway':
    case 'kubelet':
    case 'member scheduler':
    case 'gates':
      return stuck.says;
    case 'host scheduler': {
      const causes = new Set(places.map(({ says }) => says));
      const [only] = causes;
      if (causes.size === 1 && only !== undefined) {
        const names = places.map(({ cluster }) => cluster).join(', ');
        return `${waits} for a place. What keeps it from ${names}: ${only}.`;
      }
      return causes.size === 0
        ? `${waits}: ${stuck.says}`
        : `${waits} for a place: none of ${places.length} clusters takes it now, each for its own reason.`;
    }
  }
}

/** Where else a pod that has a place could have gone, by what was last decided for its workload. */
function otherPlaces({ placement }: PodFacts, nodeName: string): PlaceWords[] {
  const message = placement?.status?.lastDecision?.message ?? '';
  return decisionWords(message).filter(
    ({ cluster }) => cluster !== nodeName && !nodeName.startsWith(`${cluster}-`) && cluster !== 'local',
  );
}

function deletionStep({ pod, events, now }: PodFacts): Step[] {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = pod.metadata;
  if (deletionTimestamp === undefined) return [];
  const overdueMs = now - Date.parse(deletionTimestamp);
  const told = notDeleted(events, now);
  if (told !== undefined) {
    const page = 'concepts/virtual-nodes.md#copies-that-do-not-go';
    return [{ by: 'deletion', state: 'waits', says: `It is being deleted. ${told}`, page }];
  }
  const held = finalizers.length === 0 ? '' : ` Finalizers keep the object: ${finalizers.join(', ')}.`;
  const says =
    overdueMs > 5_000
      ? `It is being deleted, and its grace of ${deletionGracePeriodSeconds} s has been over for ${age(overdueMs)}.${held}`
      : `It is being deleted, with a grace of ${deletionGracePeriodSeconds} s.${held}`;
  return [
    {
      by: 'deletion',
      state: 'waits',
      says: `${says}${overdueMs > 5_000 ? ' It stays until its copy is known to be gone: while the member cannot be reached, nobody can tell.' : ''}`,
      ...(overdueMs > 5_000
        ? {
            help: 'see kubectl spillway clusters: is the member reachable?',
            page: 'concepts/virtual-nodes.md#cordon-and-drain',
          }
        : {}),
    },
  ];
}

function phaseOf({ metadata, status }: Pod): string {
  return metadata.deletionTimestamp === undefined ? (status?.phase ?? 'Pending') : 'Terminating';
}

/** How a pod ended; undefined: it has not. */
function finished(pod: Pod): { says: string; help?: string | undefined; page?: string | undefined } | undefined {
  const { phase, reason = '', message = '', containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  if (phase === 'Succeeded') return { says: 'It has finished: all its containers ended with exit code 0.' };
  if (phase !== 'Failed') return undefined;
  const ends = [...initContainerStatuses, ...containerStatuses].flatMap(endOf);
  const parts = [
    reason === '' ? 'It has failed' : `It has failed (${reason})`,
    ...(message === '' ? [] : [message]),
    ...(ends.length === 0 ? [] : [ends.join(', ')]),
  ];
  return {
    says: `${parts.join(': ').replace(/\.$/, '')}.`,
    ...(REASON_HELP.get(reason) ?? { help: 'see its log: kubectl logs' }),
  };
}

function endOf({ name, state }: ContainerStatus): string[] {
  const ended = state?.terminated;
  if (ended === undefined || ended.exitCode === 0) return [];
  return [
    `container ${name} ended with exit code ${ended.exitCode}${ended.reason === undefined ? '' : ` (${ended.reason})`}`,
  ];
}

function distinct(texts: readonly (string | undefined)[]): string[] {
  return [...new Set(texts.filter((text) => text !== undefined && text !== ''))] as string[];
}
