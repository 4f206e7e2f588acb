import { metadata } from './metadata.ts';
import { fields, flag, listOf, number, object, text, textMap, texts, type Shape } from './shape.ts';

const intOrString: Shape = (value) => (typeof value === 'string' ? undefined : number(value));

export const service: Shape = fields({
  metadata,
  spec: fields({
    type: text,
    clusterIP: text,
    clusterIPs: texts,
    externalName: text,
    ports: listOf(
      fields(
        { name: text, port: number, protocol: text, appProtocol: text, targetPort: intOrString, nodePort: number },
        ['port'],
      ),
    ),
    selector: textMap,
    sessionAffinity: text,
    sessionAffinityConfig: fields({ clientIP: fields({ timeoutSeconds: number }) }),
    publishNotReadyAddresses: flag,
    internalTrafficPolicy: text,
    trafficDistribution: text,
    ipFamilies: texts,
    ipFamilyPolicy: text,
  }),
});

const endpoint = fields(
  {
    addresses: texts,
    conditions: fields({ ready: flag, serving: flag, terminating: flag }),
    hostname: text,
    targetRef: fields({ kind: text, namespace: text, name: text, uid: text }),
    nodeName: text,
    zone: text,
    hints: object,
  },
  ['addresses'],
);

export const endpointSlice: Shape = fields(
  {
    metadata,
    addressType: text,
    endpoints: listOf(endpoint),
    ports: listOf(fields({ name: text, protocol: text, port: number, appProtocol: text })),
  },
  ['addressType'],
);
