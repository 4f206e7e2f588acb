import type { Invariants } from '../api/invariants.ts';
import type { Logger } from 'pino';
import { HOST_NAMESPACE_ANNOTATION, MIRRORED_CONDITION } from '../api/marks.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod } from '../kube/core-v1.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isPermanent } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { keyOf } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { type CopyOwner, isOfOther, OTHERS_AGAIN_MS } from './copy-owner.ts';
import { type CopyRecord, type DependentCopy, isDependent } from './copy.ts';
import type { CopyAction } from './copy-decision.ts';
import { CopyOverrides, type CopyOverridesPort } from './copy-overrides.ts';
import { CopyStates } from './copy-states.ts';
import { type Again, CopyWriter, type CopyWriterOptions } from './copy-writer.ts';
import { type Dependent, dependentKeyOf, type Failure } from './dependent.ts';
import { DependentIndex } from './dependent-index.ts';
import { MemberUses, type MemberPods } from './member-uses.ts';
import type { HostObjectSource, HostRef } from './host-objects.ts';
import type { CopyStore } from './member-copies.ts';
import type { DependentKind } from '../pods/references.ts';
import { withoutSecretValues } from './secret-words.ts';
import { ownerOfTokens } from './token-secret.ts';
import {
  notFollowed,
  optionalMissing,
  pullSecretUnread,
  type Readiness,
  type CopyState,
  notReady,
} from './readiness.ts';

export interface DependentsMirrorOptions extends CopyOwner {
  /** Objects of the host; shared by the mirrors of all members, run by their owner. */
  objects: HostObjectSource;
  copies: CopyStore;
  hostId: string;
  namespaces: CopyWriterOptions['namespaces'] & {
    /** Where objects of a host namespace are in the member; undefined where they may never be. No calls. */
    memberNamespaceOf(hostNamespace: string): string | undefined;
  };
  /** The namespace of the member in which the copy of a pod is; undefined: there is none. Default: new pods' place. */
  placeOf?: (pod: Pod) => string | undefined;
  events: Pick<EventRecorder, 'record'>;
  /** A pod that was not ready may be so now, or for another reason. */
  onReady: (podKey: string) => void;
  /** False while nothing at all may be written to the member (lease not held, identity changed). Default: always true. */
  mayWrite?: () => boolean;
  /**
   * The member's pods. Those that are ours keep the copies they use even if their host pod is not known, because its
   * virtual node is not run any more, say.
   */
  memberPods?: MemberPods;
  /** Default: there are no override policies. */
  overrides?: CopyOverridesPort;
  /** How long a copy that nobody needs any more is kept for a successor of the pod; 5,000 ms. */
  keepMs?: number;
  /** How long until a name that a stranger has is looked at again; 15,000 ms. */
  takenRetryMs?: number;
  /** How long a copy may be on its way before users are told; 4,000 ms. */
  overdueMs?: number;
  /**
   * How long a copy that was made counts as there although the cache has not shown it, and one that was deleted as gone although it
   * does; 10,000 ms.
   */
  madeMs?: number;
  /** Default: not counted. */
  invariants?: Invariants;
  logger: Logger;
  queueMetrics?: WorkQueueMetrics | undefined;
  /** Milliseconds. */
  monotonic?: () => number;
}

const UNUSED = 'unused:';
const KEEP_MS = 5_000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 60_000;
const MADE_MS = 10_000;

/**
 * Keeps, in one member, copies of exactly those ConfigMaps and Secrets of the host that pods there refer to: made before
 * the pod, following every change, removed after the last pod. All virtual nodes of the member share them. Objects that
 * do not carry our label are never written to. Level-triggered: one key per object, caches on both sides.
 */
export class DependentsMirror {
  readonly #o: DependentsMirrorOptions;
  readonly #monotonic: () => number;
  readonly #keepMs: number;
  readonly #overdueMs: number;
  readonly #dependents: DependentIndex;
  readonly #queue: WorkQueue;
  readonly #writer: CopyWriter;
  readonly #states: CopyStates;
  readonly #uses: MemberUses;
  /** Dependents that wait until their place in the member is known. */
  readonly #awaiting = new Map<string, Set<string>>();
  #complete = false;

  constructor(options: DependentsMirrorOptions) {
    this.#o = options;
    this.#monotonic = options.monotonic ?? monotonic;
    this.#overdueMs = options.overdueMs ?? 4_000;
    this.#keepMs = options.keepMs ?? KEEP_MS;
    const overrides = new CopyOverrides(options.overrides);
    this.#writer = new CopyWriter({
      ...options,
      overrides,
      takenRetryMs: options.takenRetryMs ?? 15_000,
    });
    this.#uses = new MemberUses(options.hostId, options.memberPods, this.#monotonic);
    this.#states = new CopyStates({
      ...options,
      overrides,
      uses: this.#uses,
      madeMs: options.madeMs ?? MADE_MS,
      monotonic: this.#monotonic,
    });
    this.#queue = new WorkQueue({
      name: `dependents-${options.member}`,
      concurrency: 8,
      handler: (key, signal) => this.#handle(key, signal),
      backoff: { baseMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS },
      logger: options.logger,
      metrics: options.queueMetrics,
    });
    this.#dependents = new DependentIndex({
      objects: options.objects,
      placeOf: (pod) => options.placeOf?.(pod) ?? options.namespaces.memberNamespaceOf(pod.metadata.namespace ?? ''),
      changed: (dependentKey) => this.#queue.add(dependentKey),
      unused: (dependentKey) => this.#queue.addAfter(dependentKey, this.#keepMs),
    });
    options.copies.on(
      (copy) => this.#copySeen(copy),
      (kind, namespace) => {
        if (kind !== 'PersistentVolumeClaim') this.#placeKnown(kind, namespace);
      },
    );
  }

  /** Works until the signal aborts, then lets go of the host's objects. What is in the member stays. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#o.copies.run(signal), this.#queue.run(signal)]);
    this.#dependents.stop();
  }

  /**
   * Notes what a pod refers to, so that it is followed and kept. To be called for every host pod of the member's virtual
   * nodes as soon as it is seen, also for those that run already, and again when it changed. `rendered` is the pod as it
   * refers to objects in the member.
   */
  track(pod: Pod, rendered?: Pod): void {
    const mirrored = pod.status?.conditions?.some(
      ({ type, status }) => type === MIRRORED_CONDITION && status === 'True',
    );
    this.#dependents.track(pod, mirrored === true, rendered);
  }

  /**
   * Whether all that the pod refers to is in the member, as far as the caches know. If not, why; {@link
   * DependentsMirrorOptions.onReady} is called when the answer may have changed.
   */
  require(pod: Pod, rendered?: Pod): Readiness {
    const podKey = keyOf(pod);
    const missing: { dependent: Dependent; reason: string; message: string }[] = [];
    let answer: Readiness = { ready: true };
    for (const { dependent, optional, pulling, byPolicy } of this.#dependents.track(pod, true, rendered)) {
      const state = this.#state(dependent);
      if (state.is === 'unreadable' && pulling && byPolicy) {
        missing.push({ dependent, ...pullSecretUnread(dependent.namespace, dependent.name, state.problem) });
        continue;
      }
      const unready = notReady(state, {
        ...dependent,
        optional,
        byPolicy,
        member: this.#o.member,
        memberNamespace: dependent.memberNamespace ?? '',
        overdue: this.#isOverdue(dependent),
      });
      if (state.is === 'absent' && optional) {
        missing.push({ dependent, ...optionalMissing(dependent.kind, dependent.namespace, dependent.name) });
      }
      if (unready === undefined) continue;
      dependent.waiting.add(podKey);
      // What users can do something about comes first.
      if (answer.ready || (answer.pending && !unready.pending)) answer = unready;
    }
    if (answer.ready) this.#reportMissing(pod, missing);
    return answer;
  }

  /** The pod is gone. Copies that it was the last to need are removed after a moment. */
  release(podKey: string): void {
    this.#dependents.release(podKey);
  }

  /** Override policies, or what they know of the member, changed: every copy is looked at again. */
  overridesChanged(): void {
    for (const dependentKey of this.#dependents.keys()) this.#queue.add(dependentKey);
  }

  /** All pods that could need a copy have been tracked: what nobody needs is garbage from now on. */
  setComplete(): void {
    this.#complete = true;
    for (const dependentKey of this.#dependents.keys()) this.#queue.add(dependentKey);
    for (const copy of this.#o.copies.values()) this.#copySeen(copy);
  }

  /** Whether a pod of ours in the member refers to the copy of that name there. True while it is not known. */
  isInUse(kind: DependentKind, memberNamespace: string, name: string): boolean {
    return this.#uses.has({ kind, namespace: memberNamespace, name });
  }

  /** Names that `envFrom` of the object defines, as far as the host's object is known. */
  environmentKeys(kind: DependentKind, hostNamespace: string, name: string): string[] {
    const ref = { kind, namespace: hostNamespace, name };
    const dependent =
      this.#dependents.get(ref, this.#o.namespaces.memberNamespaceOf(hostNamespace)) ?? this.#dependents.any(ref);
    const host = dependent?.source.current();
    if (host?.state !== 'present' || !('data' in host.object)) return [];
    const { data } = host.object;
    return typeof data === 'object' && data !== null ? Object.keys(data) : [];
  }

  #state(dependent: Dependent): CopyState {
    const state = this.#states.of(dependent);
    if (state.is !== 'pending') dependent.pendingSince = undefined;
    else if (dependent.pendingSince === undefined) {
      dependent.pendingSince = this.#monotonic();
      this.#queue.addAfter(dependent.key, this.#overdueMs);
    }
    return state;
  }

  #isOverdue({ pendingSince }: Dependent): boolean {
    return pendingSince !== undefined && this.#monotonic() - pendingSince >= this.#overdueMs;
  }

  #reportMissing(pod: Pod, missing: readonly { dependent: Dependent; reason: string; message: string }[]): void {
    for (const { dependent, reason, message } of missing) {
      if (!this.#dependents.isNews(keyOf(pod), dependent)) continue;
      this.#o.events.record(podSubject(pod), 'Warning', reason, message);
    }
  }

  #copySeen(copy: CopyRecord): void {
    // Those belong to PodTokens and MemberClaims.
    if (ownerOfTokens(copy) !== undefined || !isDependent(copy)) return;
    const dependent = this.#entryOfCopy(copy);
    if (dependent !== undefined) {
      dependent.madeAt = undefined;
      this.#queue.add(dependent.key);
    } else if (this.#complete) {
      // A successor of its pod may come in a moment.
      this.#queue.addAfter(UNUSED + dependentKeyOf(placeOf(copy)), this.#keepMs);
    }
  }

  /** The dependent whose copy this is: made for its namespace, and where its pods are. */
  #entryOfCopy({ kind, metadata }: DependentCopy): Dependent | undefined {
    const namespace = metadata.annotations?.[HOST_NAMESPACE_ANNOTATION] ?? '';
    return this.#dependents.get({ kind, namespace, name: metadata.name }, metadata.namespace);
  }

  #placeKnown(kind: DependentKind, namespace: string): void {
    const place = placeKeyOf(kind, namespace);
    const awaiting = this.#awaiting.get(place) ?? [];
    this.#awaiting.delete(place);
    for (const dependentKey of awaiting) this.#queue.add(dependentKey);
  }

  /** Its copy may be there or not: looks again as soon as that is known, or to tell what keeps it from being known. */
  #await(dependent: Dependent): Again {
    const place = placeKeyOf(dependent.kind, dependent.memberNamespace ?? '');
    const awaiting = this.#awaiting.get(place) ?? new Set();
    this.#awaiting.set(place, awaiting.add(dependent.key));
    this.#wake(dependent);
    return { requeueAfterMs: this.#overdueMs };
  }

  async #handle(key: string, signal: AbortSignal): Promise<Again> {
    if (this.#o.mayWrite?.() === false) return { requeueAfterMs: 1_000 };
    if (key.startsWith(UNUSED)) return await this.#handleUnused(key.slice(UNUSED.length), signal);
    const dependent = this.#dependents.byKey(key);
    if (dependent === undefined) return undefined;
    if (dependent.users.size === 0) {
      this.#forget(dependent);
      return undefined;
    }
    if (!this.#states.knowledgeOf(dependent).known) return this.#await(dependent);
    const action = this.#states.decide(dependent);
    try {
      const again = await this.#writer.perform(dependent, action, signal);
      if (action.do === 'delete' && again === undefined) this.#states.removed(action.copy);
      dependent.failure = undefined;
      dependent.failures = 0;
      if (action.do === 'create' && again === undefined) dependent.madeAt = this.#monotonic();
      // Said at each look: of two times to look again the queue keeps the earlier one.
      const behindForMs = this.#states.behindForMs(dependent);
      if (again === undefined && behindForMs > 0) return { requeueAfterMs: behindForMs };
      // An object that cannot be read gives no sign when the reason changes.
      return (
        again ?? (dependent.source.current().state === 'unknown' ? { requeueAfterMs: this.#overdueMs } : undefined)
      );
    } catch (error) {
      signal.throwIfAborted();
      // Not thrown on: what the member said may repeat a value.
      return this.#failed(dependent, action, { words: this.#words(dependent, error), permanent: isPermanent(error) });
    } finally {
      this.#wake(dependent);
    }
  }

  #forget(dependent: Dependent): void {
    this.#dependents.forget(dependent);
    const { memberNamespace: namespace } = dependent;
    if (namespace !== undefined) this.#queue.add(UNUSED + dependentKeyOf({ ...dependent, namespace }));
  }

  /** Removes a copy that no host pod refers to, unless one of our pods in the member still does. */
  async #handleUnused(placeKey: string, signal: AbortSignal): Promise<Again> {
    const [kind, namespace = '', name = ''] = placeKey.split('/');
    if (!this.#complete || (kind !== 'ConfigMap' && kind !== 'Secret')) return undefined;
    const copy = this.#o.copies.get(kind, namespace, name);
    if (copy === undefined || !isDependent(copy)) return undefined;
    if (copy.metadata.deletionTimestamp !== undefined) return undefined;
    if (ownerOfTokens(copy) !== undefined) return undefined;
    if (this.#entryOfCopy(copy) !== undefined) return undefined;
    if (isOfOther(copy, this.#o)) return { requeueAfterMs: OTHERS_AGAIN_MS };
    // Copies are told of while their list is still under way; nothing is removed before it is complete (I7).
    if (!this.#o.copies.knowledge(kind, namespace).known) return { requeueAfterMs: this.#keepMs };
    if (this.#uses.has({ kind, namespace, name })) return { requeueAfterMs: this.#keepMs };
    const again = await this.#writer.remove(copy, signal);
    if (again === undefined) this.#states.removed(copy);
    return again;
  }

  #failed(dependent: Dependent, action: CopyAction, failure: Failure): Again {
    const { kind, namespace, name, memberNamespace = '' } = dependent;
    const { member, logger, events } = this.#o;
    const isNews = failure.words !== dependent.failure?.words;
    logger[isNews ? 'warn' : 'debug']({ kind, namespace, name, member }, `not copied to the member: ${failure.words}`);
    if (isNews && action.do === 'replace') {
      const { uid = '' } = action.from.metadata;
      const { reason, message } = notFollowed({ kind, name, memberNamespace, member }, failure);
      events.record({ apiVersion: 'v1', kind, namespace, name, uid }, 'Warning', reason, message);
    }
    dependent.failure = failure;
    const backoff = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(dependent.failures, 16));
    dependent.failures += 1;
    return { requeueAfterMs: Math.round(backoff * (0.5 + Math.random() / 2)) };
  }

  /** Lets the pods look again that were told to wait, once there is something new to tell them. */
  #wake(dependent: Dependent): void {
    if (this.#state(dependent).is === 'pending' && !this.#isOverdue(dependent)) return;
    const waiting = [...dependent.waiting];
    dependent.waiting.clear();
    for (const podKey of waiting) this.#o.onReady(podKey);
  }

  #words(dependent: Dependent, error: unknown): string {
    const host = dependent.source.current();
    const secret = dependent.kind === 'Secret' && host.state === 'present' ? host.object : undefined;
    return describeError(error, (text) => withoutSecretValues(text, secret)).replace(/\.$/, '');
  }
}

function placeKeyOf(kind: DependentKind, memberNamespace: string): string {
  return `${kind}/${memberNamespace}`;
}

function placeOf({ kind, metadata }: DependentCopy): HostRef {
  return { kind, namespace: metadata.namespace ?? '', name: metadata.name };
}
