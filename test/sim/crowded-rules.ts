import type { JsonObject } from '../../src/kube/json-equal.ts';
import { BY_ROOM, HERE, RULE, SHRINKS, SHRUNK_CPU, TIERS, WAITS } from './crowded.ts';

const apiVersion = 'spillway.dev/v1alpha1';

interface Rules {
  readonly path: string;
  readonly policy: JsonObject;
}

/** A policy for pods, and ReplicaSets, of one rule; `chosen` undefined: for all that have no other. */
function made(name: string, placement: JsonObject, chosen?: string): Rules {
  return {
    path: `/apis/${apiVersion}/clusterplacementpolicies`,
    policy: {
      apiVersion,
      kind: 'ClusterPlacementPolicy',
      metadata: { name },
      spec: {
        priority: chosen === undefined ? 0 : 100,
        resourceSelectors: [
          { apiVersion: 'v1', kind: 'Pod' },
          { apiVersion: 'apps/v1', kind: 'ReplicaSet' },
        ].map((one) => (chosen === undefined ? one : { ...one, labelSelector: { matchLabels: { [RULE]: chosen } } })),
        placement,
      },
    },
  };
}

/** How many pods each member is to have follows from the room it has. */
export function ruleByRoom(): Rules {
  return made(
    BY_ROOM,
    {
      clusterAffinity: { clusterNames: [...TIERS] },
      replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } },
    },
    BY_ROOM,
  );
}

/** Pods go to members, but for those of one rule: by some rules to the first tier that has room, by others where there is any. */
export function crowdedRules(): Rules[] {
  const [first, second] = TIERS;
  const tiers = (rule: string): JsonObject => ({
    clusterAffinity: {
      clusterNames: [first],
      tryNextAfter: `${String((WAITS[rule] ?? 0) / 1_000)}s`,
      overflowAffinities: [{ clusterNames: [second] }],
    },
  });
  const weights = {
    clusterAffinity: { clusterNames: [...TIERS] },
    replicaScheduling: {
      weightPreference: {
        staticWeightList: TIERS.map((name, index) => ({
          targetCluster: { clusterNames: [name] },
          weight: index + 1,
        })),
      },
    },
  };
  return [
    made('all', { clusterAffinity: { clusterNames: [...TIERS] } }),
    made('now', tiers('now'), 'now'),
    made('later', tiers('later'), 'later'),
    made('weights', weights, 'weights'),
    made(HERE, { clusterAffinity: { clusterNames: ['local'] } }, HERE),
    shrinking(),
  ];
}

function shrinking(): Rules {
  return {
    path: `/apis/${apiVersion}/clusteroverridepolicies`,
    policy: {
      apiVersion,
      kind: 'ClusterOverridePolicy',
      metadata: { name: 'shrink' },
      spec: {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', labelSelector: { matchLabels: { [SHRINKS]: 'yes' } } }],
        overrideRules: [
          {
            overriders: {
              plaintext: [
                {
                  path: '/spec/containers/0/resources/requests/cpu',
                  operator: 'replace',
                  value: String(SHRUNK_CPU),
                },
              ],
            },
          },
        ],
      },
    },
  };
}
