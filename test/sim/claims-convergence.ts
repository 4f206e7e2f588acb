import { HOST_LABEL, HOST_UID_ANNOTATION } from '../../src/api/marks.ts';
import { claimPaths, CLAIMS, isGoing } from './host-volumes.ts';
import type { SimObject } from './sim-cluster.ts';
import type { World } from './world.ts';

/** Data in members that were to go with their claims, and volumes of the host that stand for what is gone, in words. */
export function unsettledClaims({ host, members }: World): string[] {
  const kept = new Set(host.list(CLAIMS).map(({ metadata }) => metadata.uid));
  const problems: string[] = [];
  for (const { metadata, spec } of host.list('/api/v1/persistentvolumes')) {
    const { persistentVolumeReclaimPolicy: policy, claimRef } = spec as {
      persistentVolumeReclaimPolicy?: string;
      claimRef?: { uid?: string };
    };
    if (kept.has(claimRef?.uid ?? '')) continue;
    if (policy === 'Delete') problems.push(`volume ${metadata.name} is left of a claim that is gone`);
    // What its data are kept in stays, and says so.
    else kept.add(claimRef?.uid ?? '');
  }
  for (const cluster of members.values()) {
    for (const { metadata } of cluster.list(CLAIMS)) {
      const uid = metadata.annotations?.[HOST_UID_ANNOTATION] ?? '';
      if (metadata.labels?.[HOST_LABEL] === undefined || kept.has(uid)) continue;
      problems.push(`data of claim ${metadata.name} are left in ${cluster.name}`);
    }
  }
  return problems;
}

/** It waits for a claim that somebody has to make first. */
export function lacksClaim({ host }: World, pod: SimObject): boolean {
  return claimPaths(pod).some((path) => isGoing(host, path));
}
