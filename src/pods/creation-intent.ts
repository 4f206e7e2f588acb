import { MIRRORED_CONDITION } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Condition, Pod } from '../kube/core-v1.ts';
import { controllerOf, groupKindOf } from '../kube/owner-references.ts';

/** Where a member pod is about to be made. */
export interface CreationIntent {
  /** Name of the MemberCluster. */
  member: string;
  namespace: string;
  name: string;
  /** resourceVersion of the member's pods before the first request was sent: all that came of it is newer. */
  since: string;
}

const CREATING = 'Creating';
const CREATING_WORDS = 'The pod is being created.';
const TRAILER = / \(member=(\S+) namespace=(\S+) name=(\S+) since=(\d+)\)$/;

/**
 * Whether it is written down on the host pod that its copy is about to be made, before that is asked for: one more status
 * patch, so that whoever comes after a crash knows that there may have been a copy. Only where to run twice does harm: pods
 * that are to run to an end (restartPolicy Never and OnFailure), pods with claims of their own or of others, and pods of a
 * StatefulSet, of which there is one at most by promise. Any other pod its controller starts and ends as it likes.
 */
export function needsIntent({ metadata, spec }: Pod): boolean {
  const { restartPolicy } = spec;
  if (restartPolicy === 'Never' || restartPolicy === 'OnFailure') return true;
  if (spec.volumes?.some((volume) => 'persistentVolumeClaim' in volume || 'ephemeral' in volume) === true) return true;
  const controller = controllerOf({ metadata });
  return controller !== undefined && groupKindOf(controller) === 'apps/StatefulSet';
}

/** The creation that the host pod says was begun, and of which it does not know what came. */
export function intentOf(hostPod: Pod): CreationIntent | undefined {
  const condition = conditionOf(hostPod, MIRRORED_CONDITION);
  if (condition?.status !== 'Unknown') return undefined;
  const [, member = '', namespace = '', name = '', since = ''] = TRAILER.exec(condition.message ?? '') ?? [];
  return { member, namespace, name, since };
}

/** What a `Mirrored` condition says to people, without where the pod is about to be made. */
export function wordsOf(condition: Condition | undefined): string | undefined {
  return condition?.message?.replace(TRAILER, '');
}

/** The status of the `Mirrored` condition and its message while a pod is not known to be in the member. */
export function heldBack(words: string, intent: CreationIntent | undefined): Pick<Condition, 'status' | 'message'> {
  if (intent === undefined) return { status: 'False', message: words };
  const { member, namespace, name, since } = intent;
  return {
    status: 'Unknown',
    message: `${words} (member=${member} namespace=${namespace} name=${name} since=${since})`,
  };
}

/** The `pods/status` patch that writes an intent down. What is said of earlier attempts stays. `now`: RFC 3339, whole seconds. */
export function intentPatch(hostPod: Pod, intent: CreationIntent, now: string): Record<string, unknown> {
  const before = conditionOf(hostPod, MIRRORED_CONDITION);
  const goesOn = before?.status === 'Unknown';
  const words = goesOn ? (wordsOf(before) ?? CREATING_WORDS) : CREATING_WORDS;
  const condition = {
    type: MIRRORED_CONDITION,
    ...heldBack(words, intent),
    reason: goesOn ? (before.reason ?? CREATING) : CREATING,
    lastTransitionTime: goesOn ? (before.lastTransitionTime ?? now) : now,
  };
  return { metadata: { uid: hostPod.metadata.uid }, status: { conditions: [condition] } };
}
