import type { OverridePolicy } from '../api/override-policy.ts';
import type { ResourceSelector } from '../api/selectors.ts';
import { labelSelectorOf, matchesLabels } from '../kube/label-selector.ts';

/** What a selector looks at. */
export interface ObjectIdentity {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** Undefined: not known, for an owner that has not been read. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** Why not, in words, if that is known. */
  readonly unread?: string | undefined;
}

/** An object of the host that is rendered for a member: itself, then its owners from the nearest to the farthest. */
export interface OverrideSubject {
  readonly namespace: string;
  readonly identities: readonly [ObjectIdentity, ...ObjectIdentity[]];
}

/** How closely a policy matches: by kind, by labels, by name. Closer ones are applied later, and so win. */
export type MatchRank = 1 | 2 | 3;

export interface SelectedPolicy {
  readonly policy: OverridePolicy;
  readonly rank: MatchRank;
}

/**
 * The policies that apply to the object, in the order they are applied: ClusterOverridePolicies, then OverridePolicies of
 * its namespace; of each first those that match less closely, and then by name. `unknown` is an owner whose labels have
 * to be known to say.
 */
export function selectPolicies(
  subject: OverrideSubject,
  policies: Iterable<OverridePolicy>,
): { selected: SelectedPolicy[] } | { unknown: ObjectIdentity } {
  const selected: SelectedPolicy[] = [];
  for (const policy of policies) {
    if (policy.kind === 'OverridePolicy' && policy.metadata.namespace !== subject.namespace) continue;
    const match = closestMatch(policy.spec.resourceSelectors, subject);
    if (typeof match === 'object') return { unknown: match };
    if (match !== 0) selected.push({ policy, rank: match });
  }
  return { selected: selected.sort(inOrder) };
}

/** Names are compared as code units, as Go does. */
function inOrder(a: SelectedPolicy, b: SelectedPolicy): number {
  const [kindOfA, kindOfB] = [a.policy.kind === 'OverridePolicy' ? 1 : 0, b.policy.kind === 'OverridePolicy' ? 1 : 0];
  if (kindOfA !== kindOfB) return kindOfA - kindOfB;
  if (a.rank !== b.rank) return a.rank - b.rank;
  const [nameOfA, nameOfB] = [a.policy.metadata.name, b.policy.metadata.name];
  return nameOfA < nameOfB ? -1 : nameOfA > nameOfB ? 1 : 0;
}

/** No selectors at all match everything by kind. 0: no match. An identity: it depends on its labels. */
function closestMatch(
  selectors: readonly ResourceSelector[],
  subject: OverrideSubject,
): MatchRank | 0 | ObjectIdentity {
  if (selectors.length === 0) return 1;
  let closest: MatchRank | 0 = 0;
  let unknown: ObjectIdentity | undefined;
  for (const selector of selectors) {
    if (selector.namespace !== undefined && selector.namespace !== subject.namespace) continue;
    for (const identity of subject.identities) {
      const rank = rankOf(selector, identity);
      if (rank === 'unknown') unknown = identity;
      else if (rank > closest) closest = rank;
    }
  }
  // A match by name is the closest there is, so labels cannot change it.
  return unknown === undefined || closest === 3 ? closest : unknown;
}

function rankOf(selector: ResourceSelector, identity: ObjectIdentity): MatchRank | 0 | 'unknown' {
  if (selector.apiVersion !== identity.apiVersion || selector.kind !== identity.kind) return 0;
  if (selector.name !== undefined) return selector.name === identity.name ? 3 : 0;
  if (selector.labelSelector === undefined) return 1;
  const requirements = labelSelectorOf(selector.labelSelector);
  if (requirements.length === 0) return 2;
  if (identity.labels === undefined) return 'unknown';
  return matchesLabels(requirements, identity.labels) ? 2 : 0;
}
