import type { WatchEvent } from './api-access.ts';

/** Where the pods of the Deployment are. Pods that are being deleted or have failed count nowhere. */
export interface Places {
  local: number;
  a: number;
  b: number;
  /** Not bound to a node. */
  waiting: number;
}

/** One change of the Deployment or of a pod of it, and how everything was then. */
export interface Moment extends Places {
  /** Revision of the host's etcd: every change has its own. */
  revision: number;
  /** Wall clock in ms when it was heard of. */
  at: number;
  /** Replicas that the autoscaler wants. */
  wanted: number;
  /** Pods that are Ready. */
  ready: number;
}

interface PodState {
  node: string | undefined;
  ready: boolean;
}

type Change = { revision: number; at: number } & ({ wanted: number } | { uid: string; pod: PodState | undefined });

interface Seen {
  metadata: { uid: string; resourceVersion: string; deletionTimestamp?: string };
  spec: { replicas?: number; nodeName?: string };
  status?: { phase?: string; conditions?: { type: string; status: string }[] };
}

/**
 * All that happened to a Deployment and its pods, from two watches. Both are of one etcd, whose revisions say what came
 * before what; so nothing is missed that lay between two looks, and nothing depends on which watch spoke first.
 */
export class BurstHistory {
  readonly #changes: Change[] = [];
  readonly #made = new Set<string>();

  deployment({ object }: WatchEvent): void {
    const { metadata, spec } = object as unknown as Seen;
    this.#changes.push({ revision: Number(metadata.resourceVersion), at: Date.now(), wanted: spec.replicas ?? 0 });
  }

  pod({ type, object }: WatchEvent): void {
    const { metadata, spec, status } = object as unknown as Seen;
    const { uid } = metadata;
    this.#made.add(uid);
    const gone = type === 'DELETED' || metadata.deletionTimestamp !== undefined || status?.phase === 'Failed';
    const ready = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
    this.#changes.push({
      revision: Number(metadata.resourceVersion),
      at: Date.now(),
      uid,
      pod: gone ? undefined : { node: spec.nodeName, ready },
    });
  }

  /** Pods that there ever were. */
  get podsMade(): number {
    return this.#made.size;
  }

  /** How it is now. */
  get now(): Moment {
    return this.moments().at(-1) ?? { revision: 0, at: 0, wanted: 0, ready: 0, local: 0, a: 0, b: 0, waiting: 0 };
  }

  /** Every moment at which something changed, in order. */
  moments(): Moment[] {
    const pods = new Map<string, PodState>();
    let wanted = 0;
    const moments: Moment[] = [];
    for (const change of this.#changes.toSorted((one, other) => one.revision - other.revision)) {
      if ('wanted' in change) wanted = change.wanted;
      else if (change.pod === undefined) pods.delete(change.uid);
      else pods.set(change.uid, change.pod);
      const { revision, at } = change;
      const moment = { revision, at, wanted, ready: readyOf(pods), ...placesOf(pods) };
      const before = moments.at(-1);
      if (before === undefined || shown(before) !== shown(moment)) moments.push(moment);
    }
    return moments;
  }
}

function readyOf(pods: ReadonlyMap<string, PodState>): number {
  return [...pods.values()].filter(({ ready }) => ready).length;
}

function placesOf(pods: ReadonlyMap<string, PodState>): Places {
  const places: Places = { local: 0, a: 0, b: 0, waiting: 0 };
  for (const { node } of pods.values()) {
    if (node === undefined) places.waiting += 1;
    else if (node === 'a' || node === 'b') places[node] += 1;
    else places.local += 1;
  }
  return places;
}

function shown({ wanted, ready, local, a, b, waiting }: Moment): string {
  return [wanted, ready, local, a, b, waiting].join(' ');
}
