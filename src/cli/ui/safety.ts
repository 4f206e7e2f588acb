import { stopInWords } from '../../api/moves-stopped.ts';
import { conditionOf } from '../../kube/conditions.ts';
import { counted } from '../../kube/counted.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { keyOf } from '../../kube/object.ts';
import type { Overview } from '../overview.ts';
import type { SafetyItem, SafetyView } from './view.ts';
import type { Workload } from './workloads.ts';

/** Of one guard; what is more is counted only. */
const MOST_ITEMS = 20;
/** What becomes of a pod that vanished in its member (docs/reference/events.md). */
const LOST: readonly string[] = ['MemberPodLost', 'MemberPodDeleted', 'MemberStatusLost'];

/** What the guards hold now, as conditions and pods of this cluster tell; the same guards in the same order each time. */
export function safetyViews(
  { managers, clusters, deletionsHeld, movesPaused, movesStopped, pods, waiting, policies }: Overview,
  {
    all,
    workloads,
    knowsMembers,
    knowsPlacements,
  }: {
    all: readonly Pod[] | undefined;
    workloads: readonly Workload[];
    knowsMembers: boolean;
    knowsPlacements: boolean;
  },
): SafetyView[] {
  const trouble = clusters.filter(({ ready }) => ready !== 'True');
  const held = pods?.held ?? [];
  const avoided = workloads.flatMap(({ view: { key }, placement }) =>
    (placement?.status?.avoided ?? []).map(({ cluster, reason, message, until }) => ({
      what: `${key} in ${cluster}`,
      says: `${reason}: ${message} (tried again at ${until})`,
    })),
  );
  const lost = (all ?? []).filter(({ status }) => status?.phase === 'Failed' && LOST.includes(status.reason ?? ''));
  const remains = clusters.filter(({ reason }) => reason === 'Leaving');
  return [
    guard('members', 'Members in trouble', 'Not ready: no new pods are sent there.', 'alarm', {
      count: knowsMembers ? trouble.length : null,
      items: trouble.map(({ name, reason, message }) => ({ what: name, says: `${reason}: ${message}` })),
    }),
    guard(
      'deletions',
      'Deletions held back',
      'More pods vanished at once than is believed without a word of yours: their copies in the member are kept.',
      'alarm',
      {
        count: knowsMembers ? deletionsHeld.length : null,
        items: deletionsHeld.map(({ cluster, message }) => ({ what: cluster, says: message })),
      },
    ),
    guard(
      'paused',
      'Members whose pods are not moved',
      'So many members are lost at once that the fault may be on this side: pods of none are moved for it.',
      'alarm',
      {
        count: knowsMembers ? movesPaused.length : null,
        items: movesPaused.map(({ cluster, message }) => ({ what: cluster, says: message })),
      },
    ),
    guard(
      'stopped',
      'Moves stopped',
      'Somebody has stopped all moves: none begins until kubectl spillway resume-moves.',
      'alarm',
      {
        count: managers === null ? null : Number(movesStopped !== null),
        items: movesStopped === null ? [] : [{ what: 'all members', says: stopInWords(movesStopped) }],
      },
    ),
    guard(
      'lost',
      'Pods lost in a member',
      'They vanished there, and are shown as Failed: never started twice.',
      'notice',
      {
        count: all === undefined ? null : lost.length,
        items: lost.map((pod) => ({
          what: keyOf(pod),
          says: `${pod.status?.reason ?? ''}: ${pod.status?.message ?? ''}`,
          pod: keyOf(pod),
        })),
      },
    ),
    guard('held', 'Pods held back', 'Bound to a virtual node, and not created in the member yet.', 'notice', {
      count: pods === null ? null : held.reduce((sum, one) => sum + one.pods, 0),
      items: held.map(({ reason, pods: count, example, message }) => ({
        what: `${counted(count, 'pod')}: ${reason}`,
        says: message,
        pod: example,
      })),
      named: held.reduce((sum, one) => sum + one.pods, 0),
    }),
    guard(
      'refused',
      'Members avoided',
      'A member refused a pod of the workload, or it did not get well there.',
      'notice',
      {
        count: knowsPlacements ? avoided.length : null,
        items: avoided,
      },
    ),
    guard('waiting', 'Pods without a place', 'No cluster takes them now.', 'notice', {
      count: waiting?.pods ?? null,
      items: (all ?? [])
        .filter(({ spec, status }) => (spec.nodeName ?? '') === '' && status?.phase === 'Pending')
        .map((pod) => ({ what: keyOf(pod), says: waitsFor(pod), pod: keyOf(pod) })),
    }),
    guard('policies', 'Policies without effect', 'They do not act as they are written.', 'notice', {
      count: policies === null ? null : policies.withoutEffect.length,
      items: (policies?.withoutEffect ?? []).map(({ policy, reason, message }) => ({
        what: policy,
        says: `${reason}: ${message}`,
      })),
    }),
    guard('leaving', 'Members that leave', 'They were deleted, and go when nothing of them is left.', 'notice', {
      count: knowsMembers ? remains.length : null,
      items: remains.map(({ name, message }) => ({ what: name, says: message })),
    }),
  ];
}

function waitsFor({ spec, status }: Pod): string {
  const gates = (spec.schedulingGates ?? []).map(({ name }) => name);
  if (gates.length > 0) return `behind scheduling gate ${gates.join(', ')}`;
  return conditionOf({ status }, 'PodScheduled')?.message ?? 'no scheduler has said anything of it';
}

function guard(
  id: string,
  title: string,
  meaning: string,
  tone: SafetyView['tone'],
  { count, items, named }: { count: number | null; items: readonly SafetyItem[]; named?: number },
): SafetyView {
  const shown = items.slice(0, MOST_ITEMS);
  const isQuiet = count === null || count === 0;
  return {
    id,
    title,
    meaning,
    count,
    tone: isQuiet ? 'good' : tone,
    items: shown,
    unnamed: Math.max(0, (count ?? 0) - (named ?? shown.length)),
  };
}
