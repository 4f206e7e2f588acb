import { z } from 'zod';

const measurement = z.object({
  name: z.string(),
  /** JSON has no NaN: there was none. */
  value: z.number().nullable(),
  unit: z.string(),
  better: z.enum(['lower', 'higher']),
  spread: z.number().optional(),
  reference: z.literal(true).optional(),
});
const machine = z.object({ cores: z.number(), processor: z.string(), memoryGiB: z.number(), node: z.string() });
const run = z.object({ machine, measurements: z.array(measurement) });
/** As runs were stored before they said on which machine. */
const bare = z.array(measurement).transform((measurements) => ({ machine: undefined, measurements }));

export type StoredMeasurement = z.infer<typeof measurement>;
export interface StoredRun {
  machine: z.infer<typeof machine> | undefined;
  measurements: StoredMeasurement[];
}

/** What results/latest.json says; throws with what is wrong with it. */
export function parseRun(text: string): StoredRun {
  const parsed = z.union([run, bare]).safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(z.prettifyError(parsed.error));
  return parsed.data;
}
