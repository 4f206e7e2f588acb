import type { MemberCapacity } from '../capacity/member-capacity.ts';
import type { NodeImages } from '../capacity/node-images.ts';
import type { MemberCaches } from '../members/member-caches.ts';

/** Lets what is known of a member's room follow the caches. Returns what ends that. */
export function feedCapacity(
  { nodes, pods, namespaces, quotas, limitRanges }: MemberCaches,
  capacity: MemberCapacity,
  images: NodeImages,
): (() => void)[] {
  return [
    nodes.on(capacity.nodeHandler),
    nodes.on(images.nodeHandler),
    pods.on(capacity.podHandler),
    namespaces.on(capacity.namespaceHandler),
    quotas.on(capacity.quotaHandler),
    limitRanges.on(capacity.limitRangeHandler),
  ];
}
