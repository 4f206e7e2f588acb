import { GANG_LABEL, GANG_PLACED_ANNOTATION, GROUP, MIRRORED_CONDITION, RELEASED_ANNOTATION } from '../api/marks.ts';
import { isFinished } from '../api/pod-phase.ts';
import { memberOfNode } from '../api/provider-id.ts';
import { TEMPLATE_HASH } from '../api/released.ts';
import type { Condition, Container, Namespace, Node, Pod } from '../kube/core-v1.ts';
import { grantedSpec } from '../capacity/pod-requests.ts';
import { SharedParts } from '../capacity/shared-parts.ts';
import { recordOf } from '../kube/json-fields.ts';
import type { KubeObject, ObjectMeta } from '../kube/object.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { defined } from '../kube/defined.ts';
import { usesClaims } from '../kube/uses-claims.ts';
import { DELETION_COST_ANNOTATION, OWN_COST_ANNOTATION } from '../placement/deletion-cost.ts';
import { ROLLOUT_ANNOTATIONS } from '../placement/owner-chain.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import { rulingOut } from '../placement/ruled-out-labels.ts';
import { keptOfSet } from '../placement/set-revisions.ts';
import { templateRequests } from '../placement/template-requests.ts';
import { makesWay, needsNode } from './coming-pod.ts';

/** Host pods show by this condition, while it is False, that the member's scheduler finds no node for them. */
export const MEMBER_SCHEDULED_CONDITION = `${GROUP}/MemberScheduled`;

/** What the caches keep of each object: only what placement looks at, so that a large host stays small here. */

/** Annotations of owners that placement reads have this prefix, or tell of roll-outs. */
const FEDERATION = 'federation.';

/**
 * Labels, the controller, how many pods it asks for and in which order, and which labels these must not have; of a DaemonSet which pods are its
 * own, of a ReplicaSet whether it tells them from those of others by their template, of a Job whether it makes any now, and any
 * before those that end have ended, of a Deployment that two
 * revisions must not run side by side, of a StatefulSet what its
 * next pods are made from, while that is not what all are of, and of what makes pods what these ask for, as pods may be resized.
 */
export function ownerProjection(apiVersion: string, kind: string): (raw: KubeObject) => TypedObject {
  return (raw) => {
    const { spec = {}, status = {} } = raw as { spec?: Record<string, unknown>; status?: Record<string, unknown> };
    const { replicas, parallelism, completions, suspend, podReplacementPolicy, podManagementPolicy } = spec;
    const { ordinals, selector, strategy, template } = spec;
    const { succeeded, conditions } = status;
    const metadata = metadataOf(raw, (key) => key.startsWith(FEDERATION) || ROLLOUT_ANNOTATIONS.includes(key));
    const ofSet = kind === 'StatefulSet' && apiVersion.startsWith('apps/') ? keptOfSet(raw) : undefined;
    const object: TypedObject & { spec: object; status: object } = {
      apiVersion,
      kind,
      metadata: { ...metadata, ...ofSet?.metadata },
      spec: defined({
        ...ofSet?.spec,
        replicas,
        parallelism,
        completions,
        suspend: suspend === true ? true : undefined,
        podReplacementPolicy: kind === 'Job' ? podReplacementPolicy : undefined,
        podManagementPolicy,
        ordinals,
        selector: kind === 'DaemonSet' ? selector : keptOfSelector(kind, selector),
        strategy: isRecreate(strategy) ? RECREATE : undefined,
        requests: makesPods(kind) && replicas !== 0 ? templateRequests(template) : undefined,
      }),
      status: defined({
        succeeded,
        ended: kind === 'Job' && hasEnded(conditions) ? true : undefined,
        ...ofSet?.status,
      }),
    };
    return object;
  };
}

/** A Deployment makes ReplicaSets, and nobody moves pods of a DaemonSet. */
function makesPods(kind: string): boolean {
  return kind !== 'Deployment' && kind !== 'DaemonSet';
}

/** Of a Job. */
function hasEnded(conditions: unknown): boolean {
  const all = Array.isArray(conditions) ? (conditions as readonly Condition[]) : [];
  return all.some(({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True');
}

/** For Deployments with it. */
const RECREATE = { type: 'Recreate' };

function isRecreate(strategy: unknown): boolean {
  return recordOf(strategy)?.['type'] === RECREATE.type;
}

/** Of a selector what it rules out, and of that of a ReplicaSet what it asks of the template's hash. */
function keptOfSelector(kind: string, selector: unknown): object | undefined {
  const hash = kind === 'ReplicaSet' ? recordOf(recordOf(selector)?.['matchLabels'])?.[TEMPLATE_HASH] : undefined;
  const matchLabels = typeof hash === 'string' ? { [TEMPLATE_HASH]: hash } : undefined;
  const matchExpressions = rulingOut(selector);
  if (matchLabels === undefined && matchExpressions === undefined) return undefined;
  return defined({ matchLabels, matchExpressions });
}

/**
 * Where the pod is, whom it belongs to, whether it is Ready, and what says that a member did not take it. Of a pod on one of the host's own nodes
 * also what it takes there; pods that are alike share that. Of others their priority; of one whose gang has its place, until it is bound, all
 * of it, as room is held for what it asks for; and nearly all of one that needs a node, and of one in a member that another one is made for,
 * as nobody else is moved to where these are to go. `isVirtual`: the node stands for a member.
 */
export function hostPodProjection(isVirtual: (nodeName: string) => boolean): (raw: KubeObject) => Pod {
  const parts = new SharedParts();
  return (raw) => {
    const { spec, status } = raw as Pod;
    const { nodeName, priority = 0 } = spec;
    // A pod for which others were evicted has its node reserved before it is bound.
    const nominatedNodeName = nodeName === undefined ? status?.nominatedNodeName : undefined;
    const node = nodeName ?? nominatedNodeName;
    const takesRoom = node !== undefined && !isVirtual(node) && !isFinished(raw as Pod);
    const { labels, annotations } = raw.metadata;
    const isOfGang = labels?.[GANG_LABEL] !== undefined && annotations?.[GANG_PLACED_ANNOTATION] !== undefined;
    const isGiven = nodeName === undefined && isOfGang;
    const isGoing = nodeName !== undefined && isVirtual(nodeName) && makesWay(raw as Pod);
    const isComing = isGoing || (!takesRoom && needsNode(raw as Pod));
    const metadata = metadataOf(raw, (key) => isGiven || isComing || KEPT.has(key));
    return {
      metadata: {
        ...metadata,
        // Whether it was changed, while it may have been resized.
        ...(isGoing ? defined({ generation: raw.metadata.generation }) : {}),
        ...(metadata.labels === undefined ? {} : { labels: parts.labels(metadata.labels) }),
        ...(metadata.ownerReferences === undefined ? {} : { ownerReferences: parts.owners(metadata.ownerReferences) }),
      },
      spec: isGiven
        ? spec
        : isComing
          ? parts.whole(spec)
          : takesRoom
            ? parts.spec(grantedSpec(raw as Pod))
            : {
                containers: NONE,
                ...claimsOf(spec),
                ...(nodeName === undefined ? {} : { nodeName: parts.name(nodeName) }),
                ...(priority === 0 ? {} : { priority }),
                ...(spec.schedulingGates === undefined ? {} : { schedulingGates: spec.schedulingGates }),
              },
      status: defined({
        phase: status?.phase,
        conditions: toldConditions(status?.conditions),
        nominatedNodeName,
      }),
    };
  };
}

/** Of volumes only those that keep a pod where its data are. */
function claimsOf({ volumes = [] }: Pod['spec']): Pick<Pod['spec'], 'volumes'> {
  const claims = volumes.filter((volume) => usesClaims({ spec: { volumes: [volume] } }));
  const kept = claims.map(({ name, persistentVolumeClaim }) =>
    persistentVolumeClaim === undefined ? { name, ephemeral: {} } : { name, persistentVolumeClaim },
  );
  return kept.length === 0 ? {} : { volumes: kept };
}

const NONE: Container[] = [];
/** One for all pods that are. */
const ONLY_READY: Condition[] = [{ type: 'Ready', status: 'True' }];
const REFUSING = new Set(['PodScheduled', MIRRORED_CONDITION, MEMBER_SCHEDULED_CONDITION]);

const KEPT = new Set([DELETION_COST_ANNOTATION, OWN_COST_ANNOTATION, RELEASED_ANNOTATION]);

/** Of the conditions those by which a scheduler, or a member, says that it does not run the pod, and that it is Ready. */
function toldConditions(conditions: readonly Condition[] = []): Condition[] | undefined {
  const found = conditions.filter(({ type, status }) => status === 'False' && REFUSING.has(type));
  const ready = conditions.some(({ type, status }) => status === 'True' && type === 'Ready') ? ONLY_READY : [];
  if (found.length === 0) return ready.length === 0 ? undefined : ready;
  return [...found, ...ready];
}

/** Labels and taints; of real nodes also what they offer, and whether they are Ready. */
export function hostNodeProjection(raw: KubeObject): Node {
  const { spec, status } = raw as Node;
  const node: Node = {
    metadata: metadataOf(raw, () => false),
    spec: defined({ providerID: spec?.providerID, taints: spec?.taints, unschedulable: spec?.unschedulable }),
  };
  if (memberOfNode(node) !== undefined) return node;
  const ready = status?.conditions?.filter(({ type }) => type === 'Ready').map(withoutTimes);
  return { ...node, status: defined({ allocatable: status?.allocatable, conditions: ready }) };
}

function withoutTimes({ type, status }: Condition): Condition {
  return { type, status };
}

export function namespaceProjection(raw: KubeObject): Namespace {
  return { metadata: metadataOf(raw, () => false) };
}

function metadataOf({ metadata }: KubeObject, isKept: (annotation: string) => boolean): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels } = metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  const controller = controllerOf({ metadata });
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => isKept(key));
  return {
    name,
    ...defined({
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      deletionTimestamp,
      deletionGracePeriodSeconds,
      labels,
    }),
    ...(annotations.length === 0 ? {} : { annotations: Object.fromEntries(annotations) }),
    ...(controller === undefined ? {} : { ownerReferences: [controller] }),
  };
}
