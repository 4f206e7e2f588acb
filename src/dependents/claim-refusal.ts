import { type MemberCluster, virtualNodesOf } from '../api/member-cluster.ts';
import { memberClassOf, MEMBER_STORAGE, type MemberStorage, SELECTED_NODE_ANNOTATION } from '../api/storage.ts';
import type { PersistentVolumeClaim, StorageClass } from '../kube/volumes.ts';
import type { MemberVolume } from '../api/member-volume.ts';
import { volumeNameOf } from './member-volume.ts';

/** The member, as far as claims are concerned. */
export interface ClaimHome {
  member: string;
  /** UID of its kube-system namespace. */
  identity: string;
  storage: MemberStorage;
  /** Names of its virtual nodes. */
  nodes: ReadonlySet<string>;
}

/** `identity`: of the cluster behind it. */
export function claimHomeOf(member: MemberCluster, identity: string): ClaimHome {
  const nodes = new Set(virtualNodesOf(member).map(({ name }) => name));
  return { member: member.metadata.name, identity, storage: member.spec.storage, nodes };
}

export interface ClaimRefusal {
  reason: string;
  message: string;
}

/** One claim of the host, with what belongs to it there. */
export interface HostClaim {
  claim: PersistentVolumeClaim;
  storageClass: StorageClass | undefined;
  volume: MemberVolume | undefined;
}

/**
 * Why a claim cannot be used in the member as things are, or undefined. None of these passes by itself. Pure.
 * @param place the namespace of the member where the pod is, or is to be; undefined: none, which is told by others
 */
export function refusalOfClaim(host: HostClaim, home: ClaimHome, place: string | undefined): ClaimRefusal | undefined {
  const { claim, volume } = host;
  if (volume !== undefined) {
    if (volume.member !== home.member) return elsewhere(claim, home, `in cluster "${volume.member}"`);
    if (volume.identity !== home.identity)
      return elsewhere(claim, home, `in another cluster that was called "${volume.member}" before`);
    return place === undefined || place === volume.namespace ? undefined : elsewhereInMember(claim, volume, place);
  }
  const { volumeName = '' } = claim.spec;
  // One that we made shows up in a moment.
  if (volumeName !== '' && volumeName !== volumeNameOf(claim.metadata)) {
    return elsewhere(claim, home, `in volume "${volumeName}", which is not in a member`);
  }
  return refusalOfClass(host, home) ?? refusalOfContent(claim, home);
}

/** Whether a volume for the claim is to be in this member: the scheduler says so, or its class. */
export function isChosen({ claim, storageClass }: HostClaim, home: ClaimHome, wanted: boolean): boolean {
  const node = claim.metadata.annotations?.[SELECTED_NODE_ANNOTATION];
  if (node !== undefined) return home.nodes.has(node);
  if (storageClass?.provisioner !== MEMBER_STORAGE) return false;
  if (storageClass.volumeBindingMode !== 'WaitForFirstConsumer')
    return storageClass.parameters?.['member'] === home.member;
  // A pod that was bound past the scheduler.
  return wanted;
}

/** Why no new volume of the claim's class can be in the member. */
export function refusalOfClass({ claim, storageClass }: HostClaim, home: ClaimHome): ClaimRefusal | undefined {
  const { storageClassName = '' } = claim.spec;
  if (storageClassName === '') {
    return refuse('ClaimClassNotMapped', claim, home, 'has no storage class, so it waits for a volume of this cluster');
  }
  if (storageClass === undefined) {
    return refuse(
      'ClaimClassNotMapped',
      claim,
      home,
      `is of storage class "${storageClassName}", which does not exist`,
    );
  }
  if (storageClass.provisioner !== MEMBER_STORAGE) {
    const what = `is of storage class "${storageClassName}", whose provisioner (${storageClass.provisioner}) makes volumes outside members`;
    return refuse('ClaimClassNotMapped', claim, home, what, `Use a class with provisioner ${MEMBER_STORAGE}`);
  }
  if (memberClassOf(home.storage, storageClassName) === undefined) {
    const what = `is of storage class "${storageClassName}", which is nothing in that cluster`;
    return refuse(
      'ClaimClassNotMapped',
      claim,
      home,
      what,
      `Add the class to spec.storage.classes of MemberCluster "${home.member}"`,
    );
  }
  const { volumeBindingMode, parameters } = storageClass;
  const member = parameters?.['member'];
  if (volumeBindingMode === 'WaitForFirstConsumer' || member === home.member) return undefined;
  if (member !== undefined) return elsewhere(claim, home, `to be in cluster "${member}", as its storage class says`);
  const what = `is of storage class "${storageClassName}", which binds at once and does not say in which member`;
  return refuse(
    'ClaimClassNotMapped',
    claim,
    home,
    what,
    'Let the class have parameters.member, or volumeBindingMode WaitForFirstConsumer',
  );
}

function refusalOfContent({ spec, ...claim }: PersistentVolumeClaim, home: ClaimHome): ClaimRefusal | undefined {
  const asks: [keyof PersistentVolumeClaim['spec'], string][] = [
    ['selector', 'selects among volumes of this cluster'],
    ['dataSource', 'is to be filled from a source in this cluster'],
    ['dataSourceRef', 'is to be filled from a source in this cluster'],
    ['volumeAttributesClassName', 'asks for a VolumeAttributesClass, which members do not share'],
  ];
  const found = asks.find(([field]) => spec[field] !== undefined && spec[field] !== '');
  if (found === undefined) return undefined;
  const [field, what] = found;
  return refuse('ClaimNotSupported', { ...claim, spec }, home, what, `Make the claim anew without ${field}`);
}

function elsewhere(claim: PersistentVolumeClaim, home: ClaimHome, where: string): ClaimRefusal {
  return refuse('ClaimElsewhere', claim, home, `has its data ${where}`);
}

/** What has the claim's name where the pod is belongs to others, or to a former claim. */
function elsewhereInMember({ metadata }: PersistentVolumeClaim, volume: MemberVolume, place: string): ClaimRefusal {
  const { member, namespace } = volume;
  const message =
    `Claim "${metadata.name}" has its place in namespace "${namespace}" of cluster "${member}", and pods of namespace "${metadata.namespace ?? ''}" go to "${place}" there ` +
    `since spec.namespaces of MemberCluster "${member}" was edited, so they cannot use it. This does not pass by itself. Let them go there again, or use another claim.`;
  return { reason: 'ClaimElsewhere', message };
}

function refuse(
  reason: string,
  { metadata }: PersistentVolumeClaim,
  { member }: ClaimHome,
  what: string,
  advice = 'Use another claim',
): ClaimRefusal {
  const message = `Claim "${metadata.name}" ${what}, so it cannot be used in cluster "${member}". This does not pass by itself. ${advice}, or keep the pod elsewhere.`;
  return { reason, message };
}
