import type { Logger } from 'pino';
import { MIRRORED_CONDITION } from '../../api/marks.ts';
import {
  type OutageRule,
  restoredOutageTolerations,
  withdrawnOutageTolerations,
} from '../../api/outage-tolerations.ts';
import { isActive } from '../../api/pod-phase.ts';
import type { Pod, Toleration } from '../../kube/core-v1.ts';
import type { KubeClient } from '../../kube/client.ts';
import { monotonic } from '../../kube/clock.ts';
import { conditionOf } from '../../kube/conditions.ts';
import { describeError, isForbidden, isNotFound, isPermanent } from '../../kube/errors.ts';
import { mayI } from '../../kube/own-rights.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf } from '../../kube/object.ts';
import { controllerOf, isDaemonSet } from '../../kube/owner-references.ts';
import { PODS } from '../../kube/resource.ts';
import { patch } from '../../kube/verbs.ts';
import type { WorkQueueMetrics } from '../../kube/workqueue-metrics.ts';
import { type HandlerResult, WorkQueue } from '../../kube/workqueue.ts';
import type { OutageMetrics } from './outage-metrics.ts';

/** Pods that are over sooner cost no write; and those that begin have the API server to themselves. */
const SETTLE_MS = 10_000;
/** Pods of a virtual node that are written at the same time: nothing waits for it. */
const AT_ONCE = 2;
/** A pod that is said to be gone is looked at again after so many times as long. */
const LOOKS_AGAIN = 6;
/** The same question for all pods: no request about any of them is refused where nobody granted this. */
const PATCH_PODS = { verb: 'patch', resource: 'pods' };
/** After a refusal nothing is tried for so long: it is the right that is missing, of all pods. */
const REFUSED_MS = 600_000;

/** As PodTolerationRestriction does: of two tolerations of a taint it leaves the one that tolerates it for longer. */
const MERGED = 'The host took the write and left the tolerations as they were: an admission plugin of it merges them.';

export interface TolerationKeeperOptions {
  nodeName: string;
  /** The manager itself: virtual nodes may not change what a pod is. */
  host: KubeClient;
  /** The host's pods bound to the virtual node. */
  hostPods: Pick<Informer<Pod>, 'on' | 'get' | 'values'>;
  rule: OutageRule;
  /** The Node is to fail with its member, and its pods to go then: what they were given is taken back. */
  nodeFails: () => boolean;
  /** Why nothing may be written at the moment, or undefined. */
  frozen: () => string | undefined;
  events: Pick<EventRecorder, 'record'>;
  metrics: OutageMetrics;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
  settleMs?: number;
}

/**
 * Gives pods that came without them the tolerations of a virtual node that nobody serves. Else Kubernetes would delete all of them
 * five minutes after the last replica of the manager ended, although they run and their member is well. One write for each such
 * pod in its life, and none for those that got them at admission. On a Node that is to fail with its member it is the other way round.
 */
export class TolerationKeeper {
  readonly #o: TolerationKeeperOptions;
  readonly #settleMs: number;
  #restsUntil = 0;
  #nodeFails = false;
  #lookAtAll: () => void = () => undefined;
  #isGranted: Promise<boolean> | undefined;

  constructor(options: TolerationKeeperOptions) {
    this.#o = options;
    this.#settleMs = options.settleMs ?? SETTLE_MS;
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { hostPods, nodeName, nodeFails, queueMetrics, logger } = this.#o;
    const queue = new WorkQueue({
      name: `outages-${nodeName}`,
      concurrency: AT_ONCE,
      handler: async (key, abort) => await this.#look(key, abort),
      backoff: { baseMs: 1_000, maxMs: 60_000 },
      logger,
      metrics: queueMetrics,
    });
    const add = (pod: Pod): void => {
      if (this.#lacking(pod).length > 0) queue.addAfter(keyOf(pod), this.#settleMs);
    };
    this.#nodeFails = nodeFails();
    this.#lookAtAll = () => {
      for (const pod of hostPods.values()) add(pod);
    };
    const off = hostPods.on({ added: add, updated: add, deleted: () => undefined });
    await queue.run(signal);
    off();
  }

  /** The spec of the member changed, or something else. */
  changed(): void {
    const nodeFails = this.#o.nodeFails();
    if (nodeFails === this.#nodeFails) return;
    this.#nodeFails = nodeFails;
    this.#lookAtAll();
  }

  #lacking(pod: Pod): Toleration[] {
    return isConcerned(pod) ? missing(pod.spec.tolerations ?? [], this.#o.rule, this.#o.nodeFails()) : [];
  }

  async #look(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { hostPods, host, frozen, metrics, nodeName } = this.#o;
    const pod = hostPods.get(key);
    const lacking = pod === undefined ? [] : this.#lacking(pod);
    if (pod === undefined || lacking.length === 0) return undefined;
    const rest = this.#restsUntil - monotonic();
    if (rest > 0) return { requeueAfterMs: rest };
    if (frozen() !== undefined) return { requeueAfterMs: this.#settleMs };
    if (!(await this.#mayPatch(signal))) return this.#refused();
    const { namespace, name } = pod.metadata;
    const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
    try {
      const after = await patch<Pod>(host, PODS, ref, tolerationPatch(pod, lacking), { type: 'json' }, { signal });
      if (this.#lacking(after).length > 0) return this.#refused(MERGED);
      metrics.tolerations.inc({ node: nodeName, result: this.#o.nodeFails() ? 'withdrawn' : 'given' });
    } catch (error) {
      if (isForbidden(error)) return this.#refused(describeError(error));
      // Gone, another pod of that name, or other tolerations, as a test of the patch says: the watch will show it. Unless another
      // cluster answered in the place of the host: then the pod is still there later on.
      if (isNotFound(error)) return { requeueAfterMs: LOOKS_AGAIN * this.#settleMs };
      if (!isPermanent(error)) throw error;
      return { requeueAfterMs: REFUSED_MS };
    }
    return undefined;
  }

  /** Asked once, and again after it was denied. */
  async #mayPatch(signal: AbortSignal): Promise<boolean> {
    this.#isGranted ??= mayI(this.#o.host, PATCH_PODS, signal);
    try {
      const granted = await this.#isGranted;
      if (!granted) this.#isGranted = undefined;
      return granted;
    } catch (error) {
      this.#isGranted = undefined;
      throw error;
    }
  }

  #refused(words = ''): HandlerResult {
    const { nodeName, events, metrics, logger } = this.#o;
    if (this.#restsUntil > monotonic()) return { requeueAfterMs: REFUSED_MS };
    metrics.tolerations.inc({ node: nodeName, result: 'refused' });
    this.#restsUntil = monotonic() + REFUSED_MS;
    const message = this.#o.nodeFails()
      ? 'Pods here outlive it that their member is not reachable, against spec.probe.nodesReady of its MemberCluster: they were given ' +
        `tolerations before, and the manager may not withdraw these. Apply manifests/outages.yaml, or make the pods anew. ${words}`.trim()
      : 'Pods here are deleted by Kubernetes when no replica of Spillway has served this node for five minutes: the manager may ' +
        `not give them tolerations. Apply manifests/outages.yaml, or set outages.toleration: Keep. ${words}`.trim();
    logger.warn({ node: nodeName }, message);
    events.record({ apiVersion: 'v1', kind: 'Node', name: nodeName }, 'Warning', 'OutageTolerationsRefused', message);
    return { requeueAfterMs: REFUSED_MS };
  }
}

/** Of pods that have, or are to have, a copy in the member: those of DaemonSets go with their node, wherever that is. */
function isConcerned(pod: Pod): boolean {
  if (!isActive(pod)) return false;
  const controller = controllerOf(pod);
  if (controller !== undefined && isDaemonSet(controller)) return false;
  return conditionOf(pod, MIRRORED_CONDITION) !== undefined;
}

function missing(present: readonly Toleration[], rule: OutageRule, nodeFails: boolean): Toleration[] {
  return nodeFails ? withdrawnOutageTolerations(present, rule) : restoredOutageTolerations(present, rule);
}

/** Refused by the API server if the pod is another one by now, or its tolerations are others than were looked at. */
function tolerationPatch({ metadata, spec }: Pod, missing: readonly Toleration[]): object[] {
  const path = '/spec/tolerations';
  const test = { op: 'test', path: '/metadata/uid', value: metadata.uid };
  const { tolerations = [] } = spec;
  if (tolerations.length === 0) return [test, { op: 'add', path, value: missing }];
  return [test, { op: 'test', path, value: tolerations }, { op: 'replace', path, value: [...missing, ...tolerations] }];
}
