import type { JsonObject } from '../../src/kube/json-equal.ts';

/** Of a ReplicaSet: by which of {@link DIVISIONS} its pods are divided between members. */
export const DIVIDED = 'example.com/divided';
/** Of a ReplicaSet: its namespace's quota lets it have so many pods, however many it asks for. */
export const QUOTA = 'example.com/quota';

const clusters = (members: readonly string[]): JsonObject =>
  Object.fromEntries(members.map((name, index) => [name, { weight: index + 1 }]));

/** `replicaScheduling` by name. */
const DIVISIONS: Readonly<Record<string, (members: readonly string[]) => JsonObject>> = {
  weights: (members) => ({ whenFull: 'Wait', clusterPreferences: { clusters: clusters(members) } }),
  remainder: (members) => ({
    whenFull: 'Wait',
    clusterPreferences: { clusters: clusters(members), division: 'Remainder' },
  }),
  room: () => ({ weightPreference: { dynamicWeight: 'AvailableReplicas' } }),
};

export const DIVISION_NAMES: readonly string[] = Object.keys(DIVISIONS);

/** One for each division and namespace. They come before those for all pods. */
export function dividingPolicies(
  members: readonly string[],
  namespaces: readonly string[],
): { path: string; policy: JsonObject }[] {
  const apiVersion = 'spillway.dev/v1alpha1';
  return namespaces.flatMap((namespace) =>
    Object.entries(DIVISIONS).map(([name, division]) => ({
      path: `/apis/${apiVersion}/namespaces/${namespace}/placementpolicies`,
      policy: {
        apiVersion,
        kind: 'PlacementPolicy',
        metadata: { name: `by-${name}`, namespace },
        spec: {
          priority: 100,
          resourceSelectors: [
            { apiVersion: 'apps/v1', kind: 'ReplicaSet', labelSelector: { matchLabels: { [DIVIDED]: name } } },
          ],
          placement: { clusterAffinity: { clusterNames: [...members] }, replicaScheduling: division(members) },
        },
      },
    })),
  );
}
