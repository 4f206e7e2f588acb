import { GROUP } from './marks.ts';
import { clusterTaintsOf, type MemberCluster } from './member-cluster.ts';
import { LOCAL } from './cluster-tiers.ts';
import { conditionOf } from '../kube/conditions.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import type { Taint } from '../kube/taints.ts';

/** On a MemberCluster: what a unit of work costs there, a decimal number in any unit that all members share. */
export const PRICE_ANNOTATION = `${GROUP}/price`;

/** Bounded, so that sums and differences of prices stay numbers. The same is in manifests/admission/validation.yaml. */
const PRICE = /^\d{1,12}(\.\d{1,12})?$/;

/** A place for pods as policies see it: a member, or the host's own nodes under the name `local`. */
export interface Cluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly provider: string | undefined;
  readonly region: string | undefined;
  readonly zones: readonly string[];
  /** Taints of the cluster as a whole, which policies tolerate and pods cannot. Those of its virtual nodes are the scheduler's. */
  readonly taints: readonly Taint[];
  /** Why it takes no new pods at all at the moment, for people; undefined when it does. */
  readonly unavailable: string | undefined;
  readonly price: number | undefined;
}

/** What a policy can know of a member. Labels are those of the object and, before them, those of `spec.labels`. */
export function clusterOf(member: MemberCluster): Cluster {
  const { metadata, spec } = member;
  const price = metadata.annotations?.[PRICE_ANNOTATION];
  return {
    name: metadata.name,
    labels: { ...metadata.labels, ...spec.labels },
    provider: spec.provider,
    region: spec.region,
    zones: spec.zones,
    taints: clusterTaintsOf(member),
    unavailable: whyUnavailable(member),
    price: price !== undefined && PRICE.test(price) ? Number(price) : undefined,
  };
}

/**
 * The member anew, for those whose answers depend on what override policies know of it: the same object as before unless
 * something of that changed. Rules choose members by these fields, and variables stand for them.
 */
export function renewedCluster(before: Cluster, member: MemberCluster): Cluster {
  const now = clusterOf(member);
  const known = ({ name, labels, provider, region, zones }: Cluster) => ({ name, labels, provider, region, zones });
  return jsonEqual(known(before), known(now)) ? before : now;
}

function whyUnavailable(member: MemberCluster): string | undefined {
  if (member.metadata.deletionTimestamp !== undefined) return 'it is being removed';
  if (member.spec.unschedulable) return 'it takes no new pods (spec.unschedulable)';
  return whySilent(member);
}

/** Why nothing is known of it at present, for people; undefined: it is Ready. */
export function whySilent(member: MemberCluster): string | undefined {
  const ready = conditionOf(member, 'Ready');
  if (ready === undefined) return NOT_CONTACTED;
  return ready.status === 'True' ? undefined : `it is not ready (${ready.reason})`;
}

/** What a policy can know of the host's own nodes. Its labels are what selectors of clusters are compared with. */
export function localCluster(
  facts: { labels?: Record<string, string>; provider?: string; region?: string; zones?: readonly string[] } = {},
): Cluster {
  return {
    name: LOCAL,
    labels: facts.labels ?? {},
    provider: facts.provider,
    region: facts.region,
    zones: facts.zones ?? [],
    taints: [],
    unavailable: undefined,
    price: undefined,
  };
}

/** Of a member of which nothing is known yet: why it takes no pods. */
export const NOT_CONTACTED = 'it has not been contacted yet';

/** `member east`, or `local`: how messages begin. */
export function clusterInWords(name: string): string {
  return name === LOCAL ? 'local' : `member ${name}`;
}
