import { LOCAL } from '../api/cluster-tiers.ts';
import { type Condition, conditionNow } from '../api/conditions.ts';
import type { WorkloadPlacementStatus } from '../api/workload-placement.ts';
import { cut } from '../kube/cut-text.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { Avoided } from './avoided.ts';
import { stillAvoided } from './avoided.ts';
import type { Decision, Place, Plan } from './decision.ts';
import { clusterInWords } from '../api/cluster.ts';
import { sum } from './highest-averages.ts';
import type { PolicySource } from './policy-selection.ts';
import { refusalInWords } from './placement-refusal.ts';
import { ofRevision } from './workload.ts';
import type { Workload } from './workload.ts';

/** What a WorkloadPlacement shows. */
export interface ReportFacts {
  readonly source: PolicySource;
  readonly workload: Workload;
  readonly revision: string | undefined;
  /** Pods without a place. */
  readonly waiting: number;
  readonly plan: Plan;
  /** Milliseconds since 1970. */
  readonly plannedAt: number;
  readonly avoided: readonly Avoided[];
  readonly last: { readonly decision: Decision; readonly at: number } | undefined;
  readonly before: WorkloadPlacementStatus | undefined;
  readonly now: number;
}

const MAX_MESSAGE = 4_000;
const MAX_REASON = 1_000;

/** The status of a WorkloadPlacement. Equal facts make an equal status, so that an unchanged one need not be written. */
export function placementStatus(facts: ReportFacts): WorkloadPlacementStatus {
  const { source, workload, revision, waiting, plan, avoided, last, now } = facts;
  const here = ofRevision(workload.pods, revision);
  const tier = (name: string): number => plan.tiers.get(name) ?? 0;
  const names = [...new Set([...(plan.targets?.keys() ?? []), ...(plan.shares?.keys() ?? []), ...here.keys()])];
  const clusters = names
    .map((name) => {
      const [target, share] = [plan.targets?.get(name), plan.shares?.get(name)];
      return {
        name,
        tier: tier(name),
        ...(target === undefined ? {} : { target }),
        ...(share === undefined ? {} : { share }),
        actual: here.get(name) ?? 0,
      };
    })
    .filter(({ target = 0, share = 0, actual }) => target + share + actual > 0)
    .toSorted((a, b) => a.tier - b.tier || (a.name < b.name ? -1 : 1));
  return {
    policy: source,
    ...(plan.affinityName === undefined ? {} : { affinityName: plan.affinityName }),
    ...(revision === undefined ? {} : { revision }),
    ...(workload.replicas === undefined ? {} : { replicas: workload.replicas }),
    placed: sum(here),
    waiting,
    where: cut(
      clusters
        .filter(({ actual }) => actual > 0)
        .map(({ name, actual }) => `${name} ${String(actual)}`)
        .join(', '),
      MAX_REASON,
    ),
    clusters,
    avoided: stillAvoided(avoided, now).map(({ cluster, reason, message, since, until }) => ({
      cluster,
      reason,
      message: cut(message, MAX_REASON),
      since: timestamp(since),
      until: timestamp(until),
    })),
    ...(last === undefined ? {} : { lastDecision: lastDecision(last) }),
    plannedAt: timestamp(facts.plannedAt),
    conditions: [placedCondition(facts)],
  };
}

function lastDecision({
  decision,
  at,
}: NonNullable<ReportFacts['last']>): NonNullable<WorkloadPlacementStatus['lastDecision']> {
  const [first] = decision.allowed;
  return {
    time: timestamp(at),
    ...(first === undefined ? {} : { cluster: first.cluster }),
    message: cut(decisionInWords(decision), MAX_MESSAGE),
  };
}

/** `member east: seat 3 of 5; local: no node has 4 cpu free`: what pods may choose from, then why not the others. */
export function decisionInWords({ allowed, refusals }: Decision): string {
  const places = allowed.map((place) => `${clusterInWords(place.cluster)}: ${placeInWords(place)}`);
  return [...places, ...refusals.map(refusalInWords)].join('; ');
}

/** Why a pod may go there, for people. */
export function placeInWords({ cluster, score, seat, seats }: Place): string {
  if (seat !== undefined) return `seat ${String(seat)} of ${String(seats)}`;
  return cluster === LOCAL ? 'local comes first and has room' : `score ${String(score)}`;
}

function placedCondition({ waiting, last, before, now }: ReportFacts): Condition {
  const why = last === undefined || last.decision.allowed.length > 0 ? '' : `: ${decisionInWords(last.decision)}`;
  const found =
    waiting === 0
      ? ({ status: 'True', reason: 'Placed', message: 'every pod has a place' } as const)
      : ({
          status: 'False',
          reason: 'Waiting',
          message: cut(`${String(waiting)} pods wait for a place${why}`, MAX_MESSAGE),
        } as const);
  return conditionNow(before, { type: 'Placed', ...found }, now);
}

/** What a new process, or another replica, needs of an old status to go on: the plan, and who is avoided. */
export function remembered(status: WorkloadPlacementStatus): { plan: Plan; avoided: readonly Avoided[] } {
  const clusters = status.clusters ?? [];
  const targets = clusters.flatMap(({ name, target }) => (target === undefined ? [] : [[name, target] as const]));
  const shares = clusters.flatMap(({ name, share }) => (share === undefined ? [] : [[name, share] as const]));
  return {
    plan: {
      affinityName: status.affinityName,
      targets: targets.length === 0 ? undefined : new Map(targets),
      ...(shares.length === 0 ? {} : { shares: new Map(shares) }),
      tiers: new Map(clusters.map(({ name, tier }) => [name, tier])),
    },
    avoided: (status.avoided ?? []).map(({ cluster, reason, message, since, until }) => ({
      cluster,
      reason,
      message,
      since: Date.parse(since),
      until: Date.parse(until),
    })),
  };
}
