import {
  LONGEST_MESSAGE,
  LONGEST_WHY,
  type ObservedWorkload,
  type WorkloadRebalancer,
  type WorkloadRebalancerStatus,
} from '../api/workload-rebalancer.ts';
import { cut } from '../kube/cut-text.ts';
import { counted } from '../kube/counted.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { Rehearsal } from './rebalance-rehearsal.ts';

/** The status for what became of the workloads so far, in the order of the spec. `now` in ms; `isDry`: nothing is moved. */
export function rebalanceStatus(
  { metadata, status }: WorkloadRebalancer,
  observed: readonly ObservedWorkload[],
  { now, isDry }: { now: number; isDry: boolean },
): WorkloadRebalancerStatus {
  const { generation: observedGeneration = 0 } = metadata;
  const before = status?.observedGeneration === observedGeneration ? status.finishTime : undefined;
  const observedWorkloads = observed.map(bounded);
  const isFinished = observedWorkloads.every(({ result }) => result !== undefined);
  return {
    observedGeneration,
    summary: isDry ? rehearsedInWords(observedWorkloads) : summaryOf(observedWorkloads),
    observedWorkloads,
    ...(isFinished ? { finishTime: before ?? timestamp(now) } : {}),
  };
}

/** What is said of a workload of which pods would be moved: which, and what would hold them. */
export function rehearsalInWords({
  moves,
  hasMore,
  isUnread,
  unknown,
  held,
}: Rehearsal): Pick<ObservedWorkload, 'moves' | 'message'> {
  const parts = [
    ...(hasMore ? ['more pods than these would be moved'] : []),
    ...(isUnread ? ['not all of its pods can be read now, so there may be more'] : []),
    ...(unknown === undefined ? [] : [`there may be more, as ${unknown}`]),
    ...held.map((why) => `now they would wait: ${why}`),
  ];
  return { moves: [...moves], ...(parts.length === 0 ? {} : { message: parts.join('; ') }) };
}

/** What others said stands in it. */
function bounded(one: ObservedWorkload): ObservedWorkload {
  const { message, moves } = one;
  return {
    ...one,
    ...(message === undefined ? {} : { message: cut(message, LONGEST_MESSAGE) }),
    ...(moves === undefined ? {} : { moves: moves.map((move) => ({ ...move, why: cut(move.why, LONGEST_WHY) })) }),
  };
}

function rehearsedInWords(all: readonly ObservedWorkload[]): string {
  const done = all.filter(({ result }) => result !== undefined).length;
  const pods = all.reduce((sum, { moves = [] }) => sum + moves.length, 0);
  const failed = all.filter(({ result }) => result === 'Failed').length;
  const found = failed === 0 ? '' : `, ${String(failed)} Failed`;
  return `dry run: ${String(done)} of ${String(all.length)}, ${counted(pods, 'pod')} would move${found}`;
}

/** kubectl prints one match of a path only, so this is what a column can show of all of them. */
function summaryOf(all: readonly ObservedWorkload[]): string {
  const count = (wanted: ObservedWorkload['result']): string =>
    String(all.filter(({ result }) => result === wanted).length);
  const failed = count('Failed');
  return `${count('Successful')} of ${String(all.length)} Successful${failed === '0' ? '' : `, ${failed} Failed`}`;
}

/** What has a result keeps it, as long as the spec stays as it is; what was only rehearsed, as the manager was to, while it is to (`isDry`). */
export function resultsOf({ metadata, status }: WorkloadRebalancer, isDry: boolean): readonly ObservedWorkload[] {
  const isOfThis = status?.observedGeneration === (metadata.generation ?? 0);
  const counts = ({ result, reason }: ObservedWorkload): boolean =>
    result !== undefined && (isDry || reason !== 'DryRun');
  return isOfThis ? (status.observedWorkloads ?? []).filter(counts) : [];
}
