import { conditions, metadata } from './metadata.ts';
import { fields, listOf, number, text, texts, type Shape } from './shape.ts';

export const serviceExport: Shape = fields({ metadata, status: fields({ conditions }) });

export const serviceImport: Shape = fields(
  {
    metadata,
    spec: fields(
      {
        type: text,
        ports: listOf(fields({ name: text, protocol: text, appProtocol: text, port: number }, ['port'])),
        ips: texts,
        ipFamilies: texts,
        sessionAffinity: text,
        sessionAffinityConfig: fields({ clientIP: fields({ timeoutSeconds: number }) }),
        internalTrafficPolicy: text,
        trafficDistribution: text,
      },
      ['type', 'ports'],
    ),
    status: fields({ clusters: listOf(fields({ cluster: text }, ['cluster'])), endpointSliceObjects: text }),
  },
  ['spec'],
);
