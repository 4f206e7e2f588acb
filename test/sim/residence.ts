import type { JsonObject } from '../../src/kube/json-equal.ts';

/** Where pods have to be: on a bare pod, or on the ReplicaSet that makes them and on nothing else. */
export const RESIDENCE = 'example.com/residence';
/** Of a ReplicaSet: no more than one of its pods may be in `east`. */
export const LIMITED = 'example.com/limited';
/** Of a template: the scheduler makes a volume for each pod, which takes that many ms. */
export const VOLUME_MS = 'example.com/volume-ms';
/** A taint of a member that rules about residence tolerate, and no others. */
export const RESERVED = { key: 'reserved', effect: 'NoSchedule' };

/** Policies that say where pods have to be, whatever else is written into them. They come before all others. */
export function residencePolicies(
  members: readonly string[],
  namespaces: readonly string[],
): { path: string; policy: JsonObject }[] {
  const places = members.map((member) => ({
    name: `in-${member}`,
    labels: { [RESIDENCE]: member },
    placement: { clusterAffinity: { clusterNames: [member] } },
  }));
  const [first = '', second = ''] = members;
  const tiers = { clusterNames: [first], max: 1, overflowAffinities: [{ clusterNames: [second] }] };
  const limited = { name: 'limited', labels: { [LIMITED]: 'yes' }, placement: { clusterAffinity: tiers } };
  return namespaces.flatMap((namespace) =>
    [...places, limited].map(({ name, labels, placement }) => ({
      path: `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/placementpolicies`,
      policy: policy({ name, namespace }, labels, placement),
    })),
  );
}

function policy(metadata: JsonObject, matchLabels: JsonObject, placement: JsonObject): JsonObject {
  const labelSelector = { matchLabels };
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata,
    spec: {
      priority: 100,
      resourceSelectors: [
        { apiVersion: 'v1', kind: 'Pod', labelSelector },
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', labelSelector },
      ],
      placement: { ...placement, clusterTolerations: [{ key: RESERVED.key, operator: 'Exists' }] },
    },
  };
}
