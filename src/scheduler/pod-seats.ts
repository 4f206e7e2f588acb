import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { Expiries } from '../kube/expiries.ts';
import { controllerOrOwnKeyOf } from '../kube/owner-references.ts';
import type { PodCounts } from '../placement/workload.ts';
import { revisionOf } from '../placement/owner-chain.ts';

/** A pod as it counts: bound to a node, or on its way to a cluster. */
interface Seated {
  /** What it counts with: its controller, or itself. */
  readonly group: string;
  readonly revision: string;
  readonly cluster: string | undefined;
  /** Set while the place is only what was decided; until then, in ms. */
  readonly until: number | undefined;
  /** The watch has shown the pod; else only a scheduler has spoken of it. */
  readonly seen: boolean;
}

interface Group {
  /** By revision, then by cluster. */
  readonly placed: Map<string, Map<string, number>>;
  /** Pods without a place, by revision. */
  readonly waiting: Map<string, number>;
  /** By UID of each pod whose place is only decided, until when, in ms. */
  readonly assumed: Map<string, number>;
}

/**
 * How many pods of each controller and revision are in each cluster, kept up with every event so that a question costs
 * nothing. Pods that a scheduler was told a place for count there at once, while it works on them or until they are bound.
 * Finished pods and those that are being deleted have no seat.
 */
export class PodSeats {
  readonly #clusterOf: (nodeName: string) => string;
  readonly #monotonic: () => number;
  readonly #pods = new Map<string, Seated>();
  readonly #groups = new Map<string, Group>();
  /** UIDs of pods whose place is only decided. */
  readonly #assumed = new Expiries<string>();

  /** `clusterOf`: the member of a virtual node, `local` for others. */
  constructor(o: { clusterOf: (nodeName: string) => string; monotonic: () => number }) {
    this.#clusterOf = o.clusterOf;
    this.#monotonic = o.monotonic;
  }

  /** The pod as it is now. */
  set(pod: Pod): void {
    const { uid = '', deletionTimestamp } = pod.metadata;
    if (deletionTimestamp !== undefined || isFinished(pod)) {
      this.delete(pod);
      return;
    }
    const { nodeName } = pod.spec;
    const bound = nodeName === undefined || nodeName === '' ? undefined : this.#clusterOf(nodeName);
    const before = this.#pods.get(uid);
    const assumed = bound === undefined && before?.until !== undefined ? before : undefined;
    this.#put(uid, {
      group: controllerOrOwnKeyOf(pod),
      revision: revisionOf(pod) ?? '',
      cluster: bound ?? assumed?.cluster,
      until: assumed?.until,
      seen: true,
    });
  }

  delete(pod: Pod): void {
    this.#put(pod.metadata.uid ?? '', undefined);
  }

  /** Counts a pod that is not bound yet as if it were in the cluster. */
  assume(pod: Pod, cluster: string, forMs: number): void {
    const { uid = '' } = pod.metadata;
    const before = this.#pods.get(uid);
    if (before !== undefined && before.cluster !== undefined && before.until === undefined) return;
    const until = this.#monotonic() + forMs;
    const seen = before?.seen ?? false;
    this.#put(uid, { group: controllerOrOwnKeyOf(pod), revision: revisionOf(pod) ?? '', cluster, until, seen });
  }

  /** Takes an assumption back. */
  forget(uid: string): void {
    const before = this.#pods.get(uid);
    if (before?.until === undefined) return;
    this.#put(uid, before.seen ? { ...before, cluster: undefined, until: undefined } : undefined);
  }

  /** Where the pod was decided to go, while it is not bound. */
  assumedAt(uid: string): string | undefined {
    this.#expire();
    const seated = this.#pods.get(uid);
    return seated?.until === undefined ? undefined : seated.cluster;
  }

  /** Where the pod counts, and with what; undefined: nowhere. */
  seatOf(uid: string): { readonly revision: string; readonly cluster: string | undefined } | undefined {
    this.#expire();
    return this.#pods.get(uid);
  }

  /** Pods of these controllers together. */
  counts(groups: Iterable<string>): PodCounts {
    this.#expire();
    const all = new Map<string, Map<string, number>>();
    for (const group of groups) {
      for (const [revision, clusters] of this.#groups.get(group)?.placed ?? []) {
        const sum = all.get(revision) ?? new Map<string, number>();
        all.set(revision, sum);
        for (const [cluster, count] of clusters) sum.set(cluster, (sum.get(cluster) ?? 0) + count);
      }
    }
    return all;
  }

  /** Pods of these controllers that have no place. */
  waiting(groups: Iterable<string>): number {
    this.#expire();
    let all = 0;
    for (const group of groups) for (const count of this.#groups.get(group)?.waiting.values() ?? []) all += count;
    return all;
  }

  /** Pods of this controller, those without a place counted in. */
  size(group: string): number {
    this.#expire();
    const { placed, waiting } = this.#groups.get(group) ?? {};
    let all = 0;
    for (const counts of placed?.values() ?? []) for (const count of counts.values()) all += count;
    for (const count of waiting?.values() ?? []) all += count;
    return all;
  }

  /** In how many ms the first pod of these controllers loses a place that is only decided, unless it is bound by then. */
  lapsesInMs(groups: Iterable<string>): number | undefined {
    this.#expire();
    const ends = [...groups].flatMap((group) => [...(this.#groups.get(group)?.assumed.values() ?? [])]);
    return ends.length === 0 ? undefined : ends.reduce((a, b) => Math.min(a, b)) - this.#monotonic();
  }

  #expire(): void {
    for (const uid of this.#assumed.takeEnded(this.#monotonic())) this.forget(uid);
  }

  #put(uid: string, seated: Seated | undefined): void {
    const before = this.#pods.get(uid);
    if (before !== undefined) this.#add(before, -1);
    if (seated === undefined) {
      this.#pods.delete(uid);
    } else {
      this.#pods.set(uid, seated);
      this.#add(seated, 1);
    }
    if (before !== undefined) this.#groups.get(before.group)?.assumed.delete(uid);
    if (seated?.until === undefined) {
      this.#assumed.delete(uid);
      return;
    }
    this.#assumed.set(uid, uid, seated.until);
    this.#groups.get(seated.group)?.assumed.set(uid, seated.until);
  }

  #add({ group: name, revision, cluster }: Seated, change: 1 | -1): void {
    const group = this.#groups.get(name) ?? { placed: new Map(), waiting: new Map(), assumed: new Map() };
    this.#groups.set(name, group);
    if (cluster === undefined) {
      count(group.waiting, revision, change);
    } else {
      const placed = group.placed.get(revision) ?? new Map<string, number>();
      group.placed.set(revision, placed);
      count(placed, cluster, change);
      if (placed.size === 0) group.placed.delete(revision);
    }
    if (group.placed.size === 0 && group.waiting.size === 0) this.#groups.delete(name);
  }
}

function count(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const after = (counts.get(key) ?? 0) + change;
  if (after === 0) counts.delete(key);
  else counts.set(key, after);
}
