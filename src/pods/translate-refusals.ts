import type { HostPathPolicy } from '../api/host-path.ts';
import { MEMBER_CONSTRAINTS_ANNOTATION } from '../api/marks.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import { hostPathProblem } from './host-paths.ts';
import { constraintsProblem, whyConstraintsLeaveOut, withMemberConstraints } from './translate-constraints.ts';
import { entryOf, type JsonRecord, listOf, recordOf, textOf } from '../kube/json-fields.ts';
import type { NodeChoice } from './translate-node-affinity.ts';
import { poolConflicts } from './translate-scheduling.ts';

export interface Refusal {
  reason: string;
  message: string;
}

export interface RefusalContext extends NodeChoice {
  member: string;
  memberNamespace: string;
  poolSelector?: Readonly<Record<string, string>> | undefined;
  serviceAccountMode?: ServiceAccountMode | undefined;
  claimRefusal?: ((hostPod: Pod) => Refusal | undefined) | undefined;
  hostPath?: HostPathPolicy | undefined;
}

/** Annotation of the pod that a kubelet makes for a static pod of its own. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Why the pod cannot run in any member as things are, or undefined. All of these are final until pod or place change. */
export function refusalOfPod(
  hostPod: Pod,
  injected: ReadonlySet<string>,
  context: RefusalContext,
): Refusal | undefined {
  const spec = recordOf(hostPod.spec);
  if (spec === undefined || !Array.isArray(spec['containers'])) {
    return refuse('InvalidPod', 'The pod has no list of containers', 'Create it anew.', context);
  }
  return (
    unmarkable(hostPod, context) ??
    staticPod(hostPod, context) ??
    devices(spec, context) ??
    volumes(spec, injected, context) ??
    refusalOfHostPaths(spec, context) ??
    context.claimRefusal?.(hostPod) ??
    constraints(hostPod, context) ??
    pool(withMemberConstraints(spec, hostPod), context)
  );
}

function refuse(reason: string, what: string, advice: string, context: Pick<RefusalContext, 'member'>): Refusal {
  const message = `${what}, so it cannot run in cluster "${context.member}". This does not pass by itself. ${advice}`;
  return { reason, message };
}

/** Ownership is labels; a pod that cannot carry them could never be told from a stranger's. */
function unmarkable(hostPod: Pod, context: RefusalContext): Refusal | undefined {
  const { name, namespace, uid } = hostPod.metadata;
  const named = [name, namespace, context.memberNamespace].every((part) => typeof part === 'string' && part !== '');
  const labels = [uid, context.nodeName].every(
    (value) => typeof value === 'string' && value !== '' && LABEL_VALUE.test(value),
  );
  if (named && labels) return undefined;
  const what = `The pod's namespace, name, UID (${String(uid)}) and node (${context.nodeName}) do not make valid labels`;
  return refuse(
    'InvalidPod',
    what,
    'Use names of at most 63 characters for the MemberCluster and its node pools.',
    context,
  );
}

function staticPod(hostPod: Pod, context: RefusalContext): Refusal | undefined {
  if (entryOf(recordOf(hostPod.metadata.annotations), MIRROR_ANNOTATION) === undefined) return undefined;
  return refuse(
    'StaticPodNotSupported',
    'The pod is the mirror of a static pod',
    'Static pods belong on real nodes.',
    context,
  );
}

function devices(spec: JsonRecord, context: RefusalContext): Refusal | undefined {
  if (listOf(spec['resourceClaims']).length === 0) return undefined;
  const what = 'The pod uses resource claims (dynamic resource allocation), which hold devices of the host';
  const advice = 'Ask for the device as an extended resource, or keep the pod on real nodes.';
  return refuse('ResourceClaimsNotSupported', what, advice, context);
}

function volumes(spec: JsonRecord, injected: ReadonlySet<string>, context: RefusalContext): Refusal | undefined {
  for (const item of listOf(spec['volumes'])) {
    const volume = recordOf(item);
    const name = textOf(volume?.['name']) ?? '';
    if (volume === undefined || injected.has(name)) continue;
    const refusal = identityVolume(volume, name, context);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Files of the member's nodes are its owner's: only what the MemberCluster names is shown to pods. */
export function refusalOfHostPaths(
  spec: JsonRecord,
  context: Pick<RefusalContext, 'member' | 'hostPath'>,
): Refusal | undefined {
  const problem = hostPathProblem(spec, context.hostPath);
  if (problem === undefined) return undefined;
  const what = `Volume "${problem.volume}" of the pod is path "${problem.path}" of the node (hostPath), and ${problem.why}`;
  const advice = `Take the volume out, keep the pod on real nodes, or allow the path in spec.hostPath of MemberCluster "${context.member}".`;
  return refuse('HostPathNotAllowed', what, advice, context);
}

/** The pod would start and silently lack, or falsely have, an identity. */
function identityVolume(volume: JsonRecord, name: string, context: RefusalContext): Refusal | undefined {
  for (const item of listOf(recordOf(volume['projected'])?.['sources'])) {
    const source = recordOf(item);
    const tokens = (context.serviceAccountMode ?? 'None') !== 'None';
    if (!tokens && recordOf(source?.['serviceAccountToken']) !== undefined) {
      const what = `Volume "${name}" of the pod asks for a service account token, and its service account mode is None`;
      const advice = 'Remove the source, ask for mode Host or Member, or keep the pod on real nodes.';
      return refuse('ServiceAccountTokenNotAvailable', what, advice, context);
    }
    if (recordOf(source?.['podCertificate']) !== undefined) {
      const what = `Volume "${name}" of the pod asks for a certificate of the host's signers`;
      return refuse('PodCertificateNotAvailable', what, 'Remove the source, or keep the pod on real nodes.', context);
    }
  }
  return undefined;
}

/** What the host's scheduler could not hold the pod to, as admission took it out of its sight. */
function constraints(hostPod: Pod, context: RefusalContext): Refusal | undefined {
  const problem = constraintsProblem(hostPod);
  if (problem !== undefined) {
    const what = `Annotation ${MEMBER_CONSTRAINTS_ANNOTATION} of the pod is not as it must be (${problem})`;
    return refuse('InvalidMemberConstraints', what, 'Correct it where the pod is made.', context);
  }
  const why = whyConstraintsLeaveOut(hostPod, context);
  if (why === undefined) return undefined;
  const what = `The pod asks for ${why}, which virtual node "${context.nodeName}" does not have`;
  return refuse('NodeConstraintsMismatch', what, 'Delete the pod, so that it is scheduled anew.', context);
}

function pool(spec: JsonRecord, context: RefusalContext): Refusal | undefined {
  const keys = poolConflicts(spec, context.poolSelector);
  if (keys.length === 0) return undefined;
  const what = `The pod's node selector asks for another ${keys.join(', ')} than the nodes behind "${context.nodeName}" have`;
  return refuse('NodePoolMismatch', what, 'Delete the pod, so that it is scheduled anew.', context);
}
