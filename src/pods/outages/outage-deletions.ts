import type { Logger } from 'pino';
import { podSubject } from '../../api/pod-subject.ts';
import type { Pod } from '../../kube/core-v1.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeError, isNotFound } from '../../kube/errors.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Lease } from '../../kube/lease.ts';
import { LEASES } from '../../kube/resource.ts';
import { timestamp } from '../../kube/timestamps.ts';
import { get } from '../../kube/verbs.ts';
import type { OutageMetrics } from './outage-metrics.ts';

/** Heartbeats come every 10 s: after so long at least one was missed, in ms. */
const MISSED_MS = 15_000;
/** Until Kubernetes has seen that the Node is back, in ms. */
const NOTICED_MS = 40_000;

/** Nobody served a virtual node between these times (wall clock in ms). */
export interface Outage {
  readonly from: number;
  readonly to: number;
}

export interface OutageDeletionsOptions {
  nodeName: string;
  member: string;
  /** Its Node fails with the member, so that its pods are given nothing to outlive that. */
  nodeFails: () => boolean;
  /** With a right to read the heartbeat of the virtual node. */
  host: KubeClient;
  hostPods: Pick<Informer<Pod>, 'on'>;
  events: Pick<EventRecorder, 'record'>;
  metrics: OutageMetrics;
  logger: Logger;
  /** Wall clock in ms. */
  clock: () => number;
}

/**
 * Says of pods that Kubernetes deleted them because nobody served their virtual node. Such a deletion cannot be taken back and is
 * carried out like any other; but nobody else would know why a pod ended that ran.
 */
export class OutageDeletions {
  readonly #o: OutageDeletionsOptions;

  constructor(options: OutageDeletionsOptions) {
    this.#o = options;
  }

  /** How long nobody has served the virtual node, by its heartbeat; to be asked before there is a new one. Never rejects. */
  async lastOutage(signal: AbortSignal): Promise<Outage | undefined> {
    const { host, nodeName, clock, logger } = this.#o;
    try {
      const ref = { namespace: 'kube-node-lease', name: nodeName };
      const { spec } = await get<Lease>(host, LEASES, ref, { signal, deadlineMs: 5_000 });
      const from = Date.parse(spec?.renewTime ?? '');
      const to = clock();
      return to - from > MISSED_MS ? { from, to } : undefined;
    } catch (error) {
      // Nothing depends on it but words.
      if (!isNotFound(error)) logger.info(`the last heartbeat of ${nodeName} is not known: ${describeError(error)}`);
      return undefined;
    }
  }

  /** Tells of each pod of that outage once. Returns what ends that. */
  recordFor(outage: Outage | undefined): () => void {
    if (outage === undefined) return () => undefined;
    const { hostPods } = this.#o;
    const told = new Set<string>();
    const look = (pod: Pod): void => {
      const { uid = '' } = pod.metadata;
      if (told.has(uid) || !isDeletedIn(pod, outage)) return;
      told.add(uid);
      this.#record(pod, outage);
    };
    return hostPods.on({ added: look, updated: look, deleted: () => undefined });
  }

  #record(pod: Pod, { from, to }: Outage): void {
    const { nodeName, member, nodeFails, events, metrics, logger } = this.#o;
    const cause = nodeFails()
      ? `spec.probe.nodesReady of MemberCluster "${member}" has it so`
      : 'See outages.toleration in the configuration of Spillway';
    metrics.deletions.inc({ node: nodeName });
    const message =
      `Kubernetes deleted the pod because no replica of Spillway served node ${nodeName} from ${timestamp(from)} to ` +
      `${timestamp(to)}, longer than the pod tolerates. Cluster "${member}" may have been well all the time; the pod is ended there ` +
      `now, and a controller makes another one. ${cause}.`;
    logger.warn({ node: nodeName, pod: `${pod.metadata.namespace ?? ''}/${pod.metadata.name}` }, message);
    events.record(podSubject(pod), 'Warning', 'DeletedInOutage', message);
  }
}

/** The taint manager asked for it, at a time when nobody could have kept the Node ready. */
function isDeletedIn({ metadata, status }: Pod, { from, to }: Outage): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined) return false;
  const askedAt = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  const byTaint = status?.conditions?.some(
    ({ type, reason }) => type === 'DisruptionTarget' && reason === 'DeletionByTaintManager',
  );
  return byTaint === true && askedAt > from && askedAt < to + NOTICED_MS;
}
