import { HOST_LABEL } from '../api/marks.ts';
import type { Container, Node, Pod, PodSpec } from '../api/wire.ts';
import type { KubeObject } from '../kube/object.ts';

/** Shapes kept for sharing before the table starts anew. */
const MAX_SHAPES = 4096;

type Shape = Pick<PodSpec, 'containers' | 'initContainers' | 'overhead' | 'resources'>;

/**
 * What the cache keeps of a member's pods: ours whole, without managedFields; of all others only what decides how much
 * of a node they take. Pods that ask for the same things share these parts, so a foreign pod costs about half a KiB.
 */
export function podProjection(hostId: string): (raw: KubeObject) => Pod {
  const shapes = new Map<string, Shape>();
  const names = new Map<string, string>();
  return (raw) => {
    const pod = raw as Pod;
    if (pod.metadata.labels?.[HOST_LABEL] === hostId) return withoutManagedFields(pod);
    return foreignPod(
      pod,
      (shape) => shared(shapes, JSON.stringify(shape), shape),
      (name) => shared(names, name, name),
    );
  };
}

/** Nodes lose managedFields and the list of images, which are most of their bytes. */
export function nodeProjection(raw: KubeObject): Node {
  const node = withoutManagedFields(raw as Node);
  if (node.status?.images === undefined) return node;
  const { images: _, ...status } = node.status;
  return { ...node, status };
}

export function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (!('managedFields' in object.metadata)) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function foreignPod(pod: Pod, shareShape: (shape: Shape) => Shape, shareName: (name: string) => string): Pod {
  const { name, namespace, uid, resourceVersion } = pod.metadata;
  const { containers, initContainers, overhead, resources, nodeName } = pod.spec;
  const shape = shareShape({
    containers: containers.map((container) => demandOf(container)),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map((one) => demandOf(one)) }),
    ...(overhead === undefined ? {} : { overhead }),
    ...(resources?.requests === undefined ? {} : { resources: { requests: resources.requests } }),
  });
  const phase = pod.status?.phase;
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace: shareName(namespace) }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    spec: { ...shape, ...(nodeName === undefined ? {} : { nodeName: shareName(nodeName) }) },
    ...(phase === undefined ? {} : { status: { phase } }),
  };
}

/** A container without anything but its requests, and whether it is a sidecar. */
function demandOf(container: Container): Container {
  const requests = container.resources?.requests;
  return {
    name: '',
    ...(requests === undefined ? {} : { resources: { requests } }),
    ...(container.restartPolicy === undefined ? {} : { restartPolicy: container.restartPolicy }),
  };
}

function shared<T>(table: Map<string, T>, key: string, value: T): T {
  const known = table.get(key);
  if (known !== undefined) return known;
  if (table.size >= MAX_SHAPES) table.clear();
  table.set(key, value);
  return value;
}
