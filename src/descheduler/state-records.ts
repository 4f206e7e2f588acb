import { WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import type { WorkloadPlacement } from '../api/workload-placement.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, describeError, isUnauthorized } from '../kube/errors.ts';
import { subjectOf } from '../kube/event-subject.ts';
import { ifThere } from '../kube/if-there.ts';
import { patchStatusAsRead } from '../kube/patch-status.ts';
import { timestamp } from '../kube/timestamps.ts';
import { get } from '../kube/verbs.ts';
import { placementOf, placementRef } from '../placement/own-placement.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import {
  foundState,
  heirOf,
  type NotHandedOn,
  type Preserved,
  stateLabels,
  type StateField,
  stateRules,
  withoutState,
  withState,
} from '../placement/preserved-state.ts';
import { isUnanswered, REFUSED_MS } from './eviction-refusal.ts';
import type { MovingOptions } from './moving-options.ts';
import { ToldCauses } from './told-causes.ts';
import { STRATEGIES, type Strategy } from './strategies.ts';
import type { Held, WantedMove } from './wanted-move.ts';

/** Other moves of the workload are written down at the same time. */
const MOST_TRIES = 5;
/** Until it is tried again, in ms: the first pod of a workload may be moved before the object is written. */
const AGAIN_MS = 2_000;

export interface StateRecordsOptions extends Pick<MovingOptions, 'host' | 'events' | 'clock' | 'monotonic'> {
  placed: Pick<PlacedPods, 'rulesOf'>;
}

function fieldOf(strategy: Strategy): StateField | undefined {
  if (STRATEGIES[strategy].neverRan === true) return undefined;
  return strategy === 'UnhealthyInMember' ? 'application' : 'cluster';
}

/**
 * Writes down what pods show, as their policies say, before they are moved: in `status.preserved` of the WorkloadPlacement, from where whoever
 * answers schedulers gives it to the pods that come in their places. Past all caches, as several moves of a workload may be written at once.
 */
export class StateRecords {
  readonly #o: StateRecordsOptions;
  readonly #told: ToldCauses;

  constructor(options: StateRecordsOptions) {
    this.#o = options;
    this.#told = new ToldCauses(options.monotonic);
  }

  /** Undefined: all that is to be handed on is written down; else why it cannot be yet. @throws what the host answers that says nothing of the pod */
  async keep({ strategy }: WantedMove, live: Pod, signal: AbortSignal): Promise<Held | undefined> {
    const field = fieldOf(strategy);
    const { failover, workload, replicas } = this.#o.placed.rulesOf(live);
    const rules = field === undefined ? [] : stateRules(failover, field);
    if (field === undefined || rules.length === 0) return undefined;
    const heir = heirOf(live, workload, replicas);
    if (heir === undefined) {
      // What was left while there was one only is not of the pod that is moved last any more.
      const held = await this.#write(workload, withoutState, signal);
      if (held === undefined) this.#tell(live, workload, `failover.${field}.statePreservation: ${manyOf(workload)}`);
      return held;
    }
    const found = foundState(rules, live.status, heir);
    const { name: pod, uid = '' } = live.metadata;
    const kept = stateLabels(failover);
    const change = (before: Preserved): Preserved | undefined =>
      withState(before, { pod, uid, time: timestamp(this.#o.clock()) }, found, { heir, kept });
    const held = await this.#write(workload, change, signal);
    if (held === undefined) for (const one of found.problems) this.#tell(live, workload, problemInWords(field, one));
    return held;
  }

  async #write(
    workload: TypedObject,
    change: (before: Preserved) => Preserved | undefined,
    signal: AbortSignal,
  ): Promise<Held | undefined> {
    const { host } = this.#o;
    try {
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const before = await this.#read(workload, signal);
        const preserved = change(before?.status?.preserved ?? []);
        if (preserved === undefined) return undefined;
        if (before === undefined) return held('its workload has no WorkloadPlacement yet, where that is written down');
        const { metadata } = before;
        const isWritten = await patchStatusAsRead(host, WORKLOAD_PLACEMENTS, metadata, { preserved }, { signal });
        if (isWritten) return undefined;
      }
      return held('others write its WorkloadPlacement at the same time');
    } catch (error) {
      // It may be this pod's own, as of a StatefulSet. What is written twice is read first.
      if (isUnanswered(error)) {
        const unknown = held(`the host does not say whether it is (${describeError(error)})`);
        return { ...unknown, forMs: REFUSED_MS, ofWorkload: 'perhaps' };
      }
      if (!(error instanceof ApiError) || isUnauthorized(error)) throw error;
      return held(`the host does not let it be written down (${describeError(error)})`);
    }
  }

  /** Undefined: there is none of this very workload. */
  async #read(workload: TypedObject, signal: AbortSignal): Promise<WorkloadPlacement | undefined> {
    const reading = get<WorkloadPlacement>(this.#o.host, WORKLOAD_PLACEMENTS, placementRef(workload), { signal });
    return placementOf(await ifThere(reading), workload);
  }

  #tell(pod: Pod, workload: TypedObject, words: string): void {
    const { events } = this.#o;
    // What keeps it for now, such as a disruption budget, has it tried again and again.
    if (!this.#told.isToBeTold(`${pod.metadata.uid ?? ''} ${words}`, words)) return;
    events.record(podSubject(pod), 'Warning', 'StateNotHandedOn', words);
    events.record(subjectOf(workload), 'Warning', 'StateNotHandedOn', `pod ${pod.metadata.name}: ${words}`);
  }
}

function held(why: string): Held {
  return { why: `what it is to hand on is not written down: ${why}`, forMs: AGAIN_MS, ofWorkload: true };
}

function manyOf({ kind, metadata: { name } }: TypedObject): string {
  return `nothing is handed on: of ${kind} ${name} there may be several pods, and nobody can tell which of them comes in the place of this one`;
}

function problemInWords(field: StateField, { rule, why }: NotHandedOn): string {
  const { aliasLabelName, jsonPath } = rule;
  return `failover.${field}.statePreservation: ${aliasLabelName} is not handed on: by ${jsonPath} ${why}`;
}
