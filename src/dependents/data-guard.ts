import { HOST_LABEL, HOST_UID_ANNOTATION } from '../api/marks.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../kube/volumes.ts';
import type { CopyRecord } from './copy.ts';
import { readMemberVolume } from '../api/member-volume.ts';

/** What the host's API server answered just before data are deleted; not from caches. */
export interface DeletionEvidence {
  /** The volume of the host that stood for the data. */
  volume: PersistentVolume;
  /** What has the claim's name in the host now, if anything has. */
  claim: PersistentVolumeClaim | undefined;
  /** UID of the member's kube-system namespace. */
  identity: string;
}

/**
 * Why a claim in the member must stay (I20); undefined: its host claim is gone for good, and the reclaim policy of the
 * volume says that the data go with it. Nothing else is a reason to delete data: not a pod that ends, nor a virtual node,
 * a MemberCluster or a host that cannot be read. Pure.
 */
export function whyDataStay(
  copy: CopyRecord,
  hostId: string,
  evidence: DeletionEvidence | undefined,
): string | undefined {
  const { labels, annotations, uid, name, namespace } = copy.metadata;
  if (labels?.[HOST_LABEL] !== hostId) return 'the claim is not ours';
  if (evidence === undefined) return 'nothing says that the host claim is gone';
  const volume = readMemberVolume(evidence.volume);
  if (volume === undefined) return 'the volume of the host is not ours';
  if (volume.identity !== evidence.identity || volume.namespace !== namespace || volume.claim !== name) {
    return 'the volume of the host stands for other data';
  }
  if (annotations?.[HOST_UID_ANNOTATION] !== volume.for.uid) return 'the claim is of another host claim';
  if (volume.claimUid !== undefined && volume.claimUid !== uid)
    return 'the volume of the host stands for another claim';
  if (evidence.claim?.metadata.uid === volume.for.uid) return 'the host claim exists';
  const { spec, status } = evidence.volume;
  if (status?.phase !== 'Released') return 'the volume of the host is not released';
  if (spec.persistentVolumeReclaimPolicy !== 'Delete') return 'the reclaim policy says that the data are kept';
  return undefined;
}
