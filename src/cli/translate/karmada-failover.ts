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
  const application = from?.within('application');
  const cluster = from?.within('cluster');
  const decision = application?.within('decisionConditions');
  const tolerationSeconds = decision && withinADay(decision, 'tolerationSeconds', remarks);
  const [ofPods, ofClusters] = [purgeMode(application), purgeMode(cluster)];
  if (ofPods !== undefined && ofPods !== 'Never' && application !== undefined)
    remarks.differs(application.of('purgeMode'), 'pods that do not get well are evicted at once');
  if (ofPods === 'Never' && application !== undefined)
    remarks.lost(
      application.of('purgeMode'),
      'there others are made beside pods that do not get well, and a person removes these; here such pods are evicted at once, and others come in their place. cluster.purgeMode: Never would keep them, and stop every other move, too',
    );
  const gracePeriodSeconds = application && withinADay(application, 'gracePeriodSeconds', remarks);
  const [stateOfPods, stateOfClusters] = [statePreservation(application, remarks), statePreservation(cluster, remarks)];
  for (const part of [decision, application, cluster, from]) part?.end();
  const found = given({
    onMemberLost: onMemberLost(lostMember, remarks),
    application:
      application === undefined
        ? undefined
        : given({ decisionConditions: given({ tolerationSeconds }), statePreservation: stateOfPods }),
    cluster:
      ofClusters === undefined && gracePeriodSeconds === undefined && stateOfClusters === undefined
        ? undefined
        : given({
            purgeMode: ofClusters,
            gracePeriodSeconds,
            // There the old pods end when the time is over, whether there are others or not.
            onTimeout: gracePeriodSeconds === undefined ? undefined : 'Evict',
            statePreservation: stateOfClusters,
          }),
  });
  return Object.keys(found).length === 0 ? undefined : found;
}

function purgeMode(from: Fields | undefined): string | undefined {
  const mode = textOf(from?.take('purgeMode'));
  return mode === undefined ? undefined : (PURGE_MODES[mode] ?? mode);
}

/** The longest that a rule can say. */
const LONGEST_S = 86_400;

function withinADay(from: Fields, name: string, remarks: Remarks): unknown {
  const value = from.take(name);
  if (typeof value !== 'number' || value <= LONGEST_S) return value;
  remarks.differs(from.of(name), CUT);
  return LONGEST_S;
}

const CUT = `is cut to ${LONGEST_S} seconds, a day, the longest there is`;

function onMemberLost(rule: LostMemberRule, remarks: Remarks): JsonRecord | undefined {
  if (rule === undefined) return undefined;
  if (rule === 'stays') return { action: 'Hold' };
  if (rule.after > LONGEST_S)
    remarks.differs(
      'spec.placement.clusterTolerations',
      `its tolerationSeconds ${CUT}; where pods are to stay for longer set failover.onMemberLost.action: Hold`,
    );
  return { after: `${Math.min(LONGEST_S, Math.max(0, Math.round(rule.after)))}s`, action: 'Replace' };
}
