import { LRUCache } from 'lru-cache';
import type { Failover } from '../api/failover.ts';
import { podSubject } from '../api/pod-subject.ts';
import { WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import type { WorkloadPlacement } from '../api/workload-placement.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, describeError, isAnotherObject, isConflict, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { ifThere } from '../kube/if-there.ts';
import { atMost } from '../kube/lru-limit.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { PODS } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { get, patch } from '../kube/verbs.ts';
import { placementOf, placementRef } from '../placement/own-placement.ts';
import { type TypedObject, workloadOf } from '../placement/owner-chain.ts';
import {
  type HandedOn,
  handedOn,
  type Heir,
  heirOf,
  type Preserved,
  stateLabels,
} from '../placement/preserved-state.ts';
import type { HostView } from './host-view.ts';
import { WaitBudget } from './wait-budget.ts';

/** What a scheduler waits for at the most, in ms: a read and a patch. It goes on without an answer after a second. */
const WAIT_MS = 300;
/** For each of the two, in ms. */
const DEADLINE_MS = 10_000;
const REMEMBERED = 20_000;
/** Pods that are given theirs at the same time, as each takes a connection to the host, which Leases need, too. */
const MOST_AT_ONCE = 4;
/** And those of one namespace, in which a webhook for pods may take its time. */
const MOST_OF_NAMESPACE = 2;

export interface StateGiverOptions {
  host: KubeClient;
  view: Pick<HostView, 'selectionOf'>;
  events: Pick<EventRecorder, 'record'>;
  /** Called when a pod has got what it waited for for longer. */
  given: () => void;
  /** In ms. */
  monotonic: () => number;
}

type Labels = Readonly<Record<string, string>>;

/** What one pod is given. */
interface Giving {
  readonly pod: Pod;
  readonly workload: TypedObject;
  readonly heir: Heir;
  /** Labels that its policy hands on. */
  readonly kept: ReadonlySet<string>;
}

/**
 * Gives a pod what the one in whose place it comes has left (`status.preserved` of the WorkloadPlacement), as labels, before any node is chosen for it, so
 * that it has them from its first moment wherever it runs. What is left was written before that pod went, so a read past the caches after
 * this one is there cannot miss it, whichever replica is asked.
 */
export class StateGiver {
  readonly #o: StateGiverOptions;
  readonly #budget: WaitBudget;
  /** What pods were given, those that have all that they are to have, by {@link keyOf}. */
  readonly #done = new LRUCache<string, Labels>(atMost(REMEMBERED));
  /** Those that a scheduler was told to wait with. */
  readonly #waiting = new LRUCache<string, true>(atMost(REMEMBERED));
  /** What is being given now, and in which namespaces. Never rejects. */
  readonly #underWay = new Map<string, { namespace: string | undefined; ended: Promise<void> }>();
  /** Why the last try came to nothing. */
  readonly #failed = new LRUCache<string, string>(atMost(REMEMBERED));

  constructor(options: StateGiverOptions) {
    this.#o = options;
    this.#budget = new WaitBudget(options.monotonic);
  }

  /** Undefined: the pod has it, or there is nothing for it; else why it has to wait, in words. */
  async whyNotYet(pod: Pod): Promise<string | undefined> {
    if (controllerOf(pod) === undefined || pod.spec.nodeName !== undefined) return undefined;
    const giving = this.#givingOf(pod);
    if (giving === undefined) return undefined;
    const key = keyOf(giving);
    // One that shows nothing of it may be what it was before, as in a host that was restored from a backup.
    if (hasAll(pod, this.#done.get(key))) return undefined;
    this.#done.delete(key);
    const underWay = this.#underWay.get(key)?.ended ?? this.#begin(key, giving);
    if (underWay === undefined) {
      this.#waiting.set(key, true);
      return this.#failed.get(key) ?? 'other pods are being given theirs';
    }
    const waitMs = this.#budget.take(WAIT_MS);
    const began = this.#o.monotonic();
    const ended = new AbortController();
    await Promise.race([underWay, pause(waitMs, ended.signal)]);
    ended.abort();
    if (!this.#done.has(key)) {
      this.#waiting.set(key, true);
      return this.#failed.get(key) ?? 'it is being read';
    }
    this.#budget.giveBack(Math.max(0, waitMs - (this.#o.monotonic() - began)));
    return undefined;
  }

  /** Whether a scheduler was told to wait with it: evictions are no help to it then. */
  isAwaitedFor(pod: Pod): boolean {
    if (this.#waiting.size === 0) return false;
    const giving = this.#givingOf(pod);
    return giving !== undefined && this.#waiting.has(keyOf(giving));
  }

  #givingOf(pod: Pod): Giving | undefined {
    const { chain, chosen } = this.#o.view.selectionOf(pod);
    const failover: Failover | undefined = chosen?.failover;
    const kept = stateLabels(failover);
    if (kept.size === 0) return undefined;
    const { object: workload, replicas } = workloadOf(chain);
    const heir = heirOf(pod, workload, replicas);
    return heir === undefined ? undefined : { pod, workload, heir, kept };
  }

  /** Undefined: not now, as too many others are under way. */
  #begin(key: string, giving: Giving): Promise<void> | undefined {
    const { namespace } = giving.pod.metadata;
    const ofNamespace = [...this.#underWay.values()].filter((one) => one.namespace === namespace);
    if (this.#underWay.size >= MOST_AT_ONCE || ofNamespace.length >= MOST_OF_NAMESPACE) return undefined;
    const ended = this.#try(key, giving).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, { namespace, ended });
    return ended;
  }

  async #try(key: string, giving: Giving): Promise<void> {
    let labels: Labels = {};
    try {
      labels = await this.#give(giving);
    } catch (error) {
      if (!isFinal(error)) {
        this.#failed.set(key, describeError(error));
        return;
      }
      // It is gone, or another one has its name: who asks will hear of that.
      if (!isGone(error))
        this.#tell(giving, [...giving.kept], `the host does not let it be read or written (${describeError(error)})`);
    }
    this.#done.set(key, labels);
    this.#failed.delete(key);
    if (this.#waiting.delete(key)) this.#o.given();
  }

  async #give(giving: Giving): Promise<Labels> {
    const preserved = await this.#preserved(giving);
    try {
      return await this.#write(giving.pod, giving, preserved);
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
    // A scheduler may know it as it was before; somebody else may have given it one of these labels since.
    const { namespace, name, uid } = giving.pod.metadata;
    const now = await get<Pod>(this.#o.host, PODS, { namespace, name }, { deadlineMs: DEADLINE_MS });
    return now.metadata.uid === uid ? await this.#write(now, giving, preserved) : {};
  }

  /** The pod as it is known. @returns what it has of that then */
  async #write(pod: Pod, giving: Giving, preserved: Preserved): Promise<Labels> {
    const { labels, taken }: HandedOn = handedOn(pod, preserved, giving);
    if (taken.length > 0)
      this.#tell(
        giving,
        taken,
        'it has that label by itself, with another value, or the selector of its workload rules it out',
      );
    if (Object.keys(labels).length === 0) return labels;
    const { namespace, name, uid, resourceVersion } = pod.metadata;
    const body = { metadata: { uid, resourceVersion, labels } };
    await patch(this.#o.host, PODS, { namespace, name }, body, { type: 'merge' }, { deadlineMs: DEADLINE_MS });
    return labels;
  }

  async #preserved({ workload }: Giving): Promise<Preserved> {
    const options = { deadlineMs: DEADLINE_MS };
    const reading = get<WorkloadPlacement>(this.#o.host, WORKLOAD_PLACEMENTS, placementRef(workload), options);
    return placementOf(await ifThere(reading), workload)?.status?.preserved ?? [];
  }

  #tell({ pod }: Giving, labels: readonly string[], why: string): void {
    const words = `${labels.join(', ')}: what the pod before this one left is not handed on: ${why}`;
    this.#o.events.record(podSubject(pod), 'Warning', 'StateNotHandedOn', words);
  }
}

/** What the host answers about this pod, and will again. Others may write the pod at the same time: 409. */
function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.code < 500 && ![401, 408, 409, 429].includes(error.code);
}

/** The pod. */
function isGone(error: unknown): boolean {
  return isNotFound(error) || (isAnotherObject(error) && !isConflict(error));
}

function hasAll({ metadata: { labels = {} } }: Pod, given: Labels | undefined): boolean {
  return given !== undefined && Object.entries(given).every(([key, value]) => labels[key] === value);
}

function keyOf({ pod, kept }: Giving): string {
  return [pod.metadata.uid ?? '', ...kept].join(' ');
}
