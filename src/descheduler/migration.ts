import { isActive } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { Migrating } from '../placement/migrating.ts';
import { byYouth } from './pod-age.ts';
import type { WantedMove } from './wanted-move.ts';

/** A pod of a workload that is being migrated: an active one, released ones included, or one that has yet to end in the member. */
export interface MigratedPod {
  readonly pod: Pod;
  /** Undefined: it has no node yet. */
  readonly cluster: string | undefined;
  readonly isReady: boolean;
  /** It was released or evicted, or is being deleted, and is not gone yet. */
  readonly isLeaving: boolean;
  /** Another one is Ready before it goes, so its turn need not wait for the others. */
  readonly surges: boolean;
  /** Those with a lower one are tried first, see `Mover.turnOf`. */
  readonly turn: number;
  /** Why it is never moved, in words. */
  readonly whyStays: string | undefined;
}

/** What is to be done for a workload, and how far it has come. */
export interface MigrationStep {
  /** Pods to be moved, in this order, as far as the mover lets them go. */
  readonly moves: readonly Pod[];
  /** Pods in the member that stay there, with the reason. */
  readonly stays: readonly { readonly pod: Pod; readonly why: string }[];
  /** Pods that are in the member and not on their way, those that stay included. */
  readonly waiting: number;
  readonly moving: number;
  /** Pods that have no place yet. */
  readonly unplaced: number;
  /** Pods that the workload asks for, and nobody has made yet: a StatefulSet makes one when the former of its name is gone. */
  readonly missing: number;
  /** It takes its time: pods of it have yet to end, to be made, or to be Ready elsewhere. */
  readonly isComing: boolean;
  /** Nothing of it is to be moved, or on its way, any more. */
  readonly isOver: boolean;
}

/**
 * Which pods of a workload are to leave the member now, by their turns: those that are not Ready first, then the youngest, which have least to lose. Where
 * another pod is Ready first (`surges`) all of them, as the mover sees to how many at a time; of others one at a time, see
 * {@link mayGoAlone}. `wanted`: pods that the workload asks for.
 */
export function migrationStep(pods: readonly MigratedPod[], from: string, wanted: number | undefined): MigrationStep {
  const there = pods.filter(({ cluster }) => cluster === from);
  const moving = there.filter(({ isLeaving }) => isLeaving);
  const still = there.filter(({ isLeaving }) => !isLeaving);
  const stays = still.flatMap(({ pod, whyStays }) => (whyStays === undefined ? [] : [{ pod, why: whyStays }]));
  const left = still.filter(({ whyStays }) => whyStays === undefined).toSorted(byTurn);
  const unplaced = pods.filter(({ cluster }) => cluster === undefined).length;
  const owned = pods.filter(({ isLeaving }) => !isLeaving);
  const missing = Math.max(0, (wanted ?? 0) - owned.length);
  // One that is being deleted may be so for days, on a node that is dead: that as many others are there as are wanted is asked of each.
  const isOneGoing = moving.some(({ pod }) => isActive(pod));
  const alone = isOneGoing ? undefined : left.find((one) => !one.surges && mayGoAlone(one, owned, wanted));
  return {
    moves: left.filter((one) => one.surges || one === alone).map(({ pod }) => pod),
    stays,
    waiting: still.length,
    moving: moving.length,
    unplaced,
    missing,
    isComing:
      moving.length + missing > 0 ||
      owned.some(({ cluster, isReady }) => cluster !== undefined && cluster !== from && !isReady),
    isOver: left.length === 0 && moving.length === 0 && unplaced === 0 && missing === 0,
  };
}

/** The others have their places, and are Ready unless it is not itself: then its end takes nothing away. `all`: with the pod. */
export function mayGoAlone(
  { pod, isReady }: Pick<MigratedPod, 'pod' | 'isReady'>,
  all: readonly Pick<MigratedPod, 'pod' | 'cluster' | 'isReady'>[],
  wanted: number | undefined,
): boolean {
  const others = all.filter((one) => one.pod.metadata.uid !== pod.metadata.uid);
  return (
    others.length + 1 >= (wanted ?? 0) && others.every((one) => one.cluster !== undefined && (one.isReady || !isReady))
  );
}

function byTurn(one: MigratedPod, other: MigratedPod): number {
  if (one.turn !== other.turn) return one.turn - other.turn;
  if (one.isReady !== other.isReady) return one.isReady ? 1 : -1;
  return byYouth(one.pod, other.pod);
}

/** A pod of a workload that somebody wants out of a member. */
export function migrationMove(
  pod: Pod,
  { from, to, by }: Migrating,
  asked: Pick<WantedMove, 'recheck' | 'isOrdered'>,
): WantedMove {
  const where =
    to === undefined ? `out of ${clusterInWords(from)}` : `from ${clusterInWords(from)} to ${clusterInWords(to)}`;
  return {
    strategy: 'Migrate',
    pod,
    from,
    ...asked,
    cause: `WorkloadMigration ${by}: its workload is moved ${where}`,
    outcome: 'which goes there',
    stays: `WorkloadMigration ${by}: its workload is moved ${where}, and it stays for now`,
  };
}
