import { LRUCache } from 'lru-cache';
import type { LimitRange, ResourceQuota } from '../kube/namespace-limits.ts';
import type { Namespace } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import type { KubeObject } from '../kube/object.ts';
import type { Amounts } from '../kube/amounts.ts';
import { demandOf } from './demand.ts';
import { requestsOf } from './fit-request.ts';
import type { FitRequest } from './fit-request.ts';
import { shapeKeyOf } from './fit-shape.ts';
import type { ShapeParts } from './fit-shape.ts';
import { underLimits } from './limit-ranges.ts';
import type { Labels } from './pod-terms.ts';
import { quotaUsageOf, ReservedQuota, slotsInQuota, whyOverQuota } from './quotas.ts';
import type { QuotaUsage } from './quotas.ts';

/** A request as it is once the member's admission has filled in the defaults of its namespace. */
export interface AdmittedRequest {
  readonly request: FitRequest;
  readonly requests: Amounts;
  readonly parts: ShapeParts;
  readonly shapeKey: string;
  readonly usage: QuotaUsage;
  readonly spec: FitRequest['spec'];
  /** Why admission refuses it, whatever room there is. */
  readonly refused: string | undefined;
}

const MAX_ADMITTED = 2_048;

/** Most namespaces have no limits, and most requests are asked about in many members. */
const unchanged = new WeakMap<FitRequest, AdmittedRequest>();

function asItIs(request: FitRequest): AdmittedRequest {
  let admitted = unchanged.get(request);
  if (admitted === undefined) {
    admitted = underRanges(request, []);
    unchanged.set(request, admitted);
  }
  return admitted;
}

function underRanges(request: FitRequest, ranges: readonly LimitRange[]): AdmittedRequest {
  const { spec, refused } = underLimits(request.spec, ranges);
  const requests = requestsOf(spec);
  const { choice, hostPorts } = request;
  const parts = { choice, hostPorts, demand: demandOf(requests) };
  return { request, spec, refused, requests, shapeKey: shapeKeyOf(parts), usage: quotaUsageOf(spec), parts };
}

/** Quotas, limits and labels of a member's namespaces, and what they make of requests. */
export class NamespaceRules {
  readonly #labels = new Map<string, Labels>();
  readonly #quotas = new Map<string, Map<string, ResourceQuota>>();
  readonly #limitRanges = new Map<string, Map<string, LimitRange>>();
  readonly #admitted = new LRUCache<string, AdmittedRequest>(atMost(MAX_ADMITTED));
  readonly #reserved = new ReservedQuota();
  readonly #changed: (what: 'labels' | 'rules') => void;
  #version = 0;

  constructor(changed: (what: 'labels' | 'rules') => void) {
    this.#changed = changed;
  }

  /** Grows with every change. */
  get version(): number {
    return this.#version;
  }

  readonly namespaceHandler = {
    added: (namespace: Namespace): void => this.#setLabels(namespace.metadata.name, namespace.metadata.labels ?? {}),
    updated: (namespace: Namespace): void => this.#setLabels(namespace.metadata.name, namespace.metadata.labels ?? {}),
    deleted: (namespace: Namespace): void => this.#setLabels(namespace.metadata.name, undefined),
  };

  readonly quotaHandler = {
    added: (quota: ResourceQuota): void => this.#set(this.#quotas, quota),
    updated: (quota: ResourceQuota): void => this.#set(this.#quotas, quota),
    deleted: (quota: ResourceQuota): void => this.#delete(this.#quotas, quota),
  };

  readonly limitRangeHandler = {
    added: (range: LimitRange): void => this.#setLimitRange(range),
    updated: (range: LimitRange): void => this.#setLimitRange(range),
    deleted: (range: LimitRange): void => {
      this.#admitted.clear();
      this.#delete(this.#limitRanges, range);
    },
  };

  /** A namespace that is not there yet will have at least its name as a label. */
  labelsOf(namespace: string): Labels {
    return this.#labels.get(namespace) ?? { 'kubernetes.io/metadata.name': namespace };
  }

  /** The request with the defaults of its namespace. The same object until these change. */
  admit(request: FitRequest): AdmittedRequest {
    let admitted = this.#admitted.get(request.key);
    if (admitted === undefined) {
      const ranges = this.#limitRanges.get(request.namespace);
      admitted = ranges === undefined ? asItIs(request) : underRanges(request, [...ranges.values()]);
      this.#admitted.set(request.key, admitted);
    }
    return admitted;
  }

  whyOverQuota(admitted: AdmittedRequest): string | undefined {
    const { namespace } = admitted.request;
    const quotas = this.#quotas.get(namespace);
    return quotas === undefined
      ? undefined
      : whyOverQuota([...quotas.values()], admitted, this.#reserved.in(namespace));
  }

  /** How many such pods the quotas of their namespace leave room for; Infinity where there are none. */
  slotsInQuota(admitted: AdmittedRequest): number {
    const { namespace } = admitted.request;
    const quotas = this.#quotas.get(namespace);
    return quotas === undefined ? Infinity : slotsInQuota([...quotas.values()], admitted, this.#reserved.in(namespace));
  }

  /** A pod that the quotas do not count yet, or (with -1) now do. */
  reserve({ request, usage }: AdmittedRequest, times: 1n | -1n): void {
    this.#reserved.add(request.namespace, usage, times);
    this.#version += 1;
  }

  #setLabels(name: string, labels: Labels | undefined): void {
    if (labels === undefined) this.#labels.delete(name);
    else this.#labels.set(name, labels);
    this.#tell('labels');
  }

  #setLimitRange(range: LimitRange): void {
    this.#admitted.clear();
    this.#set(this.#limitRanges, range);
  }

  #set<T extends KubeObject>(all: Map<string, Map<string, T>>, object: T): void {
    const { namespace = '', name } = object.metadata;
    const inNamespace = all.get(namespace) ?? new Map<string, T>();
    all.set(namespace, inNamespace.set(name, object));
    this.#tell('rules');
  }

  #delete<T extends KubeObject>(all: Map<string, Map<string, T>>, { metadata }: T): void {
    const { namespace = '', name } = metadata;
    const inNamespace = all.get(namespace);
    inNamespace?.delete(name);
    if (inNamespace?.size === 0) all.delete(namespace);
    this.#tell('rules');
  }

  #tell(what: 'labels' | 'rules'): void {
    this.#version += 1;
    this.#changed(what);
  }
}
