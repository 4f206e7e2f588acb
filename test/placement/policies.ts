import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import type { PlacementPolicy } from '../../src/api/placement-policy.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { OwnerChain, TypedObject } from '../../src/placement/owner-chain.ts';

export const DEPLOYMENTS = { apiVersion: 'apps/v1', kind: 'Deployment' };

/** A policy as the API server would send it: cluster-wide without a namespace. */
export function rawPolicy(name: string, spec: object, namespace?: string): KubeObject {
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: namespace === undefined ? 'ClusterPlacementPolicy' : 'PlacementPolicy',
    metadata: { name, generation: 4, ...(namespace === undefined ? {} : { namespace }) },
    spec: { resourceSelectors: [DEPLOYMENTS], ...spec },
  } as KubeObject;
}

export function policy(name: string, spec: object = {}, namespace?: string): PlacementPolicy {
  const parsed = parsePlacementPolicy(rawPolicy(name, spec, namespace));
  if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
  return parsed.policy;
}

export function object(
  apiVersion: string,
  kind: string,
  name: string,
  more: object = {},
  metadata: object = {},
): TypedObject {
  return { apiVersion, kind, metadata: { name, namespace: 'shop', ...metadata }, ...more };
}

/** A pod of Deployment shop/web. */
export function webPod(deployment: object = {}, podMetadata: object = {}): OwnerChain {
  return [
    object('v1', 'Pod', 'web-7d-x', {}, { labels: { app: 'web', 'pod-template-hash': '7d' }, ...podMetadata }),
    object('apps/v1', 'ReplicaSet', 'web-7d', { spec: { replicas: 2 } }, { labels: { app: 'web' } }),
    object('apps/v1', 'Deployment', 'web', { spec: { replicas: 5 } }, { labels: { app: 'web' }, ...deployment }),
  ];
}
