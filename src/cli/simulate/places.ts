import { LOCAL } from '../../api/cluster-tiers.ts';
import { scoringConfig } from '../../api/scoring.ts';
import type { Room } from '../../placement/candidates.ts';
import type { Decision } from '../../placement/decision.ts';
import type { Cluster } from '../../api/cluster.ts';
import { nextPlace } from '../../placement/next-place.ts';
import { placeInWords } from '../../placement/placement-report.ts';
import type { Rules } from '../../placement/policy-selection.ts';

/** More replicas are placed no further: it is about where they go, not about counting. */
const MOST_REPLICAS = 1000;

/** Where the pods of a workload would go, and of each cluster why, or why not. */
export interface Places {
  /** Pods by cluster. */
  counts: Map<string, number>;
  /** Pods that would wait. */
  waiting: number;
  /** By cluster; of those without pods why they have none. */
  why: Map<string, string>;
}

export interface PlaceFacts {
  rules: Rules;
  clusters: readonly Cluster[];
  rooms: ReadonlyMap<string, Room>;
  replicas: number;
  /** Wall clock in ms. */
  now: number;
}

/** Asks for one pod after the other, as the scheduler does, by the same rules as the scheduler component. */
export function placesByRules({ rules, clusters, rooms, replicas, now }: PlaceFacts): Places {
  const counts = new Map<string, number>();
  const why = new Map<string, string>();
  const left = new Map(rooms);
  let plan: Decision['plan'] | undefined;
  const wanted = Math.min(replicas, MOST_REPLICAS);
  for (let placed = 0; placed < wanted; placed++) {
    const decision = nextPlace({
      placement: rules.placement,
      clusters,
      workload: { uid: undefined, replicas, pods: new Map([['', counts]]) },
      // As if it had waited long enough for every tier.
      pod: { revision: undefined, waitedMs: 365 * 86_400_000 },
      rooms: left,
      avoided: [],
      remembered: plan,
      signals: new Map(),
      scoring: scoringConfig.parse({}),
      now,
    });
    ({ plan } = decision);
    const [first] = decision.allowed;
    for (const { cluster, message } of decision.refusals) if (!counts.has(cluster)) why.set(cluster, message);
    if (first === undefined) return { counts, waiting: replicas - placed, why };
    counts.set(first.cluster, (counts.get(first.cluster) ?? 0) + 1);
    why.set(first.cluster, placeInWords(first));
    const room = left.get(first.cluster);
    if (room?.fits !== undefined) left.set(first.cluster, { ...room, fits: Math.max(0, room.fits - 1) });
  }
  return { counts, waiting: replicas - wanted, why };
}

/**
 * Without rules the scheduler chooses among this cluster's nodes and the virtual nodes that the pod asks for itself; which it likes best
 * is its own affair, so pods are counted where there is room, this cluster first.
 */
export function placesWithoutRules(
  rooms: ReadonlyMap<string, Room>,
  replicas: number,
  whyNotAsked: (member: string) => string | undefined,
): Places {
  const counts = new Map<string, number>();
  const why = new Map<string, string>();
  let left = replicas;
  for (const [cluster, room] of rooms) {
    const refused = cluster === LOCAL ? undefined : whyNotAsked(cluster);
    if (refused !== undefined || room.fits === 0) {
      why.set(cluster, refused ?? room.impossible ?? room.why ?? 'it has no room for the pod');
      continue;
    }
    const taken = Math.min(left, room.fits ?? left);
    if (taken > 0) counts.set(cluster, taken);
    why.set(cluster, 'no rules speak about it: the scheduler chooses as it likes among those with room');
    left -= taken;
  }
  return { counts, waiting: left, why };
}
