import {
  GROUP,
  HOST_LABEL,
  HOST_NAME_ANNOTATION,
  HOST_NAMESPACE_ANNOTATION,
  HOST_UID_ANNOTATION,
  MEMBER_LABEL,
} from '../api/marks.ts';
import type { VolumePlace } from '../api/member-volume.ts';
import { MEMBER_STORAGE } from '../api/storage.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../kube/volumes.ts';

/** Annotation of a claim of the host: the member's volume that holds the data. */
export const MEMBER_VOLUME_ANNOTATION = `${GROUP}/member-volume`;

/** The name says for which claim it is, so that two attempts do not make two. */
export function volumeNameOf({ uid = '' }: { uid?: string }): string {
  return `pvc-${uid}`;
}

/**
 * The volume that binds a claim of the host to a member: for this claim only (claimRef), and usable only on virtual nodes
 * of that member (nodeAffinity), so that the scheduler sends all pods of the claim there.
 */
export function hostVolumeFor(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  place: VolumePlace,
): PersistentVolume & { metadata: { labels: Record<string, string> } } {
  const { namespace = '', name, uid = '' } = claim.metadata;
  const { accessModes = [], volumeMode, resources } = claim.spec;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeNameOf(claim.metadata),
      labels: { [MEMBER_LABEL]: place.member },
      annotations: { 'pv.kubernetes.io/provisioned-by': MEMBER_STORAGE },
    },
    spec: {
      accessModes,
      capacity: { storage: resources?.requests?.['storage'] ?? '0' },
      ...(volumeMode === undefined ? {} : { volumeMode }),
      storageClassName: storageClass.metadata.name,
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      csi: {
        driver: MEMBER_STORAGE,
        volumeHandle: `${place.identity}/${place.namespace}/${place.claim}/${uid}`,
        volumeAttributes: { ...place },
      },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: MEMBER_LABEL, operator: 'In', values: [place.member] }] }],
        },
      },
    },
  };
}

/** The claim in the member. What the host's says of the host (selectors, sources, annotations) stays behind. */
export function memberClaimFor(
  claim: PersistentVolumeClaim,
  memberClass: string | undefined,
  place: { hostId: string; namespace: string },
): PersistentVolumeClaim {
  const { namespace = '', name, uid = '' } = claim.metadata;
  const { accessModes = [], volumeMode, resources } = claim.spec;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      namespace: place.namespace,
      labels: { [HOST_LABEL]: place.hostId },
      annotations: {
        [HOST_NAMESPACE_ANNOTATION]: namespace,
        [HOST_NAME_ANNOTATION]: name,
        [HOST_UID_ANNOTATION]: uid,
      },
    },
    spec: {
      accessModes,
      ...(resources === undefined ? {} : { resources }),
      ...(volumeMode === undefined ? {} : { volumeMode }),
      ...(memberClass === undefined ? {} : { storageClassName: memberClass }),
    },
  };
}
