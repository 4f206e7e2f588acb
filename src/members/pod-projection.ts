import { HOST_LABEL } from '../api/marks.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { grantedSpec } from '../capacity/pod-requests.ts';
import { SharedParts } from '../capacity/shared-parts.ts';
import type { CacheShare } from '../kube/cache-room.ts';
import type { KubeObject } from '../kube/object.ts';

/**
 * What the cache keeps of a member's pods: ours whole; of all others only what decides whether
 * another pod can be on the same node: requests, host ports, labels, and whom they keep away. Pods that are alike share
 * these parts, so a foreign pod costs about half a KiB.
 */
export function podProjection(hostId: string, share?: CacheShare): (raw: KubeObject) => Pod {
  const parts = new SharedParts(share);
  return (raw) => {
    const pod = raw as Pod;
    return pod.metadata.labels?.[HOST_LABEL] === hostId ? pod : foreignPod(pod, parts);
  };
}

/** Of images only the names are kept, each once for all nodes: they are most of the bytes. */
export function nodeProjection(share?: CacheShare): (raw: KubeObject) => Node {
  const parts = new SharedParts(share);
  return (raw) => {
    const node = raw as Node;
    if (node.status?.images === undefined) return node;
    const all = node.status.images.flatMap((image) => image.names ?? []);
    const images = [{ names: all.map((name) => parts.name(name)) }];
    return { ...node, status: { ...node.status, images } };
  };
}

function foreignPod(pod: Pod, share: SharedParts): Pod {
  const { phase, nominatedNodeName } = pod.status ?? {};
  const nominated = pod.spec.nodeName === undefined ? nominatedNodeName : undefined;
  const spec = share.spec(grantedSpec(pod));
  const metadata = foreignMetadata(pod, share);
  if (phase === undefined && nominated === undefined) return { metadata, spec };
  return { metadata, spec, status: share.status(phase, nominated) };
}

/**
 * The same fields in the same order for nearly all pods: then an object takes half the memory of one that is put together
 * from parts.
 */
function foreignMetadata({ metadata }: Pod, share: SharedParts): Pod['metadata'] {
  const { name, uid, resourceVersion, deletionTimestamp } = metadata;
  const namespace = metadata.namespace === undefined ? undefined : share.name(metadata.namespace);
  const labels = metadata.labels === undefined ? undefined : share.labels(metadata.labels);
  const usual = namespace !== undefined && uid !== undefined && resourceVersion !== undefined;
  if (usual && labels !== undefined && deletionTimestamp === undefined) {
    return { name, namespace, uid, resourceVersion, labels };
  }
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(labels === undefined ? {} : { labels }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  };
}
