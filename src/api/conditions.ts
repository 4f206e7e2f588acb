import { z } from 'zod';
import { listMap } from './schema-parts.ts';

const condition = z.object({
  type: z.string().max(316).describe('What the condition speaks about.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  observedGeneration: z.int().min(0).exactOptional().describe('metadata.generation of the spec it was found for.'),
  lastTransitionTime: z.iso.datetime().meta({ description: 'When status last changed.', format: 'date-time' }),
  reason: z.string().max(1024).describe('One word for programs.'),
  message: z.string().max(32_768).describe('For people: what happened and what happens next.'),
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
