import type { Invariants } from '../api/invariants.ts';
import { hostKeyOf } from '../api/host-key.ts';
import { NODE_LABEL, UID_LABEL } from '../api/marks.ts';
import type { Pod, PodStatus } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/object.ts';
import { PODS } from '../kube/resource.ts';
import { create, patch, remove } from '../kube/verbs.ts';
import type { DeletionBreaker } from './deletion-breaker.ts';
import type { AbsenceEvidence, DeletionEvidence, StatusSource } from './evidence.ts';
import type { MemberUpdate } from './member-updates.ts';
import { type FencingPort, HOST_POD_INDEX, type MemberPort } from './pod-ports.ts';
import {
  refuseCreation,
  refuseDeletion,
  refuseRemoval,
  refuseStatus,
  refuseUpdate,
  type Violation,
} from './write-guards.ts';

export interface PodWritesOptions {
  host: KubeClient;
  hostPods: Pick<Informer<Pod>, 'hasSynced'>;
  member: Pick<MemberPort, 'client'> & { pods: Pick<Informer<Pod>, 'hasSynced' | 'byIndex'> };
  hostId: string;
  nodeName: string;
  breaker: Pick<DeletionBreaker, 'redeem'>;
  /** Default: nobody ever says that nothing runs there. */
  fencing?: Pick<FencingPort, 'isFenced' | 'isTold'>;
  invariants: Invariants;
  monotonic: () => number;
}

/**
 * Every write to a pod, on either side, goes through here and past its guard (docs/invariants.md). A write that a guard
 * refuses is not sent; the InvariantError goes to the queue, which tries the key again later.
 */
export class PodWrites {
  readonly #o: PodWritesOptions;

  constructor(options: PodWritesOptions) {
    this.#o = options;
  }

  /**
   * Answers the pod that was made, now or by an earlier request that the caches have only shown since. `rehearsed`: the
   * member only says whether it would take it. `unansweredIn`: the namespace in which an earlier request may make one yet.
   */
  async createMember(
    hostPod: Pod,
    memberPod: Pod,
    signal: AbortSignal,
    how: { rehearsed?: boolean; unansweredIn?: string | undefined } = {},
  ): Promise<Pod> {
    const { member } = this.#o;
    const present = this.#present(keyOf(hostPod));
    const made = present.find(({ metadata }) => metadata.labels?.[UID_LABEL] === hostPod.metadata.uid);
    if (made !== undefined) return made;
    this.#check(refuseCreation(hostPod, memberPod, present, this.#o, how), hostPod);
    // An older member refuses fields it does not know instead of dropping them in silence.
    const query = { fieldValidation: 'Strict' };
    return await create<Pod>(member.client, PODS, memberPod, { signal, query, dryRun: how.rehearsed });
  }

  /**
   * A resize is bound to the version of the pod that it was made for: carried out late, it would take back a later one, which
   * nothing tells from what the member changed by itself. With all else goes what was received, so that it is sent again.
   */
  async updateMember(memberPod: Pod, update: MemberUpdate, signal: AbortSignal): Promise<Pod> {
    this.#check(refuseUpdate(memberPod, this.#o), memberPod);
    const { kind, type, subresource } = update;
    const how = { type, ...(subresource === undefined ? {} : { subresource }) };
    const body = kind === 'resize' ? boundTo(memberPod, update.patch) : update.patch;
    const written = await patch<Pod>(this.#o.member.client, PODS, refOf(memberPod), body, how, { signal });
    this.#noteEffect(memberPod, written);
    return written;
  }

  /** Resolves when the member has accepted; its UID is a precondition. */
  async deleteMember(
    memberPod: Pod,
    evidence: DeletionEvidence,
    gracePeriodSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const uid = memberPod.metadata.uid ?? '';
    const present = this.#present(hostKeyOf(memberPod) ?? '');
    this.#check(
      refuseDeletion(memberPod, evidence, present, this.#o, () => this.#o.breaker.redeem(uid)),
      memberPod,
    );
    const how = { uid, ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }) };
    await remove(this.#o.member.client, PODS, refOf(memberPod), how, { signal });
  }

  /**
   * Writes blind: identities that are limited to their node may not read the status subresource. Bound to the version of the
   * pod that it was made for: what gets no answer may be carried out a minute later, after all that was written since.
   */
  async patchHostStatus(
    hostPod: Pod,
    body: Record<string, unknown>,
    source: StatusSource,
    signal: AbortSignal,
  ): Promise<Pod> {
    const status = (body['status'] ?? {}) as PodStatus;
    const isFenced = source.from === 'absence' && source.evidence.how === 'fenced';
    const violation = refuseStatus(hostPod, status, source, this.#o.monotonic(), this.#isFenced);
    this.#check(violation, hostPod, isFenced);
    const how = { type: 'strategic', subresource: 'status' } as const;
    const written = await patch<Pod>(this.#o.host, PODS, refOf(hostPod), boundTo(hostPod, body), how, { signal });
    this.#noteEffect(hostPod, written);
    return written;
  }

  /** Ends the deletion of a host pod. */
  async removeHost(hostPod: Pod, evidence: AbsenceEvidence, signal: AbortSignal): Promise<void> {
    const violation = refuseRemoval(hostPod, evidence, this.#o.monotonic(), this.#isFenced);
    this.#check(violation, hostPod, evidence.how === 'fenced');
    const { uid } = hostPod.metadata;
    await remove(this.#o.host, PODS, refOf(hostPod), { uid, gracePeriodSeconds: 0 }, { signal });
  }

  /** Our member pods for a host pod's key. */
  #present(hostKey: string): readonly Pod[] {
    const { member, nodeName } = this.#o;
    return member.pods.byIndex(HOST_POD_INDEX, `${nodeName}/${hostKey}`);
  }

  readonly #isFenced = (uid: string): boolean => {
    const { fencing } = this.#o;
    return fencing?.isFenced() === true && fencing.isTold(uid);
  };

  /** `isFenced`: nobody asks the member, which a process that began in an outage has never heard of. */
  #check(violation: Violation | undefined, pod: Pod, isFenced = false): void {
    const { hostPods, member, invariants } = this.#o;
    const about = { pod: keyOf(pod), uid: pod.metadata.uid, node: pod.metadata.labels?.[NODE_LABEL] };
    if (!hostPods.hasSynced || (!member.pods.hasSynced && !isFenced)) {
      throw invariants.violated('I7', 'a write to a pod before the caches are complete', about);
    }
    if (violation !== undefined) throw invariants.violated(violation.invariant, violation.what, about);
  }

  /** The API server leaves the version of an object as it is when a patch changes nothing: then it was not needed. */
  #noteEffect(before: Pod, after: Pod): void {
    const { uid, resourceVersion } = before.metadata;
    if (resourceVersion === undefined || uid !== after.metadata.uid) return;
    if (resourceVersion !== after.metadata.resourceVersion) return;
    const about = { pod: keyOf(before), uid, hostUid: before.metadata.labels?.[UID_LABEL] };
    this.#o.invariants.violated('I8', 'a write to a pod that changed nothing', about);
  }
}

/** A patch that the API server refuses (409) once anything else has been written to the pod. */
function boundTo({ metadata: { resourceVersion } }: Pod, body: Record<string, unknown>): Record<string, unknown> {
  return { ...body, metadata: { ...(body['metadata'] as object | undefined), resourceVersion } };
}

export function refOf(pod: Pod): { namespace?: string; name: string } {
  const { namespace, name } = pod.metadata;
  return namespace === undefined ? { name } : { namespace, name };
}
