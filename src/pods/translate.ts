import type { HostPathPolicy } from '../api/host-path.ts';
import { memberPriorityClassOf, type PodPriority } from '../api/pod-priority.ts';
import { SERVICE_ACCOUNT_MODE, type ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import { APPLIED_ANNOTATION, appliedAtCreation } from './applied.ts';
import { hostFacts } from './downward-api.ts';
import type { ServiceVariable } from './service-env.ts';
import { rewriteEphemeralVolumes } from './translate-claims.ts';
import { withMemberConstraints } from './translate-constraints.ts';
import { type ContainerContext, rewriteContainers } from './translate-containers.ts';
import { fieldsOf, type JsonRecord, recordOf, rewriteField, rewriteObject, without } from '../kube/json-fields.ts';
import { copiedLabels, memberMetadata } from './translate-metadata.ts';
import { type Refusal, refusalOfPod } from './translate-refusals.ts';
import { rewriteScheduling, type SchedulingContext } from './translate-scheduling.ts';
import { rewriteTokens } from './translate-tokens.ts';
import { injectedTokenVolumes, rewriteVolumes } from './translate-volumes.ts';

/** What translation needs to know besides the pod. */
export interface TranslateContext {
  /** The host's id in marks. */
  hostId: string;
  /** The virtual node the pod is bound to. */
  nodeName: string;
  /** Name of the MemberCluster, for messages. */
  member: string;
  memberNamespace: string;
  /** See serviceEnvFor. */
  serviceEnv: readonly ServiceVariable[];
  /** Keys of a ConfigMap or Secret of the pod's namespace on the host: service variables give way to `envFrom`. */
  environmentKeys?: (kind: 'ConfigMap' | 'Secret', name: string) => Iterable<string>;
  /** The member's namespace for another namespace of the host, if it has one; for pod affinity across namespaces. */
  memberNamespaceOf?: (hostNamespace: string) => string | undefined;
  /** Labels of the virtual node; they tell which of several ORed affinity terms chose it. */
  nodeLabels?: Readonly<Record<string, string>>;
  /** Keys of node labels that only the virtual node has: those of MemberCluster.spec.labels. */
  hostOnlyLabels?: ReadonlySet<string>;
  /** Labels that choose the member's nodes behind this virtual node. */
  poolSelector?: Readonly<Record<string, string>>;
  /** Nodes of the member with all of these labels must not be used. */
  excludedNodes?: Readonly<Record<string, string>>;
  /** What the pod's service account becomes. Default None. */
  serviceAccountMode?: ServiceAccountMode;
  /** Why claims of a pod cannot be used in the member. Default: all can. */
  claimRefusal?: (hostPod: Pod) => Refusal | undefined;
  /** Which paths of the member's nodes pods may mount. Default: none. */
  hostPath?: HostPathPolicy;
  /** What PriorityClasses of the host are in the member. Default: nothing. */
  podPriority?: PodPriority;
}

export type Translation = { kind: 'pod'; pod: Pod } | { kind: 'refused'; reason: string; message: string };

const NOTHING: ReadonlySet<string> = new Set();

/** Fields of the spec that were the host's to act on, or whose values mean nothing in a member. */
const HOST_SPEC = [
  // Names and ranks of the host's objects; the member's admission sets its own, by the class that the mapping gives a copy.
  'nodeName',
  'schedulerName',
  'priority',
  'priorityClassName',
  'preemptionPolicy',
  'overhead',
  'serviceAccountName',
  'serviceAccount',
  // Done with when the pod was bound.
  'schedulingGates',
  'schedulingGroup',
  'workloadRef',
  // Other controllers set these conditions on the host pod, so the host pod's readiness is computed from them there.
  'readinessGates',
  // Refused on creation; they follow through their own subresource.
  'ephemeralContainers',
] as const;

/**
 * The pod to create in the member for a pod of the host, or why there can be none. Everything is copied except the
 * rewrites listed in docs/pod-translation.md, so fields this program has never heard of arrive unchanged. The host pod
 * is not changed; the answer shares the parts of it that stayed.
 */
export function translatePod(hostPod: Pod, context: TranslateContext): Translation {
  const injected = injectedTokenVolumes(recordOf(hostPod.spec) ?? {});
  const refusal = refusalOfPod(hostPod, injected, context);
  if (refusal !== undefined) return { kind: 'refused', ...refusal };
  const spec = memberSpec(hostPod, injected, context);
  const { serviceAccountMode = 'None' } = context;
  const metadata = memberMetadata(hostPod, context, {
    [APPLIED_ANNOTATION]: appliedAtCreation(hostPod),
    ...(serviceAccountMode === 'None' ? {} : { [SERVICE_ACCOUNT_MODE]: serviceAccountMode }),
  });
  const pod = rewriteObject(hostPod, (own) => ({
    ...without(own, ['status']),
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec,
  }));
  return { kind: 'pod', pod };
}

/**
 * The same pod as far as it matters to the member's scheduler and admission: containers and volumes stay as they are, which
 * is most of the work. Not to be created.
 */
export function translateScheduling(hostPod: Pod, context: TranslateContext): Translation {
  const refusal = refusalOfPod(hostPod, injectedTokenVolumes(recordOf(hostPod.spec) ?? {}), context);
  if (refusal !== undefined) return { kind: 'refused', ...refusal };
  const spec = rewriteObject(hostPod.spec, (own) => {
    const kept = { ...without(own, HOST_SPEC), ...memberPriority(hostPod, context) };
    return rewriteScheduling(withMemberConstraints(kept, hostPod), schedulingContext(hostPod, context));
  });
  const { name } = hostPod.metadata;
  const labels = copiedLabels(hostPod) as Record<string, string>;
  return { kind: 'pod', pod: { metadata: { name, namespace: context.memberNamespace, labels }, spec } };
}

function memberSpec(hostPod: Pod, injected: ReadonlySet<string>, context: TranslateContext): JsonRecord {
  const host = fieldsOf(hostPod.spec);
  const { serviceAccountMode = 'None' } = context;
  // Tokens of the host are put in their place.
  const removed = serviceAccountMode === 'Host' ? NOTHING : injected;
  const containers = containerContext(hostPod, removed, context);
  let spec: JsonRecord = {
    ...without(host, HOST_SPEC),
    ...memberPriority(hostPod, context),
    ...(serviceAccountMode === 'Member' ? memberAccount(hostPod, injected) : { automountServiceAccountToken: false }),
    enableServiceLinks: false,
  };
  spec = rewriteField(spec, 'containers', (list) => rewriteContainers(list, containers));
  spec = rewriteField(spec, 'initContainers', (list) => rewriteContainers(list, containers));
  if (serviceAccountMode === 'Host') {
    spec = rewriteField(spec, 'volumes', (list) => rewriteTokens(list, host, hostPod.metadata.uid ?? ''));
  }
  spec = rewriteField(spec, 'volumes', (list) => rewriteVolumes(list, removed));
  spec = rewriteField(spec, 'volumes', (list) => rewriteEphemeralVolumes(list, hostPod.metadata.name));
  return rewriteScheduling(withMemberConstraints(spec, hostPod), schedulingContext(hostPod, context));
}

/** The class alone: the member's admission sets what follows from it, and refuses any other. */
function memberPriority({ spec }: Pod, { podPriority }: TranslateContext): JsonRecord {
  const name = podPriority === undefined ? undefined : memberPriorityClassOf(podPriority, spec.priorityClassName);
  return name === undefined ? {} : { priorityClassName: name };
}

/** The account of the same name in the member, whose admission mounts a token of it where the host's mounted one. */
function memberAccount(hostPod: Pod, injected: ReadonlySet<string>): JsonRecord {
  const { serviceAccountName } = hostPod.spec;
  return {
    ...(serviceAccountName === undefined ? {} : { serviceAccountName }),
    automountServiceAccountToken: injected.size > 0,
  };
}

/** How containers of this pod are rewritten; the same for those that join later. */
export function containerContext(
  hostPod: Pod,
  removedVolumes: ReadonlySet<string>,
  context: TranslateContext,
): ContainerContext {
  return {
    facts: hostFacts(hostPod, context.nodeName),
    removedVolumes,
    serviceEnv: context.serviceEnv,
    environmentKeys: context.environmentKeys,
  };
}

function schedulingContext(hostPod: Pod, context: TranslateContext): SchedulingContext {
  const { namespace } = hostPod.metadata;
  const { nodeName, hostOnlyLabels, poolSelector, excludedNodes, memberNamespace, memberNamespaceOf } = context;
  return {
    nodeName,
    get nodeLabels() {
      return context.nodeLabels;
    },
    hostOnlyLabels,
    poolSelector,
    excludedNodes,
    memberNamespaceOf: (name) => (name === namespace ? memberNamespace : memberNamespaceOf?.(name)),
  };
}
