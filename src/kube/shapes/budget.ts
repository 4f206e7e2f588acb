import { conditions, metadata } from './metadata.ts';
import { labelSelector } from './selectors.ts';
import { fields, mapOf, number, text, type Shape } from './shape.ts';

const intOrString: Shape = (value) => (typeof value === 'string' ? undefined : number(value));

export const budget: Shape = fields(
  {
    metadata,
    spec: fields({
      selector: labelSelector,
      minAvailable: intOrString,
      maxUnavailable: intOrString,
      unhealthyPodEvictionPolicy: text,
    }),
    status: fields({
      observedGeneration: number,
      disruptionsAllowed: number,
      currentHealthy: number,
      desiredHealthy: number,
      expectedPods: number,
      disruptedPods: mapOf(text),
      conditions,
    }),
  },
  ['spec'],
);
