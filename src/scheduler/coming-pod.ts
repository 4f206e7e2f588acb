import { GANG_LABEL } from '../api/marks.ts';
import { isActive } from '../api/pod-phase.ts';
import { asOwned, releasedFrom } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';

/** A pod that a scheduler is to find a node for, by itself: room for gangs is held by the places that these are given. */
export function needsNode(pod: Pod): boolean {
  const { spec, metadata } = pod;
  if ((spec.nodeName ?? '') !== '' || (spec.schedulingGates ?? []).length > 0) return false;
  return isActive(pod) && metadata.labels?.[GANG_LABEL] === undefined;
}

/** A pod that ends, or is released, and has a controller that may make another one. */
export function makesWay(pod: Pod): boolean {
  const { metadata, spec } = pod;
  if ((spec.nodeName ?? '') === '' || metadata.labels?.[GANG_LABEL] !== undefined) return false;
  if (metadata.deletionTimestamp === undefined && releasedFrom(pod) === undefined) return false;
  return controllerOf(asOwned(pod)) !== undefined;
}
