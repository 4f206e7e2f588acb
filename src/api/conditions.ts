import { z } from 'zod';
import { conditionOf } from '../kube/conditions.ts';
import { cut } from '../kube/cut-text.ts';
import { timestamp } from '../kube/timestamps.ts';
import { listMap } from './schema-parts.ts';

/** Longest message, in characters: with a longer one the whole status is refused. */
const LONGEST = 32_768;

const condition = z.object({
  type: z.string().max(316).describe('What the condition speaks about.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  observedGeneration: z.int().min(0).exactOptional().describe('metadata.generation of the spec it was found for.'),
  lastTransitionTime: z.iso.datetime().meta({ description: 'When status last changed.', format: 'date-time' }),
  reason: z.string().max(1024).describe('One word for programs.'),
  message: z.string().max(LONGEST).describe('For people: what happened and what happens next.'),
});

/** `status.conditions` as metav1.Condition; the description lists the types and what True means. */
export const conditions = (description: string) =>
  z
    .array(condition)
    .exactOptional()
    .meta({ description, ...listMap('type') });

/** `status.observedGeneration`, as all kinds have it. */
export const observedGeneration = () =>
  z.int().min(0).exactOptional().describe('metadata.generation of the spec this status speaks of.');

export type Condition = z.output<typeof condition>;

/** A condition as it is found now, its message cut to what is taken; `before`: the status that there was, whose time stays as long as `status` does. `now`: wall clock in ms. */
export function conditionNow(
  before: { conditions?: readonly Condition[] | undefined } | undefined,
  found: Omit<Condition, 'lastTransitionTime'>,
  now: number,
): Condition {
  const old = conditionOf({ status: before }, found.type);
  return {
    ...found,
    message: cut(found.message, LONGEST),
    lastTransitionTime: old?.status === found.status ? old.lastTransitionTime : timestamp(now),
  };
}
