import type { Resource } from '../kube/resource.ts';

/** Of ClusterRoles that are added to what Spillway may read of owners of pods: manifests/rbac.yaml. */
const OWNERS_ROLE_LABEL = 'spillway.dev/aggregate-to-owners';

/** That objects of a kind may not be read, and what to grant, in words. */
export function ownersMayNotBeRead({ group, plural }: Pick<Resource, 'group' | 'plural'>): string {
  return (
    `Spillway may not read ${plural}.${group}: make a ClusterRole with the label ${OWNERS_ROLE_LABEL}: "true" that lets ` +
    'get, list and watch them'
  );
}
