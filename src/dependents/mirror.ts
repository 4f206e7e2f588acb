import type { Invariants } from '../api/invariants.ts';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { HOST_NAMESPACE_ANNOTATION, MIRRORED_CONDITION } from '../api/marks.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod } from '../kube/core-v1.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isPermanent } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { atMost } from '../kube/lru-limit.ts';
import { keyOf } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { type CopyOwner, isOfOther, OTHERS_AGAIN_MS } from './copy-owner.ts';
import { type CopyRecord, type DependentCopy, isDependent } from './copy.ts';
import { type CopyAction, decideCopy } from './copy-decision.ts';
import type { Knowledge } from './copy-informers.ts';
import { CopyOverrides, type CopyOverridesPort } from './copy-overrides.ts';
import { type Again, CopyWriter, type CopyWriterOptions, isCopyFor } from './copy-writer.ts';
import { type Entry, entryKeyOf, type Failure } from './entry.ts';
import { Entries } from './entries.ts';
import { MemberUses, type MemberPods } from './member-uses.ts';
import type { HostObjectSource, HostRef } from './host-objects.ts';
import type { CopyStore } from './member-copies.ts';
import type { DependentKind } from '../pods/references.ts';
import { withoutSecretValues } from './secret-words.ts';
import { ownerOfTokens } from './token-secret.ts';
import { notFollowed, optionalMissing, pullSecretUnread, type Readiness, type Standing, verdictOf } from './verdict.ts';

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
  /** Default: not counted. */
  invariants?: Invariants;
  logger: Logger;
  queueMetrics?: WorkQueueMetrics;
  /** Milliseconds. */
  monotonic?: () => number;
}

const UNUSED = 'unused:';
const KEEP_MS = 5_000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 60_000;
/** A copy that was made counts as there for so long although the cache has not shown it. */
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
  readonly #entries: Entries;
  readonly #queue: WorkQueue;
  readonly #writer: CopyWriter;
  readonly #overrides: CopyOverrides;
  readonly #uses: MemberUses;
  /** UIDs of copies that were deleted, which the cache may still show. */
  readonly #removed = new LRUCache<string, true>(atMost(10_000));
  /** Entries that wait until their place in the member is known. */
  readonly #awaiting = new Map<string, Set<string>>();
  #complete = false;

  constructor(options: DependentsMirrorOptions) {
    this.#o = options;
    this.#monotonic = options.monotonic ?? monotonic;
    this.#overdueMs = options.overdueMs ?? 4_000;
    this.#keepMs = options.keepMs ?? KEEP_MS;
    this.#overrides = new CopyOverrides(options.overrides);
    this.#writer = new CopyWriter({
      ...options,
      overrides: this.#overrides,
      takenRetryMs: options.takenRetryMs ?? 15_000,
    });
    this.#uses = new MemberUses(options.hostId, options.memberPods, this.#monotonic);
    this.#queue = new WorkQueue({
      name: `dependents-${options.member}`,
      concurrency: 8,
      handler: (key, signal) => this.#handle(key, signal),
      backoff: { baseMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS },
      logger: options.logger,
      ...(options.queueMetrics === undefined ? {} : { metrics: options.queueMetrics }),
    });
    this.#entries = new Entries({
      objects: options.objects,
      placeOf: (pod) => options.placeOf?.(pod) ?? options.namespaces.memberNamespaceOf(pod.metadata.namespace ?? ''),
      changed: (entryKey) => this.#queue.add(entryKey),
      unused: (entryKey) => this.#queue.addAfter(entryKey, this.#keepMs),
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
    this.#entries.stop();
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
    this.#entries.track(pod, mirrored === true, rendered);
  }

  /**
   * Whether all that the pod refers to is in the member, as far as the caches know. If not, why; {@link
   * DependentsMirrorOptions.onReady} is called when the answer may have changed.
   */
  require(pod: Pod, rendered?: Pod): Readiness {
    const podKey = keyOf(pod);
    const missing: { entry: Entry; reason: string; message: string }[] = [];
    let answer: Readiness = { ready: true };
    for (const { entry, optional, pulling, byPolicy } of this.#entries.track(pod, true, rendered)) {
      const standing = this.#standing(entry);
      if (standing.is === 'unreadable' && pulling && byPolicy) {
        missing.push({ entry, ...pullSecretUnread(entry.namespace, entry.name, standing.problem) });
        continue;
      }
      const verdict = verdictOf(standing, {
        ...entry,
        optional,
        byPolicy,
        member: this.#o.member,
        memberNamespace: entry.memberNamespace ?? '',
        overdue: this.#isOverdue(entry),
      });
      if (standing.is === 'absent' && optional) {
        missing.push({ entry, ...optionalMissing(entry.kind, entry.namespace, entry.name) });
      }
      if (verdict === undefined) continue;
      entry.waiting.add(podKey);
      // What users can do something about comes first.
      if (answer.ready || (answer.pending && !verdict.pending)) answer = verdict;
    }
    if (answer.ready) this.#reportMissing(pod, missing);
    return answer;
  }

  /** The pod is gone. Copies that it was the last to need are removed after a moment. */
  release(podKey: string): void {
    this.#entries.release(podKey);
  }

  /** Override policies, or what they know of the member, changed: every copy is looked at again. */
  overridesChanged(): void {
    for (const entryKey of this.#entries.keys()) this.#queue.add(entryKey);
  }

  /** All pods that could need a copy have been tracked: what nobody needs is garbage from now on. */
  setComplete(): void {
    this.#complete = true;
    for (const entryKey of this.#entries.keys()) this.#queue.add(entryKey);
    for (const copy of this.#o.copies.values()) this.#copySeen(copy);
  }

  /** Names that `envFrom` of the object defines, as far as the host's object is known. */
  environmentKeys(kind: DependentKind, hostNamespace: string, name: string): string[] {
    const ref = { kind, namespace: hostNamespace, name };
    const entry = this.#entries.get(ref, this.#o.namespaces.memberNamespaceOf(hostNamespace)) ?? this.#entries.any(ref);
    const host = entry?.source.current();
    if (host?.state !== 'present' || !('data' in host.object)) return [];
    const { data } = host.object;
    return typeof data === 'object' && data !== null ? Object.keys(data) : [];
  }

  #decide(entry: Entry): CopyAction {
    const { memberNamespace } = entry;
    const found =
      memberNamespace === undefined ? undefined : this.#o.copies.get(entry.kind, memberNamespace, entry.name);
    const copy = found !== undefined && isCopyFor(found, entry.namespace, this.#o.hostId) ? found : undefined;
    if (copy !== undefined && this.#removed.has(copy.metadata.uid ?? '')) return { do: 'nothing', because: 'leaving' };
    const action = decideCopy({
      wanted: entry.wanting.size > 0,
      host: entry.source.current(),
      copy,
      planFor: (object) => this.#overrides.planFor(entry.kind, object),
      isOthers: (there) =>
        isOfOther(there, this.#o) && !this.#uses.hasOnly({ ...entry, namespace: memberNamespace ?? '' }, entry.users),
    });
    const justMade = entry.madeAt !== undefined && this.#monotonic() - entry.madeAt < MADE_MS;
    return action.do === 'create' && justMade ? { do: 'nothing', because: 'unknown' } : action;
  }

  #standing(entry: Entry): Standing {
    const standing = this.#standingOf(entry);
    if (standing.is !== 'pending') entry.pendingSince = undefined;
    else if (entry.pendingSince === undefined) {
      entry.pendingSince = this.#monotonic();
      this.#queue.addAfter(entry.key, this.#overdueMs);
    }
    return standing;
  }

  #standingOf(entry: Entry): Standing {
    const host = entry.source.current();
    if (host.state === 'unknown' && host.problem !== undefined) return { is: 'unreadable', problem: host.problem };
    const place = this.#knowledgeOf(entry);
    if (!place.known) {
      return place.problem === undefined ? { is: 'pending' } : { is: 'not-copied', problem: place.problem };
    }
    const action = this.#decide(entry);
    if (action.do === 'nothing') {
      if (action.because === 'current') return { is: 'ready' };
      if (action.because === 'absent') return { is: 'absent' };
      if (action.because === 'refused') return { is: 'token' };
      if (action.because === 'others') return { is: 'others' };
      if (action.because === 'overrides-refused') return { is: 'overrides-refused', problem: action.message };
    }
    if (entry.taken) return { is: 'taken' };
    if (entry.failure === undefined) return { is: 'pending' };
    return { is: 'not-copied', problem: entry.failure.words, permanent: entry.failure.permanent };
  }

  #isOverdue({ pendingSince }: Entry): boolean {
    return pendingSince !== undefined && this.#monotonic() - pendingSince >= this.#overdueMs;
  }

  #reportMissing(pod: Pod, missing: readonly { entry: Entry; reason: string; message: string }[]): void {
    for (const { entry, reason, message } of missing) {
      if (!this.#entries.isNews(keyOf(pod), entry)) continue;
      this.#o.events.record(podSubject(pod), 'Warning', reason, message);
    }
  }

  #copySeen(copy: CopyRecord): void {
    // Those belong to PodTokens and MemberClaims.
    if (ownerOfTokens(copy) !== undefined || !isDependent(copy)) return;
    const entry = this.#entryOfCopy(copy);
    if (entry !== undefined) {
      entry.madeAt = undefined;
      this.#queue.add(entry.key);
    } else if (this.#complete) {
      // A successor of its pod may come in a moment.
      this.#queue.addAfter(UNUSED + entryKeyOf(placeOf(copy)), this.#keepMs);
    }
  }

  /** The entry whose copy this is: made for its namespace, and where its pods are. */
  #entryOfCopy({ kind, metadata }: DependentCopy): Entry | undefined {
    const namespace = metadata.annotations?.[HOST_NAMESPACE_ANNOTATION] ?? '';
    return this.#entries.get({ kind, namespace, name: metadata.name }, metadata.namespace);
  }

  /** What is known of the place where the entry's copy belongs; of one that may never be, everything. */
  #knowledgeOf({ kind, memberNamespace }: Entry): Knowledge {
    return memberNamespace === undefined ? { known: true } : this.#o.copies.knowledge(kind, memberNamespace);
  }

  #placeKnown(kind: DependentKind, namespace: string): void {
    const place = placeKeyOf(kind, namespace);
    const awaiting = this.#awaiting.get(place) ?? [];
    this.#awaiting.delete(place);
    for (const entryKey of awaiting) this.#queue.add(entryKey);
  }

  /** Its copy may be there or not: looks again as soon as that is known, or to tell what keeps it from being known. */
  #await(entry: Entry): Again {
    const place = placeKeyOf(entry.kind, entry.memberNamespace ?? '');
    const awaiting = this.#awaiting.get(place) ?? new Set();
    this.#awaiting.set(place, awaiting.add(entry.key));
    this.#wake(entry);
    return { requeueAfterMs: this.#overdueMs };
  }

  async #handle(key: string, signal: AbortSignal): Promise<Again> {
    if (this.#o.mayWrite?.() === false) return { requeueAfterMs: 1_000 };
    if (key.startsWith(UNUSED)) return await this.#handleUnused(key.slice(UNUSED.length), signal);
    const entry = this.#entries.byKey(key);
    if (entry === undefined) return undefined;
    if (entry.users.size === 0) {
      this.#forget(entry);
      return undefined;
    }
    if (!this.#knowledgeOf(entry).known) return this.#await(entry);
    const action = this.#decide(entry);
    try {
      const again = await this.#writer.perform(entry, action, signal);
      if (action.do === 'delete' && again === undefined) this.#removed.set(action.copy.metadata.uid ?? '', true);
      entry.failure = undefined;
      entry.failures = 0;
      if (action.do === 'create' && again === undefined) {
        entry.madeAt = this.#monotonic();
        return { requeueAfterMs: MADE_MS };
      }
      // An object that cannot be read gives no sign when the reason changes.
      return again ?? (entry.source.current().state === 'unknown' ? { requeueAfterMs: this.#overdueMs } : undefined);
    } catch (error) {
      signal.throwIfAborted();
      // Not thrown on: what the member said may repeat a value.
      return this.#failed(entry, action, { words: this.#words(entry, error), permanent: isPermanent(error) });
    } finally {
      this.#wake(entry);
    }
  }

  #forget(entry: Entry): void {
    this.#entries.forget(entry);
    const { memberNamespace: namespace } = entry;
    if (namespace !== undefined) this.#queue.add(UNUSED + entryKeyOf({ ...entry, namespace }));
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
    if (again === undefined) this.#removed.set(copy.metadata.uid ?? '', true);
    return again;
  }

  #failed(entry: Entry, action: CopyAction, failure: Failure): Again {
    const { kind, namespace, name, memberNamespace = '' } = entry;
    const { member, logger, events } = this.#o;
    const isNews = failure.words !== entry.failure?.words;
    logger[isNews ? 'warn' : 'debug']({ kind, namespace, name, member }, `not copied to the member: ${failure.words}`);
    if (isNews && action.do === 'replace') {
      const { uid = '' } = action.from.metadata;
      const { reason, message } = notFollowed({ kind, name, memberNamespace, member }, failure);
      events.record({ apiVersion: 'v1', kind, namespace, name, uid }, 'Warning', reason, message);
    }
    entry.failure = failure;
    const backoff = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(entry.failures, 16));
    entry.failures += 1;
    return { requeueAfterMs: Math.round(backoff * (0.5 + Math.random() / 2)) };
  }

  /** Lets the pods look again that were told to wait, once there is something new to tell them. */
  #wake(entry: Entry): void {
    if (this.#standing(entry).is === 'pending' && !this.#isOverdue(entry)) return;
    const waiting = [...entry.waiting];
    entry.waiting.clear();
    for (const podKey of waiting) this.#o.onReady(podKey);
  }

  #words(entry: Entry, error: unknown): string {
    const host = entry.source.current();
    const secret = entry.kind === 'Secret' && host.state === 'present' ? host.object : undefined;
    return describeError(error, (text) => withoutSecretValues(text, secret)).replace(/\.$/, '');
  }
}

function placeKeyOf(kind: DependentKind, memberNamespace: string): string {
  return `${kind}/${memberNamespace}`;
}

function placeOf({ kind, metadata }: DependentCopy): HostRef {
  return { kind, namespace: metadata.namespace ?? '', name: metadata.name };
}
