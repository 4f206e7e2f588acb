import { GANG_GATE, GANG_LABEL } from '../../api/marks.ts';
import { gangStep } from '../../scheduler/gangs/gang.ts';
import type { Step } from './explanation.ts';
import { eventOf, type PodFacts } from './pod-facts.ts';

const GANGS = 'concepts/gangs.md';

/** Undefined: the pod has no scheduling gates. */
export function gatesStep(facts: PodFacts): Step | undefined {
  const gates = (facts.pod.spec.schedulingGates ?? []).map(({ name }) => name);
  if (gates.length === 0) return undefined;
  const others = gates.filter((name) => name !== GANG_GATE);
  const also =
    others.length === 0
      ? ''
      : `${gates.length > others.length ? ' It is also' : 'It is'} behind scheduling gate ${others.join(', ')}, which is not of ` +
        'Spillway: no scheduler looks at the pod until whoever set it takes it away.';
  if (gates.length === others.length) {
    return {
      by: 'gates',
      state: 'waits',
      says: also,
      help: `find out who sets gate ${others[0] ?? ''}, and what that waits for`,
    };
  }
  const gang = gangWords(facts);
  return { ...gang, says: `${gang.says}${also}` };
}

function gangWords({ pod, gang, now, events }: PodFacts): Step {
  const name = pod.metadata.labels?.[GANG_LABEL] ?? '';
  const step: Pick<Step, 'by' | 'state' | 'page'> = { by: 'gates', state: 'waits', page: GANGS };
  if (gang === undefined) {
    return { ...step, says: `It waits for the other pods of gang ${name}, which you may not see.` };
  }
  const alive = gang.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const found = gangStep(alive, { now, judgeFrom: 0, spared: new Set() });
  switch (found.do) {
    case 'gather': {
      const { present, behindOthers, succeeded, size } = found;
      const done = succeeded === 0 ? '' : ` and ${succeeded} have succeeded`;
      const kept = behindOthers === 0 ? '' : `, ${behindOthers} more wait at scheduling gates of others`;
      return {
        ...step,
        says: `Gang ${name} is incomplete: ${present} of ${size} pods are there${done}${kept}. Nothing is held for them until all are.`,
        help: 'see why the other pods of the gang are not created: quota, controller, podManagementPolicy of a StatefulSet',
      };
    }
    case 'refuse':
      return {
        ...step,
        state: 'failed',
        says: `Gang ${name} is not placed: ${found.problem}.`,
        help: 'correct the annotations in the pod template',
      };
    case 'place': {
      const told = eventOf(events, 'GangWaiting')?.message;
      const words = told === undefined ? 'no cluster has been found yet that takes all of them at once' : told;
      return {
        ...step,
        says: `All ${found.pods.length + found.late.length} pods of gang ${name} that wait are there, and wait for one place together: ${words}`,
        help: 'see kubectl spillway clusters for free room: one cluster has to take all of them',
      };
    }
    case 'open':
    case 'hold':
    case 'giveUp':
    case 'nothing':
      return { ...step, says: `Gang ${name} has got its place, and its gates are being opened.` };
  }
}
