import { cleanText } from '../kube/clean-text.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { whyBare } from './bare-owner.ts';
import type { HostView } from './host-view.ts';

const LONGEST_NAME = 253;
const OWNERS_UNKNOWN = 'not all of its owners are known yet, so neither are its rules';

/** A policy that may be meant for a pod, and why nobody knows: it chooses by labels that Spillway may not read. */
export interface UnreadOwner {
  /** `PlacementPolicy web`. */
  readonly policy: string;
  /** `its owner Rollout web`. */
  readonly owner: string;
  readonly why: string;
}

export function unreadOwner(chain: OwnerChain, view: Pick<HostView, 'owners' | 'policies'>): UnreadOwner | undefined {
  const last = lastOwner(chain);
  if (last === undefined) return undefined;
  const policy = view.policies.wantingLabelsOf(last)?.policy;
  const why = policy && whyUnread(last, view);
  if (policy === undefined || why === undefined) return undefined;
  return { policy: `${policy.kind} ${policy.metadata.name}`, owner: ownerInWords(last), why };
}

function lastOwner(chain: OwnerChain): TypedObject | undefined {
  const last = chain.at(-1);
  return last?.kind === 'Pod' ? undefined : last;
}

function ownerInWords({ kind, metadata }: TypedObject): string {
  return `its owner ${kind} ${cleanText(metadata.name, LONGEST_NAME)}`;
}

function whyUnread(owner: TypedObject, { owners }: Pick<HostView, 'owners'>): string | undefined {
  return whyBare(owner) ?? owners.whyUnread(owner.apiVersion, owner.kind);
}

/**
 * Waits for the owners of a pod as {@link OwnerDirectory.whenKnown}, then says in words why it is not known which rules it is under, where that
 * passes by itself: the pod waits for it. What only a right would tell is passed over.
 */
export async function whenRulesKnown(
  pod: Pod,
  view: Pick<HostView, 'owners' | 'policies'>,
): Promise<string | undefined> {
  const missing = await view.owners.whenKnown(pod);
  if (missing === undefined) return whyHeld(view.owners.chainOf(pod), view);
  const { kind, name } = missing;
  return `its owner ${kind} ${name} is not known to Spillway yet, so neither are its rules; it is looked for`;
}

/** The same from what is known at this moment. */
export function whyRulesNotYet(pod: Pod, view: Pick<HostView, 'owners' | 'policies'>): string | undefined {
  if (!view.owners.isKnown(pod)) return OWNERS_UNKNOWN;
  return whyHeld(view.owners.chainOf(pod), view);
}

/** Its owner cannot be read now, and a policy may choose by that, or by what is above it. */
function whyHeld(chain: OwnerChain, view: Pick<HostView, 'owners' | 'policies'>): string | undefined {
  const { owners, policies } = view;
  const last = lastOwner(chain);
  if (last === undefined) return undefined;
  if (whyBare(last) === undefined && (!owners.holds(last.apiVersion, last.kind) || owners.isRead(last)))
    return undefined;
  const policy = (policies.wantingLabelsOf(last) ?? policies.mayChooseAbove(last))?.policy;
  if (policy === undefined) return undefined;
  const why = whyUnread(last, view) ?? '';
  return `it is not known whether ${policy.kind} ${policy.metadata.name} is meant for it, as ${ownerInWords(last)} cannot be read now, which it waits for (${why})`;
}

/** Why it is not known which rules a pod is under, in words, be that for a moment or until somebody grants a right; undefined when it is. */
export function whyRulesUnknown(pod: Pod, view: Pick<HostView, 'owners' | 'policies'>): string | undefined {
  const notYet = whyRulesNotYet(pod, view);
  if (notYet !== undefined) return notYet;
  const unread = unreadOwner(view.owners.chainOf(pod), view);
  if (unread === undefined) return undefined;
  const { policy, owner, why } = unread;
  return `it is not known whether ${policy} is meant for it, which chooses by labels, as those of ${owner} cannot be read (${why})`;
}
