import { cleanText } from '../kube/clean-text.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { keyOf } from '../kube/object.ts';
import { someOf } from '../kube/some-of.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { Hold } from './hold.ts';

/** Names of the member are cut to so many bytes. */
const MAX_NAME_BYTES = 80;
const MAX_COPY_BYTES = 200;
/** So many finalizers are named. */
const MOST_FINALIZERS = 3;

/** A copy that its member was told to delete, and has taken that, but has not. All that the member says is cut and cleaned. */
export interface Undeleted {
  /** Namespace and name in the member. */
  copy: string;
  /** When that was asked for, in RFC 3339. */
  since: string;
  /** What keeps it there, in words. */
  heldBy: string;
}

/** How the member's node of a copy is; undefined: not known. */
export type NodeState = 'ready' | 'not ready' | 'silent' | 'gone' | undefined;

export function nodeState(node: Node | undefined): NodeState {
  if (node === undefined) return 'gone';
  switch (conditionOf(node, 'Ready')?.status) {
    case 'True':
      return 'ready';
    case 'False':
      return 'not ready';
    default:
      return 'silent';
  }
}

/** @param since wall clock in ms */
export function undeleted(memberPod: Pod, since: number, node: NodeState): Undeleted {
  const copy = cleanText(keyOf(memberPod), MAX_COPY_BYTES);
  return { copy, since: timestamp(since), heldBy: heldBy(memberPod, node) };
}

function heldBy(memberPod: Pod, node: NodeState): string {
  const parts = [finalizersOf(memberPod), nodeInWords(memberPod, node)].filter((part) => part !== undefined);
  if (parts.length > 0) return parts.join('; ');
  return memberPod.metadata.deletionTimestamp === undefined
    ? 'its API server took the deletion, and does not show it'
    : 'the cluster does not say what';
}

function finalizersOf({ metadata: { finalizers = [] } }: Pod): string | undefined {
  if (finalizers.length === 0) return undefined;
  const names = finalizers.map((name) => cleanText(name, MAX_NAME_BYTES));
  return `finalizer${finalizers.length === 1 ? '' : 's'} ${someOf(names, MOST_FINALIZERS)}`;
}

function nodeInWords({ metadata, spec: { nodeName = '' } }: Pod, node: NodeState): string | undefined {
  if (nodeName === '' || node === undefined) return undefined;
  const name = cleanText(nodeName, MAX_NAME_BYTES);
  if (node === 'gone') return `its node ${name} is gone there`;
  if (node === 'silent') return `its node ${name} does not answer there`;
  if (node === 'not ready') return `its node ${name} is not ready there`;
  // A finalizer, or an API server that does nothing, is reason enough.
  const isOpen = (metadata.finalizers ?? []).length === 0 && metadata.deletionTimestamp !== undefined;
  return isOpen ? `its node ${name} has not ended it, though it answers` : undefined;
}

/** What users are told on its host pod. */
export function notDeleted(member: string, memberPod: Pod, hostPod: Pod, told: Undeleted, node: NodeState): Hold {
  const stays = hostPod.metadata.deletionTimestamp === undefined ? '' : ' This pod stays until it is gone there.';
  return {
    reason: 'MemberPodNotDeleted',
    message:
      `Cluster "${member}" was told to delete ${told.copy}, which runs for this pod, at ${told.since}, and has taken that, but still has it: ` +
      `${told.heldBy}.${stays} ${advice(memberPod, node)}`,
  };
}

function advice({ metadata, spec }: Pod, node: NodeState): string {
  const ways = [
    ...((metadata.finalizers ?? []).length > 0
      ? ['have whoever set a finalizer there take it off, or take it off if nobody does its work any more']
      : []),
    ...((spec.nodeName ?? '') !== '' && node !== undefined && node !== 'ready'
      ? [
          'bring the node back, or, if nothing runs on it any more, give it the taint node.kubernetes.io/out-of-service:NoExecute or delete its Node there',
        ]
      : []),
  ];
  const [first, ...others] = ways.length > 0 ? ways : ['look there with kubectl describe pod'];
  return `What can be done: ${[first, ...others].join('; ')}.`;
}
