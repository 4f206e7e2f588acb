import { NODE_LABEL } from '../api/marks.ts';
import { undeletedInWords, type UndeletedList } from './undeleted-in-words.ts';

/** A virtual node that the spec does not want any more. It is served, and takes no new pods, until it is empty. */
export interface RetiringNode {
  readonly name: string;
  /** Pods of the host that are bound to it, and copies of such that are gone; undefined while that is not known. */
  readonly pods: number | undefined;
  /** Copies that were told to end, and do not go. */
  readonly undeleted?: UndeletedList;
  /** Whose the Node of that name is instead, for people: nothing is done for `pods`, copies that were left in the member. */
  readonly taken?: string;
}

/** What users should know of it. */
export function retirementInWords({ name, pods, taken }: RetiringNode): string {
  if (taken !== undefined) {
    const copies = pods === 1 ? '1 copy of a pod of it is' : `${pods ?? 'some'} copies of pods of it are`;
    return `Virtual node ${name} is not in the spec any more, and ${copies} left in the member, though ${taken}`;
  }
  const count = pods === undefined ? 'it may have pods' : pods === 1 ? '1 pod is on it' : `${pods} pods are on it`;
  return `Virtual node ${name} is not in the spec any more, and ${count}`;
}

/** What to do about all of these. */
export function retirementAdvice(all: readonly RetiringNode[]): string {
  const left = all.some(({ taken }) => taken !== undefined) ? [LEFT_ADVICE] : [];
  const undeleted = undeletedInWords(all.flatMap((one) => one.undeleted ?? []));
  return [
    ...(undeleted === undefined ? [] : [undeleted]),
    ...(all.every(({ taken }) => taken !== undefined) ? [] : [RETIREMENT_ADVICE]),
    ...left,
  ].join(' ');
}

const RETIREMENT_ADVICE =
  'It takes no new pods, those that run go on, and it is removed when they are gone. To move them, run ' +
  'kubectl drain --ignore-daemonsets on it; to keep it, put its pool back into spec.virtualNodes.';

const LEFT_ADVICE =
  'Pods of that Node are not known here, so the copies run until somebody deletes them in the member ' +
  `(kubectl delete pods -A -l ${NODE_LABEL}=NODE), or that Node goes: then they are looked after again.`;
