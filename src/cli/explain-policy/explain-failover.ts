import type { Failover } from '../../api/failover.ts';
import { GANG_LABEL } from '../../api/marks.ts';
import type { PlacementPolicy } from '../../api/placement-policy.ts';
import { displacedAfterMs } from '../../descheduler/displaced.ts';
import { replacedAfterMs } from '../../descheduler/member-lost.ts';
import { onHealOf, purgeRules } from '../../descheduler/purge-mode.ts';
import { whyNotMadeAnew, whyNotMoved, whyNotReplaced } from '../../descheduler/replaceable.ts';
import { unhealthyAfterMs } from '../../descheduler/unhealthy-in-member.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { controllerOf } from '../../kube/owner-references.ts';
import type { Displacement } from '../../placement/better-place.ts';
import type { TypedObject } from '../../placement/owner-chain.ts';
import { stateRules } from '../../placement/preserved-state.ts';
import { durationInWords, parseDuration } from '../../placement/duration.ts';
import type { ExplainedCause, ExplainedFailover, ExplainedOwner } from './explained-policy.ts';

const NEVER = 'held: the policy says purgeMode: Never';

interface Owner {
  /** As docs/concepts/failover.md has it. */
  readonly pods: string;
  /** Kinds of workloads with such pods; undefined: all may have them. */
  readonly kinds: readonly string[] | undefined;
  readonly sample: Pod;
  /** The Job; of others nothing more is asked. */
  readonly job?: TypedObject;
}

/** In the order of docs/concepts/failover.md. */
const OWNERS: readonly Owner[] = [
  {
    pods: 'ReplicaSet (so of a Deployment), ReplicationController',
    kinds: ['Deployment', 'ReplicaSet', 'ReplicationController'],
    sample: sampleOf('apps/v1', 'ReplicaSet'),
  },
  {
    pods: 'Job',
    kinds: ['Job', 'CronJob'],
    sample: sampleOf('batch/v1', 'Job'),
    job: jobWith('TerminatingOrFailed'),
  },
  {
    pods: 'Job with podReplacementPolicy: Failed',
    kinds: ['Job', 'CronJob'],
    sample: sampleOf('batch/v1', 'Job'),
    job: jobWith('Failed'),
  },
  { pods: 'StatefulSet', kinds: ['StatefulSet'], sample: sampleOf('apps/v1', 'StatefulSet') },
  { pods: 'any, with claims', kinds: undefined, sample: withClaims(sampleOf('apps/v1', 'ReplicaSet')) },
  { pods: 'gang', kinds: undefined, sample: ofGang(sampleOf('apps/v1', 'ReplicaSet')) },
  { pods: 'DaemonSet', kinds: ['DaemonSet'], sample: sampleOf('apps/v1', 'DaemonSet') },
  { pods: 'without a controller', kinds: [], sample: bare() },
];
const KNOWN: ReadonlySet<string> = new Set(OWNERS.flatMap(({ kinds }) => kinds ?? []));

/** What makes pods of these workloads move, when, and what becomes of them, by the very functions of the descheduler. */
export function explainFailover({ failover, resourceSelectors }: PlacementPolicy['spec']): ExplainedFailover {
  const kinds = resourceSelectors.map(({ kind }) => kind);
  // Pods themselves, and those of objects of other kinds, may have any of these.
  const isOpen = kinds.some((kind) => !KNOWN.has(kind));
  const chosen = OWNERS.filter((one) => isOpen || (one.kinds ?? kinds).some((kind) => kinds.includes(kind)));
  return {
    owners: chosen.map((owner) => explainedOwner(owner, failover)),
    causes: explainedCauses(failover),
    leaving:
      failover?.dryRun === true
        ? `Nothing is moved (dryRun: true), but gangs that give up and what somebody orders: Event MoveWanted tells what would be. In earnest: ${leavingInWords(failover)}`
        : leavingInWords(failover),
    handedOn: handedOnInWords(failover),
  };
}

function explainedOwner(
  { pods, sample, job = jobWith(undefined) }: Owner,
  failover: Failover | undefined,
): ExplainedOwner {
  const { action } = failover?.onMemberLost ?? {};
  if (purgeRules(failover).purgeMode === 'Never')
    return { pods, memberLost: NEVER, outOfService: NEVER, tainted: NEVER };
  const lost = whyNotReplaced(sample, { failover, workload: job });
  const tainted = whyNotMoved(sample);
  const fenced = action === 'Hold' ? 'the policy says Hold' : whyNotMadeAnew(sample);
  return {
    pods,
    memberLost:
      lost === undefined ? replacedInWords(sample, failover) : `held: ${lost.replace(/^its policy/, 'the policy')}`,
    outOfService: fenced === undefined ? 'replaced' : `held: ${fenced}`,
    tainted: tainted === undefined ? 'moved' : `held: ${tainted}`,
  };
}

function replacedInWords(sample: Pod, failover: Failover | undefined): string {
  const isGiven = failover?.onMemberLost?.after !== undefined;
  const after = durationInWords(replacedAfterMs({ failover }));
  const heal = onHealOf(failover);
  // Others cannot be released from their controller.
  const isOfSet = controllerOf(sample)?.kind === 'ReplicaSet';
  const both = heal === 'KeepReplacement' || !isOfSet ? '' : `; of a Deployment the original waits (onHeal: ${heal})`;
  return `replaced after ${after}${isGiven ? '' : ' (default)'}${both}`;
}

/** What is meant by each field without which nothing is moved for that. */
const DISPLACED: readonly (readonly [Displacement, cause: string, field: string])[] = [
  ['Repatriate', 'an earlier tier has room for a pod in a later one', 'repatriate'],
  ['DivisionDrift', 'a cluster has more pods than its share, or a tier more than its max', 'divisionDrift'],
  ['SpreadViolation', 'pods are spread otherwise than the policy asks, and a move mends it', 'spreadViolation'],
  ['PolicyChanged', 'the policy does not choose the cluster any more', 'activation: Eager'],
];

function explainedCauses(failover: Failover | undefined): ExplainedCause[] {
  const unschedulable = failover?.onUnschedulable?.after;
  const isNever = purgeRules(failover).purgeMode === 'Never';
  const displaced = displacedAfterMs(failover);
  const row = (cause: string, field: string, afterMs: number | undefined, staysWithNever = isNever): ExplainedCause => {
    if (afterMs === undefined) return { cause, after: null, says: `never (default): no ${field}` };
    const after = durationInWords(afterMs);
    return staysWithNever ? { cause, after: null, says: NEVER } : { cause, after, says: `moved after ${after}` };
  };
  return [
    // Such pods never ran, so that purgeMode keeps nothing.
    row(
      'a member has no node for the pod',
      'onUnschedulable',
      unschedulable === undefined ? undefined : parseDuration(unschedulable),
      false,
    ),
    row(
      'a pod does not get well, and others of its revision are well elsewhere',
      'application',
      unhealthyAfterMs(failover),
    ),
    ...DISPLACED.map(([strategy, cause, field]) => row(cause, field, displaced.get(strategy))),
  ];
}

/** How pods leave a member that answers. */
function leavingInWords(failover: Failover | undefined): string {
  const { purgeMode, gracePeriodSeconds, onTimeout } = purgeRules(failover);
  const by = failover?.cluster === undefined ? ', default' : '';
  if (purgeMode === 'Never') return 'Pods stay where they are, whatever befalls their member (purgeMode: Never).';
  if (purgeMode === 'Directly') return 'Pods are evicted at once (purgeMode: Directly).';
  const time = durationInWords(gracePeriodSeconds * 1_000);
  const then =
    onTimeout === 'GiveBack'
      ? 'one that is not replaced by then is given back'
      : 'one that is not replaced by then goes all the same';
  return (
    `A pod of a Deployment that is Ready goes when another one is Ready in its place (purgeMode: Gracefully${by}), for which that has ${time}: ` +
    `${then} (onTimeout: ${onTimeout}${by}). All others are evicted at once.`
  );
}

/** Labels by which the next pod learns of the one before it. */
function handedOnInWords(failover: Failover | undefined): string | null {
  const all = (['application', 'cluster'] as const).flatMap((field) => {
    const labels = stateRules(failover, field).map(({ aliasLabelName }) => aliasLabelName);
    const which = field === 'application' ? 'pods that do not get well' : 'pods moved for other reasons';
    return labels.length === 0 ? [] : [`${which}: ${labels.join(', ')}`];
  });
  if (all.length === 0) return null;
  return `Handed on as labels of the next pod, of a StatefulSet or a workload with one replica, from ${all.join('; from ')}.`;
}

function sampleOf(apiVersion: string, kind: string): Pod {
  const owner = { apiVersion, kind, name: 'x', uid: 'x', controller: true };
  return { metadata: { name: 'x', ownerReferences: [owner] }, spec: { containers: [] } };
}

function jobWith(podReplacementPolicy: string | undefined): TypedObject & { readonly spec: object } {
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'x' }, spec: { podReplacementPolicy } };
}

function withClaims({ metadata, spec }: Pod): Pod {
  return { metadata, spec: { ...spec, volumes: [{ name: 'x', persistentVolumeClaim: { claimName: 'x' } }] } };
}

function ofGang({ metadata, spec }: Pod): Pod {
  return { metadata: { ...metadata, labels: { [GANG_LABEL]: 'x' } }, spec };
}

function bare(): Pod {
  return { metadata: { name: 'x' }, spec: { containers: [] } };
}
