import { SELECTED_NODE_ANNOTATION } from '../../src/api/storage.ts';
import type { Node } from '../../src/kube/core-v1.ts';
import { asPod, isFinal } from './pod-shapes.ts';
import type { Random } from './random.ts';
import type { Change, SimCluster, SimObject } from './sim-cluster.ts';

export const CLAIMS = '/api/v1/persistentvolumeclaims';
const VOLUMES = '/api/v1/persistentvolumes';
/** Keeps a claim for as long as a pod uses it. */
export const PROTECTION = 'kubernetes.io/pvc-protection';

interface Volume {
  readonly claimRef?: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
  readonly nodeAffinity?: {
    readonly required?: {
      readonly nodeSelectorTerms?: { readonly matchExpressions?: { key: string; values: string[] }[] }[];
    };
  };
}

/** What the controllers of a cluster do about claims and their volumes, and what its scheduler asks of them. */
export class HostVolumes {
  readonly #host: SimCluster;
  readonly #random: Random;

  constructor(host: SimCluster, random: Random) {
    this.#host = host;
    this.#random = random;
  }

  changed({ object, type, path }: Change): void {
    const kind = object['kind'];
    if (kind === 'PersistentVolume' && type === 'ADDED') this.#soon(() => this.#bind(path));
    else if (kind === 'PersistentVolumeClaim' && type === 'DELETED')
      this.#soon(() => this.#release(object.metadata.uid));
    else if (kind === 'PersistentVolumeClaim' && object.metadata.deletionTimestamp !== undefined)
      this.#soon(() => this.#letGo(path));
    else if (kind === 'Pod' && (type === 'DELETED' || isFinal(object)))
      for (const claim of claimPaths(object)) this.#soon(() => this.#letGo(claim));
  }

  #soon(run: () => void): void {
    this.#host.loop.later(this.#random.between(5, 300), run);
  }

  #bind(path: string): void {
    const volume = this.#host.get(path);
    const { claimRef: { namespace = '', name = '', uid } = {} } = (volume?.['spec'] ?? {}) as Volume;
    if (volume === undefined || uid === undefined) return;
    const at = claimPath(namespace, name);
    const claim = this.#host.get(at);
    if (claim?.metadata.uid !== uid) {
      this.#host.patch('volumes', `${path}/status`, { status: { phase: 'Released' } });
      return;
    }
    this.#host.patch('volumes', `${path}/status`, { status: { phase: 'Bound' } });
    this.#host.patch('volumes', at, { spec: { volumeName: volume.metadata.name } });
    this.#host.patch('volumes', `${at}/status`, { status: { phase: 'Bound' } });
  }

  #release(claimUid: string): void {
    for (const volume of this.#host.list(VOLUMES)) {
      if ((volume['spec'] as Volume).claimRef?.uid !== claimUid) continue;
      this.#host.patch('volumes', `${VOLUMES}/${volume.metadata.name}/status`, { status: { phase: 'Released' } });
    }
  }

  #letGo(path: string): void {
    const claim = this.#host.get(path);
    if (claim?.metadata.deletionTimestamp === undefined) return;
    // Pods without a node do not keep it.
    const users = this.#host
      .list('/api/v1/pods')
      .filter((pod) => asPod(pod).spec.nodeName !== undefined && !isFinal(pod) && claimPaths(pod).includes(path));
    if (users.length === 0) this.#host.patch('volumes', path, { metadata: { finalizers: null } });
  }

  /** Whether the pod's claims are there to stay, and their data, as far as they are anywhere, can be used on the node. */
  allows(pod: SimObject, node: Pick<Node, 'metadata'>): boolean {
    return claimPaths(pod).every((path) => {
      if (isGoing(this.#host, path)) return false;
      const volume = this.#volumeOf(path);
      const terms = volume?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
      const expressions = terms.flatMap(({ matchExpressions = [] }) => matchExpressions);
      return expressions.every(({ key, values }) => values.includes(node.metadata.labels?.[key] ?? ''));
    });
  }

  /** Whether the pod can be bound to the node: its claims are. Whoever makes volumes is told where to. */
  isReady(pod: SimObject, node: string): boolean {
    let ready = true;
    for (const path of claimPaths(pod)) {
      const claim = this.#host.get(path);
      const { volumeName } = (claim?.['spec'] ?? {}) as { volumeName?: string };
      if (volumeName !== undefined) continue;
      ready = false;
      if (claim !== undefined && claim.metadata.annotations?.[SELECTED_NODE_ANNOTATION] !== node)
        this.#host.patch('scheduler', path, { metadata: { annotations: { [SELECTED_NODE_ANNOTATION]: node } } });
    }
    return ready;
  }

  #volumeOf(claimAt: string): Volume | undefined {
    const { volumeName } = (this.#host.get(claimAt)?.['spec'] ?? {}) as { volumeName?: string };
    return this.#host.get(`${VOLUMES}/${volumeName ?? ''}`)?.['spec'] as Volume | undefined;
  }
}

/** The claim is not there, or on its way out: no pod begins to use it. */
export function isGoing(host: SimCluster, claimAt: string): boolean {
  const claim = host.get(claimAt);
  return claim === undefined || claim.metadata.deletionTimestamp !== undefined;
}

export function claimPath(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`;
}

/** Of the claims that a pod uses. */
export function claimPaths(pod: SimObject): string[] {
  const { volumes = [] } = asPod(pod).spec as { volumes?: { persistentVolumeClaim?: { claimName: string } }[] };
  return volumes.flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [claimPath(pod.metadata.namespace ?? '', claim.claimName)],
  );
}
