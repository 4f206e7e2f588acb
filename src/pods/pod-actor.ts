import type { Logger } from 'pino';
import type { Invariants } from '../api/invariants.ts';
import { UID_LABEL } from '../api/marks.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { isAnotherObject, isNotFound } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/object.ts';
import { PODS } from '../kube/resource.ts';
import { get } from '../kube/verbs.ts';
import { asOfNow, judgeOrphan, MISSING_GRACE_MS } from './collect-pod.ts';
import type { Action } from './decide.ts';
import { waitOf, withAnswer } from './deletion-pace.ts';
import type { DeletionEvidence } from './evidence.ts';
import { HostPodChanged, HostStatusWriter } from './host-status-writer.ts';
import { mirroredUid } from './host-status.ts';
import { IntentWriter } from './intent-writer.ts';
import type { KeptPods } from './kept-pods.ts';
import type { OwnCopies } from './own-copies.ts';
import { PodCreation } from './pod-creation.ts';
import { PodEnding } from './pod-ending.ts';
import { PodHolds } from './pod-holds.ts';
import type { PodMemory } from './pod-memory.ts';
import type { PodMetrics } from './pod-metrics.ts';
import type { PodOverrides } from './pod-overrides.ts';
import type {
  DependentsPort,
  EventPort,
  FencingPort,
  MemberPort,
  NamespacesPort,
  ServiceAccountsPort,
  ServicesPort,
} from './pod-ports.ts';
import { PodUpdates } from './pod-updates.ts';
import { PodWrites, refOf } from './pod-writes.ts';
import { type Next, retryLater, soonest } from './retry-later.ts';
import type { ReturnedCopies } from './returned-copies.ts';
import { StatusCorrections, statusKey } from './status-corrections.ts';
import type { TranslateContext } from './translate.ts';

export interface PodActorOptions {
  host: KubeClient;
  /** The host's pods bound to this virtual node. */
  hostPods: Informer<Pod>;
  member: MemberPort;
  hostId: string;
  nodeName: string;
  namespaces: NamespacesPort;
  dependents: DependentsPort;
  /** Default: no pod has a service account in the member. */
  serviceAccounts?: ServiceAccountsPort;
  /** Default: pods get variables of Services as in the host. */
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
  copies: Pick<OwnCopies, 'all'>;
  kept: KeptPods;
  returned: Pick<ReturnedCopies, 'failed'>;
  invariants: Invariants;
  /** Asks whether the host is still the cluster it was. Default: it is. */
  confirmHost?: () => Promise<boolean>;
  missingGraceMs?: number;
}

/** How long the first report of a pod, and a later step before Running, may be kept back to go with the next one, in ms. */
const FIRST_STATUS_DELAY_MS = 500;
const STEP_STATUS_DELAY_MS = 2000;

/** Performs exactly one action on one of the two clusters. Errors are thrown: the queue's backoff is the retry. */
export class PodActor {
  readonly #o: PodActorOptions;
  readonly #writes: PodWrites;
  readonly #statuses: HostStatusWriter;
  readonly #corrections: StatusCorrections;
  readonly #holds: PodHolds;
  readonly #creation: PodCreation;
  readonly #ending: PodEnding;
  readonly #updates: PodUpdates;

  constructor(options: PodActorOptions) {
    this.#o = options;
    this.#writes = new PodWrites({ ...options, breaker: options.kept.breaker });
    this.#corrections = new StatusCorrections(options);
    this.#statuses = new HostStatusWriter({ ...options, writes: this.#writes });
    const parts = { writes: this.#writes, statuses: this.#statuses };
    const intents = new IntentWriter({ ...options, statuses: this.#statuses });
    const holds = new PodHolds({ ...options, ...parts, corrections: this.#corrections });
    this.#holds = holds;
    this.#ending = new PodEnding({ ...options, ...parts, holds });
    this.#updates = new PodUpdates({ ...options, ...parts, holds });
    this.#creation = new PodCreation({ ...options, ...parts, intents, holds, ending: this.#ending });
  }

  /** How long it takes until nothing can come any more of creations that were sent, in ms. */
  get creationsOpenMs(): number {
    return this.#creation.open.openMs;
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
        return await this.#holds.hold(key, action.hold, memory, signal, action.againMs);
      case 'look-back':
        return await this.#creation.lookBack(action, key, memory, signal);
      case 'ignore':
        return await this.#corrections.write(action.hostPod, memory, 'ignored', async () => {
          return await this.#statuses.write(action.hostPod, action.patch, { from: 'hold' }, memory, signal);
        });
      case 'create':
        return await this.#creation.create(action.hostPod, key, memory, signal);
      case 'update':
        return await this.#update(action, key, memory, signal);
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
        return await this.#ending.reportLost(action, memory, signal);
      case 'end-fenced':
        return await this.#ending.endFenced(action, memory, signal);
      case 'finish-deletion':
        return await this.#ending.finishDeletion(action, memory, signal);
    }
  }

  /** What the member does not take of a change keeps nothing that the copy says from the host. */
  async #update(
    { hostPod, memberPod, otherwise }: Extract<Action, { do: 'update' }>,
    key: string,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const again = await this.#updates.send(hostPod, memberPod, key, memory, signal);
    if (again === undefined || otherwise === undefined) return again;
    return soonest(again, await this.#patchStatus(otherwise, memory, signal));
  }

  async #deleteMember(
    memberPod: Pod,
    evidence: DeletionEvidence,
    gracePeriodSeconds: number | undefined,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const deletion = { uid: memberPod.metadata.uid ?? '', says: evidence.says, gracePeriodSeconds };
    const at = this.#o.monotonic();
    const waitMs = waitOf(deletion, memory.deleteSent, at);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const isAccepted = await this.#isDeletionAccepted(memberPod, evidence, gracePeriodSeconds, signal);
    // What is gone already the watch will tell, and then nobody waits.
    memory.deleteSent = withAnswer(deletion, memory.deleteSent, { accepted: isAccepted, at: this.#o.monotonic() });
    return { requeueAfterMs: memory.deleteSent.until - this.#o.monotonic() };
  }

  /** False: the member has no such pod, or another one of its name. */
  async #isDeletionAccepted(
    memberPod: Pod,
    evidence: DeletionEvidence,
    gracePeriodSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      await this.#writes.deleteMember(memberPod, evidence, gracePeriodSeconds, signal);
      return true;
    } catch (error) {
      if (!signal.aborted) this.#o.returned.failed(memberPod, error);
      if (isAnotherObject(error)) return false;
      throw error;
    }
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
    const { host, nodeName, hostPods, member, kept, monotonic, logger, copies } = this.#o;
    const { breaker } = kept;
    const judged = await judgeOrphan(
      memberPod,
      {
        host,
        nodeName,
        memory,
        deletionSeen,
        hostVersion: () => hostPods.resourceVersion,
        keptBefore: (uid) => kept.reasonOf(uid),
        breaker,
        isThere: () => member.pods.get(keyOf(memberPod))?.metadata.uid === memberPod.metadata.uid,
        ownPods: () => copies.all.length,
        missingGraceMs: this.#o.missingGraceMs ?? MISSING_GRACE_MS,
        confirmHost: this.#o.confirmHost ?? (() => Promise.resolve(true)),
        monotonic,
      },
      signal,
    );
    const { uid = '' } = memberPod.metadata;
    const verdict = asOfNow(judged, uid, breaker);
    if (!('kept' in verdict)) kept.release(uid);
    if (verdict.delete) {
      return await this.#deleteMember(memberPod, verdict.evidence, verdict.gracePeriodSeconds, memory, signal);
    }
    if ('kept' in verdict) {
      if (kept.keep(uid, key, verdict.kept)) {
        this.#o.metrics.orphaned.inc({ node: nodeName });
        const about = { memberPod: keyOf(memberPod), uid: memberPod.metadata.labels?.[UID_LABEL] };
        logger.error(about, `member pod kept: ${verdict.why}`);
      }
      return retryLater(memory);
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
}
