import type { JsonObject } from '../../src/kube/json-equal.ts';
import { DELETION_COST_ANNOTATION } from '../../src/placement/deletion-cost.ts';
import { SET_REVISION } from '../../src/placement/set-revisions.ts';
import { QUOTA } from './divisions.ts';
import { isFinal, isReady, phaseOf } from './pod-shapes.ts';
import type { Random } from './random.ts';
import type { Change, SimCluster, SimObject } from './sim-cluster.ts';
import { PATHS } from './world.ts';

export const WORKLOADS = {
  ReplicaSet: '/apis/apps/v1/replicasets',
  StatefulSet: '/apis/apps/v1/statefulsets',
  Job: '/apis/batch/v1/jobs',
} as const;
type WorkloadKind = keyof typeof WORKLOADS;

const TRACKING = 'batch.kubernetes.io/job-tracking';

interface Workload {
  replicas?: number;
  /** Of ReplicaSets. */
  selector?: { matchLabels: Record<string, string> };
  completions?: number;
  /** Of Jobs; default: 1. */
  parallelism?: number;
  template: {
    metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
    spec: JsonObject;
  };
}

/** The controllers of the host: what they know is always true, what they do takes a moment. */
export class WorkloadControllers {
  readonly #host: SimCluster;
  readonly #random: Random;
  readonly #due = new Set<string>();

  constructor(host: SimCluster, random: Random) {
    this.#host = host;
    this.#random = random;
  }

  /** To be told of all that happens in the host. */
  changed({ path, object, by }: Change): void {
    const kind = object['kind'];
    if (kind === 'Pod') {
      const owner = object.metadata.ownerReferences?.[0];
      if (owner === undefined) for (const path of this.#setsThatWant(object)) this.#soon('ReplicaSet', path);
      else if (owner.kind in WORKLOADS) this.#soon(owner.kind as WorkloadKind, ownerPath(object, owner));
    } else if (typeof kind === 'string' && kind in WORKLOADS && by !== 'workload-controller') {
      this.#soon(kind as WorkloadKind, path);
    }
  }

  #soon(kind: WorkloadKind, path: string): void {
    if (this.#due.has(path)) return;
    this.#due.add(path);
    this.#host.loop.later(this.#random.between(5, 200), () => {
      this.#due.delete(path);
      const object = this.#host.get(path);
      if (object === undefined) this.#collect(path);
      else if (kind === 'ReplicaSet') this.#replicaSet(object);
      else if (kind === 'StatefulSet') this.#statefulSet(object);
      else this.#job(object);
    });
  }

  #podsOf(owner: SimObject): SimObject[] {
    const { namespace = '', uid } = owner.metadata;
    return [...this.#host.list(PATHS.pods(namespace))].filter(({ metadata }) =>
      metadata.ownerReferences?.some((reference) => reference.uid === uid),
    );
  }

  /** ReplicaSets whose selectors choose a pod that nobody owns. */
  #setsThatWant(pod: SimObject): string[] {
    const { namespace } = pod.metadata;
    return [...this.#host.list(WORKLOADS.ReplicaSet)]
      .filter((set) => set.metadata.namespace === namespace && isChosen(pod, set))
      .map((set) => pathOf(set, WORKLOADS.ReplicaSet));
  }

  /** Lets go of pods that its selector does not choose any more, and takes those that it chooses and nobody owns. */
  #claim(owner: SimObject): void {
    const { namespace = '', name, uid } = owner.metadata;
    if (owner.metadata.deletionTimestamp !== undefined) return;
    for (const pod of this.#host.list(PATHS.pods(namespace))) {
      const { ownerReferences = [], deletionTimestamp } = pod.metadata;
      const isOwned = ownerReferences.some((reference) => reference.uid === uid);
      if (isOwned && !isChosen(pod, owner)) {
        this.#host.patch('workload-controller', podPath(pod), {
          metadata: { uid: pod.metadata.uid, ownerReferences: null },
        });
      } else if (
        ownerReferences.length === 0 &&
        isChosen(pod, owner) &&
        !isFinal(pod) &&
        deletionTimestamp === undefined
      ) {
        const reference = { apiVersion: String(owner['apiVersion']), kind: 'ReplicaSet', name, uid, controller: true };
        const metadata = { uid: pod.metadata.uid, ownerReferences: [reference] };
        this.#host.patch('workload-controller', podPath(pod), { metadata });
      }
    }
  }

  /** Pods that are not Ready go first, then those whose deletion cost is lower. */
  #replicaSet(owner: SimObject): void {
    const replicas = Math.min(specOf(owner).replicas ?? 1, quotaOf(owner));
    this.#claim(owner);
    const active = this.#podsOf(owner)
      .filter((pod) => !isFinal(pod) && pod.metadata.deletionTimestamp === undefined)
      .toSorted((a, b) => Number(isReady(b)) - Number(isReady(a)) || costOf(b) - costOf(a));
    for (let i = active.length; i < replicas; i++) this.#pod(owner, `${owner.metadata.name}-${this.#suffix()}`);
    for (const pod of active.slice(replicas)) this.#remove(pod);
    const readyReplicas = active.slice(0, replicas).filter(isReady).length;
    const { status = {} } = owner as { status?: { readyReplicas?: number } };
    if ((status.readyReplicas ?? 0) === readyReplicas) return;
    const path = `${pathOf(owner, WORKLOADS.ReplicaSet)}/status`;
    this.#host.patch('workload-controller', path, { status: { readyReplicas } });
  }

  /** One after the other; a name is used again only when its former pod is gone. */
  #statefulSet(owner: SimObject): void {
    const { replicas = 1 } = specOf(owner);
    const pods = this.#podsOf(owner);
    for (let ordinal = 0; ordinal < replicas; ordinal++) {
      const name = `${owner.metadata.name}-${ordinal}`;
      const pod = pods.find(({ metadata }) => metadata.name === name);
      if (pod === undefined) {
        this.#pod(owner, name);
        return;
      }
      if (pod.metadata.deletionTimestamp !== undefined) return;
      if (isFinal(pod)) {
        this.#remove(pod);
        return;
      }
      if (phaseOf(pod) !== 'Running') return;
    }
    const extra = pods.findLast(({ metadata }) => Number(metadata.name.split('-').at(-1)) >= replicas);
    const left = extra ?? this.#outdated(owner, pods);
    if (left !== undefined && left.metadata.deletionTimestamp === undefined) this.#remove(left);
  }

  /** Of a roll-out: the last pod that is of a former template, if users ever edited that. Says how far it has come. */
  #outdated(owner: SimObject, pods: readonly SimObject[]): SimObject | undefined {
    const revision = specOf(owner).template.metadata?.labels?.[SET_REVISION];
    if (revision === undefined) return undefined;
    const outdated = pods.filter(({ metadata }) => metadata.labels?.[SET_REVISION] !== revision);
    const told = (owner['status'] ?? {}) as { updateRevision?: string; updatedReplicas?: number };
    const updatedReplicas = pods.length - outdated.length;
    if (told.updateRevision !== revision || told.updatedReplicas !== updatedReplicas) {
      const former = told.updateRevision === revision ? undefined : told.updateRevision;
      const status = {
        replicas: pods.length,
        updatedReplicas,
        updateRevision: revision,
        ...(outdated.length === 0
          ? { currentRevision: revision }
          : former === undefined
            ? {}
            : { currentRevision: former }),
      };
      this.#host.patch('workload-controller', `${pathOf(owner, WORKLOADS.StatefulSet)}/status`, { status });
    }
    return outdated.at(-1);
  }

  /** Counts what succeeded and makes new pods for what failed; a pod is let go once it is counted. */
  #job(owner: SimObject): void {
    const { completions = 1, parallelism = 1 } = specOf(owner);
    const status = (owner['status'] ?? {}) as { succeeded?: number; failed?: number };
    let { succeeded = 0, failed = 0 } = status;
    const path = pathOf(owner, WORKLOADS.Job);
    const pods = this.#podsOf(owner);
    for (const pod of pods) {
      if (!isFinal(pod) || !(pod.metadata.finalizers ?? []).includes(TRACKING)) continue;
      if (phaseOf(pod) === 'Succeeded') succeeded += 1;
      else failed += 1;
      this.#host.patch('job-controller', podPath(pod), { metadata: { finalizers: null } });
    }
    if (succeeded !== (status.succeeded ?? 0) || failed !== (status.failed ?? 0)) {
      this.#host.patch('job-controller', `${path}/status`, { status: { succeeded, failed } });
    }
    const active = pods.filter((pod) => !isFinal(pod));
    const wanted = failed < 6 ? Math.min(parallelism, completions - succeeded) : 0;
    for (let i = active.length; i < wanted; i++) {
      this.#pod(owner, `${owner.metadata.name}-${this.#suffix()}`, [TRACKING]);
    }
  }

  #pod(owner: SimObject, name: string, finalizers: string[] = []): void {
    const { namespace = '', uid } = owner.metadata;
    if (this.#host.get(`${PATHS.pods(namespace)}/${name}`) !== undefined) return;
    const kind = String(owner['kind']);
    const { metadata: { labels, annotations } = {}, spec } = specOf(owner).template;
    this.#host.create('workload-controller', PATHS.pods(namespace), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace,
        labels: { app: owner.metadata.name, ...specOf(owner).selector?.matchLabels, ...labels },
        ...(annotations === undefined ? {} : { annotations }),
        ownerReferences: [
          { apiVersion: String(owner['apiVersion']), kind, name: owner.metadata.name, uid, controller: true },
        ],
        ...(finalizers.length === 0 ? {} : { finalizers }),
      },
      spec,
    });
  }

  #remove(pod: SimObject): void {
    const { uid } = pod.metadata;
    this.#host.remove('workload-controller', podPath(pod), { preconditions: { uid } });
  }

  /** A Job that is gone counts nothing any more: its pods are let go. */
  #collect(ownerPathGone: string): void {
    const [namespace = '', , name] = ownerPathGone.split('/').slice(-3);
    for (const pod of this.#host.list(PATHS.pods(namespace))) {
      if (pod.metadata.ownerReferences?.[0]?.name !== name) continue;
      if ((pod.metadata.finalizers ?? []).length > 0) {
        this.#host.patch('job-controller', podPath(pod), { metadata: { finalizers: null } });
      }
    }
  }

  #suffix(): string {
    return Array.from({ length: 5 }, () => 'bcdfghjklmnpqrstvwxz2456789'[this.#random.int(27)]).join('');
  }
}

export function podPath(pod: SimObject): string {
  return `${PATHS.pods(pod.metadata.namespace ?? '')}/${pod.metadata.name}`;
}

/** Of an object of a namespaced kind, from the path of its kind. */
export function pathOf(object: SimObject, kind: string): string {
  const at = kind.lastIndexOf('/');
  return `${kind.slice(0, at)}/namespaces/${object.metadata.namespace}${kind.slice(at)}/${object.metadata.name}`;
}

function ownerPath(pod: SimObject, owner: { kind: string; name: string }): string {
  const kind = WORKLOADS[owner.kind as WorkloadKind];
  return pathOf({ ...pod, metadata: { ...pod.metadata, name: owner.name } }, kind);
}

function costOf({ metadata }: SimObject): number {
  return Number(metadata.annotations?.[DELETION_COST_ANNOTATION] ?? 0);
}

/** How many pods others than its user let it have. */
function quotaOf({ metadata }: SimObject): number {
  return Number(metadata.labels?.[QUOTA] ?? Number.POSITIVE_INFINITY);
}

function specOf(owner: SimObject): Workload {
  return owner['spec'] as Workload;
}

function isChosen(pod: SimObject, set: SimObject): boolean {
  const wanted = Object.entries(specOf(set).selector?.matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([key, value]) => pod.metadata.labels?.[key] === value);
}

/** Of a ReplicaSet, as a Deployment makes them. */
export function selectorOf(name: string): { matchLabels: Record<string, string> } {
  return { matchLabels: { app: name, 'pod-template-hash': `hash-of-${name}` } };
}
