import { EXTENDER_RESOURCE, GROUP } from '../api/marks.ts';
import type {
  Affinity,
  Container,
  NodeSelector,
  Pod,
  PodSpec,
  ResourceList,
  ResourceRequirements,
} from '../kube/core-v1.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import type { Amounts } from '../kube/amounts.ts';
import { whyTooManyConstraints, withoutConstraints } from './constraint-size.ts';
import type { InterPodConstraints } from './inter-pod-constraints.ts';
import { hostPortsOf } from './host-ports.ts';
import type { HostPort } from './host-ports.ts';
import { nodeChoiceOf } from './node-choice.ts';
import type { NodeChoice } from './node-choice.ts';
import { podRequests } from './pod-requests.ts';
import { affinityTermsOf, antiAffinityTermsOf, spreadRulesOf } from './pod-terms.ts';

/** What a pod asks of a member's nodes and of its namespace there: compiled once for all pods of one shape. */
export interface FitRequest {
  /** The same text means the same answers. */
  readonly key: string;
  /** What the pod asks for as it is written, before the defaults of its namespace in the member. */
  readonly requests: Amounts;
  /** What the host's scheduler counts for the pod of resources of which that is more (host-count.ts). */
  readonly hostCount?: Amounts;
  /** The virtual node it would come through, whose headroom and caps count. */
  readonly virtualNode: string;
  /** In the member. */
  readonly namespace: string;
  /** The parts of the pod that count, as the member's API server fills them in. */
  readonly spec: FitSpec;
  readonly choice: NodeChoice;
  /** Node labels it asks for, for people: `disk=ssd,zone=a`; '' for none. */
  readonly where: string;
  readonly hostPorts: readonly HostPort[];
  readonly interPod: InterPodConstraints;
}

/** What quota and limits look at. */
export interface FitSpec {
  readonly containers: readonly Container[];
  readonly initContainers: readonly Container[];
  readonly resources: ResourceRequirements | undefined;
  readonly overhead: PodSpec['overhead'];
  readonly priorityClassName: string | undefined;
  readonly hasDeadline: boolean;
  /** Its pod affinity, preferred or required, names other namespaces. */
  readonly crossesNamespaces: boolean;
}

/**
 * Compiles a pod as it will be in the member: with its namespace there, rewritten constraints, and overrides. Neither its
 * name nor anything else that differs from pod to pod of a workload counts, labels excepted. Of a pod that asks too much of nodes
 * and other pods (constraint-size.ts) none of that counts. `volumes`: the nodes that volumes of its claims are limited to.
 */
export function fitRequestOf(memberPod: Pod, virtualNode: string, volumes: readonly NodeSelector[] = []): FitRequest {
  const { spec } = memberPod;
  const bounded = whyTooManyConstraints(spec) === undefined ? spec : withoutConstraints(spec);
  return compiled(memberPod, bounded, virtualNode, volumes);
}

/** The same for a pod that is asked about: one that asks too much is refused, in words for people. */
export function boundedRequestOf(
  memberPod: Pod,
  virtualNode: string,
  volumes: readonly NodeSelector[],
): FitRequest | { readonly refused: string } {
  const tooMany = whyTooManyConstraints(memberPod.spec);
  return tooMany === undefined ? compiled(memberPod, memberPod.spec, virtualNode, volumes) : { refused: tooMany };
}

/** `bounded`: what of the pod's constraints counts. */
function compiled(memberPod: Pod, bounded: PodSpec, virtualNode: string, volumes: readonly NodeSelector[]): FitRequest {
  const { namespace = '' } = memberPod.metadata;
  const labels = withoutMarks(memberPod.metadata.labels ?? {});
  const { nodeSelector, tolerations, topologySpreadConstraints } = bounded;
  const affinity = requiredPart(bounded.affinity);
  const spec = fitSpecOf(memberPod.spec);
  const labelledPod = { namespace, labels };
  const labelledPodKey = canonicalJson([namespace, labels]);
  const hostPorts = hostPortsOf(memberPod.spec);
  const required = {
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(affinity === undefined ? {} : { affinity }),
    ...(tolerations === undefined ? {} : { tolerations }),
  };
  return {
    key: canonicalJson([
      virtualNode,
      labelledPodKey,
      spec,
      hostPorts,
      required,
      topologySpreadConstraints?.filter(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule'),
      volumes,
    ]),
    requests: requestsOf(spec),
    virtualNode,
    namespace,
    spec,
    choice: nodeChoiceOf(required, volumes),
    where: Object.entries(nodeSelector ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .toSorted()
      .join(),
    hostPorts,
    interPod: {
      labelledPodKey,
      labelledPod,
      affinity: affinityTermsOf(bounded, labelledPod),
      antiAffinity: antiAffinityTermsOf(bounded, labelledPod),
      spread: spreadRulesOf(bounded, labels),
    },
  };
}

/** What is only preferred refuses no node. */
function requiredPart({ nodeAffinity, podAffinity, podAntiAffinity }: Affinity = {}): Affinity | undefined {
  const ofNodes = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const near = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const apart = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (ofNodes === undefined && near === undefined && apart === undefined) return undefined;
  return {
    ...(ofNodes === undefined ? {} : { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: ofNodes } }),
    ...(near === undefined ? {} : { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: near } }),
    ...(apart === undefined ? {} : { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: apart } }),
  };
}

/** Requests of a pod with these parts. */
export function requestsOf({ containers, initContainers, resources, overhead }: FitSpec): Amounts {
  return podRequests({
    metadata: { name: '' },
    spec: {
      containers: [...containers],
      initContainers: [...initContainers],
      ...(resources === undefined ? {} : { resources }),
      ...(overhead === undefined ? {} : { overhead }),
    },
  });
}

/** Our own marks tell pods apart; nobody chooses pods by them. */
function withoutMarks(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !key.startsWith(`${GROUP}/`)));
}

function fitSpecOf(spec: PodSpec): FitSpec {
  const { containers, initContainers = [], resources, overhead, priorityClassName, activeDeadlineSeconds } = spec;
  return {
    containers: containers.map(demandingPart),
    initContainers: initContainers.map(demandingPart),
    resources,
    overhead,
    priorityClassName,
    hasDeadline: activeDeadlineSeconds !== undefined,
    crossesNamespaces: crossesNamespaces(spec),
  };
}

/** A container without what takes no room. A limit without a request is a request, as the API server fills it in. */
function demandingPart({ name, resources, restartPolicy }: Container): Container {
  const { limits, requests } = withoutMark(resources);
  return {
    name,
    ...(limits === undefined && requests === undefined
      ? {}
      : { resources: { requests: { ...limits, ...requests }, ...(limits === undefined ? {} : { limits }) } }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
  };
}

/** What tells the host's scheduler whom to ask is no demand. */
function withoutMark(resources: ResourceRequirements = {}): Pick<ResourceRequirements, 'limits' | 'requests'> {
  const { requests, limits } = resources;
  if (requests === undefined || !Object.hasOwn(requests, EXTENDER_RESOURCE)) return resources;
  return { requests: others(requests), ...(limits === undefined ? {} : { limits: others(limits) }) };
}

function others(amounts: ResourceList): ResourceList {
  const { [EXTENDER_RESOURCE]: _, ...left } = amounts;
  return left;
}

function crossesNamespaces({ affinity }: PodSpec): boolean {
  const { podAffinity, podAntiAffinity } = affinity ?? {};
  return [podAffinity, podAntiAffinity].some((part) => {
    const required = part?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const preferred = part?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    const terms = [...required, ...preferred.map(({ podAffinityTerm }) => podAffinityTerm)];
    return terms.some(
      ({ namespaces = [], namespaceSelector }) => namespaces.length > 0 || namespaceSelector !== undefined,
    );
  });
}
