import { type OverridePolicy, type OverridePolicyKind, parseOverridePolicy } from '../../src/api/override-policy.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { OverrideContext } from '../../src/overrides/apply-overrides.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import type { Cluster } from '../../src/api/cluster.ts';
import { translatePod } from '../../src/pods/translate.ts';
import { boundPod, CONTEXT } from '../fixtures/translation.ts';

export const EAST: Cluster = {
  name: 'east',
  labels: { tier: 'gold', 'topology.kubernetes.io/building': 'b7' },
  provider: 'acme',
  region: 'eu-1',
  zones: ['eu-1a'],
  taints: [],
  unavailable: undefined,
  price: undefined,
};

const REPLICA_SET = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f8', uid: 'rs-uid', controller: true };

/** A pod of the Deployment `web` in namespace `shop`, as it is on the host. */
export function webPod(spec: Record<string, unknown> = {}, labels: Record<string, string> = {}): Pod {
  return boundPod(
    {
      containers: [
        {
          name: 'app',
          image: 'registry.example/web:v1',
          command: ['serve'],
          args: ['--port', '80', '--fast'],
          env: [
            { name: 'MODE', value: 'plain' },
            { name: 'URL', value: 'http://$(MODE)' },
          ],
          resources: { requests: { cpu: '100m' }, limits: { memory: '1Gi' } },
        },
        { name: 'side', image: 'side:v2' },
      ],
      initContainers: [{ name: 'init', image: 'busybox', args: ['--fast'] }],
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }],
      ...spec,
    },
    {
      name: 'web-5d4f8-x2x2x',
      labels: { app: 'web', 'pod-template-hash': '5d4f8', ...labels },
      annotations: { note: 'kept' },
      ownerReferences: [REPLICA_SET],
    },
  );
}

/** The same as it is rendered for the member `east`, before any policy. */
export function rendered(hostPod: Pod = webPod()): Pod {
  const translation = translatePod(hostPod, CONTEXT);
  if (translation.kind === 'refused') throw new Error(translation.message);
  return translation.pod;
}

export function contextOf(hostPod: Pod = webPod(), more: Partial<OverrideContext> = {}): OverrideContext {
  const namespace = hostPod.metadata.namespace ?? '';
  return { subject: { namespace, identities: identitiesOfPod(hostPod) }, member: EAST, ...more };
}

/** A policy as the API server would send it. */
export function policy(
  kind: OverridePolicyKind,
  name: string,
  spec: object = {},
  namespace: string | undefined = kind === 'OverridePolicy' ? 'shop' : undefined,
): OverridePolicy {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  const result = parseOverridePolicy(kind, { metadata, spec } as never);
  if ('problems' in result) throw new Error(result.problems.join('; '));
  return result.policy;
}
