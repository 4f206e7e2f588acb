import { z } from 'zod';
import { dnsLabel, listMap } from './schema-parts.ts';

const SIGNALS =
  'Scores from outside (PlacementScore), from -100 to 100 for each cluster, which are stretched to 0 to 100. Without a value: in the middle.';
const SIGNAL = {
  name: dnsLabel().describe('Name of the score.'),
  weight: z.int().min(1).max(100).describe('Weight of the score.'),
};
const weight = () => z.int().min(0).max(100);

const WORDS = {
  locality: 'Nearness: 100 for local, 50 for a cluster in the region of the host, 0 for others.',
  freeRoom: 'Room: 100 for the cluster with most room for such pods, others in proportion.',
  price:
    'Price (annotation spillway.dev/price of MemberClusters): 100 for the cheapest, 0 for the dearest or without a price.',
  images:
    'Images: 100 when every node of the cluster has every image of the pod, in proportion otherwise. Not known: 50, as for local.',
};
const DEFAULT_WEIGHTS = { locality: 40, freeRoom: 30, price: 20, images: 10 };
const DEFAULT_HYSTERESIS = 10;
const HYSTERESIS =
  'Points by which another cluster must be better before it takes the place of one that has pods of the workload.';

const configured = (which: keyof typeof DEFAULT_WEIGHTS) =>
  weight()
    .exactOptional()
    .describe(`${WORDS[which]} Not given: as configured (${String(DEFAULT_WEIGHTS[which])}).`);

/** In policies. What is not given is as the configuration of the manager says. */
export const scoreWeights = z
  .object({
    locality: configured('locality'),
    freeRoom: configured('freeRoom'),
    price: configured('price'),
    images: configured('images'),
    signals: z
      .array(z.object(SIGNAL))
      .max(16)
      .exactOptional()
      .meta({ description: `${SIGNALS} Not given: as configured (none).`, ...listMap('name') }),
  })
  .exactOptional()
  .describe('Weights of what makes one cluster better than another, from 0 (does not count) to 100.');
export const hysteresis = z
  .int()
  .min(0)
  .max(100)
  .exactOptional()
  .describe(`${HYSTERESIS} Not given: as configured (${String(DEFAULT_HYSTERESIS)}).`);

/** In the configuration of the manager. */
export const scoringConfig = z
  .strictObject({
    weights: z
      .strictObject({
        locality: weight().default(DEFAULT_WEIGHTS.locality).describe(WORDS.locality),
        freeRoom: weight().default(DEFAULT_WEIGHTS.freeRoom).describe(WORDS.freeRoom),
        price: weight().default(DEFAULT_WEIGHTS.price).describe(WORDS.price),
        images: weight().default(DEFAULT_WEIGHTS.images).describe(WORDS.images),
        signals: z.array(z.strictObject(SIGNAL)).max(16).default([]).describe(SIGNALS),
      })
      .prefault({})
      .describe('Weights of what makes one cluster better than another, from 0 (does not count) to 100.'),
    hysteresis: z.int().min(0).max(100).default(DEFAULT_HYSTERESIS).describe(HYSTERESIS),
  })
  .prefault({});

/** How clusters are compared. */
export type Scoring = z.output<typeof scoringConfig>;
/** What a policy says of it. */
export interface OwnScoring {
  readonly weights: NonNullable<z.output<typeof scoreWeights>>;
  readonly hysteresis: number | undefined;
}
