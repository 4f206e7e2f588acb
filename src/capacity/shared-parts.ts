import type { CacheShare } from '../kube/cache-room.ts';
import type { OwnerReference } from '../kube/object.ts';
import { isNamedAsTokens } from '../kube/token-volume.ts';
import type { Container, PodPhase, PodSpec, PodStatus } from '../kube/core-v1.ts';

/** What the parts of each kind that are kept for sharing may take, in bytes, before their table starts anew. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Of a part that is not weighed, for each character of its text. */
const CHARACTER = 8;
/** A part's place in its table. */
const ENTRY = 128;

type Shape = Pick<PodSpec, 'containers' | 'initContainers' | 'overhead' | 'resources' | 'affinity'>;

type Labels = Record<string, string>;

/**
 * What pods in a cache have in common, each kept once: of a spec only what decides whether another pod can be on the same node.
 * Pods that are alike then cost little more than their names.
 */
export class SharedParts {
  readonly #shapes: Table<Shape>;
  readonly #wholes: Table<PodSpec>;
  readonly #labels: Table<Labels>;
  readonly #names: Table<string>;
  readonly #states: Table<PodStatus>;
  readonly #owners: Table<OwnerReference[]>;

  /** `share`: what the cluster may take of memory; by default the parts are of a cluster that is trusted. */
  constructor(share?: CacheShare) {
    this.#shapes = new Table(share);
    this.#wholes = new Table(share);
    this.#labels = new Table(share);
    this.#names = new Table(share);
    this.#states = new Table(share);
    this.#owners = new Table(share);
  }

  labels(labels: Labels): Labels {
    return this.#labels.shared(JSON.stringify(labels), labels);
  }

  owners(owners: OwnerReference[]): OwnerReference[] {
    return this.#owners.shared(JSON.stringify(owners), owners);
  }

  name(name: string): string {
    return this.#names.shared(name, name);
  }

  status(phase: PodPhase | undefined, nominatedNodeName: string | undefined): PodStatus {
    return this.#states.shared(`${phase ?? ''} ${nominatedNodeName ?? ''}`, {
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

  /** All of it but what each pod of a template has of its own: its node, its host name, and the volume with its token. */
  whole({ nodeName, ...own }: PodSpec): PodSpec {
    const { hostname: _, ...spec } = own;
    const { containers, initContainers, volumes } = spec;
    const without = (container: Container): Container => {
      const { volumeMounts } = container;
      if (volumeMounts === undefined) return container;
      return { ...container, volumeMounts: volumeMounts.filter(({ name }) => !isNamedAsTokens(name)) };
    };
    const shared = {
      ...spec,
      containers: containers.map(without),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(without) }),
      ...(volumes === undefined ? {} : { volumes: volumes.filter(({ name }) => !isNamedAsTokens(name)) }),
    };
    const whole = this.#wholes.shared(JSON.stringify(shared), shared);
    return nodeName === undefined ? whole : { ...whole, nodeName: this.name(nodeName) };
  }

  #shape(shape: Shape): Shape {
    return this.#shapes.shared(JSON.stringify(shape), shape);
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

class Table<T> {
  readonly #share: CacheShare | undefined;
  readonly #parts = new Map<string, T>();
  #bytes = 0;

  constructor(share: CacheShare | undefined) {
    this.#share = share;
  }

  shared(key: string, value: T): T {
    const known = this.#parts.get(key);
    if (known !== undefined) return known;
    const bytes =
      ENTRY + (this.#share === undefined ? CHARACTER * key.length : 2 * key.length + this.#share.scale.weigh(value));
    if (bytes > MAX_BYTES) return value;
    if (this.#bytes + bytes > MAX_BYTES) {
      this.#parts.clear();
      this.#share?.change(-this.#bytes);
      this.#bytes = 0;
    }
    if (this.#share?.take(bytes) === false) return value;
    this.#bytes += bytes;
    this.#parts.set(key, value);
    return value;
  }
}
