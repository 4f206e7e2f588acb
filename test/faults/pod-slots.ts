import type { WatchEvent } from '../../hack/api-access.ts';
import { RELEASED_ANNOTATION } from '../../src/api/marks.ts';

/** One pod, with revisions of the host's etcd. */
interface Life {
  readonly made: number;
  /** When its ReplicaSet began to make another one, as far as it did. */
  left: number | undefined;
  node: string | undefined;
}

interface Seen {
  metadata: {
    name: string;
    resourceVersion: string;
    deletionTimestamp?: string;
    annotations?: Record<string, string>;
  };
  spec: { nodeName?: string };
}

/** A pod is where one before it was, of those in whose place it is, which had been moved. */
export interface Return {
  readonly pod: string;
  /** Clusters of those before it, oldest first, and its own. */
  readonly course: readonly string[];
  /** Names of those that were moved from then on: the one that was there, and all after it. */
  readonly moved: readonly string[];
}

/**
 * Who came in whose place, from a watch of pods: of a pod that was moved it is the next one that was made. Pods of a ReplicaSet are all
 * alike, so where several are made at a time any of them will do.
 */
export class PodSlots {
  readonly #lives = new Map<string, Life>();

  pod({ type, object }: WatchEvent): void {
    const { metadata, spec } = object as unknown as Seen;
    const revision = Number(metadata.resourceVersion);
    const life = this.#lives.get(metadata.name) ?? { made: revision, left: undefined, node: undefined };
    this.#lives.set(metadata.name, life);
    life.node = spec.nodeName ?? life.node;
    const isReleased = metadata.annotations?.[RELEASED_ANNOTATION] !== undefined;
    const isLeaving = type === 'DELETED' || metadata.deletionTimestamp !== undefined || isReleased;
    // One that was given back is as if it had never left.
    life.left = isLeaving ? (life.left ?? revision) : undefined;
  }

  /** How often that happened at all, however long after. @param moved names of pods */
  returns(moved: readonly string[]): Return[] {
    const before = this.#before(moved);
    return [...before.keys()].flatMap((pod) => {
      const slot: string[] = [];
      for (let one: string | undefined = pod; one !== undefined; one = before.get(one)) slot.unshift(one);
      const course = slot.map((one) => this.#clusterOf(one));
      const own = course.at(-1);
      const last = course.slice(0, -1).lastIndexOf(own ?? '');
      return own === '' || last < 0 ? [] : { pod, course, moved: slot.slice(last, -1) };
    });
  }

  /** By name of a pod, that of the one in whose place it is. */
  #before(moved: readonly string[]): ReadonlyMap<string, string> {
    const leaving = [...new Set(moved)]
      .map((name) => ({ name, left: this.#lives.get(name)?.left ?? Infinity }))
      .toSorted((one, other) => one.left - other.left);
    const before = new Map<string, string>();
    for (const { name, left } of leaving) {
      const next = [...this.#lives].find(([one, { made }]) => made > left && !before.has(one))?.[0];
      if (next !== undefined) before.set(next, name);
    }
    return before;
  }

  /** Empty: it never had a node. */
  #clusterOf(pod: string): string {
    const { node = '' } = this.#lives.get(pod) ?? {};
    return node.startsWith('local') ? 'local' : node;
  }
}
