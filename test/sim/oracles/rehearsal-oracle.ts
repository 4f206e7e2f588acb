import type { Change, SimObject } from '../sim-cluster.ts';

const KINDS: ReadonlySet<unknown> = new Set(['PlacementPolicy', 'ClusterPlacementPolicy']);

interface Policy {
  /** Undefined: it speaks of all namespaces. */
  readonly namespace: string | undefined;
  /** Since when it has said that its workloads are moved in a dry run only; Infinity: it does not say so. */
  readonly since: number;
}

/** Whose moves are only rehearsed, as far as that is plain: by the word of each policy that may speak about a pod. */
export class RehearsalOracle {
  readonly #policies = new Map<string, Policy>();

  changed({ path, type, object, at }: Change): void {
    if (!KINDS.has(object['kind'])) return;
    const { failover } = (object['spec'] ?? {}) as { failover?: { dryRun?: boolean } };
    const { namespace } = object.metadata;
    const since = failover?.dryRun === true ? Math.min(at, this.#policies.get(path)?.since ?? at) : Infinity;
    if (type === 'DELETED') this.#policies.delete(path);
    else this.#policies.set(path, { namespace, since });
  }

  /** Whether every process has known for `lateMs` that the pod is not to be moved. */
  keeps({ metadata }: SimObject, at: number, lateMs: number): boolean {
    const about = [...this.#policies.values()].filter(
      ({ namespace }) => namespace === undefined || namespace === metadata.namespace,
    );
    return about.length > 0 && about.every(({ since }) => at - since >= lateMs);
  }
}
