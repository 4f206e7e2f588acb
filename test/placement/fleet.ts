import { placement as placementSchema } from '../../src/api/placement.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import type { Avoided } from '../../src/placement/avoided.ts';
import type { Room } from '../../src/placement/candidates.ts';
import type { Decision, PlacementFacts, Plan } from '../../src/placement/decision.ts';
import { localCluster } from '../../src/api/cluster.ts';
import type { Cluster } from '../../src/api/cluster.ts';
import { compilePlacement } from '../../src/placement/compiled-placement.ts';
import type { CompiledPlacement } from '../../src/placement/compiled-placement.ts';
import { nextPlace, refreshPlan } from '../../src/placement/next-place.ts';
import { removalOrder } from '../../src/placement/removal-order.ts';
import { ofAllRevisions } from '../../src/placement/workload.ts';
import { countPods, type PlacedPod } from '../fixtures/count-pods.ts';

/** A usable cluster with nothing special about it. */
export function cluster(name: string, more: Partial<Cluster> = {}): Cluster {
  return { ...localCluster(), name, ...more };
}

/** The `placement` of a policy as a user writes it, ready for use. */
function placement(written: object): CompiledPlacement {
  return compilePlacement(placementSchema.parse(written));
}

interface Setting {
  placement: object;
  clusters: readonly Cluster[];
  /** Pods each cluster can hold in all, of every kind; without a number as many as come. */
  room?: Record<string, number>;
  /** UID of the workload. */
  uid?: string;
}

/** A workload that grows, shrinks and is rolled out by way of the functions under test, pod by pod. */
export class Fleet {
  placement: CompiledPlacement;
  clusters: readonly Cluster[];
  room: Record<string, number>;
  impossible: Record<string, string> = {};
  readonly uid: string | undefined;
  replicas = 0;
  revision = 'r1';
  pods: PlacedPod[] = [];
  avoided: Avoided[] = [];
  plan: Plan | undefined;
  waitedMs = 0;
  now = Date.parse('2026-01-01T00:00:00Z');
  #made = 0;

  constructor(setting: Setting) {
    this.placement = placement(setting.placement);
    this.clusters = setting.clusters;
    this.room = setting.room ?? {};
    this.uid = setting.uid;
  }

  /** The policy is another one from now on. */
  edit(written: object): void {
    this.placement = placement(written);
  }

  facts(revision = this.revision): PlacementFacts {
    return {
      placement: this.placement,
      clusters: this.clusters,
      workload: { uid: this.uid, replicas: this.replicas, pods: countPods(this.pods) },
      pod: { revision, waitedMs: this.waitedMs },
      rooms: this.rooms(),
      avoided: this.avoided,
      remembered: this.plan,
      signals: new Map(),
      scoring: scoringConfig.parse({}),
      now: this.now,
    };
  }

  rooms(): Map<string, Room> {
    const here = ofAllRevisions(countPods(this.pods));
    const rooms = new Map<string, Room>();
    for (const [name, all] of Object.entries(this.room)) rooms.set(name, { fits: all - (here.get(name) ?? 0) });
    for (const [name, impossible] of Object.entries(this.impossible)) rooms.set(name, { fits: 0, impossible });
    return rooms;
  }

  decide(): Decision {
    return nextPlace(this.facts());
  }

  /** Places one pod of the present revision; undefined when it has to wait. */
  place(): string | undefined {
    const decision = this.decide();
    this.plan = decision.plan;
    const cluster = decision.allowed[0]?.cluster;
    if (cluster !== undefined)
      this.pods.push({ uid: `p${String((this.#made += 1))}`, cluster, revision: this.revision });
    return cluster;
  }

  /** The workload asks for so many pods; those missing are placed, those too many go in the order of removal. */
  scale(replicas: number): Record<string, number> {
    this.replicas = replicas;
    while (this.pods.length < replicas && this.place() !== undefined);
    const tooMany = this.removal().slice(0, Math.max(0, this.pods.length - replicas));
    for (const cluster of tooMany)
      this.pods.splice(
        this.pods.findLastIndex((pod) => pod.cluster === cluster),
        1,
      );
    if (tooMany.length > 0) this.plan = refreshPlan(this.facts());
    return this.counts();
  }

  /** The plan follows what is there without a pod that asks. */
  refresh(): void {
    this.plan = refreshPlan(this.facts());
  }

  removal(): string[] {
    return removalOrder({
      placement: this.placement,
      clusters: this.clusters,
      uid: this.uid,
      affinityName: this.plan?.affinityName,
      pods: ofAllRevisions(countPods(this.pods)),
      shares: this.plan?.shares ?? this.plan?.targets,
    });
  }

  /** A rolling update: `surge` new pods, then one old one less for each new one. Old ones go from where `victim` says. */
  rollOut(surge: number, victim: (old: readonly PlacedPod[]) => number): Record<string, number> {
    this.revision = `${this.revision}x`;
    for (;;) {
      const old = this.pods.filter(({ revision }) => revision !== this.revision);
      const fresh = this.pods.length - old.length;
      if (old.length === 0 && fresh >= this.replicas) return this.counts();
      if (fresh < this.replicas && this.pods.length < this.replicas + surge && this.place() !== undefined) continue;
      const gone = old[victim(old) % Math.max(1, old.length)];
      if (gone === undefined) return this.counts();
      this.pods.splice(this.pods.indexOf(gone), 1);
    }
  }

  counts(): Record<string, number> {
    const counts = ofAllRevisions(countPods(this.pods));
    return Object.fromEntries([...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}
