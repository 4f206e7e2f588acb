import type { Pod, PodStatus } from '../kube/core-v1.ts';
import { isAnotherObject } from '../kube/errors.ts';
import { copyNow } from './creation-history.ts';
import { intentOf } from './creation-intent.ts';
import { isShownIgnored } from './daemon-pod.ts';
import type { Action } from './decide.ts';
import type { Hold } from './hold.ts';
import { type AbsenceEvidence, sourceOf, type StatusSource } from './evidence.ts';
import type { HostStatusWriter } from './host-status-writer.ts';
import { mirroredNamespace } from './host-status.ts';
import type { PodHolds } from './pod-holds.ts';
import { copyFound, type PodMemory } from './pod-memory.ts';
import type { FencingPort, MemberPort, NamespacesPort } from './pod-ports.ts';
import type { PodWrites } from './pod-writes.ts';
import { LAST_RETRY_MS, type Next } from './retry-later.ts';
import { statusPatch } from './status-patch.ts';

/** How long the DELETE that ends a host pod counts as under way, in ms. */
const DELETE_UNDER_WAY_MS = 30_000;

export interface PodEndingOptions {
  member: Pick<MemberPort, 'client' | 'confirmIdentity'>;
  hostId: string;
  namespaces: Pick<NamespacesPort, 'everUsedFor'>;
  fencing: FencingPort;
  writes: Pick<PodWrites, 'removeHost'>;
  statuses: HostStatusWriter;
  holds: Pick<PodHolds, 'event'>;
  /** In ms. */
  monotonic: () => number;
}

type Finish = Extract<Action, { do: 'finish-deletion' }>;

const FENCED_FULL: Hold = {
  reason: 'OutOfServiceFull',
  message:
    'The pod stays until its member answers: as many pods as can be remembered were ended there already, whose copies may come back with it.',
};

/** Ends host pods whose copies are gone: tells what became of them, and lets those go that are being deleted. */
export class PodEnding {
  readonly #o: PodEndingOptions;

  constructor(options: PodEndingOptions) {
    this.#o = options;
  }

  async reportLost(
    action: Extract<Action, { do: 'report-lost' }>,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { hostPod, departed } = action;
    const absence = await this.#absenceOf(hostPod, departed, memory, signal);
    if ('again' in absence) return absence.again;
    return await this.tellLost(hostPod, action.status, sourceOf(departed, absence), memory, signal);
  }

  async tellLost(
    hostPod: Pod,
    status: PodStatus,
    source: StatusSource,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const body = statusPatch(hostPod, status);
    if (body !== undefined) await this.#o.statuses.write(hostPod, body, source, memory, signal);
    const { reason = 'MemberPodLost', message = '' } = status;
    if (status.phase === 'Failed') this.#o.holds.event(hostPod, { reason, message });
    delete memory.created;
    return undefined;
  }

  async finishDeletion(action: Finish, memory: PodMemory, signal: AbortSignal): Promise<Next> {
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
  async endFenced(
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
      this.#o.holds.event(hostPod, FENCED_FULL);
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
    { hostPod, status, departed }: Pick<Finish, 'hostPod' | 'status' | 'departed'>,
    evidence: AbsenceEvidence,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { uid = '' } = hostPod.metadata;
    try {
      if (status !== undefined) {
        const body = statusPatch(hostPod, status);
        const source = sourceOf(departed, evidence);
        if (body !== undefined) await this.#o.statuses.write(hostPod, body, source, memory, signal);
      }
      // With grace 0 already set only finalizers keep the pod; another DELETE would change nothing.
      if (hostPod.metadata.deletionGracePeriodSeconds === 0 && (hostPod.metadata.finalizers ?? []).length > 0)
        return undefined;
      if (evidence.how === 'fenced' && !this.#o.fencing.isFenced()) return { requeueAfterMs: 1 };
      memory.finishSent = { uid, at: this.#o.monotonic() };
      await this.#o.writes.removeHost(hostPod, evidence, signal);
    } catch (error) {
      delete memory.finishSent;
      if (!isAnotherObject(error)) throw error;
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
      copyFound(memory, hostPod, found, monotonic());
      return { again: { requeueAfterMs: 1000 } };
    }
    return { of, how: 'read', at };
  }
}
