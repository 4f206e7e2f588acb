import type { Pod } from '../kube/core-v1.ts';
import { type JsonRecord, listOf, recordOf, rewriteItems, textOf, without } from '../kube/json-fields.ts';

/** A PersistentVolumeClaim of its namespace that a pod uses. */
export interface PodClaim {
  /** The volume's name in the pod. */
  volume: string;
  claim: string;
  /** The claim of a generic ephemeral volume, which the host makes for this pod alone. */
  ephemeral: boolean;
}

/** The claims that a pod uses, one for each volume that is one. Reads any JSON without failing. */
export function claimsOfPod(pod: Pod): PodClaim[] {
  const claims: PodClaim[] = [];
  for (const item of listOf(recordOf(pod.spec)?.['volumes'])) {
    const volume = recordOf(item);
    const name = textOf(volume?.['name']) ?? '';
    const claim = textOf(recordOf(volume?.['persistentVolumeClaim'])?.['claimName']);
    if (claim !== undefined) claims.push({ volume: name, claim, ephemeral: false });
    else if (recordOf(volume?.['ephemeral']) !== undefined) {
      claims.push({ volume: name, claim: ephemeralClaimName(pod.metadata.name, name), ephemeral: true });
    }
  }
  return claims;
}

/**
 * Volumes with generic ephemeral ones as the claims that the host made for them: the member must not make claims of its
 * own, which would end with the member pod.
 */
export function rewriteEphemeralVolumes(volumes: unknown, podName: string): unknown {
  return rewriteItems(volumes, (volume: JsonRecord) => {
    if (recordOf(volume['ephemeral']) === undefined) return volume;
    const claimName = ephemeralClaimName(podName, textOf(volume['name']) ?? '');
    return { ...without(volume, ['ephemeral']), persistentVolumeClaim: { claimName } };
  });
}

/** As Kubernetes names them (KEP-1698). */
function ephemeralClaimName(podName: string, volume: string): string {
  return `${podName}-${volume}`;
}
