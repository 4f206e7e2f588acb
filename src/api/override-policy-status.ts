import { z } from 'zod';
import { conditions, observedGeneration } from './conditions.ts';

export const overridePolicyStatus = z
  .object({
    observedGeneration: observedGeneration(),
    conditions: conditions(
      'Accepted: the policy is in use. Consistent: the members, kinds and containers that its rules are for are there.',
    ),
  })
  .describe('What Spillway found. Written by Spillway only.');

export type OverridePolicyStatus = z.output<typeof overridePolicyStatus>;

/** As it is on an object; what is no such status is as if there were none, and is written anew. */
export function readOverridePolicyStatus(raw: object): OverridePolicyStatus | undefined {
  const read = overridePolicyStatus.safeParse((raw as { status?: unknown }).status);
  return read.success ? read.data : undefined;
}
