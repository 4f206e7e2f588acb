import { BURST_LABEL, MEMBER_CONSTRAINTS_ANNOTATION, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import { asksForVirtualNode, requiredTerms } from '../api/virtual-node-choice.ts';
import { isKnownOfVirtualNodes } from '../api/virtual-node-labels.ts';
import type { Affinity, Container, NodeSelectorTerm, Pod, PodSpec, Toleration, Volume } from '../kube/core-v1.ts';
import { fieldsOf, rewriteObject } from '../kube/json-fields.ts';
import { isNamedAsTokens } from '../kube/token-volume.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { givesToleration } from '../placement/namespace-burst.ts';
import type { KeptOwner } from '../placement/owner-chain.ts';
import { isUnseenByController, revisionOfNext, SET_REVISION, type SetTemplate } from '../placement/set-revisions.ts';
import { asTemplateAsks } from '../placement/template-requests.ts';
import { withMemberConstraints } from '../pods/translate-constraints.ts';
import type { HostView } from './host-view.ts';

/** What is not known of the pod that comes in the place of another one, in words. */
export interface NextUnknown {
  readonly unknown: string;
}

/** Labels that the controller gives each pod of its own. */
const OWN_LABELS = ['statefulset.kubernetes.io/pod-name', 'apps.kubernetes.io/pod-index'];

/**
 * The pod that its controller makes once this one, whole, is gone, as far as placement looks at it. That is another one like it (before it was
 * resized, see asTemplateAsks), but for a
 * StatefulSet whose template has changed since: with updateStrategy OnDelete, with a partition, and in the course of a roll-out it may ask for
 * something else. (A ReplicaSet makes its pods from its own template, whatever its Deployment rolls out.)
 */
export function nextPod(live: Pod, view: Pick<HostView, 'owners' | 'nodes' | 'namespaceLabels'>): Pod | NextUnknown {
  const { [SET_REVISION]: own } = live.metadata.labels ?? {};
  const [, owner] = view.owners.chainOf(live);
  // Without a node it is itself the one that is to find a place.
  if (owner === undefined || live.spec.nodeName === undefined) return live;
  const set: KeptOwner = owner;
  const another = asTemplateAsks(live, set.spec?.requests);
  if (set.kind !== 'StatefulSet' || own === undefined) return another;
  const revision = revisionOfNext(live.metadata.name, set);
  if (revision === undefined) return another;
  if (isUnseenByController(set)) {
    return {
      unknown:
        'its StatefulSet was changed a moment ago, and its controller has yet to say what its pods are made from',
    };
  }
  if (revision === own) return another;
  const template = revision === set.status?.updateRevision ? set.spec?.template : undefined;
  if (template === undefined) {
    return {
      unknown: `the pod that comes in its place is of revision ${revision}, and it is not known what that asks for`,
    };
  }
  return madeFrom(template, revision, live, view);
}

/** As the template and admission make it. What admission does is taken from what it did to the pod that there is. */
function madeFrom(
  { metadata: { labels, annotations }, spec }: SetTemplate,
  revision: string,
  live: Pod,
  view: Pick<HostView, 'nodes' | 'namespaceLabels'>,
): Pod | NextUnknown {
  const { metadata } = live;
  const { nodeSelector: _, affinity: _affinity, ...rest } = spec;
  const kept = Object.entries(metadata.labels ?? {}).filter(([key]) => OWN_LABELS.includes(key));
  const ofNodes = nodeChoice(spec, annotations, live);
  if ('unknown' in ofNodes) return ofNodes;
  const isGiven = (key: string): boolean =>
    key === VIRTUAL_NODE_TAINT
      ? isGivenVirtualNodes(labels, spec, metadata.namespace, view)
      : key.startsWith('node.kubernetes.io/');
  const {
    hostname,
    subdomain,
    priority,
    priorityClassName,
    overhead,
    runtimeClassName,
    initContainers = [],
  } = live.spec;
  return {
    ...live,
    metadata: {
      ...metadata,
      labels: { ...labels, ...Object.fromEntries(kept), [SET_REVISION]: revision },
      annotations: { ...annotations, ...ofNodes.annotations },
    },
    spec: {
      ...rest,
      ...ofNodes.spec,
      ...(hostname === undefined ? {} : { hostname }),
      ...(subdomain === undefined ? {} : { subdomain }),
      ...(priority === undefined || priorityClassName !== spec.priorityClassName ? {} : { priority }),
      ...(overhead === undefined || runtimeClassName !== spec.runtimeClassName ? {} : { overhead }),
      tolerations: withGiven(spec.tolerations ?? [], live.spec.tolerations ?? [], isGiven),
      volumes: withOwn(spec.volumes ?? [], live),
      containers: spec.containers.map((one) => likeBefore(one, live.spec.containers)),
      ...(spec.initContainers === undefined
        ? {}
        : { initContainers: spec.initContainers.map((one) => likeBefore(one, initContainers)) }),
    },
  };
}

/** What it does is as before; what it asks for is the template's. One of which that says nothing may be given it by a LimitRange. */
function likeBefore(container: Container, before: readonly Container[]): Container {
  const { ports: _, restartPolicy: _policy, ...rest } = before.find(({ name }) => name === container.name) ?? container;
  return { ...rest, ...container };
}

/** Claims by the templates of the set, which nobody can change, and the volume with its token. */
function withOwn(volumes: readonly Volume[], { metadata, spec }: Pod): Volume[] {
  const own = (spec.volumes ?? []).filter(
    ({ name, persistentVolumeClaim }) =>
      persistentVolumeClaim?.claimName === `${name}-${metadata.name}` || isNamedAsTokens(name),
  );
  return [...volumes.filter(({ name }) => !own.some((one) => one.name === name)), ...own];
}

/** Those that admission gives come first, as it does where it has to. */
function withGiven(
  wanted: readonly Toleration[],
  before: readonly Toleration[],
  isGiven: (key: string) => boolean,
): Toleration[] {
  const given = before.filter(({ key = '' }) => isGiven(key) && !wanted.some((one) => one.key === key));
  return [...given, ...wanted];
}

function isGivenVirtualNodes(
  labels: Readonly<Record<string, string>> | undefined,
  spec: PodSpec,
  namespace = '',
  { nodes, namespaceLabels }: Pick<HostView, 'nodes' | 'namespaceLabels'>,
): boolean {
  const isVirtual = (name: string): boolean => nodes.memberOf(name) !== undefined;
  return (
    (givesToleration(namespaceLabels(namespace)) && labels?.[BURST_LABEL] !== 'disabled') ||
    asksForVirtualNode(fieldsOf(spec), isVirtual)
  );
}

/**
 * Which nodes it may be on. Where that is as before, so is what admission made of it (for the nodes of members, in an annotation); where admission
 * has nothing to say, it is what the template says. Else nobody here knows how the host's admission is set up.
 */
function nodeChoice(
  spec: PodSpec,
  annotations: Readonly<Record<string, string>> | undefined,
  live: Pod,
):
  | { readonly spec: Pick<PodSpec, 'nodeSelector' | 'affinity'>; readonly annotations: Record<string, string> }
  | NextUnknown {
  const before = rewriteObject(live.spec, (own) => withMemberConstraints(own, live));
  const made = live.metadata.annotations?.[MEMBER_CONSTRAINTS_ANNOTATION];
  const isAsTold = annotations?.[MEMBER_CONSTRAINTS_ANNOTATION] !== undefined;
  if (!isAsTold && jsonEqual(choiceOf(spec), choiceOf(before))) {
    const { nodeSelector, affinity: { nodeAffinity } = {} } = live.spec;
    const affinity: Affinity = { ...spec.affinity, ...(nodeAffinity === undefined ? {} : { nodeAffinity }) };
    return {
      spec: { ...(nodeSelector === undefined ? {} : { nodeSelector }), affinity },
      annotations: made === undefined ? {} : { [MEMBER_CONSTRAINTS_ANNOTATION]: made },
    };
  }
  if (isAsTold || keysOf(spec).every(isKnownOfVirtualNodes)) {
    const { nodeSelector, affinity } = spec;
    const own = {
      ...(nodeSelector === undefined ? {} : { nodeSelector }),
      ...(affinity === undefined ? {} : { affinity }),
    };
    return { spec: own, annotations: {} };
  }
  return {
    unknown:
      'the pod that comes in its place asks for other labels of nodes, and it is not known what admission makes of that',
  };
}

/** What it requires of nodes, with nothing left out that is empty. */
function choiceOf(spec: PodSpec): unknown {
  const lines = (all: NodeSelectorTerm['matchExpressions'] = []): unknown =>
    all.map(({ key, operator, values = [] }) => [key, operator, values]);
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return [
    spec.nodeSelector ?? {},
    terms.map(({ matchExpressions, matchFields }) => [lines(matchExpressions), lines(matchFields)]),
  ];
}

function keysOf(spec: PodSpec): string[] {
  const terms = requiredTerms(fieldsOf(spec)) as readonly NodeSelectorTerm[];
  return [
    ...Object.keys(spec.nodeSelector ?? {}),
    ...terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)),
  ];
}
