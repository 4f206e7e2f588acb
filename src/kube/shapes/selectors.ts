import { fields, listOf, number, object, text, textMap, texts } from './shape.ts';

const requirement = fields({ key: text, operator: text, values: texts }, ['key', 'operator']);

export const labelSelector = fields({ matchLabels: textMap, matchExpressions: listOf(requirement) });

const nodeSelectorTerm = fields({ matchExpressions: listOf(requirement), matchFields: listOf(requirement) });

export const nodeSelector = fields({ nodeSelectorTerms: listOf(nodeSelectorTerm) }, ['nodeSelectorTerms']);

const podAffinityTerm = fields(
  {
    topologyKey: text,
    labelSelector,
    namespaces: texts,
    namespaceSelector: labelSelector,
    matchLabelKeys: texts,
    mismatchLabelKeys: texts,
  },
  ['topologyKey'],
);
const podAffinity = fields({
  requiredDuringSchedulingIgnoredDuringExecution: listOf(podAffinityTerm),
  preferredDuringSchedulingIgnoredDuringExecution: listOf(
    fields({ weight: number, podAffinityTerm }, ['weight', 'podAffinityTerm']),
  ),
});

export const affinity = fields({
  nodeAffinity: fields({
    requiredDuringSchedulingIgnoredDuringExecution: nodeSelector,
    preferredDuringSchedulingIgnoredDuringExecution: listOf(
      fields({ weight: number, preference: nodeSelectorTerm }, ['weight', 'preference']),
    ),
  }),
  podAffinity,
  podAntiAffinity: podAffinity,
});

export const topologySpread = listOf(
  fields(
    {
      maxSkew: number,
      topologyKey: text,
      whenUnsatisfiable: text,
      labelSelector,
      minDomains: number,
      matchLabelKeys: texts,
    },
    ['topologyKey'],
  ),
);

export const taints = listOf(fields({ key: text, value: text, effect: text }, ['key', 'effect']));
export const tolerations = listOf(
  fields({ key: text, operator: text, value: text, effect: text, tolerationSeconds: number }),
);
/** Kept, never looked into. */
export const opaque = object;
