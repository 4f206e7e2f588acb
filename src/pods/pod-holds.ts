import { MIRRORED_CONDITION } from '../api/marks.ts';
import { podSubject } from '../api/pod-subject.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Informer } from '../kube/informer.ts';
import { wordsOf } from './creation-intent.ts';
import type { Hold } from './hold.ts';
import { holdPatch } from './hold-patch.ts';
import type { HostStatusWriter } from './host-status-writer.ts';
import { newest, type PodMemory } from './pod-memory.ts';
import type { PodMetrics } from './pod-metrics.ts';
import type { EventPort } from './pod-ports.ts';
import { type Next, retryLater } from './retry-later.ts';
import type { StatusCorrections } from './status-corrections.ts';

export interface PodHoldsOptions {
  hostPods: Pick<Informer<Pod>, 'get'>;
  nodeName: string;
  statuses: HostStatusWriter;
  corrections: StatusCorrections;
  events: EventPort;
  metrics: Pick<PodMetrics, 'holds'>;
  /** Wall clock in ms. */
  clock: () => number;
}

/** Tells users why a pod does not run yet, or what is in the way of something: in its status, and in Events. */
export class PodHolds {
  readonly #o: PodHoldsOptions;

  constructor(options: PodHoldsOptions) {
    this.#o = options;
  }

  /** Says on the host pod why it does not run yet, once per reason and message, and comes back later by itself. */
  async hold(key: string, hold: Hold, memory: PodMemory, signal: AbortSignal, againMs?: number): Promise<Next> {
    const hostPod = newest(this.#o.hostPods.get(key), memory.host);
    const settled = memory.intent?.open === false && memory.unanswered === undefined;
    const later = hostPod === undefined ? undefined : await this.show(hostPod, hold, memory, signal, settled);
    return later ?? (againMs === undefined ? retryLater(memory) : { requeueAfterMs: againMs });
  }

  /** `settled`: nothing has come of the intent on the host pod, nor will; it is not shown any more. */
  async show(hostPod: Pod, hold: Hold, memory: PodMemory, signal: AbortSignal, settled: boolean): Promise<Next> {
    const { metrics, nodeName, statuses, corrections, clock } = this.#o;
    metrics.holds.inc({ node: nodeName, reason: hold.reason });
    const body = holdPatch(hostPod, hold, new Date(clock()).toISOString(), settled);
    if (body === undefined) return undefined;
    const before = conditionOf(hostPod, MIRRORED_CONDITION);
    const write = async (): Promise<Pod> => await statuses.write(hostPod, body, { from: 'hold' }, memory, signal);
    const later = await corrections.write(hostPod, memory, `${hold.reason} ${hold.message}`, write);
    const isNews = before?.reason !== hold.reason || wordsOf(before) !== hold.message;
    if (later === undefined && isNews) this.event(hostPod, hold);
    return later;
  }

  event(hostPod: Pod, hold: Hold): void {
    this.#o.events.record(podSubject(hostPod), 'Warning', hold.reason, hold.message);
  }
}
