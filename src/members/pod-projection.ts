import { HOST_LABEL } from '../api/marks.ts';
import type { Container, Node, Pod, PodPhase, PodSpec, PodStatus } from '../api/wire.ts';
import { type KubeObject, withoutManagedFields } from '../kube/object.ts';

/** Shapes kept for sharing before the table starts anew. */
const MAX_SHAPES = 4096;

type Shape = Pick<PodSpec, 'containers' | 'initContainers' | 'overhead' | 'resources' | 'affinity'>;

type Labels = Record<string, string>;

/** The parts that pods have in common, each kept once. */
interface Sharing {
  shape(shape: Shape): Shape;
  labels(labels: Labels): Labels;
  name(name: string): string;
  status(phase: PodPhase | undefined, nominatedNodeName: string | undefined): PodStatus;
}

/**
 * What the cache keeps of a member's pods: ours whole, without managedFields; of all others only what decides whether
 * another pod can be on the same node: requests, host ports, labels, and whom they keep away. Pods that are alike share
 * these parts, so a foreign pod costs about half a KiB.
 */
export function podProjection(hostId: string): (raw: KubeObject) => Pod {
  const shapes = new Map<string, Shape>();
  const labels = new Map<string, Labels>();
  const names = new Map<string, string>();
  const states = new Map<string, PodStatus>();
  return (raw) => {
    const pod = raw as Pod;
    if (pod.metadata.labels?.[HOST_LABEL] === hostId) return withoutManagedFields(pod);
    return foreignPod(pod, {
      shape: (shape) => shared(shapes, JSON.stringify(shape), shape),
      labels: (own) => shared(labels, JSON.stringify(own), own),
      name: (name) => shared(names, name, name),
      status: (phase, nominatedNodeName) =>
        shared(states, `${phase ?? ''} ${nominatedNodeName ?? ''}`, {
          ...(phase === undefined ? {} : { phase }),
          ...(nominatedNodeName === undefined ? {} : { nominatedNodeName }),
        }),
    });
  };
}

/** Nodes lose managedFields. Of images only the names are kept, each once for all nodes: they are most of the bytes. */
export function nodeProjection(): (raw: KubeObject) => Node {
  const names = new Map<string, string>();
  return (raw) => {
    const node = withoutManagedFields(raw as Node);
    if (node.status?.images === undefined) return node;
    const all = node.status.images.flatMap((image) => image.names ?? []);
    const images = [{ names: all.map((name) => shared(names, name, name)) }];
    return { ...node, status: { ...node.status, images } };
  };
}

function foreignPod(pod: Pod, share: Sharing): Pod {
  const { phase, nominatedNodeName } = pod.status ?? {};
  const nominated = pod.spec.nodeName === undefined ? nominatedNodeName : undefined;
  const spec = foreignSpec(pod.spec, share);
  const metadata = foreignMetadata(pod, share);
  if (phase === undefined && nominated === undefined) return { metadata, spec };
  return { metadata, spec, status: share.status(phase, nominated) };
}

/**
 * The same fields in the same order for nearly all pods: then an object takes half the memory of one that is put together
 * from parts.
 */
function foreignMetadata({ metadata }: Pod, share: Sharing): Pod['metadata'] {
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

function foreignSpec(spec: PodSpec, share: Sharing): PodSpec {
  const { containers, initContainers, overhead, resources, affinity } = spec;
  const keepsAway = affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const nodeName = spec.nodeName === undefined ? undefined : share.name(spec.nodeName);
  const shape = share.shape({
    containers: containers.map((container) => demandOf(container)),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map((one) => demandOf(one)) }),
    ...(overhead === undefined ? {} : { overhead }),
    ...(resources?.requests === undefined ? {} : { resources: { requests: resources.requests } }),
    ...(keepsAway === undefined
      ? {}
      : { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: keepsAway } } }),
  });
  if (nodeName !== undefined && Object.keys(shape).length === 1) return { containers: shape.containers, nodeName };
  return { ...shape, ...(nodeName === undefined ? {} : { nodeName }) };
}

/** A container without anything but its requests, its host ports, and whether it is a sidecar. */
function demandOf(container: Container): Container {
  const requests = container.resources?.requests;
  const ports = container.ports?.filter(({ hostPort }) => hostPort !== undefined);
  return {
    name: '',
    ...(requests === undefined ? {} : { resources: { requests } }),
    ...(container.restartPolicy === undefined ? {} : { restartPolicy: container.restartPolicy }),
    ...(ports === undefined || ports.length === 0
      ? {}
      : {
          ports: ports.map(({ containerPort, hostPort, hostIP, protocol }) => ({
            containerPort,
            ...(hostPort === undefined ? {} : { hostPort }),
            ...(hostIP === undefined ? {} : { hostIP }),
            ...(protocol === undefined ? {} : { protocol }),
          })),
        }),
  };
}

function shared<T>(table: Map<string, T>, key: string, value: T): T {
  const known = table.get(key);
  if (known !== undefined) return known;
  if (table.size >= MAX_SHAPES) table.clear();
  table.set(key, value);
  return value;
}
