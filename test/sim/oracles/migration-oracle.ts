import type { Change, SimObject } from '../sim-cluster.ts';

interface Way {
  readonly from: string;
  readonly all?: boolean;
  readonly suspend?: boolean;
  readonly workloads?: readonly { kind: string; name: string }[];
}

/** What users ask to be moved, and asked until a moment ago. */
export class MigrationOracle {
  /** By path and what was asked: until when, in ms; Infinity while it is. */
  readonly #asked = new Map<string, { namespace: string; way: Way; until: number }>();

  changed({ path, type, object, at }: Change): void {
    if (object['kind'] !== 'WorkloadMigration') return;
    const way = object['spec'] as Way;
    const key = `${path} ${JSON.stringify(way)}`;
    for (const [other, asked] of this.#asked)
      if (other.startsWith(`${path} `) && asked.until === Number.POSITIVE_INFINITY) asked.until = at;
    if (type === 'DELETED' || way.suspend === true) return;
    const { namespace = '' } = object.metadata;
    this.#asked.set(key, { namespace, way, until: Number.POSITIVE_INFINITY });
  }

  /** Whether somebody wants a pod out of that member, or did less than `lateMs` before that moment. */
  wants({ metadata }: SimObject, member: string, at: number, lateMs: number): boolean {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    return [...this.#asked.values()].some(
      ({ namespace, way: { from, all, workloads = [] }, until }) =>
        namespace === metadata.namespace &&
        from === member &&
        at - until < lateMs &&
        (all === true || workloads.some(({ kind, name }) => kind === owner?.kind && name === owner.name)),
    );
  }
}
