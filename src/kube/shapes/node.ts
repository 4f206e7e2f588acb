import { conditions, metadata } from './metadata.ts';
import { taints } from './selectors.ts';
import { fields, flag, listOf, mapOf, number, quantities, text, texts, type Shape } from './shape.ts';

export const node: Shape = fields({
  metadata,
  spec: fields({ providerID: text, unschedulable: flag, taints, podCIDR: text, podCIDRs: texts }),
  status: fields({
    capacity: quantities,
    allocatable: quantities,
    conditions,
    addresses: listOf(fields({ type: text, address: text }, ['type', 'address'])),
    daemonEndpoints: fields({ kubeletEndpoint: fields({ Port: number }) }),
    nodeInfo: mapOf((value) => (typeof value === 'object' ? undefined : text(value))),
    images: listOf(fields({ names: texts, sizeBytes: number })),
    declaredFeatures: texts,
  }),
});
