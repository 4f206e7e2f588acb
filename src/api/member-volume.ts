import type { PersistentVolume } from '../kube/volumes.ts';
import { GROUP } from './marks.ts';
import { MEMBER_STORAGE } from './storage.ts';

/** Annotation of a volume of the host: UID of the member's claim, from its creation on. */
export const MEMBER_CLAIM_ANNOTATION = `${GROUP}/member-claim-uid`;

/** Where the data of a volume is. */
export interface VolumePlace {
  member: string;
  /** UID of the member's kube-system namespace: another cluster of that name has none of the data. */
  identity: string;
  /** In the member. */
  namespace: string;
  claim: string;
}

/** The volume of the host that stands for the data of a claim in a member. */
export interface MemberVolume extends VolumePlace {
  name: string;
  object: PersistentVolume;
  /** The host's claim it was made for. */
  for: { namespace: string; name: string; uid: string };
  /** UID of the claim in the member, once it was made. */
  claimUid: string | undefined;
}

/** Undefined for volumes of others. */
export function readMemberVolume(object: PersistentVolume): MemberVolume | undefined {
  const { csi, claimRef } = object.spec;
  const { member, identity, namespace, claim } = csi?.volumeAttributes ?? {};
  if (csi?.driver !== MEMBER_STORAGE || claimRef?.uid === undefined) return undefined;
  if (member === undefined || identity === undefined || namespace === undefined || claim === undefined)
    return undefined;
  const { namespace: hostNamespace = '', name = '', uid } = claimRef;
  return {
    name: object.metadata.name,
    object,
    member,
    identity,
    namespace,
    claim,
    for: { namespace: hostNamespace, name, uid },
    claimUid: object.metadata.annotations?.[MEMBER_CLAIM_ANNOTATION],
  };
}
