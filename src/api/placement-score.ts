import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import type { KindDefinition } from './crd.ts';
import { OWN_VERSION } from './marks.ts';
import { parseObject } from './parse-object.ts';
import { AGE, column } from './printer-column.ts';
import { dnsLabel, listMap } from './schema-parts.ts';

export const PLACEMENT_SCORES = resourceOf(OWN_VERSION, 'PlacementScore', 'placementscores', false);

const spec = z
  .object({
    clusterName: dnsLabel().describe(
      'The MemberCluster that is scored; local stands for the nodes of the host itself.',
    ),
    scores: z
      .array(
        z.object({
          name: dnsLabel().describe('Name of the score, as weights refer to it.'),
          value: z
            .int()
            .min(-100)
            .max(100)
            .describe('From -100 (bad) to 100 (good). A cluster without the score counts as 0.'),
        }),
      )
      .min(1)
      .max(32)
      .meta({ description: 'What was found out about the cluster.', ...listMap('name') }),
    validUntil: z.iso.datetime({ offset: true }).exactOptional().meta({
      description:
        'From then on the scores count no more, as if they were not there. Not given: they count until they are changed.',
      format: 'date-time',
    }),
  })
  .describe('Scores of one cluster. Written by a program outside; nobody else changes it.');

/** Nothing is reported about scores so far. */
const status = z.object({});

export interface PlacementScore extends KubeObject {
  spec: z.output<typeof spec>;
}

export const placementScoreKind: KindDefinition = {
  resource: PLACEMENT_SCORES,
  shortNames: ['pscore'],
  schema: z.object({ spec }).meta({
    description:
      'PlacementScore is how a program outside (of costs, carbon, latency) has a say in which cluster is better: scores of one cluster, ' +
      'which count with the weights that policies or the configuration give them.',
  }),
  columns: [
    column('Cluster', 'string', '.spec.clusterName'),
    column('Scores', 'string', '.spec.scores[*].name'),
    column('Values', 'string', '.spec.scores[*].value'),
    column('Valid until', 'string', '.spec.validUntil'),
    AGE,
  ],
};

/** The object as the API server sent it; see {@link parseObject}. */
export function parsePlacementScore(raw: KubeObject): { score: PlacementScore } | { problems: string[] } {
  const parsed = parseObject(raw, { spec, status });
  return 'object' in parsed ? { score: parsed.object } : parsed;
}
