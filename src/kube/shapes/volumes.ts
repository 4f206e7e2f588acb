import { conditions, metadata } from './metadata.ts';
import { labelSelector, nodeSelector, opaque } from './selectors.ts';
import { fields, quantities, text, textMap, texts, type Shape } from './shape.ts';

const resources = fields({ requests: quantities, limits: quantities });

export const claim: Shape = fields(
  {
    metadata,
    spec: fields({
      accessModes: texts,
      resources,
      storageClassName: text,
      volumeName: text,
      volumeMode: text,
      selector: labelSelector,
      dataSource: opaque,
      dataSourceRef: opaque,
      volumeAttributesClassName: text,
    }),
    status: fields({ phase: text, capacity: quantities, conditions }),
  },
  ['spec'],
);

export const volume: Shape = fields(
  {
    metadata,
    spec: fields({
      accessModes: texts,
      capacity: quantities,
      volumeMode: text,
      storageClassName: text,
      persistentVolumeReclaimPolicy: text,
      claimRef: fields({ namespace: text, name: text, uid: text }),
      csi: fields({ driver: text, volumeHandle: text, volumeAttributes: textMap }),
      nodeAffinity: fields({ required: nodeSelector }),
    }),
    status: fields({ phase: text }),
  },
  ['spec'],
);

export const storageClass: Shape = fields({
  metadata,
  provisioner: text,
  parameters: textMap,
  reclaimPolicy: text,
  volumeBindingMode: text,
});
