import { CLUSTER_DEFAULTS, type Failover } from '../api/failover.ts';
import type { PlacementPolicy } from '../api/placement-policy.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { Cluster } from '../api/cluster.ts';
import type { CompiledPlacement } from './compiled-placement.ts';
import { listInWords } from './placement-refusal.ts';

type Spec = PlacementPolicy['spec'];
type Selectors = Spec['resourceSelectors'];

const STATEFUL_SET = 'apps/v1/StatefulSet';
const REPLICATION_CONTROLLER = 'v1/ReplicationController';
const JOBS = ['batch/v1/Job', 'batch/v1/CronJob'];
/** Kinds whose pods are not moved for the sake of a better place. */
const AT_WILL = ['apps/v1/DaemonSet', ...JOBS];
/** Kinds whose pods never run twice, or have no ReplicaSet to be released from. */
const WITHOUT_CHOICE = [STATEFUL_SET, REPLICATION_CONTROLLER, ...AT_WILL];

const NONE_CHOSEN = 'the placement chooses none of the clusters there are';
const NO_LIMIT = 'the placement has neither replicaScheduling nor a max for any of its clusters';
const KEPT =
  'pods beyond the shares that are planned (WorkloadPlacement.status), and within its limits this division plans by what it gave ' +
  "before; staticWeightList, and clusterPreferences with rebalance, go by today's weights";
const ALL_CHOSEN = 'the placement chooses every cluster and divides nothing';

/** Why what moves pods can never act, the first reason that is one; none: it can. */
type WhyVain = (string | undefined | false)[];

/**
 * What of `failover` can never have an effect, or hardly any, be it for the placement, the kinds that are chosen, or other fields of it, each with the field's path.
 *
 * @param reachable the clusters that the placement chooses, of those there are.
 */
export function failoverWarnings(
  { failover = {}, placement, resourceSelectors }: Pick<Spec, 'failover' | 'placement' | 'resourceSelectors'>,
  compiled: CompiledPlacement,
  reachable: readonly Cluster[],
): string[] {
  const warnings: string[] = [];
  const add = (path: string, message: string): unknown => warnings.push(`spec.failover.${path}: ${message}`);
  const { purgeMode } = failover.cluster ?? CLUSTER_DEFAULTS;
  const stays = purgeMode === 'Never' && 'spec.failover.cluster.purgeMode is Never';
  const nowhere = reachable.length === 0 && NONE_CHOSEN;
  const elsewhere = onlyElsewhere(reachable);
  const check = (path: string, isGiven: boolean, why: WhyVain, few?: string): void => {
    if (isGiven) addVain(add, path, 'moves', why, few);
  };
  const { repatriate, divisionDrift, spreadViolation, activation, application, onUnschedulable } = failover;
  const { clusterAffinity, clusterAffinities, replicaScheduling } = placement;
  const choosesAll = (clusterAffinity ?? clusterAffinities ?? replicaScheduling) === undefined;
  const atWill = onlyOf(resourceSelectors, AT_WILL);
  check('repatriate', repatriate !== undefined, [whyNoHome(compiled), stays, atWill]);
  const drifts = canDrift(compiled);
  const noLimit = !drifts && compiled.division.kind === 'none' && NO_LIMIT;
  check('divisionDrift', divisionDrift !== undefined, [noLimit, stays, atWill], drifts ? undefined : KEPT);
  const noSpread = compiled.spread.length === 0 && 'there are no spreadConstraints';
  check('spreadViolation', spreadViolation !== undefined, [noSpread, stays, atWill]);
  check('activation', activation === 'Eager', [choosesAll && ALL_CHOSEN, stays, atWill]);
  const noRevision = onlyOf(resourceSelectors, [REPLICATION_CONTROLLER, ...AT_WILL]);
  check('application', application !== undefined, [nowhere, stays, noRevision], elsewhere);
  check('onUnschedulable', onUnschedulable !== undefined, [nowhere, atWill], elsewhere);
  // Of failover.application that itself is told.
  const noMoves = [nowhere, stays, onlyOf(resourceSelectors, ['apps/v1/DaemonSet'])];
  if (failover.cluster?.statePreservation !== undefined)
    addVain(add, 'cluster.statePreservation', 'hands on', noMoves, undefined);
  checkLost(failover, resourceSelectors, [nowhere, stays], elsewhere, add);
  checkGrace(failover.cluster, add);
  const noChoice = whyNoChoice(failover, resourceSelectors);
  if (noChoice !== undefined) add('onMemberLost.onHeal', `chooses nothing: ${noChoice}`);
  return warnings;
}

type Add = (path: string, message: string) => unknown;

/** That a field moves nothing, or else, if these are `few`, which pods at the most. */
function addVain(
  add: Add,
  path: string,
  moves: 'moves' | 'replaces' | 'hands on',
  why: WhyVain,
  few: string | undefined,
): void {
  const first = why.find((one) => typeof one === 'string');
  if (first !== undefined) add(path, `${moves} nothing: ${first}`);
  else if (few !== undefined) add(path, `${moves} only ${few}`);
}

/** Those that a field can move whose pods go to another cluster: there may be some that came before the policy was edited. */
function onlyElsewhere([first, second]: readonly Cluster[]): string | undefined {
  if (first === undefined || second !== undefined) return undefined;
  return `pods that are not in ${clusterInWords(first.name)}, the one cluster that the placement chooses`;
}

/** Where `after` or `action: Replace` is given, and nothing, or hardly anything, is ever replaced for that. */
function checkLost(
  { onMemberLost = {} }: Failover,
  selectors: Selectors,
  why: WhyVain,
  few: string | undefined,
  add: Add,
): void {
  const { after, action } = onMemberLost;
  if (action === 'Hold' || action === 'ReplaceWhenFenced') {
    if (after !== undefined)
      add('onMemberLost.after', `has no effect: with action: ${action} it is not waited for a time`);
    return;
  }
  if (after === undefined && action === undefined) return;
  // Pods of Jobs are replaced where the policy says so.
  const held = onlyOf(selectors, [STATEFUL_SET, 'apps/v1/DaemonSet', ...(action === undefined ? JOBS : [])]);
  addVain(add, `onMemberLost.${action === undefined ? 'after' : 'action'}`, 'replaces', [...why, held], few);
}

/** Values that are not the defaults, which nobody may have written. */
function checkGrace(cluster: Failover['cluster'], add: Add): void {
  const { purgeMode, gracePeriodSeconds, onTimeout } = cluster ?? CLUSTER_DEFAULTS;
  if (purgeMode === 'Gracefully') return;
  const message = `has no effect: it is for purgeMode: Gracefully, and not for ${purgeMode}`;
  if (gracePeriodSeconds !== CLUSTER_DEFAULTS.gracePeriodSeconds) add('cluster.gracePeriodSeconds', message);
  if (onTimeout !== CLUSTER_DEFAULTS.onTimeout) add('cluster.onTimeout', message);
}

/** That no other kinds than these are chosen; undefined when others are. */
function onlyOf(selectors: Selectors, kinds: readonly string[]): string | undefined {
  const isOnly = selectors.every(({ apiVersion, kind }) => kinds.includes(`${apiVersion}/${kind}`));
  const names = [...new Set(selectors.map(({ kind }) => `${kind}s`))];
  return isOnly ? `resourceSelectors choose only ${listInWords(names)}, whose pods are not moved for that` : undefined;
}

/** Why there are never two pods between which `onHeal` could choose; undefined when there may be. */
function whyNoChoice(failover: Failover, selectors: Selectors): string | undefined {
  const { onHeal = 'KeepReplacement', action = 'Replace' } = failover.onMemberLost ?? {};
  if (onHeal === 'KeepReplacement') return undefined;
  if (action !== 'Replace') return `with action: ${action} no pod is replaced while the other one may run`;
  const { purgeMode } = failover.cluster ?? CLUSTER_DEFAULTS;
  if (purgeMode !== 'Gracefully') return `it is for purgeMode: Gracefully, and not for ${purgeMode}`;
  const isVain = onlyOf(selectors, WITHOUT_CHOICE) !== undefined;
  return isVain ? 'it is for pods of Deployments, and resourceSelectors choose none' : undefined;
}

/** Why no pod ever goes to an earlier tier for being earlier; undefined when one may. */
function whyNoHome({ division, groups }: CompiledPlacement): string | undefined {
  if (groups.every(({ tiers }) => tiers.length < 2)) return 'the placement has no overflowAffinities';
  // A pod that would have to wait for its later tier has its place in an earlier one.
  const waits = groups.some(({ tiers }) => tiers.slice(0, -1).some(({ tryNextAfterMs }) => tryNextAfterMs > 0));
  return division.kind === 'none' || waits ? undefined : 'with replicaScheduling each cluster keeps what it is to have';
}

/** Whether clusters can have more than they are to have by weights or limits of today. */
function canDrift({ division, groups }: CompiledPlacement): boolean {
  const isLimited = groups.some(({ tiers }) => tiers.some(({ max }) => Number.isFinite(max(1))));
  return isLimited || division.kind === 'static' || (division.kind === 'preferences' && division.rebalance);
}
