import { z } from 'zod';
import { systemNamespaceCel } from './namespace-mapping.ts';
import { cel, dnsLabel } from './schema-parts.ts';

export const services = z
  .object({
    mode: z
      .enum(['None', 'Mirror'])
      .default('None')
      .describe(
        'None: the member has no Services of the host, and pods get variables of Services as in the host. Mirror: each Service of a namespace ' +
          'that has pods in the member stands there under the same name, with the endpoints that the host knows, as far as spec.network ' +
          'lets pods reach them. Needs manifests/member/services.yaml in the member.',
      ),
    namespaces: z
      .array(dnsLabel())
      .max(64)
      .default([])
      .meta({
        description:
          'Namespaces of the host whose Services stand in the member also while none of their pods are there. With mode Mirror.',
        'x-kubernetes-list-type': 'set',
        ...cel({
          rule: `self.all(n, !(${systemNamespaceCel('n')}))`,
          message: 'system namespaces cannot be mapped',
        }),
      }),
    multiCluster: z
      .enum(['None', 'Exchange'])
      .default('None')
      .describe(
        'Multi-Cluster Services API (KEP-1645). None: the member takes no part. Exchange: what ServiceExports of the member, of the host and of ' +
          'other such members ask for stands in all of them as ServiceImports. Only with network Flat. Needs manifests/multi-cluster in the host and ' +
          'in the member, and manifests/member/multi-cluster.yaml there.',
      ),
  })
  .prefault({})
  .meta({
    description: 'Services of the host for pods in the member.',
    ...cel({
      rule: "!has(self.namespaces) || self.namespaces.size() == 0 || (has(self.mode) && self.mode == 'Mirror')",
      message: 'namespaces are only allowed when mode is Mirror',
      fieldPath: '.namespaces',
      reason: 'FieldValueForbidden',
    }),
  });
