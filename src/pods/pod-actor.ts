import type { Logger } from 'pino';
import { InvariantError, type Invariants } from '../api/invariants.ts';
import { MIRRORED_CONDITION, UID_LABEL } from '../api/marks.ts';
import { madeInMode, type ServiceAccountMode } from '../api/service-account-mode.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod, PodStatus } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { conditionOf } from '../kube/conditions.ts';
import { describeError, isForbidden, isNotFound, isPermanent } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/object.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';
import { asOfNow, judgeOrphan, MISSING_GRACE_MS, ownPods } from './collect-pod.ts';
import { createMemberPod } from './create-pod.ts';
import { copyNow, creationHistory } from './creation-history.ts';
import { intentOf, needsIntent, wordsOf } from './creation-intent.ts';
import { isShownIgnored } from './daemon-pod.ts';
import { type Action, creationUnanswered, type Hold } from './decide.ts';
import type { DeletionBreaker } from './deletion-breaker.ts';
import { type AbsenceEvidence, type DeletionEvidence, sourceOf, type StatusSource } from './evidence.ts';
import { holdPatch } from './hold-patch.ts';
import { HostPodChanged, HostStatusWriter } from './host-status-writer.ts';
import { mirroredNamespace, mirroredUid } from './host-status.ts';
import { IntentWriter } from './intent-writer.ts';
import type { OrphanedPods } from './orphaned-pods.ts';
import { newest, type PodMemory } from './pod-memory.ts';
import type { PodMetrics } from './pod-metrics.ts';
import type { PodOverrides } from './pod-overrides.ts';
import { OpenCreations } from './open-creations.ts';
import { PodWrites, refOf } from './pod-writes.ts';
import type {
  DependentsPort,
  EventPort,
  FencingPort,
  MemberPort,
  NamespacesPort,
  ServiceAccountsPort,
  ServicesPort,
} from './pod-ports.ts';
import { isAnotherPod, refusalOf } from './member-refusal.ts';
import { withoutRecord } from './member-updates.ts';
import { slowCreation, tellIfSlow } from './slow-creation.ts';
import { StatusCorrections, statusKey } from './status-corrections.ts';
import { statusPatch } from './status-patch.ts';
import type { TranslateContext } from './translate.ts';

/** When to look at the key again by itself; undefined: when something changes. */
export type Next = { requeueAfterMs: number } | undefined;

export interface PodActorOptions {
  host: KubeClient;
  hostPods: Informer<Pod>;
  member: MemberPort;
  hostId: string;
  nodeName: string;
  namespaces: NamespacesPort;
  dependents: DependentsPort;
  /** Default: no pod has a service account in the member. */
  serviceAccounts?: ServiceAccountsPort;
  services?: ServicesPort;
  fencing: FencingPort;
  overrides: PodOverrides;
  translateContext: (hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode) => TranslateContext;
  events: EventPort;
  metrics: PodMetrics;
  logger: Logger;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
  breaker: DeletionBreaker;
  kept: OrphanedPods;
  invariants: Invariants;
  /** Asks whether the host is still the cluster it was. Default: it is. */
  confirmHost?: () => Promise<boolean>;
  missingGraceMs: number | undefined;
}

/** How long the first report of a pod, and a later step before Running, may be kept back to go with the next one, in ms. */
const FIRST_STATUS_DELAY_MS = 500;
const STEP_STATUS_DELAY_MS = 2000;
/** How long an error of the member that is likely to pass is kept from users, in ms. */
const PATIENCE_MS = 3000;
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 60_000;
const FENCED_FULL: Hold = {
  reason: 'OutOfServiceFull',
  message:
    'The pod stays until its member answers: as many pods as can be remembered were ended there already, whose copies may come back with it.',
};
/** How long a sent DELETE counts as under way, in ms. */
const DELETE_UNDER_WAY_MS = 30_000;

/** Performs exactly one action on one of the two clusters. Errors are thrown: the queue's backoff is the retry. */
export class PodActor {
  readonly openCreations: OpenCreations;
  readonly #o: PodActorOptions;
  readonly #writes: PodWrites;
  readonly #statuses: HostStatusWriter;
  readonly #corrections: StatusCorrections;
  readonly #intents: IntentWriter;

  constructor(options: PodActorOptions) {
    this.#o = options;
    this.openCreations = new OpenCreations(options.monotonic);
    this.#writes = new PodWrites(options);
    this.#corrections = new StatusCorrections(options);
    this.#statuses = new HostStatusWriter({ ...options, writes: this.#writes });
    this.#intents = new IntentWriter({ ...options, statuses: this.#statuses });
  }

  async perform(action: Action, key: string, memory: PodMemory, signal: AbortSignal): Promise<Next> {
    if (action.do === 'nothing') {
      memory.attempts = 0;
      return undefined;
    }
    if (action.do === 'wait') return action.againMs === undefined ? undefined : { requeueAfterMs: action.againMs };
    if (action.do !== 'patch-status') this.#o.metrics.actions.inc({ node: this.#o.nodeName, action: action.do });
    try {
      return await this.#act(action, key, memory, signal);
    } catch (error) {
      if (error instanceof HostPodChanged) return { requeueAfterMs: error.againMs };
      throw error;
    }
  }

  async #act(
    action: Exclude<Action, { do: 'nothing' | 'wait' }>,
    key: string,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    switch (action.do) {
      case 'hold':
        return await this.#hold(key, action.hold, memory, signal, action.againMs);
      case 'look-back':
        return await this.#lookBack(action, key, memory, signal);
      case 'ignore':
        return await this.#corrections.write(action.hostPod, memory, 'ignored', async () => {
          return await this.#statuses.write(action.hostPod, action.patch, { from: 'hold' }, memory, signal);
        });
      case 'create':
        return await this.#create(action.hostPod, key, memory, signal);
      case 'update':
        return await this.#update(action.hostPod, action.memberPod, key, memory, signal);
      case 'delete-member':
        return await this.#deleteMember(
          action.memberPod,
          { of: action.hostPod.metadata.uid ?? '', says: 'deleting' },
          action.gracePeriodSeconds,
          memory,
          signal,
        );
      case 'end-second-copy':
        return await this.#endSecondCopy(action, key, memory, signal);
      case 'collect':
        return await this.#collect(action.memberPod, action.deletionSeen, key, memory, signal);
      case 'patch-status':
        return await this.#patchStatus(action, memory, signal);
      case 'report-lost':
        return await this.#reportLost(action, memory, signal);
      case 'end-fenced':
        return await this.#endFenced(action, memory, signal);
      case 'finish-deletion':
        return await this.#finishDeletion(action, memory, signal);
    }
  }

  async #create(hostPod: Pod, key: string, memory: PodMemory, signal: AbortSignal): Promise<Next> {
    const began = this.#o.monotonic();
    const rehearse = this.#intents.isRehearsed(hostPod, memory);
    const unansweredIn = memory.unanswered === undefined ? undefined : memory.place?.namespace;
    const intend = async (memberPod: Pod): Promise<Pod> => {
      const intended = await this.#intents.write(hostPod, memberPod, memory, signal);
      memory.place = { of: hostPod.metadata.uid ?? '', namespace: memberPod.metadata.namespace ?? '' };
      return intended;
    };
    const options = { ...this.#o, writes: this.#writes, rehearse, unansweredIn, intend };
    const { uid = '' } = hostPod.metadata;
    this.openCreations.begun(uid);
    const creating = createMemberPod(hostPod, options, signal);
    const outcome = await tellIfSlow(creating, async () => await this.#tellSlow(hostPod, key, memory, signal));
    this.openCreations.answered(uid, 'sent' in outcome ? outcome.sent : undefined);
    if ('wait' in outcome) return { requeueAfterMs: 1000 };
    this.#intents.answered(hostPod, outcome.sent, memory);
    if ('hold' in outcome) {
      memory.refusedSince ??= began;
      // What passes within a moment is no news.
      const patience = memory.refusedSince + PATIENCE_MS - this.#o.monotonic();
      if (outcome.hold.reason === 'MemberUnavailable' && patience > 0) return this.#retryLater(memory, patience);
      if (outcome.transient) this.#o.logger.warn({ pod: key, reason: outcome.hold.reason }, outcome.hold.message);
      return await this.#hold(key, outcome.hold, memory, signal);
    }
    memory.attempts = 0;
    delete memory.refusedSince;
    this.#found(hostPod, outcome.created, memory);
    return undefined;
  }

  async #lookBack(
    { hostPod, intent, lost, forgotten }: Extract<Action, { do: 'look-back' }>,
    key: string,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { member, hostId, monotonic } = this.#o;
    const { uid: of = '' } = hostPod.metadata;
    if (!(await member.confirmIdentity(signal))) return { requeueAfterMs: 10_000 };
    const at = monotonic();
    const history = await creationHistory(member.client, intent, { hostId, uid: of }, { monotonic, signal });
    if (history.is === 'present') {
      this.#found(hostPod, history.memberPod, memory);
      return { requeueAfterMs: 1000 };
    }
    if (this.#intents.lookedBack(hostPod, history, memory)) return { requeueAfterMs: 1 };
    if (history.is === 'unclear' && !this.#intents.staysUnclear(memory)) return this.#retryLater(memory);
    // A copy that comes to life yet is to be found, not called lost.
    if (history.is !== 'lost' && memory.unanswered !== undefined) {
      return await this.#hold(key, creationUnanswered(member.name), memory, signal, memory.unanswered.until - at);
    }
    const status = history.is === 'lost' ? lost : forgotten;
    const evidence = { of, how: 'read', at } as const;
    return await this.#tellLost(hostPod, status, { from: 'absence', evidence }, memory, signal);
  }

  /** The creation is open for long: says so, unless the pod says already that the member is slow. Never rejects. */
  async #tellSlow({ metadata: { uid } }: Pod, key: string, memory: PodMemory, signal: AbortSignal): Promise<void> {
    const hold = slowCreation(this.#o.member.name);
    const hostPod = newest(this.#o.hostPods.get(key), memory.host);
    if (hostPod === undefined || hostPod.metadata.uid !== uid || hostPod.metadata.deletionTimestamp !== undefined)
      return;
    // Nothing is written past an intent that is being written.
    if (needsIntent(hostPod) && intentOf(hostPod) === undefined) return;
    // What the last try came to says more; to go back and forth between the two would be two writes for each try.
    if (conditionOf(hostPod, MIRRORED_CONDITION)?.reason === hold.reason) return;
    try {
      // The creation is under way: what is settled by now may be open again before this is written.
      await this.#show(hostPod, hold, memory, signal, false);
    } catch (error) {
      // Whatever has changed tells more, or it is said another time.
      if (error instanceof HostPodChanged) return;
      if (!signal.aborted) this.#o.logger.warn({ pod: key }, `not said on the pod: ${describeError(error)}`);
    }
  }

  /** Says on the host pod why it does not run yet, once per reason and message, and comes back later by itself. */
  async #hold(key: string, hold: Hold, memory: PodMemory, signal: AbortSignal, againMs?: number): Promise<Next> {
    const hostPod = newest(this.#o.hostPods.get(key), memory.host);
    const settled = memory.intent?.open === false && memory.unanswered === undefined;
    const later = hostPod === undefined ? undefined : await this.#show(hostPod, hold, memory, signal, settled);
    return later ?? (againMs === undefined ? this.#retryLater(memory) : { requeueAfterMs: againMs });
  }

  /** `settled`: nothing has come of the intent on the host pod, nor will; it is not shown any more. */
  async #show(hostPod: Pod, hold: Hold, memory: PodMemory, signal: AbortSignal, settled: boolean): Promise<Next> {
    this.#o.metrics.holds.inc({ node: this.#o.nodeName, reason: hold.reason });
    const body = holdPatch(hostPod, hold, new Date(this.#o.clock()).toISOString(), settled);
    if (body === undefined) return undefined;
    const before = conditionOf(hostPod, MIRRORED_CONDITION);
    const write = async (): Promise<Pod> => await this.#statuses.write(hostPod, body, { from: 'hold' }, memory, signal);
    const later = await this.#corrections.write(hostPod, memory, `${hold.reason} ${hold.message}`, write);
    const isNews = before?.reason !== hold.reason || wordsOf(before) !== hold.message;
    if (later === undefined && isNews) this.#event(hostPod, hold);
    return later;
  }

  async #update(hostPod: Pod, memberPod: Pod, key: string, memory: PodMemory, signal: AbortSignal): Promise<Next> {
    const { member, translateContext, dependents, overrides } = this.#o;
    const context = translateContext(hostPod, memberPod.metadata.namespace ?? '', madeInMode(memberPod));
    // An ephemeral container may refer to objects that nothing has needed so far.
    const required = dependents.require(hostPod, overrides.referring(hostPod));
    if (!required.ready) {
      if (!required.pending) this.#event(hostPod, required);
      return this.#retryLater(memory);
    }
    try {
      let current = memberPod;
      let refused: unknown;
      for (const update of overrides.updates(hostPod, memberPod, context)) {
        const sent = refused === undefined ? update : withoutRecord(update, current);
        if (sent === undefined) continue;
        try {
          current = await this.#writes.updateMember(current, sent, signal);
          memory.member = current;
        } catch (error) {
          // What a member does not take of a change keeps the rest of it from nothing.
          if (!(isPermanent(error) || isForbidden(error)) || isAnotherPod(error)) throw error;
          refused ??= error;
        }
      }
      if (refused !== undefined) throw refused;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof InvariantError) throw error;
      if (isAnotherPod(error)) return { requeueAfterMs: 1000 };
      const refusal = refusalOf(error, member.name);
      const reason = refusal.reason === 'MemberUnavailable' ? 'MemberUpdateDelayed' : 'MemberUpdateRefused';
      const message = `The change to the pod did not reach its copy: ${refusal.message}`;
      this.#o.logger.warn({ pod: key, reason }, message);
      this.#event(hostPod, { reason, message });
      return this.#retryLater(memory);
    }
    memory.attempts = 0;
    return undefined;
  }

  async #deleteMember(
    memberPod: Pod,
    evidence: DeletionEvidence,
    gracePeriodSeconds: number | undefined,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const uid = memberPod.metadata.uid ?? '';
    const sent = memory.deleteSent;
    const now = this.#o.monotonic();
    if (sent?.uid === uid && sent.gracePeriodSeconds === gracePeriodSeconds && now - sent.at < DELETE_UNDER_WAY_MS) {
      return { requeueAfterMs: DELETE_UNDER_WAY_MS - (now - sent.at) };
    }
    memory.deleteSent = { uid, gracePeriodSeconds, at: now };
    try {
      await this.#writes.deleteMember(memberPod, evidence, gracePeriodSeconds, signal);
    } catch (error) {
      delete memory.deleteSent;
      // Gone already, or another pod has the name by now: either way the watch will tell.
      if (isAnotherPod(error)) return { requeueAfterMs: 1000 };
      throw error;
    }
    return undefined;
  }

  /** Only while the other one is there, by a read past the cache: at worst both stay until that has caught up. */
  async #endSecondCopy(
    { hostPod, memberPod, second }: Extract<Action, { do: 'end-second-copy' }>,
    key: string,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { member, logger } = this.#o;
    if (!(await member.confirmIdentity(signal))) return { requeueAfterMs: 10_000 };
    const kept = memberPod.metadata.uid ?? '';
    try {
      const { metadata } = await get<Pod>(member.client, PODS, refOf(memberPod), { signal });
      if (metadata.uid !== kept) return { requeueAfterMs: 1000 };
    } catch (error) {
      if (isNotFound(error)) return { requeueAfterMs: 1000 };
      throw error;
    }
    logger.warn({ pod: key, kept: keyOf(memberPod), ended: keyOf(second) }, 'a second copy of the pod is ended');
    const evidence = { of: hostPod.metadata.uid ?? '', says: 'second-copy', kept } as const;
    return await this.#deleteMember(second, evidence, undefined, memory, signal);
  }

  async #collect(
    memberPod: Pod,
    deletionSeen: boolean,
    key: string,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { host, nodeName, hostPods, member, breaker, monotonic, logger, hostId } = this.#o;
    const judged = await judgeOrphan(
      memberPod,
      {
        host,
        nodeName,
        memory,
        deletionSeen,
        hostVersion: () => hostPods.resourceVersion,
        keptBefore: (uid) => this.#o.kept.reasonOf(uid),
        breaker,
        isThere: () => member.pods.get(keyOf(memberPod))?.metadata.uid === memberPod.metadata.uid,
        ownPods: () => ownPods(member, hostId, nodeName),
        missingGraceMs: this.#o.missingGraceMs ?? MISSING_GRACE_MS,
        confirmHost: this.#o.confirmHost ?? (() => Promise.resolve(true)),
        monotonic,
      },
      signal,
    );
    const { uid = '' } = memberPod.metadata;
    const verdict = asOfNow(judged, uid, breaker);
    if (!('kept' in verdict)) this.#o.kept.release(uid);
    if (verdict.delete) {
      return await this.#deleteMember(memberPod, verdict.evidence, verdict.gracePeriodSeconds, memory, signal);
    }
    if ('kept' in verdict) {
      if (this.#o.kept.keep(uid, key, verdict.kept)) {
        this.#o.metrics.orphaned.inc({ node: nodeName });
        const about = { memberPod: keyOf(memberPod), uid: memberPod.metadata.labels?.[UID_LABEL] };
        logger.error(about, `member pod kept: ${verdict.why}`);
      }
      return this.#retryLater(memory);
    }
    return { requeueAfterMs: verdict.againMs };
  }

  async #patchStatus(
    action: Extract<Action, { do: 'patch-status' }>,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { hostPod, memberPod, patch: body } = action;
    const delay = this.#delayOf(hostPod, body, memory);
    if (delay > 0) return { requeueAfterMs: delay };
    delete memory.statusDueSince;
    const source = { from: 'member', status: memberPod.status } as const;
    return await this.#corrections.write(hostPod, memory, statusKey(action.status), async () => {
      this.#o.metrics.actions.inc({ node: this.#o.nodeName, action: 'patch-status' });
      await this.#statuses.write(hostPod, body, source, memory, signal);
      memory.attempts = 0;
    });
  }

  /**
   * Steps on the way to Running come in quick succession and nobody waits for each of them: they are kept back for a
   * moment, so that the first status patch says more than "created" and most pods need only one or two.
   */
  #delayOf(hostPod: Pod, body: Record<string, unknown>, memory: PodMemory): number {
    const status = body['status'] as Record<string, unknown>;
    const underWay = hostPod.status?.phase === 'Pending' && (status['phase'] ?? 'Pending') === 'Pending';
    if (!underWay || hostPod.metadata.deletionTimestamp !== undefined || status['reason'] !== undefined) return 0;
    const now = this.#o.monotonic();
    memory.statusDueSince ??= now;
    const delay = mirroredUid(hostPod) === undefined ? FIRST_STATUS_DELAY_MS : STEP_STATUS_DELAY_MS;
    return memory.statusDueSince + delay - now;
  }

  async #reportLost(
    action: Extract<Action, { do: 'report-lost' }>,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { hostPod, departed } = action;
    const absence = await this.#absenceOf(hostPod, departed, memory, signal);
    if ('again' in absence) return absence.again;
    return await this.#tellLost(hostPod, action.status, sourceOf(departed, absence), memory, signal);
  }

  async #tellLost(
    hostPod: Pod,
    status: PodStatus,
    source: StatusSource,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const body = statusPatch(hostPod, status);
    if (body !== undefined) await this.#statuses.write(hostPod, body, source, memory, signal);
    const { reason = 'MemberPodLost', message = '' } = status;
    if (status.phase === 'Failed') this.#event(hostPod, { reason, message });
    delete memory.created;
    return undefined;
  }

  async #finishDeletion(
    action: Extract<Action, { do: 'finish-deletion' }>,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { hostPod, departed } = action;
    const underWay = this.#finishUnderWay(hostPod, memory);
    if (underWay !== undefined) return underWay;
    const absence = await this.#absenceOf(hostPod, departed, memory, signal);
    if ('again' in absence) return absence.again;
    const { unanswered } = memory;
    const evidence = unanswered === undefined ? absence : { ...absence, unansweredUntil: unanswered.until };
    return await this.#finish(action, evidence, memory, signal);
  }

  /** What may come back, or come to life late, is stored as one that is to end before the host pod goes. */
  async #endFenced(
    action: Extract<Action, { do: 'end-fenced' }>,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { fencing, monotonic } = this.#o;
    const { hostPod } = action;
    const { uid: of = '' } = hostPod.metadata;
    const underWay = this.#finishUnderWay(hostPod, memory);
    if (underWay !== undefined) return underWay;
    if (!(await fencing.tell(hostPod, signal))) {
      this.#event(hostPod, FENCED_FULL);
      return { requeueAfterMs: LAST_RETRY_MS };
    }
    // The member may have answered meanwhile: then its copy is ended in order.
    if (!fencing.isFenced()) return { requeueAfterMs: 1 };
    return await this.#finish(action, { of, how: 'fenced', at: monotonic() }, memory, signal);
  }

  /** The last DELETE of the host pod was sent a moment ago. */
  #finishUnderWay({ metadata: { uid = '' } }: Pod, { finishSent: sent }: PodMemory): Next {
    const sinceMs = sent?.uid === uid ? this.#o.monotonic() - sent.at : Number.POSITIVE_INFINITY;
    return sinceMs < DELETE_UNDER_WAY_MS ? { requeueAfterMs: DELETE_UNDER_WAY_MS - sinceMs } : undefined;
  }

  /** Its last status, and then its end. */
  async #finish(
    { hostPod, status, departed }: Pick<Extract<Action, { do: 'finish-deletion' }>, 'hostPod' | 'status' | 'departed'>,
    evidence: AbsenceEvidence,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { uid = '' } = hostPod.metadata;
    try {
      if (status !== undefined) {
        const body = statusPatch(hostPod, status);
        const source = sourceOf(departed, evidence);
        if (body !== undefined) await this.#statuses.write(hostPod, body, source, memory, signal);
      }
      // With grace 0 already set only finalizers keep the pod; another DELETE would change nothing.
      if (hostPod.metadata.deletionGracePeriodSeconds === 0 && (hostPod.metadata.finalizers ?? []).length > 0)
        return undefined;
      if (evidence.how === 'fenced' && !this.#o.fencing.isFenced()) return { requeueAfterMs: 1 };
      memory.finishSent = { uid, at: this.#o.monotonic() };
      await this.#writes.removeHost(hostPod, evidence, signal);
    } catch (error) {
      delete memory.finishSent;
      if (!isAnotherPod(error)) throw error;
    }
    return undefined;
  }

  /**
   * How it is known that the pod of this host pod is not in the member: it was seen to go, or a read past the cache says
   * so; else when to look again. A member that is not the pinned one says nothing about our pods (invariant I3).
   */
  async #absenceOf(
    hostPod: Pod,
    departed: Pod | undefined,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<AbsenceEvidence | { again: Next }> {
    const { member, namespaces, hostId, monotonic } = this.#o;
    const of = hostPod.metadata.uid ?? '';
    if (departed !== undefined) return { of, how: 'watched', at: monotonic() };
    // A pod that never was to run in the member need not wait for it.
    if (isShownIgnored(hostPod) && memory.created === undefined) return { of, how: 'never', at: monotonic() };
    const asked = memory.place?.of === of ? memory.place.namespace : intentOf(hostPod)?.namespace;
    const { name, namespace = '' } = hostPod.metadata;
    const remembered = mirroredNamespace(hostPod) ?? asked;
    const places = remembered === undefined ? namespaces.everUsedFor(namespace) : [remembered];
    if (places.length === 0) return { of, how: 'nowhere', at: monotonic() };
    if (!(await member.confirmIdentity(signal))) return { again: { requeueAfterMs: 10_000 } };
    const at = monotonic();
    for (const place of places) {
      const found = await copyNow(member.client, { namespace: place, name }, { hostId, uid: of }, signal);
      if (found === undefined) continue;
      this.#found(hostPod, found, memory);
      return { again: { requeueAfterMs: 1000 } };
    }
    return { of, how: 'read', at };
  }

  /** The copy exists, which the cache may not show for a moment. */
  #found(hostPod: Pod, memberPod: Pod, memory: PodMemory): void {
    memory.member = memberPod;
    memory.created = { of: hostPod.metadata.uid ?? '', uid: memberPod.metadata.uid ?? '', at: this.#o.monotonic() };
  }

  #event(hostPod: Pod, hold: Hold): void {
    this.#o.events.record(podSubject(hostPod), 'Warning', hold.reason, hold.message);
  }

  #retryLater(memory: PodMemory, longest = LAST_RETRY_MS): Next {
    const delay = Math.min(longest, FIRST_RETRY_MS * 2 ** Math.min(memory.attempts, 10));
    memory.attempts += 1;
    return { requeueAfterMs: Math.round(delay * (0.8 + 0.4 * Math.random())) };
  }
}
