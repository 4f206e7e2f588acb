import type { Pod, Volume } from '../kube/core-v1.ts';

/**
 * A pod as its controller makes the next one: without its node and status, and without data that are its own. Where those are
 * says nothing of other pods, so volumes by ephemeral claims and by claim templates of StatefulSets are empty ones here;
 * claims that all pods of the template share stay.
 */
export function templateOf({ metadata, spec }: Pod): Pod {
  const { nodeName: _, volumes, ...rest } = spec;
  const own = (volume: Volume): Volume => withoutOwnData(volume, metadata.name);
  return { metadata, spec: { ...rest, ...(volumes === undefined ? {} : { volumes: volumes.map(own) }) } };
}

/** A StatefulSet names the claim of a pod `<template>-<pod>`, and the volume as the template. */
function withoutOwnData(volume: Volume, podName: string): Volume {
  const { name, ephemeral, persistentVolumeClaim } = volume;
  const isOwn = ephemeral !== undefined || persistentVolumeClaim?.claimName === `${name}-${podName}`;
  return isOwn ? { name, emptyDir: {} } : volume;
}
