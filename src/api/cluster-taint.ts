import { z } from 'zod';
import { labelKey, labelValue } from './schema-parts.ts';

/** A taint of a member as a whole. */
export const clusterTaint = z.object({
  key: labelKey().describe('Taint key.'),
  value: labelValue().exactOptional().describe('Taint value.'),
  effect: z
    .enum(['NoSchedule', 'NoExecute'])
    .describe(
      'NoSchedule: new pods stay away; what runs stays. NoExecute: what runs is moved elsewhere, too, one pod after the other.',
    ),
});

export type ClusterTaint = z.output<typeof clusterTaint>;

/** Of a key and effect there is one taint. */
export function isSameTaint(a: Pick<ClusterTaint, 'key' | 'effect'>, b: Pick<ClusterTaint, 'key' | 'effect'>): boolean {
  return a.key === b.key && a.effect === b.effect;
}
