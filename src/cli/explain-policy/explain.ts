import type { MemberCluster } from '../../api/member-cluster.ts';
import { parsePlacementPolicy } from '../../api/placement-policy.ts';
import type { Pod } from '../../kube/core-v1.ts';
import type { KubeObject } from '../../kube/object.ts';
import { whyTainted } from '../../placement/candidates.ts';
import type { Cluster } from '../../api/cluster.ts';
import type { CompiledPlacement, Group } from '../../placement/compiled-placement.ts';
import type { OwnerChain } from '../../placement/owner-chain.ts';
import {
  compilePolicy,
  selectPolicy,
  type CompiledPolicy,
  type PolicySource,
} from '../../placement/policy-selection.ts';
import { policyWarnings } from '../../placement/policy-warnings.ts';
import { whyNotChosen } from '../why/rules-step.ts';
import { explainFailover } from './explain-failover.ts';
import type { ExplainedCluster, ExplainedPolicy, ExplainedWorkload } from './explained-policy.ts';
import { notLabelled } from './not-labelled.ts';

/** A workload that is there, with a pod as its controller would make it. */
export interface LiveWorkload {
  namespace: string;
  /** `Deployment/web` */
  of: string;
  pod: Pod;
  chain: OwnerChain;
  /** Where its pods are, in short; undefined: nobody has said so. */
  where: string | undefined;
}

export interface PolicyFacts {
  /** As the API server has it, or as a manifest would have it. */
  policy: KubeObject;
  /** All others that can be used, of the kinds that may speak about the same workloads. */
  others: readonly CompiledPolicy[];
  /** `local` and the members. */
  clusters: readonly Cluster[];
  members: readonly MemberCluster[];
  workloads: readonly LiveWorkload[];
  /** None of a namespace: not known. */
  namespaceLabels: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

const NOTHING = { warnings: [], clusters: [], workloads: [], notLabelled: [], failover: null };

/** What a placement policy does here and now, by the very functions of the scheduler component. */
export function explainPolicy(facts: PolicyFacts): ExplainedPolicy {
  const { namespace, name } = facts.policy.metadata;
  const kind = namespace === undefined ? 'ClusterPlacementPolicy' : 'PlacementPolicy';
  const head = { policy: `${kind} ${name}`, namespace: namespace ?? null };
  const compiled = compiledOf(facts.policy);
  if ('problems' in compiled) return { ...head, ...NOTHING, problems: compiled.problems };
  const clusters = facts.clusters.map((cluster) => explainedCluster(compiled.placement, cluster));
  const matched = facts.workloads.flatMap((workload) => {
    const explained = explainedWorkload(workload, kind, compiled, facts);
    return explained === undefined ? [] : [{ workload, explained }];
  });
  return {
    ...head,
    problems: [],
    warnings: policyWarnings(compiled.policy, facts.clusters),
    clusters,
    workloads: matched.map(({ explained }) => explained),
    notLabelled: notLabelled({
      workloads: matched.filter(({ explained }) => explained.decides).map(({ workload }) => workload),
      chosen: new Set(clusters.filter(({ tier }) => tier !== null).map(({ cluster }) => cluster)),
      members: facts.members,
      namespaceLabels: facts.namespaceLabels,
    }),
    failover: explainFailover(compiled.policy.spec),
  };
}

function compiledOf(raw: KubeObject): CompiledPolicy | { problems: string[] } {
  const parsed = parsePlacementPolicy(raw);
  return 'problems' in parsed ? parsed : compilePolicy(parsed.policy);
}

function explainedCluster(placement: CompiledPlacement, cluster: Cluster): ExplainedCluster {
  const { name } = cluster;
  for (const group of placement.groups) {
    const at = group.tiers.findIndex(({ whyNot }) => whyNot(cluster) === undefined);
    if (at < 0) continue;
    const why = cluster.unavailable ?? whyTainted(cluster, placement.tolerations);
    const own = placement.groups.length === 1 ? null : (group.name ?? null);
    return { cluster: name, tier: at + 1, group: own, says: why === undefined ? takes(group, at) : `not now: ${why}` };
  }
  return { cluster: name, tier: null, group: null, says: whyNotChosen(placement, cluster) ?? '' };
}

/** The most is that of a workload with a hundred replicas, where it is a percentage. */
function takes({ tiers }: Group, at: number): string {
  const most = tiers[at]?.max;
  const [ofHundred, ofThousand] = [most?.(100) ?? Infinity, most?.(1_000) ?? Infinity];
  if (!Number.isFinite(ofHundred)) return 'takes pods';
  const limit = ofHundred === ofThousand ? String(ofHundred) : `${String(ofHundred)} %`;
  return `takes pods, at most ${limit} of a workload in all clusters of this tier`;
}

/** Undefined: the policy does not match it. */
function explainedWorkload(
  { namespace, of, chain, where }: LiveWorkload,
  kind: PolicySource['kind'],
  own: CompiledPolicy,
  { others, namespaceLabels }: PolicyFacts,
): ExplainedWorkload | undefined {
  const isOther = own.policy.metadata.namespace !== undefined && own.policy.metadata.namespace !== namespace;
  if (isOther || rankIn(own, chain) === 0) return undefined;
  const { chosen } = selectPolicy(chain, [own, ...others], namespaceLabels.get(namespace));
  const source = chosen?.source;
  const decides = source?.kind === kind && source.name === own.policy.metadata.name;
  const says = decides || source === undefined ? 'this policy decides' : whyOther(source, kind, own, chain, others);
  return { namespace, workload: of, decides, says, where: where ?? null };
}

function whyOther(
  { kind, name }: PolicySource,
  ownKind: PolicySource['kind'],
  own: CompiledPolicy,
  chain: OwnerChain,
  others: readonly CompiledPolicy[],
): string {
  if (kind === 'Annotation')
    return `annotation ${name} of the workload decides: it comes before every ClusterPlacementPolicy`;
  const decides = `${kind} ${name} decides`;
  if (kind !== ownKind) return `${decides}: it comes before every ClusterPlacementPolicy`;
  const other = others.find(({ policy: { metadata } }) => {
    return metadata.name === name && metadata.namespace === own.policy.metadata.namespace;
  });
  const [mine, its] = [own.policy.spec.priority, other?.policy.spec.priority ?? 0];
  if (mine !== its) return `${decides}: its priority is ${String(its)}, that of this one ${String(mine)}`;
  const isCloser = other !== undefined && rankIn(other, chain) > rankIn(own, chain);
  return `${decides}: ${isCloser ? 'it matches the workload more closely' : 'of equals the first by name counts'}`;
}

function rankIn({ rankOf }: CompiledPolicy, chain: OwnerChain): number {
  return Math.max(...chain.map(rankOf));
}
