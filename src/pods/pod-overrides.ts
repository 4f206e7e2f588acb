import type { OverridePolicy } from '../api/override-policy.ts';
import { madeInMode, type ServiceAccountMode } from '../api/service-account-mode.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod } from '../kube/core-v1.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError } from '../kube/errors.ts';
import { findReferences } from './references.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf } from '../kube/object.ts';
import { applyRules, type OverrideContext } from '../overrides/apply-overrides.ts';
import {
  APPLIED_OVERRIDES_ANNOTATION,
  hashOfRules,
  type PodRecord,
  readPodRecord,
  writePodRecord,
} from '../overrides/override-record.ts';
import { askForOwners, identitiesOfPod } from '../overrides/owners.ts';
import { type OverrideRefusal, type PlannedRule, planRules } from '../overrides/planned-rules.ts';
import { podWithOverrides, rulesForRunningPod } from '../overrides/running-pod.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import { withAccountFiles } from './account-files.ts';
import { APPLIED_ANNOTATION, appliedAtCreation, isApplied } from './applied.ts';
import type { Hold } from './hold.ts';
import { type MemberUpdate, memberUpdates } from './member-updates.ts';
import { ownersNotRead, policiesNotRead } from './override-holds.ts';
import type { DependentsPort, EventPort, OverridesPort } from './pod-ports.ts';
import { overriddenPod } from './render-pod.ts';
import { LAST_RETRY_MS, type Next } from './retry-later.ts';
import { type TranslateContext, translatePod } from './translate.ts';
import { copiedKeys, COPIED_KEYS_ANNOTATION } from './translate-metadata.ts';

export interface PodOverridesOptions {
  /** Undefined: there are no policies. */
  port: OverridesPort | undefined;
  translateContext: (hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode) => TranslateContext;
  dependents: Pick<DependentsPort, 'track'>;
  events: EventPort;
  /** In ms. */
  monotonic?: () => number;
}

/** What passes within a moment is no news, in ms. */
const PATIENCE_MS = 3000;

/** `references`: a pod that refers to the ConfigMaps and Secrets that the host pod does once it is in the member. */
export type NewPod = { pod: Pod; references: Pod } | { hold: Hold } | { wait: string };

/** A running member pod, as far as policies are concerned. `leave`: nothing may be sent to it for now. */
type RunningState =
  | 'leave'
  | {
      /** The host pod that counts: with the overrides on everything that can change. */
      hostPod: Pod;
      /** The annotation that tells what was applied. */
      record: string | undefined;
      refusal: OverrideRefusal | undefined;
    };

interface Remembered {
  memberUid: string | undefined;
  record: string | undefined;
  policies: unknown;
  member: unknown;
  state: RunningState;
}

/**
 * What the host's override policies make of pods: of new ones on their way to the member, and of running ones, which keep
 * the rules they were made with but for policies that say otherwise.
 */
export class PodOverrides {
  readonly #o: PodOverridesOptions;
  readonly #states = new WeakMap<Pod, Remembered>();
  /** Pods that refer to other objects in the member than on the host, by key of the host pod. */
  readonly #references = new Map<string, { uid: string | undefined; spec: Pod['spec'] }>();
  /** What was told of a pod that runs, by key of the host pod. */
  readonly #told = new Map<string, string>();
  /** Since when owners of a new pod cannot be read, by its key. */
  readonly #unread = new Map<string, { uid: string | undefined; since: number }>();

  constructor(options: PodOverridesOptions) {
    this.#o = options;
  }

  /** The pod to create in the member for the translated one. Only an abort is thrown. */
  async forNewPod(hostPod: Pod, translated: Pod, context: TranslateContext, signal: AbortSignal): Promise<NewPod> {
    const made = await this.#overridden(hostPod, translated, context, signal);
    return 'pod' in made ? { ...made, pod: withAccountFiles(made.pod, hostPod) } : made;
  }

  async #overridden(hostPod: Pod, translated: Pod, context: TranslateContext, signal: AbortSignal): Promise<NewPod> {
    const { port } = this.#o;
    if (port === undefined) return { pod: translated, references: hostPod };
    const unknown = port.unknown();
    if (unknown !== undefined) {
      return unknown.problem === undefined
        ? { wait: 'the override policies have not been read yet' }
        : { hold: policiesNotRead(unknown.problem) };
    }
    const policies = port.policies(hostPod.metadata.namespace ?? '');
    let owners: OverrideSubject['identities'] | undefined;
    try {
      if (askForOwners(policies)) owners = await port.readOwners(hostPod, signal);
    } catch (error) {
      signal.throwIfAborted();
      return this.#withoutOwners(hostPod, error);
    }
    this.#unread.delete(keyOf(hostPod));
    const inputs = { policies, owners, member: port.member(), pool: port.pool() };
    const rendered = overriddenPod(hostPod, translated, context, inputs);
    if ('unknown' in rendered) return { wait: rendered.unknown };
    if ('hold' in rendered) return rendered;
    const { record } = rendered;
    if (record === undefined) return { pod: translated, references: hostPod };
    const counts = podWithOverrides(hostPod, rendered.pod);
    const pod = withAnnotations(rendered.pod, {
      [COPIED_KEYS_ANNOTATION]: copiedKeys(counts),
      [APPLIED_ANNOTATION]: appliedAtCreation(counts),
      [APPLIED_OVERRIDES_ANNOTATION]: record,
    });
    this.#noteReferences(hostPod, pod);
    return { pod, references: this.referring(hostPod) };
  }

  #withoutOwners(hostPod: Pod, error: unknown): NewPod {
    const key = keyOf(hostPod);
    const { uid } = hostPod.metadata;
    const now = (this.#o.monotonic ?? monotonic)();
    const before = this.#unread.get(key);
    const since = before?.uid === uid ? (before?.since ?? now) : now;
    this.#unread.set(key, { uid, since });
    if (now - since < PATIENCE_MS) return { wait: 'the owners of the pod cannot be read' };
    return { hold: ownersNotRead(describeError(error)) };
  }

  /**
   * To be called before anything is asked about a running pod: reads what has to be read, and tells what is refused. Answers when
   * to call it again, if something could not be read.
   */
  async prepare(hostPod: Pod, memberPod: Pod, signal: AbortSignal): Promise<Next> {
    const { port, dependents, events } = this.#o;
    if (port === undefined || port.unknown() !== undefined) return undefined;
    const policies = port.policies(hostPod.metadata.namespace ?? '');
    let again: Next;
    if (askForOwners(policies.filter(isForRunningPods)) && port.owners(hostPod) === undefined) {
      try {
        await port.readOwners(hostPod, signal);
      } catch {
        signal.throwIfAborted();
        // Until then the pod stays as it is.
        again = { requeueAfterMs: LAST_RETRY_MS };
      }
    }
    const key = keyOf(hostPod);
    const references = this.#references.get(key);
    const state = this.#stateOf(hostPod, memberPod);
    if (this.#references.get(key) !== references) dependents.track(hostPod, this.referring(hostPod));
    const refusal = state === 'leave' ? undefined : state.refusal;
    if (refusal === undefined) this.#told.delete(key);
    else if (this.#told.get(key) !== refusal.message) {
      this.#told.set(key, refusal.message);
      const message = `The pod keeps running as it is. ${refusal.message}`;
      events.record(podSubject(hostPod), 'Warning', 'OverrideRefused', message);
    }
    return again;
  }

  /** The member pod has received everything. */
  isInSync(hostPod: Pod, memberPod: Pod): boolean {
    const state = this.#stateOf(hostPod, memberPod);
    return state !== 'leave' && received(state, memberPod);
  }

  /** Something has to be sent to the member pod. */
  isOutdated(hostPod: Pod, memberPod: Pod): boolean {
    const state = this.#stateOf(hostPod, memberPod);
    return state !== 'leave' && !received(state, memberPod);
  }

  /** What to send to a running member pod, see memberUpdates. The last one also says what was applied. */
  updates(hostPod: Pod, memberPod: Pod, context: TranslateContext): MemberUpdate[] {
    const state = this.#stateOf(hostPod, memberPod);
    if (state === 'leave') return [];
    const updates = memberUpdates(state.hostPod, memberPod, context);
    if (state.record === recordOf(memberPod)) return updates;
    const record = { [APPLIED_OVERRIDES_ANNOTATION]: state.record ?? null };
    const last = updates.at(-1);
    if (last === undefined) {
      const metadata = { uid: memberPod.metadata.uid, annotations: record };
      return [{ kind: 'patch', type: 'strategic', patch: { metadata } }];
    }
    const metadata = last.patch['metadata'] as { annotations?: Record<string, unknown> };
    const annotations = { ...metadata.annotations, ...record };
    return [...updates.slice(0, -1), { ...last, patch: { ...last.patch, metadata: { ...metadata, annotations } } }];
  }

  /** A pod with the references that the host pod has in the member. */
  referring(hostPod: Pod): Pod {
    const known = this.#references.get(keyOf(hostPod));
    if (known === undefined || known.uid !== hostPod.metadata.uid) return hostPod;
    const { ephemeralContainers } = hostPod.spec;
    return {
      ...hostPod,
      spec: { ...known.spec, ...(ephemeralContainers === undefined ? {} : { ephemeralContainers }) },
    };
  }

  forget(key: string): void {
    this.#references.delete(key);
    this.#told.delete(key);
    this.#unread.delete(key);
  }

  #noteReferences(hostPod: Pod, rendered: Pod): void {
    const key = keyOf(hostPod);
    const wanted = findReferences(rendered);
    if (jsonEqual(findReferences(hostPod), wanted)) this.#references.delete(key);
    else if (!jsonEqual(findReferences(this.referring(hostPod)), wanted)) {
      this.#references.set(key, { uid: hostPod.metadata.uid, spec: rendered.spec });
    }
  }

  #stateOf(hostPod: Pod, memberPod: Pod): RunningState {
    const { port } = this.#o;
    const record = recordOf(memberPod);
    if (port === undefined) return { hostPod, record, refusal: undefined };
    if (port.unknown() !== undefined) return 'leave';
    const policies = port.policies(hostPod.metadata.namespace ?? '');
    if (policies.length === 0 && record === undefined) return { hostPod, record, refusal: undefined };
    const member = port.member();
    const memberUid = memberPod.metadata.uid;
    const known = this.#states.get(hostPod);
    const same = known?.memberUid === memberUid && known?.record === record;
    if (known !== undefined && same && known.policies === policies && known.member === member) return known.state;
    const state = this.#evaluate(hostPod, memberPod, port);
    // Owners that are not known yet will be.
    if (state !== 'leave') this.#states.set(hostPod, { memberUid, record, policies, member, state });
    return state;
  }

  #evaluate(hostPod: Pod, memberPod: Pod, port: OverridesPort): RunningState {
    const text = recordOf(memberPod);
    const record = readPodRecord(text);
    if (record === 'unreadable') return 'leave';
    const recorded = record === 'none' ? [] : record.rules;
    const plan = this.#planFor(hostPod, recorded, port);
    if (plan === 'leave') return 'leave';
    const rendered = this.#render(hostPod, memberPod, plan.rules, port);
    if (rendered === 'leave') return 'leave';
    if ('refused' in rendered) {
      const before = plan.rules === recorded ? rendered : this.#render(hostPod, memberPod, recorded, port);
      if (before === 'leave' || 'refused' in before) return 'leave';
      return { ...before, record: text, refusal: rendered.refused };
    }
    const unchanged = record !== 'none' && sameRules(plan.rules, record);
    return { ...rendered, ...(unchanged ? { record: text } : {}), refusal: plan.refusal };
  }

  /** The rules that count for a running pod. A plan that is refused leaves it with those it was made with. */
  #planFor(
    hostPod: Pod,
    recorded: readonly PlannedRule[],
    port: OverridesPort,
  ): 'leave' | { rules: readonly PlannedRule[]; refusal: OverrideRefusal | undefined } {
    const policies = port.policies(hostPod.metadata.namespace ?? '');
    const following = policies.filter(isForRunningPods);
    const followed = following.length > 0 || recorded.some(({ applyTo }) => applyTo === 'RunningPods');
    if (!followed) return { rules: recorded, refusal: undefined };
    const owners = askForOwners(following) ? port.owners(hostPod) : selfOf(hostPod);
    if (owners === undefined) return 'leave';
    const { subject, member } = contextOf(hostPod, owners, port);
    const plan = planRules(subject, following, member);
    if ('rules' in plan) return { rules: rulesForRunningPod(recorded, plan.rules, policies), refusal: undefined };
    return { rules: recorded, refusal: 'refused' in plan ? plan.refused : undefined };
  }

  #render(
    hostPod: Pod,
    memberPod: Pod,
    rules: readonly PlannedRule[],
    port: OverridesPort,
  ): 'leave' | { refused: OverrideRefusal } | { hostPod: Pod; record: string | undefined } {
    if (rules.length === 0) return { hostPod, record: undefined };
    const context = this.#o.translateContext(hostPod, memberPod.metadata.namespace ?? '', madeInMode(memberPod));
    // The class of a copy cannot change, so a new mapping is not for it; but its rules may name the path.
    const podPriority = { classes: [], default: memberPod.spec.priorityClassName ?? 'none' };
    const translation = translatePod(hostPod, { ...context, podPriority });
    if (translation.kind === 'refused') return 'leave';
    const { ephemeralContainers } = hostPod.spec;
    const { pod } = translation;
    const translated = ephemeralContainers === undefined ? pod : { ...pod, spec: { ...pod.spec, ephemeralContainers } };
    const outcome = applyRules(translated, rules, contextOf(hostPod, selfOf(hostPod), port));
    if ('refused' in outcome) return outcome;
    const record = writePodRecord(outcome.applied);
    if (typeof record === 'object') return 'leave';
    this.#noteReferences(hostPod, outcome.object);
    return { hostPod: podWithOverrides(hostPod, outcome.object), record };
  }
}

function recordOf(memberPod: Pod): string | undefined {
  return memberPod.metadata.annotations?.[APPLIED_OVERRIDES_ANNOTATION];
}

function received({ hostPod, record }: Exclude<RunningState, 'leave'>, memberPod: Pod): boolean {
  return record === recordOf(memberPod) && isApplied(hostPod, memberPod);
}

function sameRules(rules: readonly PlannedRule[], record: PodRecord): boolean {
  return (
    hashOfRules(rules) === record.hash && rules.every(({ applyTo }, index) => record.rules[index]?.applyTo === applyTo)
  );
}

function isForRunningPods({ spec }: OverridePolicy): boolean {
  return spec.applyTo === 'RunningPods';
}

function selfOf(hostPod: Pod): OverrideSubject['identities'] {
  return [identitiesOfPod(hostPod)[0]];
}

function contextOf(hostPod: Pod, identities: OverrideSubject['identities'], port: OverridesPort): OverrideContext {
  const { namespace = '' } = hostPod.metadata;
  return { subject: { namespace, identities }, member: port.member(), pool: port.pool() };
}

function withAnnotations(pod: Pod, annotations: Record<string, string>): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, ...annotations } } };
}
