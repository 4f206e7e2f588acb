import type { Logger } from 'pino';
import { podSubject } from '../api/pod-subject.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { keyOf } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import type { MoveRecords } from './move-records.ts';
import type { MovesMetrics } from './moves-metrics.ts';
import type { WantedMove } from './wanted-move.ts';

export interface MoveReportOptions {
  placed: Pick<PlacedPods, 'rulesOf'>;
  events: Pick<EventRecorder, 'record'>;
  metrics: Pick<MovesMetrics, 'moves'>;
  records: Pick<MoveRecords, 'add'>;
  logger: Logger;
}

/** Tells of moves: in Events, metrics, the log and the records of workloads. */
export class MoveReport {
  readonly #o: MoveReportOptions;

  constructor(options: MoveReportOptions) {
    this.#o = options;
  }

  /** It would have been moved, but for the dry run. */
  pretended({ pod, from, strategy, cause }: WantedMove): void {
    const { events, metrics, logger } = this.#o;
    const words = `${strategy}: ${cause}; it would be moved now, but descheduler.dryRun is set`;
    events.record(podSubject(pod), 'Normal', 'MoveWanted', words);
    metrics.moves.inc({ strategy, member: from, outcome: 'wanted' });
    logger.info({ pod: keyOf(pod), member: from, strategy }, `a pod would be moved: ${cause}`);
  }

  /** `waits`: it was released, and stays beside the next one until its member answers. */
  moved(wanted: WantedMove, how: 'evicted' | 'released' | 'waits'): void {
    const { events, metrics, logger, placed, records } = this.#o;
    const { pod, from, strategy, reason, cause } = wanted;
    const { kind = '', name = '' } = controllerOf(pod) ?? {};
    const until =
      how === 'waits'
        ? 'waits for its member: onHeal says which of them stays then'
        : 'goes on until that one is Ready';
    const outcome =
      how === 'evicted'
        ? wanted.outcome(`${kind} ${name}`)
        : `it was released, so that ${kind} ${name} makes another one, which goes elsewhere. It ${until}`;
    const words = `${cause}; ${outcome}`;
    events.record(podSubject(pod), 'Normal', reason, words);
    const { workload } = placed.rulesOf(pod);
    const { apiVersion, kind: ofKind, metadata } = workload;
    records.add(workload, { strategy, from, pod: pod.metadata.name, message: cause });
    const about = { apiVersion, kind: ofKind, namespace: metadata.namespace, name: metadata.name, uid: metadata.uid };
    events.record(about, 'Normal', reason, `pod ${pod.metadata.name}: ${words}`);
    metrics.moves.inc({ strategy, member: from, outcome: 'moved' });
    logger.info({ pod: keyOf(pod), member: from, strategy }, 'a pod made way for another one elsewhere');
  }
}
