import { metadata } from './metadata.ts';
import { fields, number, text, type Shape } from './shape.ts';

const involvedObject = fields({
  apiVersion: text,
  kind: text,
  namespace: text,
  name: text,
  uid: text,
  fieldPath: text,
});

/** Times may be none at all; whoever reads them expects that. */
export const event: Shape = fields(
  {
    metadata,
    involvedObject,
    type: text,
    reason: text,
    message: text,
    count: number,
    series: fields({ count: number, lastObservedTime: text }),
    firstTimestamp: text,
    lastTimestamp: text,
    eventTime: text,
    source: fields({ component: text, host: text }),
    reportingComponent: text,
    reportingInstance: text,
  },
  ['involvedObject'],
);
