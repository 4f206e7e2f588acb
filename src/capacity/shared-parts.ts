import type { OwnerReference } from '../kube/object.ts';
import type { Container, PodPhase, PodSpec, PodStatus } from '../api/wire.ts';

/** Parts of each kind kept for sharing before their table starts anew. */
const MAX_PARTS = 4096;

type Shape = Pick<PodSpec, 'containers' | 'initContainers' | 'overhead' | 'resources' | 'affinity'>;

type Labels = Record<string, string>;

/**
 * What pods in a cache have in common, each kept once: of a spec only what decides whether another pod can be on the same node.
 * Pods that are alike then cost little more than their names.
 */
export class SharedParts {
  readonly #shapes = new Map<string, Shape>();
  readonly #labels = new Map<string, Labels>();
  readonly #names = new Map<string, string>();
  readonly #states = new Map<string, PodStatus>();
  readonly #owners = new Map<string, OwnerReference[]>();

  labels(labels: Labels): Labels {
    return shared(this.#labels, JSON.stringify(labels), labels);
  }

  owners(owners: OwnerReference[]): OwnerReference[] {
    return shared(this.#owners, JSON.stringify(owners), owners);
  }

  name(name: string): string {
    return shared(this.#names, name, name);
  }

  status(phase: PodPhase | undefined, nominatedNodeName: string | undefined): PodStatus {
    return shared(this.#states, `${phase ?? ''} ${nominatedNodeName ?? ''}`, {
      ...(phase === undefined ? {} : { phase }),
      ...(nominatedNodeName === undefined ? {} : { nominatedNodeName }),
    });
  }

  /** Its node, requests, host ports, and whom it keeps away. */
  spec(spec: PodSpec): PodSpec {
    const { containers, initContainers, overhead, resources, affinity } = spec;
    const keepsAway = affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    const nodeName = spec.nodeName === undefined ? undefined : this.name(spec.nodeName);
    const shape = this.#shape({
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

  #shape(shape: Shape): Shape {
    return shared(this.#shapes, JSON.stringify(shape), shape);
  }
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
  if (table.size >= MAX_PARTS) table.clear();
  table.set(key, value);
  return value;
}
