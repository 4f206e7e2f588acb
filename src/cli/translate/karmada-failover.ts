import { textOf, type JsonRecord } from '../../kube/json-fields.ts';
import { type Fields, given } from './fields.ts';
import { statePreservation } from './karmada-state.ts';
import type { Remarks } from './remarks.ts';

/** What tolerations of Karmada's own taints say of pods of a cluster that does not answer; undefined: nothing. */
export type LostMemberRule = { after: number } | 'stays' | undefined;

/** Old names of Karmada. */
const PURGE_MODES: Readonly<Record<string, string>> = { Immediately: 'Directly', Graciously: 'Gracefully' };

export function failoverFrom(
  from: Fields | undefined,
  lostMember: LostMemberRule,
  remarks: Remarks,
): JsonRecord | undefined {
  const cluster = from?.within('cluster');
  const application = applicationFrom(from?.within('application'), remarks);
  const ofClusters = clusterPurgeMode(cluster, lostMember, remarks);
  const stateOfClusters = statePreservation(cluster, 'of a StatefulSet or a workload with one replica', remarks);
  for (const part of [cluster, from]) part?.end();
  const found = given({
    onMemberLost: onMemberLost(lostMember, ofClusters, remarks),
    application,
    cluster:
      ofClusters === undefined && stateOfClusters === undefined
        ? undefined
        : given({ purgeMode: ofClusters, statePreservation: stateOfClusters }),
  });
  return Object.keys(found).length === 0 ? undefined : found;
}

function applicationFrom(from: Fields | undefined, remarks: Remarks): JsonRecord | undefined {
  if (from === undefined) return undefined;
  remarks.lost(
    from.of('decisionConditions'),
    'here pods are moved one by one, and each only while another one of its revision is well in another cluster: what has one replica, or is in one cluster only, stays where it is; kubectl spillway move moves it',
  );
  const decision = from.within('decisionConditions');
  const tolerationSeconds = decision && withinADay(decision, 'tolerationSeconds', remarks);
  if (decision !== undefined && typeof tolerationSeconds === 'number' && tolerationSeconds < LEAST_S)
    remarks.differs(decision.of('tolerationSeconds'), `${LEAST_S} seconds are waited at least`);
  const mode = purgeMode(from);
  if (mode === 'Never')
    remarks.lost(
      from.of('purgeMode'),
      'there others are made beside pods that do not get well, and a person removes these; here such pods are evicted at once, and others come in their place. cluster.purgeMode: Never would keep them, and stop every other move, too',
    );
  else if (mode !== undefined)
    remarks.differs(
      from.of('purgeMode'),
      `pods that do not get well are evicted at once${mode === 'Directly' ? `, and ${TWO_AT_ONCE}` : ''}`,
    );
  if (from.take('gracePeriodSeconds') !== undefined)
    remarks.lost(
      from.of('gracePeriodSeconds'),
      'there the old workload stays for so long while the new one is not healthy; here pods that do not get well are evicted at once, so there is nothing to wait for. failover.cluster.gracePeriodSeconds is for all moves but these',
    );
  const state = statePreservation(from, 'of a StatefulSet', remarks);
  for (const part of [decision, from]) part?.end();
  return given({ decisionConditions: given({ tolerationSeconds }), statePreservation: state });
}

/** How the end of one and the beginning of the next meet where nothing is made first. */
const TWO_AT_ONCE =
  'a ReplicaSet makes the next pod as soon as the old one is being deleted, so two may run for its grace period; where they must not, use a StatefulSet';

function clusterPurgeMode(from: Fields | undefined, lostMember: LostMemberRule, remarks: Remarks): string | undefined {
  const mode = purgeMode(from);
  if (from === undefined || mode === 'Never') return mode;
  const waits =
    lostMember === 'stays'
      ? ''
      : ': so failover.onMemberLost.action is ReplaceWhenFenced here, which waits for the word of an administrator and for no time';
  remarks.differs(
    from.of('purgeMode'),
    mode === 'Directly'
      ? `there nothing is made elsewhere before the old Work is gone, which it is not as long as its cluster does not answer${waits}. Out of a member that answers ${TWO_AT_ONCE}`
      : 'when no other pod is Ready within failover.cluster.gracePeriodSeconds, the old one stays; with onTimeout: Evict it ends, as in Karmada. Another one is made first for Ready pods of Deployments only',
  );
  return mode;
}

function purgeMode(from: Fields | undefined): string | undefined {
  const mode = textOf(from?.take('purgeMode'));
  return mode === undefined ? undefined : (PURGE_MODES[mode] ?? mode);
}

/** The longest that a rule can say, and the shortest time that counts whatever it says. */
const LONGEST_S = 86_400;
const LEAST_S = 15;

function withinADay(from: Fields, name: string, remarks: Remarks): unknown {
  const value = from.take(name);
  if (typeof value !== 'number' || value <= LONGEST_S) return value;
  remarks.differs(from.of(name), CUT);
  return LONGEST_S;
}

const CUT = `is cut to ${LONGEST_S} seconds, a day, the longest there is`;

function onMemberLost(rule: LostMemberRule, ofClusters: string | undefined, remarks: Remarks): JsonRecord | undefined {
  if (rule === 'stays') return { action: 'Hold' };
  // Until somebody takes the dead cluster out there is no other one in Karmada, however long it was tolerated.
  if (ofClusters === 'Directly') return { action: 'ReplaceWhenFenced' };
  if (rule === undefined) return undefined;
  if (rule.after > LONGEST_S)
    remarks.differs(
      'spec.placement.clusterTolerations',
      `its tolerationSeconds ${CUT}; where pods are to stay for longer set failover.onMemberLost.action: Hold`,
    );
  return { after: `${Math.min(LONGEST_S, Math.max(0, Math.round(rule.after)))}s`, action: 'Replace' };
}
