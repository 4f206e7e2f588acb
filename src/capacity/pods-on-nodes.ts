import type { Pod } from '../kube/core-v1.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf } from '../kube/object.ts';
import type { Amounts } from '../kube/amounts.ts';
import { demandOf } from './demand.ts';
import type { Demand } from './demand.ts';
import { hostPortsOf } from './host-ports.ts';
import type { HostPort } from './host-ports.ts';
import type { CountedPod } from './pod-counts.ts';
import type { Load, NodeTable } from './node-table.ts';
import { holdsResources, podRequests } from './pod-requests.ts';
import { antiAffinityTermsOf } from './pod-terms.ts';
import type { Labels, PodTerm } from './pod-terms.ts';

/** A pod that takes room on a node. */
export interface PlacedPod extends CountedPod, Load {}

/** What a pod is to others, besides its name and labels; shared by the pods of one shape. */
interface Part {
  readonly requests: Amounts;
  readonly demand: Demand;
  readonly hostPorts: readonly HostPort[];
  readonly antiAffinity: readonly PodTerm[];
}

/** There is one for each pod of the member, so it holds next to nothing itself. */
export class HeldPod implements PlacedPod {
  readonly row: number;
  /** The pod it was made from, which the cache holds anyway. */
  source: Pod;
  readonly #part: Part;

  constructor(source: Pod, row: number, part: Part) {
    this.source = source;
    this.row = row;
    this.#part = part;
  }

  get node(): string {
    return nodeOf(this.source) ?? '';
  }

  get namespace(): string {
    return this.source.metadata.namespace ?? '';
  }

  get labels(): Labels {
    return this.source.metadata.labels ?? NO_LABELS;
  }

  get deleting(): boolean {
    return isBeingDeleted(this.source);
  }

  get requests(): Amounts {
    return this.#part.requests;
  }

  get demand(): Demand {
    return this.#part.demand;
  }

  get hostPorts(): readonly HostPort[] {
    return this.#part.hostPorts;
  }

  get antiAffinity(): readonly PodTerm[] {
    return this.#part.antiAffinity;
  }
}

const NO_LABELS: Labels = {};

/** Pods of one shape share their amounts; more shapes than this start the table anew. */
const MAX_PARTS = 4_096;

/** Puts the pods of a member on their nodes, as events come. Pods without a node, and finished ones, hold nothing. */
export class PodsOnNodes {
  readonly #table: NodeTable;
  readonly #added: (pod: HeldPod) => void;
  readonly #removed: (pod: HeldPod) => void;
  readonly #pods = new Map<string, HeldPod>();
  /** Of pods without host ports and anti-affinity, which are nearly all. */
  readonly #parts = new Map<string, Part>();

  /** `added` and `removed` are told after the table. */
  constructor(table: NodeTable, added: (pod: HeldPod) => void, removed: (pod: HeldPod) => void) {
    this.#table = table;
    this.#added = added;
    this.#removed = removed;
  }

  values(): IterableIterator<HeldPod> {
    return this.#pods.values();
  }

  get size(): number {
    return this.#pods.size;
  }

  set(pod: Pod): void {
    const nodeName = nodeOf(pod);
    if (nodeName === undefined || !holdsResources(pod)) {
      this.delete(pod);
      return;
    }
    const id = idOf(pod);
    const before = this.#pods.get(id);
    const sameNode = before !== undefined && nodeOf(before.source) === nodeName;
    if (sameNode && isSameShape(before.source, pod)) {
      before.source = pod;
      return;
    }
    const part = this.#partOf(pod);
    if (sameNode && isSame(before, pod, part)) {
      before.source = pod;
      return;
    }
    if (before !== undefined) this.#take(id, before);
    const held = new HeldPod(pod, this.#table.addPod(nodeName, part), part);
    this.#pods.set(id, held);
    this.#added(held);
  }

  delete(pod: Pod): void {
    const id = idOf(pod);
    const held = this.#pods.get(id);
    if (held !== undefined) this.#take(id, held);
  }

  #take(id: string, held: HeldPod): void {
    this.#pods.delete(id);
    this.#removed(held);
    this.#table.removePod(held.row, held);
  }

  #partOf(pod: Pod): Part {
    const { namespace = '', labels = NO_LABELS } = pod.metadata;
    const requests = podRequests(pod);
    const demand = demandOf(requests);
    const hostPorts = hostPortsOf(pod.spec);
    const antiAffinity = antiAffinityTermsOf(pod.spec, { namespace, labels });
    const part = { requests, demand, hostPorts, antiAffinity };
    if (hostPorts.length + antiAffinity.length > 0) return part;
    const known = this.#parts.get(demand.key);
    if (known !== undefined) return known;
    if (this.#parts.size >= MAX_PARTS) this.#parts.clear();
    this.#parts.set(demand.key, part);
    return part;
  }
}

/** A pod for which others were evicted has its node reserved before it is bound. */
function nodeOf({ spec, status }: Pod): string | undefined {
  const name = spec.nodeName ?? '';
  if (name !== '') return name;
  const nominated = status?.nominatedNodeName ?? '';
  return nominated === '' ? undefined : nominated;
}

/** It has no node yet, and counts on one. */
export function isNominated(pod: Pod): boolean {
  return (pod.spec.nodeName ?? '') === '' && nodeOf(pod) !== undefined;
}

/** The UID tells a pod from its successor of the same name. */
function idOf(pod: Pod): string {
  return pod.metadata.uid ?? keyOf(pod);
}

function isBeingDeleted(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}

/** The same at a glance: projections of pods share their parts. */
function isSameShape(a: Pod, b: Pod): boolean {
  return (
    a.spec.containers === b.spec.containers &&
    a.spec.initContainers === b.spec.initContainers &&
    a.spec.affinity === b.spec.affinity &&
    a.spec.overhead === b.spec.overhead &&
    a.spec.resources === b.spec.resources &&
    a.metadata.labels === b.metadata.labels &&
    isBeingDeleted(a) === isBeingDeleted(b) &&
    b.status?.containerStatuses === undefined
  );
}

function isSame(held: HeldPod, pod: Pod, { demand, hostPorts, antiAffinity }: Part): boolean {
  return (
    held.deleting === isBeingDeleted(pod) &&
    held.demand.key === demand.key &&
    jsonEqual(held.labels, pod.metadata.labels ?? NO_LABELS) &&
    jsonEqual(held.hostPorts, hostPorts) &&
    held.antiAffinity.length === antiAffinity.length &&
    held.antiAffinity.every(({ key }, index) => key === antiAffinity[index]?.key)
  );
}
