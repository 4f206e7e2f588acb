import type { Logger } from 'pino';
import { parseWorkloadMigration, WORKLOAD_MIGRATIONS, type WorkloadMigration } from '../api/workload-migration.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { identifying, type KubeObject, keyOf } from '../kube/object.ts';
import { isUnderWay, type Migrating, migratedKey, wayOf } from '../placement/migrating.ts';
import type { TypedObject } from '../placement/owner-chain.ts';

export interface MigrationCacheOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

/** What people want migrated, and which way pods of workloads go for it. While that cannot be read nothing is; nobody waits for it. */
export class MigrationCache {
  readonly #informer: Informer<WorkloadMigration>;
  #ways: ReadonlyMap<string, Migrating> | undefined;

  constructor({ host, logger, metrics }: MigrationCacheOptions) {
    this.#informer = new Informer<WorkloadMigration>({
      client: host,
      resource: WORKLOAD_MIGRATIONS,
      transform: readMigration,
      logger,
      metrics,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const off = this.on(() => (this.#ways = undefined));
    await this.#informer.run(signal);
    off();
  }

  /** Why they cannot be followed now, in words; undefined while all is well. */
  get problem(): string | undefined {
    return this.#informer.problem;
  }

  get(key: string): WorkloadMigration | undefined {
    return this.#informer.get(key);
  }

  keys(): string[] {
    return [...this.#informer.values()].map(keyOf);
  }

  /** Calls the handler with the key of each that came, changed or went. Returns what ends that. */
  on(handler: (key: string) => void): () => void {
    const seen = (migration: WorkloadMigration): void => handler(keyOf(migration));
    return this.#informer.on({ added: seen, updated: seen, deleted: seen });
  }

  /** Calls the handler after pods of a workload began, or ceased, to go a way. Returns what ends that. */
  onWays(handler: () => void): () => void {
    return this.#informer.on({
      added: (migration) => isUnderWay(migration) && handler(),
      deleted: (migration) => isUnderWay(migration) && handler(),
      updated: (migration, old) => {
        if (isUnderWay(migration) !== isUnderWay(old) || (isUnderWay(old) && !jsonEqual(migration.spec, old.spec)))
          handler();
      },
    });
  }

  /** Where pods of the workload go, if they are being moved. */
  wayOf({ apiVersion, kind, metadata: { namespace = '', name } }: TypedObject): Migrating | undefined {
    this.#ways ??= waysOf(this.#informer.values());
    return this.#ways.size === 0 ? undefined : this.#ways.get(migratedKey(namespace, { apiVersion, kind, name }));
  }
}

/** Of two that name the same workload the first in the alphabet counts, in every replica. */
function waysOf(migrations: Iterable<WorkloadMigration>): ReadonlyMap<string, Migrating> {
  const ways = new Map<string, Migrating>();
  const inOrder = [...migrations].filter(isUnderWay).toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  for (const migration of inOrder) {
    const { namespace = '' } = migration.metadata;
    for (const { workload, reason } of migration.status?.workloads ?? []) {
      // Where it runs is where its data are, or the like: a pod that comes again has to go there.
      if (reason === 'LeftBehind') continue;
      const key = migratedKey(namespace, workload);
      if (!ways.has(key)) ways.set(key, wayOf(migration));
    }
  }
  return ways;
}

function readMigration(raw: KubeObject): WorkloadMigration {
  const { deletionTimestamp } = raw.metadata;
  const metadata = { ...identifying(raw.metadata), ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) };
  const parsed = parseWorkloadMigration({ ...raw, metadata });
  if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
  return parsed.migration;
}
