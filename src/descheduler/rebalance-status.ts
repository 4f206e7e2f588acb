import type { ObservedWorkload, WorkloadRebalancer, WorkloadRebalancerStatus } from '../api/workload-rebalancer.ts';
import { timestamp } from '../kube/timestamps.ts';

/** The status for what became of the workloads so far, in the order of the spec. `now` in ms. */
export function rebalanceStatus(
  { metadata, status }: WorkloadRebalancer,
  observedWorkloads: ObservedWorkload[],
  now: number,
): WorkloadRebalancerStatus {
  const { generation: observedGeneration = 0 } = metadata;
  const before = status?.observedGeneration === observedGeneration ? status.finishTime : undefined;
  const isFinished = observedWorkloads.every(({ result }) => result !== undefined);
  return {
    observedGeneration,
    summary: summaryOf(observedWorkloads),
    observedWorkloads,
    ...(isFinished ? { finishTime: before ?? timestamp(now) } : {}),
  };
}

/** kubectl prints one match of a path only, so this is what a column can show of all of them. */
function summaryOf(all: readonly ObservedWorkload[]): string {
  const count = (wanted: ObservedWorkload['result']): string =>
    String(all.filter(({ result }) => result === wanted).length);
  const failed = count('Failed');
  return `${count('Successful')} of ${String(all.length)} Successful${failed === '0' ? '' : `, ${failed} Failed`}`;
}

/** What has a result keeps it, as long as the spec stays as it is. */
export function resultsOf({ metadata, status }: WorkloadRebalancer): readonly ObservedWorkload[] {
  const isOfThis = status?.observedGeneration === (metadata.generation ?? 0);
  return isOfThis ? (status.observedWorkloads ?? []).filter(({ result }) => result !== undefined) : [];
}
