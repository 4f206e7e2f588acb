import { podSubject } from '../api/pod-subject.ts';
import type { Released } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyOf } from '../kube/object.ts';
import type { ChosenReason } from './healed-pods.ts';
import { NEVER } from './move-check.ts';
import type { MovingOptions } from './moving-options.ts';
import type { EndStep, EvictReason, WaitStep } from './release-step.ts';
import { ToldCauses } from './told-causes.ts';

/** Event messages for eviction reasons worth reporting. OTHER is the pod that came in its place. */
const WHY: Record<EvictReason | ChosenReason, string | undefined> = {
  Replaced: undefined,
  OutOfService: 'has other pods, and its virtual node is out of service',
  RanShorter: 'has OTHER in its place, which has been Ready for longer (onHeal: LongestRunning)',
  NotWell: 'has OTHER in its place, and this one is not Ready again, though its member answers (onHeal)',
  HasToLeave:
    'has OTHER in its place, and this one would have to leave its member again, for a taint, a drain or a WorkloadMigration',
  ForeignCost:
    'has OTHER in its place, and somebody else sets the deletion cost of this one, so that nobody could say which of the two goes',
  NoOther: 'made no other pod beside it within a minute, as it cannot with a quota that is used up',
  Finished: undefined,
  NoReplicas: undefined,
  Gone: 'is gone',
  TimedOut:
    'has no other pod that became Ready in time, and it is not Ready itself, or the policy says onTimeout: Evict',
};

/** Others are Ready in its place, and rules say so. */
const AS_WANTED: ReadonlySet<EvictReason | ChosenReason> = new Set(['RanShorter', 'HasToLeave', 'ForeignCost']);

/** State of a pod that should be evicted but is not, for Events. */
const STANDS: Record<EvictReason, string> = {
  Replaced: 'another pod is Ready in its place',
  Finished: 'it has ended',
  NoReplicas: 'its ReplicaSet is to have no pods',
  Gone: 'its ReplicaSet is gone, and nobody wants it any more',
  TimedOut: 'no other pod became Ready in time',
  OutOfService: 'its virtual node is out of service',
  NotWell: 'it is not Ready again',
  NoOther: 'its ReplicaSet makes no other pod beside it',
};

export type ReleaseReportOptions = Pick<MovingOptions, 'events' | 'metrics' | 'logger' | 'monotonic'>;

/** Tells what became of released pods: Events, metrics and lines of the log. */
export class ReleaseReport {
  readonly #o: ReleaseReportOptions;
  /** By pod UID. */
  readonly #told: ToldCauses;

  constructor(options: ReleaseReportOptions) {
    this.#o = options;
    this.#told = new ToldCauses(options.monotonic);
  }

  /** Its ReplicaSet has it again, as its member answers; `instead`: the pod that came in its place. */
  kept(pod: Pod, replicaSet: string, instead: Pod | undefined): void {
    const { events, metrics, logger } = this.#o;
    metrics.releasesEnded.inc({ outcome: 'Kept' });
    logger.info({ pod: keyOf(pod), replicaSet }, 'a pod was given back to its ReplicaSet, as its member answers again');
    const ended = instead === undefined ? '' : `, which ends ${instead.metadata.name} or another one in its place`;
    const words = `its member answers again, and it is Ready: ReplicaSet ${replicaSet} has it again${ended} (onHeal)`;
    events.record(podSubject(pod), 'Normal', 'OriginalKept', words);
  }

  /** `instead`: the pod that came in its place; undefined where it is not known which one did. */
  evicted(pod: Pod, replicaSet: string, why: EvictReason | ChosenReason, instead?: Pod): void {
    const { events, metrics, logger } = this.#o;
    metrics.releasesEnded.inc({ outcome: why });
    logger.info({ pod: keyOf(pod), replicaSet, why }, 'a pod that was released from its ReplicaSet was evicted');
    const words = WHY[why]?.replace('OTHER', () => instead?.metadata.name ?? 'other pods');
    if (words === undefined) return;
    const type = AS_WANTED.has(why) ? 'Normal' : 'Warning';
    events.record(podSubject(pod), type, 'ReleasedPodEvicted', `ReplicaSet ${replicaSet} ${words}: it was evicted`);
  }

  gaveBack(pod: Pod, { replicaSet }: Released, why: 'TimedOut' | 'NoReplicas'): void {
    const { events, metrics, logger } = this.#o;
    metrics.releasesEnded.inc({ outcome: 'GivenBack' });
    if (why === 'NoReplicas') {
      logger.info({ pod: keyOf(pod), replicaSet, why }, 'a pod was given back to its ReplicaSet, which is to end it');
      return;
    }
    logger.warn(
      { pod: keyOf(pod), replicaSet },
      'a pod was given back to its ReplicaSet: no other one became Ready in time',
    );
    const words = `no other pod of ReplicaSet ${replicaSet} became Ready in time: it has this one again, and the move is tried again in five minutes`;
    events.record(podSubject(pod), 'Warning', 'ReleasedPodGivenBack', words);
  }

  /** It waits where it would go, if nothing were against it. */
  waits({ pod, keeps }: WaitStep): void {
    if (keeps !== undefined) this.stays({ pod, kind: 'evict', why: keeps.from }, keeps.why ?? NEVER);
  }

  /** Nobody lets it go. One Event per cause, again while it lasts. `cause`: the same where the words differ from time to time. */
  stays(step: EndStep, why: string, cause = why): void {
    const { pod } = step;
    if (!this.#told.isToBeTold(pod.metadata.uid ?? '', cause)) return;
    const words =
      step.kind === 'evict'
        ? `${STANDS[step.why]}, but it cannot be ended: ${why}`
        : step.kind === 'giveBack'
          ? `its ReplicaSet is to have it again, but it cannot be given back: ${why}`
          : `its member answers again, but it can neither be given back to its ReplicaSet nor be ended: ${why}`;
    this.#o.events.record(podSubject(pod), 'Warning', 'ReleasedPodStays', words);
  }

  /** A pod is gone. */
  forget(uid: string): void {
    this.#told.forget(uid);
  }
}
