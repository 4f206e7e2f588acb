import { GROUP } from './marks.ts';

/** Labels that describe a virtual node, not the nodes behind it. */
const HOST_ONLY_KEYS = new Set([
  'kubernetes.io/hostname',
  'type',
  'node.kubernetes.io/exclude-from-external-load-balancers',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
]);

/** Every virtual node says which it has, and real nodes do too: the key is for both levels. */
const BOTH_LEVELS = 'kubernetes.io/os';

/** A key whose values on a virtual node are its own, whatever its MemberCluster says: no node of the member is asked for them. */
export function describesVirtualNode(key: string): boolean {
  return HOST_ONLY_KEYS.has(key) || key.startsWith(`${GROUP}/`);
}

/** A key that the host's scheduler can judge for any virtual node, whatever labels its MemberCluster adds. */
export function isKnownOfVirtualNodes(key: string): boolean {
  return key === BOTH_LEVELS || describesVirtualNode(key);
}
