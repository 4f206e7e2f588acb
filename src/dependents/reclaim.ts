import type { ClaimHome } from './claim-refusal.ts';
import type { ClaimCopy } from './copy.ts';
import type { MemberVolume } from '../api/member-volume.ts';
import { HOST_UID_ANNOTATION } from '../api/marks.ts';

/**
 * What becomes of a volume of the host whose claim is gone. `data`: the claim in the member is deleted, with what its own
 * reclaim policy says about the volume there. `volume`: the cache shows nothing of it in the member.
 */
export type Reclaim = { do: 'nothing' } | { do: 'data'; copy: ClaimCopy } | { do: 'volume' };

/**
 * The claim of the host is gone, and its data go with it, though the host's controller may have to say so yet. `Failed` is what it
 * does not have reclaimed any more. Pure.
 */
export function isToGo(volume: MemberVolume, hostClaimUid: string | undefined): boolean {
  const { status, spec } = volume.object;
  if (spec.persistentVolumeReclaimPolicy !== 'Delete' || status?.phase === 'Failed') return false;
  return hostClaimUid !== volume.for.uid;
}

/** Pure. `copy`: what of ours has the place of the claim in the member, from a complete cache. */
export function decideReclaim(
  volume: MemberVolume,
  home: Pick<ClaimHome, 'member' | 'identity'>,
  hostClaimUid: string | undefined,
  copy: ClaimCopy | undefined,
): Reclaim {
  const { metadata, status } = volume.object;
  if (volume.member !== home.member || volume.identity !== home.identity) return { do: 'nothing' };
  if (!isToGo(volume, hostClaimUid) || status?.phase !== 'Released') return { do: 'nothing' };
  if (metadata.deletionTimestamp !== undefined) return { do: 'nothing' };
  const made = copy?.metadata.annotations?.[HOST_UID_ANNOTATION] === volume.for.uid ? copy : undefined;
  if (made === undefined || (volume.claimUid !== undefined && made.metadata.uid !== volume.claimUid)) {
    return { do: 'volume' };
  }
  return made.metadata.deletionTimestamp === undefined ? { do: 'data', copy: made } : { do: 'nothing' };
}
