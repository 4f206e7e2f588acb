import { cleanText } from '../kube/clean-text.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import type { HostView } from './host-view.ts';

const LONGEST_NAME = 253;

/** A policy that may be meant for a pod, and why nobody knows: it chooses by labels that Spillway may not read. */
export interface UnreadOwner {
  /** `PlacementPolicy web`. */
  readonly policy: string;
  /** `its owner Rollout web`. */
  readonly owner: string;
  readonly why: string;
}

export function unreadOwner(chain: OwnerChain, view: Pick<HostView, 'owners' | 'policies'>): UnreadOwner | undefined {
  const last = chain.at(-1);
  if (last === undefined || last.kind === 'Pod') return undefined;
  const { apiVersion, kind, metadata } = last;
  const policy = view.policies.wantingLabelsOf(last)?.policy;
  const why = policy === undefined ? undefined : view.owners.whyUnread(apiVersion, kind);
  if (policy === undefined || why === undefined) return undefined;
  const owner = `its owner ${kind} ${cleanText(metadata.name, LONGEST_NAME)}`;
  return { policy: `${policy.kind} ${policy.metadata.name}`, owner, why };
}

/** Why it is not known which rules a pod is under, in words; undefined when it is. */
export function whyRulesUnknown(pod: Pod, view: Pick<HostView, 'owners' | 'policies'>): string | undefined {
  if (!view.owners.isKnown(pod)) return 'not all of its owners are known yet, so neither are its rules';
  const unread = unreadOwner(view.owners.chainOf(pod), view);
  if (unread === undefined) return undefined;
  const { policy, owner, why } = unread;
  return `it is not known whether ${policy} is meant for it, which chooses by labels, as those of ${owner} cannot be read (${why})`;
}
