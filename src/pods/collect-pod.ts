import { HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, HOST_VERSION_ANNOTATION, UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { isOlder } from '../kube/resource-version.ts';
import { PODS } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';
import type { DeletionBreaker } from './deletion-breaker.ts';
import type { DeletionEvidence } from './evidence.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { OrphanReason } from './kept-pods.ts';
import type { PodMemory } from './pod-memory.ts';

/** How long a host pod has to be missing, in ms, before its member pod goes when nobody saw it being deleted (I1). */
export const MISSING_GRACE_MS = 60_000;

/** When a pod is looked at again while another cluster answers in the place of the host, in ms. */
const ANOTHER_HOST_MS = 10_000;
/** Until a member pod that went meanwhile is looked at again, in ms: its end has been seen. */
const GONE_MS = 1000;

export type CollectVerdict =
  /** Positive evidence: delete the member pod, with this grace or its own. */
  | { delete: true; evidence: DeletionEvidence; gracePeriodSeconds: number | undefined }
  /** The host pod lives; our cache is behind. */
  | { delete: false; why: string; againMs: number }
  /** Left alone for good until an operator looks. */
  | { delete: false; kept: OrphanReason; why: string };

export interface CollectOptions {
  host: KubeClient;
  nodeName: string;
  memory: PodMemory;
  deletionSeen: boolean;
  /** Highest resourceVersion of pods that the host has shown to this process. */
  hostVersion: () => string | undefined;
  /** Why the member pod of this UID has been kept so far: a host that went back catches up with its versions, not its pods. */
  keptBefore: (uid: string) => OrphanReason | undefined;
  /** Whether the member still has it, as far as is known when it is asked. */
  isThere: () => boolean;
  breaker: Pick<DeletionBreaker, 'permit' | 'isConfirmed'>;
  /** How many member pods of this virtual node there are. */
  ownPods: () => number;
  /** Asks whether the host is still the cluster it was: another one has none of our pods. */
  confirmHost: () => Promise<boolean>;
  missingGraceMs: number;
  monotonic: () => number;
}

/**
 * Whether a member pod without a fitting host pod may go (invariants I1 and I2). Reads the host live, never the cache:
 * deletion goes ahead when the host pod is being deleted, has finished, or has another UID; when it is not found, only
 * if its deletion was watched, or it is still not found after a grace period by a host that has not gone back in time.
 */
export async function judgeOrphan(
  memberPod: Pod,
  options: CollectOptions,
  signal: AbortSignal,
): Promise<CollectVerdict> {
  const { memory, monotonic } = options;
  const annotations = memberPod.metadata.annotations ?? {};
  const namespace = annotations[HOST_NAMESPACE_ANNOTATION] ?? '';
  const name = annotations[HOST_NAME_ANNOTATION] ?? '';
  // A list instead of a get: it also tells how far the host's history has come. The node's own pods are all that the
  // Node authorizer lets a node list.
  const fieldSelector = `metadata.name=${name},spec.nodeName=${options.nodeName}`;
  // As far as it had come when it was asked: the watch may well be ahead of the answer by the time that is here.
  const hostVersion = options.hostVersion();
  const answer = await list<Pod>(options.host, PODS, { namespace, fieldSelector, signal });
  const hostPod = answer.items[0];
  const of = memberPod.metadata.labels?.[UID_LABEL] ?? '';
  // What has our pod's UID is our pod; anything else may be the answer of another cluster (I3).
  if (hostPod?.metadata.uid !== of && !(await options.confirmHost())) {
    return { delete: false, why: 'another cluster answers in the place of the host', againMs: ANOTHER_HOST_MS };
  }
  // Whoever is gone asks for no permit, and is not kept: nothing would ever let go of it.
  if (!options.isThere()) return { delete: false, why: 'it is gone from the member meanwhile', againMs: GONE_MS };
  if (hostPod !== undefined) {
    delete memory.hostMissingSince;
    return judgeLiving(hostPod, memberPod);
  }
  const { uid = '' } = memberPod.metadata;
  if (options.breaker.isConfirmed(uid)) {
    return { delete: true, evidence: { of, says: 'missing' }, gracePeriodSeconds: undefined };
  }
  const { resourceVersion } = answer;
  const wentBack =
    options.keptBefore(uid) === 'HostWentBack' ||
    isOlder(resourceVersion, hostVersion) ||
    isOlder(resourceVersion, annotations[HOST_VERSION_ANNOTATION]);
  if (wentBack) {
    const why = 'the host cluster has gone back in time (restored from a backup?)';
    return { delete: false, kept: 'HostWentBack', why };
  }
  if (options.deletionSeen) {
    return { delete: true, evidence: { of, says: 'deletion-watched' }, gracePeriodSeconds: undefined };
  }
  const now = monotonic();
  memory.hostMissingSince ??= now;
  const missingFor = now - memory.hostMissingSince;
  if (missingFor < options.missingGraceMs) {
    return {
      delete: false,
      why: 'its host pod is not found, but nobody saw it being deleted',
      againMs: options.missingGraceMs - missingFor,
    };
  }
  if (!options.breaker.permit(uid, options.ownPods())) return BREAKER_OPEN;
  return { delete: true, evidence: { of, says: 'missing' }, gracePeriodSeconds: undefined };
}

const BREAKER_OPEN: CollectVerdict = {
  delete: false,
  kept: 'BreakerOpen',
  why: 'too many host pods vanished at once; the deletion breaker is open',
};

/** What a verdict is worth now: pods that vanished together are judged together, and a later one may have opened the breaker. */
export function asOfNow(
  verdict: CollectVerdict,
  uid: string,
  breaker: Pick<DeletionBreaker, 'redeem'>,
): CollectVerdict {
  const missing = verdict.delete && verdict.evidence.says === 'missing';
  return missing && !breaker.redeem(uid) ? BREAKER_OPEN : verdict;
}

function judgeLiving(hostPod: Pod, memberPod: Pod): CollectVerdict {
  const of = memberPod.metadata.labels?.[UID_LABEL] ?? '';
  if (hostPod.metadata.uid !== of) {
    return { delete: true, evidence: { of, says: 'replaced' }, gracePeriodSeconds: undefined };
  }
  const { deletionTimestamp, deletionGracePeriodSeconds } = hostPod.metadata;
  if (deletionTimestamp !== undefined || isFinished(hostPod)) {
    const says = deletionTimestamp === undefined ? 'finished' : 'deleting';
    return { delete: true, evidence: { of, says }, gracePeriodSeconds: deletionGracePeriodSeconds };
  }
  return { delete: false, why: 'its host pod lives; the cache is behind', againMs: 1000 };
}
