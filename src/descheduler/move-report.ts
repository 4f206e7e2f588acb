import { LRUCache } from 'lru-cache';
import { podSubject } from '../api/pod-subject.ts';
import { subjectOf } from '../kube/event-subject.ts';
import { atMost } from '../kube/lru-limit.ts';
import { keyOf } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MoveRecords } from './move-records.ts';
import type { MovingOptions } from './moving-options.ts';
import { STRATEGIES } from './strategies.ts';
import type { WantedMove } from './wanted-move.ts';

/** A move without an answer is the same one when it succeeds within that time (ms). No longer than a pod that was given back is left alone. */
const SAME_MS = 300_000;

export interface MoveReportOptions extends Pick<MovingOptions, 'events' | 'metrics' | 'logger' | 'monotonic'> {
  placed: Pick<PlacedPods, 'rulesOf'>;
  records: Pick<MoveRecords, 'add'>;
}

/** Tells of moves: in Events, metrics, the log and the records of workloads. */
export class MoveReport {
  readonly #o: MoveReportOptions;
  /** UIDs of pods whose move is counted, and not known to have happened. */
  readonly #unanswered: LRUCache<string, true>;

  constructor(options: MoveReportOptions) {
    this.#o = options;
    const perf = { now: options.monotonic };
    this.#unanswered = new LRUCache({ ...atMost(), ttl: SAME_MS, ttlResolution: 0, perf });
  }

  /** It would have been moved, but for the dry run that `why` speaks of. */
  rehearsed({ pod, from, strategy, cause }: WantedMove, why: string): void {
    const { events, metrics, logger } = this.#o;
    const words = `${strategy}: ${cause}; it would be moved now, but ${why}`;
    events.record(podSubject(pod), 'Normal', 'MoveWanted', words);
    metrics.moves.inc({ strategy, member: from, outcome: 'wanted' });
    logger.info({ pod: keyOf(pod), member: from, strategy }, `a pod would be moved: ${cause}`);
  }

  /**
   * The host has been asked to let it go, and perhaps does: that counts as a move from now on, as limits are to hold whatever becomes of answers. Once:
   * if it did not happen, the pod is tried again soon.
   */
  unanswered(wanted: WantedMove): void {
    const { uid = '' } = wanted.pod.metadata;
    if (!this.#unanswered.has(uid)) this.#count(wanted);
    this.#unanswered.set(uid, true);
    const { pod, from, strategy } = wanted;
    this.#o.logger.warn({ pod: keyOf(pod), member: from, strategy }, 'it is not known whether a pod has made way');
  }

  /** `waits`: it was released, and stays beside the next one until its member answers. */
  moved(wanted: WantedMove, how: 'evicted' | 'released' | 'waits'): void {
    const { events, metrics, logger, placed } = this.#o;
    const { pod, from, strategy, cause } = wanted;
    const { reason, isGoneAtOnce } = STRATEGIES[strategy];
    if (!this.#unanswered.delete(pod.metadata.uid ?? '')) this.#count(wanted);
    const { kind = '', name = '' } = controllerOf(pod) ?? {};
    const until =
      how === 'waits'
        ? 'waits for its member: onHeal says which of them stays then'
        : 'goes on until that one is Ready';
    const makes = `so that ${kind} ${name} makes another one`;
    const gone = isGoneAtOnce === true ? ' and is gone at once,' : '';
    const outcome =
      how === 'evicted'
        ? `it was evicted,${gone} ${makes}, ${wanted.outcome}`
        : `it was released, ${makes}, which goes elsewhere. It ${until}`;
    const words = `${cause}; ${outcome}`;
    events.record(podSubject(pod), 'Normal', reason, words);
    events.record(subjectOf(placed.rulesOf(pod).workload), 'Normal', reason, `pod ${pod.metadata.name}: ${words}`);
    metrics.moves.inc({ strategy, member: from, outcome: 'moved' });
    logger.info({ pod: keyOf(pod), member: from, strategy }, 'a pod made way for another one elsewhere');
  }

  #count({ pod, from, strategy, cause }: WantedMove): void {
    const { placed, records } = this.#o;
    records.add(placed.rulesOf(pod).workload, { strategy, from, pod: pod.metadata.name, message: cause });
  }
}
