import { clusterInWords } from '../api/cluster.ts';
import { parseWorkloadMigration } from '../api/workload-migration.ts';
import { parseWorkloadRebalancer } from '../api/workload-rebalancer.ts';
import { isOver } from '../descheduler/order.ts';
import { cleanText } from '../kube/clean-text.ts';
import { conditionOf } from '../kube/conditions.ts';
import { counted } from '../kube/counted.ts';
import { keyOf, type KubeObject } from '../kube/object.ts';

/** Of what is said of one, in bytes. */
const LONGEST_MESSAGE = 300;

/** A WorkloadMigration that is not over. */
export interface MigrationSummary {
  /** `namespace/name` */
  name: string;
  from: string;
  /** `null`: anywhere that policies allow. */
  to: string | null;
  /** Reason of its condition Complete; `null`: no manager has looked at it yet. */
  state: string | null;
  /** Whether all of it fits was found, so its pods are being moved. */
  isJudged: boolean;
  /** Those that are to leave, those of them that have left, and those that are on their way. */
  pods: { total: number; moved: number; moving: number };
  /** What it waits for, for people; perhaps ''. */
  message: string;
}

/** A WorkloadRebalancer that is not over. */
export interface RebalancerSummary {
  name: string;
  /** Those that it names, and those of them that have their result. */
  workloads: { total: number; done: number };
  message: string;
}

/** Those that are not over, by name. */
export function migrationsUnderWay(objects: readonly KubeObject[]): MigrationSummary[] {
  return byName(objects).flatMap((raw): MigrationSummary[] => {
    const parsed = parseWorkloadMigration(raw);
    if ('problems' in parsed || isOver(parsed.migration)) return [];
    const { metadata, spec } = parsed.migration;
    const { from, to = null } = spec;
    const status = ofThis(metadata.generation, parsed.migration.status);
    const complete = conditionOf({ status }, 'Complete');
    const state = complete?.reason ?? null;
    const isJudged = conditionOf({ status }, 'Fits')?.status === 'True';
    const leaving = (status.workloads ?? []).filter(({ reason }) => reason !== 'LeftBehind');
    const sum = (of: 'pods' | 'moved' | 'moving'): number => leaving.reduce((all, one) => all + one[of], 0);
    const pods = { total: sum('pods'), moved: sum('moved'), moving: sum('moving') };
    const waiting = leaving.filter(({ reason, message }) => reason === 'Moving' && message !== undefined);
    const message = isJudged && state === 'Progressing' ? ofFirst(waiting) : (complete?.message ?? '');
    return [{ name: keyOf(raw), from, to, state, isJudged, pods, message: cleanText(message, LONGEST_MESSAGE) }];
  });
}

/** Those that are not over, by name. */
export function rebalancersUnderWay(objects: readonly KubeObject[]): RebalancerSummary[] {
  return byName(objects).flatMap((raw): RebalancerSummary[] => {
    const parsed = parseWorkloadRebalancer(raw);
    if ('problems' in parsed) return [];
    const { metadata, spec } = parsed.rebalancer;
    const { finishTime, observedWorkloads: observed = [] } = ofThis(metadata.generation, parsed.rebalancer.status);
    if (finishTime !== undefined) return [];
    const done = observed.filter(({ result }) => result !== undefined).length;
    const waiting = observed.filter(({ result, message }) => result === undefined && message !== undefined);
    const message = cleanText(ofFirst(waiting), LONGEST_MESSAGE);
    return [{ name: metadata.name, workloads: { total: spec.workloads.length, done }, message }];
  });
}

/** A line: `migration shop/db-e0d490: east to west, 0 of 2 pods moved, 0 on the way; statefulset/db: not moved now: ...`. */
export function migrationInWords({ name, from, to, state, isJudged, pods, message }: MigrationSummary): string {
  const way = to === null ? `out of ${clusterInWords(from)}` : `${from} to ${to}`;
  const moved = `${String(pods.moved)} of ${counted(pods.total, 'pod')} moved`;
  const isBegun = isJudged && pods.total > 0;
  const far =
    state === null
      ? 'no manager has looked at it yet'
      : state === 'Suspended'
        ? `${isBegun ? `${moved}, ` : ''}suspended`
        : isJudged
          ? `${moved}, ${String(pods.moving)} on the way`
          : 'not judged yet';
  return `migration ${name}: ${way}, ${far}${message === '' ? '' : `; ${message}`}`;
}

/** A line: `rebalancer web-5f0c1e: 1 of 4 workloads done; deployment/web in shop: not moved now: ...`. */
export function rebalancerInWords({ name, workloads, message }: RebalancerSummary): string {
  const { total, done } = workloads;
  return `rebalancer ${name}: ${String(done)} of ${counted(total, 'workload')} done${message === '' ? '' : `; ${message}`}`;
}

/** What the status says of the spec as it is now. */
function ofThis<T extends { observedGeneration?: number }>(generation = 0, status?: T): Partial<T> {
  return status?.observedGeneration === generation ? status : {};
}

interface Waiting {
  readonly workload: { readonly kind: string; readonly name: string; readonly namespace?: string };
  readonly message?: string;
}

/** What the first of them waits for, and how many others do. */
function ofFirst(waiting: readonly Waiting[]): string {
  const [first, ...others] = waiting;
  if (first === undefined) return '';
  const { kind, name, namespace } = first.workload;
  const what = `${kind.toLowerCase()}/${name}${namespace === undefined ? '' : ` in ${namespace}`}`;
  const more = others.length === 0 ? '' : ` (and ${counted(others.length, 'other workload')})`;
  return `${what}${more}: ${first.message ?? ''}`;
}

function byName(objects: readonly KubeObject[]): KubeObject[] {
  return objects.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}
