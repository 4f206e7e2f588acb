import type { ExportCondition } from '../kube/multicluster-v1.ts';
import type { ExportRefusal } from './export-record.ts';
import type { MergedService } from './merged-service.ts';

/** What became of a ServiceExport. */
export type ExportOutcome =
  | { refusal: ExportRefusal }
  /** `merged`: it is one of those that make up the Service. */
  | { merged: MergedService }
  | { pending: string };

type Finding = Pick<ExportCondition, 'type' | 'status' | 'reason' | 'message'>;

/** The conditions of a ServiceExport, `Valid`, `Ready` and `Conflict`, as KEP-1645 has them. */
export function exportConditions(outcome: ExportOutcome): Finding[] {
  if ('refusal' in outcome) {
    const { refusal } = outcome;
    if ('valid' in refusal) {
      const { valid, message } = refusal;
      return [
        { type: 'Valid', status: 'False', reason: valid, message },
        { type: 'Ready', status: 'False', reason: 'Failed', message },
      ];
    }
    return [
      { type: 'Valid', status: 'True', reason: 'Valid', message: 'The Service can be exported.' },
      { type: 'Ready', status: 'False', reason: 'Failed', message: refusal.failed },
    ];
  }
  const valid: Finding = { type: 'Valid', status: 'True', reason: 'Valid', message: 'The Service can be exported.' };
  if ('pending' in outcome) {
    return [valid, { type: 'Ready', status: 'False', reason: 'Pending', message: outcome.pending }];
  }
  const { clusters, leader, conflicts } = outcome.merged;
  const ready = 'The other clusters are told of it.';
  return [
    valid,
    { type: 'Ready', status: 'True', reason: 'Exported', message: ready },
    conflicts.length === 0
      ? { type: 'Conflict', status: 'False', reason: 'NoConflicts', message: 'The clusters that export it agree.' }
      : {
          type: 'Conflict',
          status: 'True',
          reason: conflicts.join(','),
          message: `The Services of that name of clusters ${clusters.join(', ')} are not the same (${conflicts.join(', ')}). Where they differ, that of ${leader} counts.`,
        },
  ];
}

/** The conditions to be written, with those of others; undefined when nothing of ours changes. `now` is RFC 3339. */
export function changedConditions(
  before: readonly ExportCondition[],
  found: readonly Finding[],
  { now, generation }: { now: string; generation: number | undefined },
): ExportCondition[] | undefined {
  const own = found.map((finding): ExportCondition => {
    const old = before.find(({ type }) => type === finding.type);
    const lastTransitionTime = old?.status === finding.status ? (old.lastTransitionTime ?? now) : now;
    return { ...finding, ...(generation === undefined ? {} : { observedGeneration: generation }), lastTransitionTime };
  });
  // A conflict is over when the Service is not exported any more.
  const stale = (type: string): boolean => ['Valid', 'Ready', 'Conflict'].includes(type);
  const others = before.filter(({ type }) => !stale(type));
  const isSame = ({ type, status, reason, message }: ExportCondition): boolean => {
    const old = before.find((one) => one.type === type);
    return old?.status === status && old.reason === reason && old.message === message;
  };
  const isComplete = before.length === others.length + own.length;
  return own.every(isSame) && isComplete ? undefined : [...own, ...others];
}
