import { HOST_LABEL, HOST_UID_ANNOTATION } from '../api/marks.ts';
import { memberClassOf, SELECTED_NODE_ANNOTATION } from '../api/storage.ts';
import { ifThere } from '../kube/if-there.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../kube/volumes.ts';
import type { KubeClient } from '../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../kube/resource.ts';
import { create, get, patch, remove } from '../kube/verbs.ts';
import type { ClaimAction, ClaimAnswer, ClaimFacts } from './claim-decision.ts';
import { type ClaimRules, overriddenClaim } from './claim-overrides.ts';
import type { ClaimReport } from './claim-report.ts';
import { type ClaimCopy, isClaimCopy, recordOfCopy } from './copy.ts';
import type { CopyStore } from './member-copies.ts';
import { MEMBER_CLAIM_ANNOTATION, type MemberVolume } from '../api/member-volume.ts';
import { hostVolumeFor, memberClaimFor } from './member-volume.ts';
import type { Reclaim } from './reclaim.ts';

export interface ClaimWriterOptions {
  hostId: string;
  host: KubeClient;
  copies: CopyStore;
  /** Whether the pinned cluster answers; not from caches. */
  confirmIdentity: (signal: AbortSignal) => Promise<boolean>;
  memberNamespaceOf(hostNamespace: string): string | undefined;
  ensureNamespace: (
    hostNamespace: string,
    signal: AbortSignal,
  ) => Promise<{ namespace: string } | { hold: { message: string } }>;
}

/** What came of a step. `taken`: somebody else's claim has the name in the member. `again`: the caches are behind. */
export type Outcome = 'done' | 'again' | 'taken' | ClaimAnswer;

/** Performs what was decided about claims, one write or two at a time. */
export class ClaimWriter {
  readonly #o: ClaimWriterOptions;

  constructor(options: ClaimWriterOptions) {
    this.#o = options;
  }

  /** @throws what the clusters answer, but for answers that only say that a cache is behind. */
  async perform(facts: ClaimFacts, action: ClaimAction, signal: AbortSignal): Promise<Outcome> {
    try {
      return await this.#perform(facts, action, signal);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return 'again';
    }
  }

  async #perform(facts: ClaimFacts, action: ClaimAction, signal: AbortSignal): Promise<Outcome> {
    switch (action.do) {
      case 'nothing':
        return 'done';
      case 'wait':
        return 'again';
      case 'refuse':
        return await this.#unselect(facts.claim, signal);
      case 'bind':
        return await this.#bind(facts, signal);
      case 'create':
        return await this.#create(facts, action, signal);
      case 'ask':
        return await this.#ask(action.volume, signal);
      case 'note':
        return await this.#note(action.volume, action.copy.metadata.uid, signal);
      case 'resize':
        await this.#o.copies.resize(action.copy, action.storage, signal);
        return 'done';
      case 'report':
        return await this.#report(facts.claim, action.report, signal);
    }
  }

  /**
   * The data of a volume whose claim is gone, where no cache shows them, as in a namespace that is not lent any more: to take what is
   * ours away is allowed there still. @throws why they have to be waited for
   */
  async unseenDataOf(volume: MemberVolume, signal: AbortSignal): Promise<ClaimCopy | undefined> {
    const found = await this.#claimNow(volume, signal);
    if (found === undefined || !isDataOf(volume, found)) return undefined;
    if (!this.#isMarked(found, volume)) throw new Error(this.#whyUnseen(found, volume));
    if (found.metadata.deletionTimestamp !== undefined)
      throw new Error('it is being deleted there, and a pod that uses it, or a finalizer, keeps it');
    const copy = recordOfCopy('PersistentVolumeClaim', found);
    return isClaimCopy(copy) ? copy : undefined;
  }

  /** The last two steps of a claim that is gone. @throws InvariantError for data that must stay. */
  async reclaim(volume: MemberVolume, reclaim: Reclaim, identity: string, signal: AbortSignal): Promise<Outcome> {
    const { host, copies } = this.#o;
    const { name, uid } = volume.object.metadata;
    if (reclaim.do === 'nothing') return 'done';
    if (reclaim.do === 'volume') {
      await ifThere(remove(host, PERSISTENT_VOLUMES, { name }, { uid }, { signal }));
      return 'done';
    }
    // Not from caches: what is deleted now is gone for ever.
    const live = await ifThere(get<PersistentVolume>(host, PERSISTENT_VOLUMES, { name }, { signal }));
    if (live === undefined || live.metadata.uid !== uid) return 'again';
    const claim = await ifThere(get<PersistentVolumeClaim>(host, PERSISTENT_VOLUME_CLAIMS, volume.for, { signal }));
    await copies.remove(reclaim.copy, signal, { volume: live, claim, identity });
    return 'done';
  }

  /** As provisioners do that cannot make a volume for the node: the scheduler chooses anew. */
  async #unselect({ metadata }: PersistentVolumeClaim, signal: AbortSignal): Promise<Outcome> {
    if (metadata.annotations?.[SELECTED_NODE_ANNOTATION] === undefined) return 'done';
    const { resourceVersion } = metadata;
    const body = { metadata: { resourceVersion, annotations: { [SELECTED_NODE_ANNOTATION]: null } } };
    await patch(this.#o.host, PERSISTENT_VOLUME_CLAIMS, metadata, body, { type: 'merge' }, { signal });
    return 'done';
  }

  async #bind({ claim, storageClass, home }: ClaimFacts, signal: AbortSignal): Promise<Outcome> {
    const namespace = this.#o.memberNamespaceOf(claim.metadata.namespace ?? '');
    if (namespace === undefined || storageClass === undefined) return 'again';
    const place = { member: home.member, identity: home.identity, namespace, claim: claim.metadata.name };
    try {
      await create(this.#o.host, PERSISTENT_VOLUMES, hostVolumeFor(claim, storageClass, place), { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return 'again';
    }
    return 'done';
  }

  async #create(
    { claim, home }: ClaimFacts,
    { volume, rules }: { volume: MemberVolume; rules: ClaimRules | undefined },
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { hostId, copies, ensureNamespace } = this.#o;
    const memberClass = memberClassOf(home.storage, claim.spec.storageClassName ?? '');
    const place = await ensureNamespace(claim.metadata.namespace ?? '', signal);
    if ('hold' in place) throw new Error(place.hold.message);
    if (memberClass === undefined || place.namespace !== volume.namespace) return 'again';
    const at = { hostId, namespace: volume.namespace };
    const rendered =
      rules === undefined
        ? { claim: memberClaimFor(claim, memberClass.name, at) }
        : overriddenClaim(claim, rules, { ...at, memberClass: memberClass.name });
    // It was tried before.
    if ('refused' in rendered) return 'again';
    try {
      await copies.create('PersistentVolumeClaim', rendered.claim, signal);
      return 'done';
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const found = await copies.read('PersistentVolumeClaim', volume.namespace, volume.claim, signal);
    if (found === undefined) return 'again';
    const { labels, annotations } = found.metadata;
    const ours = labels?.[HOST_LABEL] === hostId && annotations?.[HOST_UID_ANNOTATION] === claim.metadata.uid;
    return ours ? 'again' : 'taken';
  }

  /** Whether the claim that the volume stands for is gone. @throws if it is not, or nobody can tell. */
  async #ask(volume: MemberVolume, signal: AbortSignal): Promise<ClaimAnswer> {
    const found = await this.#claimNow(volume, signal);
    if (found === undefined) return 'gone';
    if (found.metadata.uid !== volume.claimUid) return 'replaced';
    throw new Error(this.#whyUnseen(found, volume));
  }

  /** It says of itself that it is ours, and of that claim of the host. */
  #isMarked({ metadata: { labels, annotations } }: KubeObject, volume: MemberVolume): boolean {
    return labels?.[HOST_LABEL] === this.#o.hostId && annotations?.[HOST_UID_ANNOTATION] === volume.for.uid;
  }

  /** Why a claim that is there is in no cache, or is not taken for what it is. */
  #whyUnseen(found: KubeObject, volume: MemberVolume): string {
    const { hostId } = this.#o;
    if (this.#isMarked(found, volume))
      return 'it is there, and has not shown up in what is followed of that namespace, which has to be lent to this host still';
    return found.metadata.labels?.[HOST_LABEL] === hostId
      ? `it is there without annotation ${HOST_UID_ANNOTATION}=${volume.for.uid}, which says of which claim it is; it has to be put back`
      : `it is there without label ${HOST_LABEL}=${hostId}, which says whose it is; it has to be put back`;
  }

  /** What has the claim's name in the member, ours or not, past the caches. @throws also if another cluster answers. */
  async #claimNow({ namespace, claim }: MemberVolume, signal: AbortSignal): Promise<KubeObject | undefined> {
    const { copies, confirmIdentity } = this.#o;
    if (!(await confirmIdentity(signal))) throw new Error('another cluster answers in its place');
    return await copies.read('PersistentVolumeClaim', namespace, claim, signal);
  }

  async #note(volume: MemberVolume, claimUid: string | undefined, signal: AbortSignal): Promise<Outcome> {
    const { resourceVersion } = volume.object.metadata;
    const body = { metadata: { resourceVersion, annotations: { [MEMBER_CLAIM_ANNOTATION]: claimUid } } };
    await patch(this.#o.host, PERSISTENT_VOLUMES, { name: volume.name }, body, { type: 'merge' }, { signal });
    return 'done';
  }

  async #report({ metadata }: PersistentVolumeClaim, report: ClaimReport, signal: AbortSignal): Promise<Outcome> {
    const { host } = this.#o;
    const { volume, claim, status } = report;
    if (volume !== undefined) {
      await patch(host, PERSISTENT_VOLUMES, { name: volume.name }, volume.patch, { type: 'merge' }, { signal });
    }
    const how = { type: 'merge' } as const;
    if (claim !== undefined) await patch(host, PERSISTENT_VOLUME_CLAIMS, metadata, claim, how, { signal });
    if (status !== undefined) {
      await patch(host, PERSISTENT_VOLUME_CLAIMS, metadata, status, { ...how, subresource: 'status' }, { signal });
    }
    return 'done';
  }
}

/** Whether a claim of the member is the one that the volume stands for, or may have been made for it. */
function isDataOf({ claimUid, for: { uid } }: MemberVolume, { metadata }: KubeObject): boolean {
  return claimUid === undefined ? metadata.annotations?.[HOST_UID_ANNOTATION] === uid : metadata.uid === claimUid;
}
