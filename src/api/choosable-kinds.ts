import { OWNER_KINDS } from '../kube/owner-kinds.ts';
import { apiVersionOf, PODS } from '../kube/resource.ts';
import { type CustomKind, customKindKey } from './custom-kinds.ts';

/** Pods and what makes them, by apiVersion, as far as it is Kubernetes' own. */
const OF_PODS = byVersion([PODS, ...OWNER_KINDS].map((resource) => [apiVersionOf(resource), resource.kind]));

/**
 * Why a selector for a kind of Kubernetes' own chooses nothing, ever, in words: it makes no pods, or there is no such kind in that
 * version. Undefined: it may choose something, or the kind is not Kubernetes' own.
 *
 * @param alsoOfV1 kinds of v1 that a policy chooses by besides pods and what makes them.
 */
export function whyNeverChosen({ apiVersion, kind }: CustomKind, alsoOfV1: readonly string[] = []): string | undefined {
  if (customKindKey({ apiVersion, kind }) !== undefined) return undefined;
  const known = new Map(OF_PODS).set('v1', [...(OF_PODS.get('v1') ?? []), ...alsoOfV1]);
  if (known.get(apiVersion)?.includes(kind) === true) return undefined;
  const words = [...known].map(([version, kinds]) => `${kinds.join(', ')} (${version})`).join(', ');
  return `nothing is chosen by ${kind} (${apiVersion}); of Kubernetes' own kinds these can be: ${words}`;
}

function byVersion(kinds: readonly (readonly [apiVersion: string, kind: string])[]): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [apiVersion, kind] of kinds) found.set(apiVersion, [...(found.get(apiVersion) ?? []), kind]);
  return found;
}

/** What is said of a selector for a kind that is not Kubernetes' own, and that the host does not have. */
export function absentKind({ apiVersion, kind }: CustomKind): string {
  return `the host has no kind ${kind} (${apiVersion}), so nothing is chosen by it until it has`;
}
