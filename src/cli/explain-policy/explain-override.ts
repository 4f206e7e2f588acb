import { type MemberCluster, virtualNodesOf } from '../../api/member-cluster.ts';
import { type OverridePolicy, type OverridePolicyKind, parseOverridePolicy } from '../../api/override-policy.ts';
import type { KubeObject } from '../../kube/object.ts';
import { policyInWords } from '../../overrides/planned-rules.ts';
import { addedContainers } from '../../overrides/added-containers.ts';
import { alikePods } from '../../overrides/alike-pods.ts';
import { containerWarnings, type KnownPods } from '../../overrides/named-containers.ts';
import { overrideWarnings } from '../../overrides/policy-findings.ts';
import { type OverrideSubject, selectPolicies } from '../../overrides/selection.ts';
import { compileAffinity } from '../../placement/cluster-affinity.ts';
import { type Cluster, clusterOf } from '../../api/cluster.ts';
import { identitiesOf } from '../override-identities.ts';
import { type HostFacts, memberPod } from '../simulate/member-pod.ts';
import type { ExplainedOverride, OverriddenCluster, OverriddenWorkload } from './explained-override.ts';
import type { HostWorkload } from './live-workloads.ts';
import { type HostData, subjectOfData, tracedData } from './overridden-data.ts';
import { type TracedRule, traceRules } from './rule-trace.ts';

export interface OverrideFacts {
  kind: OverridePolicyKind;
  /** As the API server has it, or as a manifest would have it. */
  policy: KubeObject;
  /** All other override policies that can be used. */
  others: readonly OverridePolicy[];
  members: readonly MemberCluster[];
  workloads: readonly HostWorkload[];
  /** What the policy itself is for of ConfigMaps and claims; asked only if it can be used. */
  data: (policy: OverridePolicy) => Promise<readonly HostData[]>;
  namespaceLabels: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

/** A pod that nobody has created has no UID, and its copy is labelled with one. */
const NO_UID = '00000000-0000-4000-8000-000000000000';

/** What an override policy does here and now, by the very functions of the manager. */
export async function explainOverride(facts: OverrideFacts, signal: AbortSignal): Promise<ExplainedOverride> {
  const { kind, members } = facts;
  const { namespace, name } = facts.policy.metadata;
  const head = { policy: `${kind} ${name}`, namespace: namespace ?? null };
  const parsed = parseOverridePolicy(kind, facts.policy);
  if ('problems' in parsed) {
    const { problems } = parsed;
    return { ...head, applyTo: null, problems, warnings: [], clusters: [], workloads: [], notes: [] };
  }
  const { policy } = parsed;
  const clusters = members.map((member) => ({ member, cluster: clusterOf(member) }));
  const fleet = clusters.map(({ cluster }) => cluster);
  const rulesFor = new Map(clusters.map(({ cluster }) => [cluster.name, overriddenCluster(policy, cluster)]));
  const workloads: OverriddenWorkload[] = [];
  for (const workload of facts.workloads) {
    const subject = { namespace: workload.namespace, identities: identitiesOf(workload.chain) };
    const selection = selectPolicies(subject, [policy]);
    if (!('selected' in selection) || selection.selected.length === 0) continue;
    for (const { member, cluster } of clusters) {
      if (rulesFor.get(cluster.name)?.rules.length === 0) continue;
      workloads.push(await overriddenWorkload(workload, subject, policy, member, cluster, facts, signal));
    }
  }
  for (const data of await facts.data(policy)) {
    const subject = subjectOfData(data);
    const selection = selectPolicies(subject, [policy]);
    if (!('selected' in selection) || selection.selected.length === 0) continue;
    for (const { cluster } of clusters) {
      if (rulesFor.get(cluster.name)?.rules.length === 0) continue;
      const { traced, refused } = tracedData(data, [policy, ...facts.others], cluster);
      const workload = `${data.kind}/${data.object.metadata.name}`;
      const found = { namespace: subject.namespace, workload, cluster: cluster.name };
      workloads.push({ ...found, changes: changesOf(policy, traced), refused });
    }
  }
  return {
    ...head,
    applyTo: policy.spec.applyTo,
    problems: [],
    warnings: [...overrideWarnings(policy, fleet), ...containerWarnings(policy, knownPods(policy, fleet, facts))],
    clusters: [...rulesFor.values()],
    workloads,
    notes: notesOf(policy),
  };
}

/** The next pod of each workload, wherever it will go. */
function knownPods(
  policy: OverridePolicy,
  members: readonly Cluster[],
  { workloads, others }: OverrideFacts,
): KnownPods {
  const owners = new Map(workloads.map(({ pod, chain }) => [pod, identitiesOf(chain)]));
  return {
    members,
    alikeIn: alikePods((_, namespace) =>
      workloads.filter((one) => namespace === undefined || one.namespace === namespace).map(({ pod }) => pod),
    ),
    identitiesOf: (pod) => owners.get(pod),
    added: addedContainers([policy, ...others]),
    before: [],
  };
}

function overriddenCluster({ spec }: OverridePolicy, cluster: Cluster): OverriddenCluster {
  const whys = spec.overrideRules.map(({ targetCluster }) =>
    targetCluster === undefined ? undefined : compileAffinity(targetCluster)(cluster),
  );
  const rules = whys.flatMap((why, index) => (why === undefined ? [index] : []));
  const says =
    rules.length > 0
      ? `${rules.map((rule) => `overrideRules[${String(rule)}]`).join(', ')} ${rules.length === 1 ? 'is' : 'are'} for it`
      : [...new Set(whys)].join('; ') || 'it has no rules';
  return { cluster: cluster.name, rules, says };
}

async function overriddenWorkload(
  { namespace, of, pod, chain }: HostWorkload,
  subject: OverrideSubject,
  policy: OverridePolicy,
  member: MemberCluster,
  cluster: Cluster,
  facts: OverrideFacts,
  signal: AbortSignal,
): Promise<OverriddenWorkload> {
  const found = { namespace, workload: of, cluster: cluster.name };
  const [node] = virtualNodesOf(member);
  const hostPod = { ...pod, metadata: { ...pod.metadata, uid: NO_UID } };
  const made = async (policies: readonly OverridePolicy[]): ReturnType<typeof memberPod> =>
    await memberPod(
      hostPod,
      identitiesOf(chain),
      member,
      node?.name ?? cluster.name,
      { ...HOST_FACTS, namespaceLabels: facts.namespaceLabels.get(namespace) ?? {}, policies },
      signal,
    );
  const translated = await made([]);
  if ('refused' in translated) return { ...found, changes: [], refused: translated.refused };
  const policies = [policy, ...facts.others];
  const result = await made(policies);
  const context = { subject, member: cluster, pool: node?.nodeSelector ?? {} };
  const changes = changesOf(policy, traceRules(translated.pod, policies, context));
  return { ...found, changes, refused: 'refused' in result ? result.refused : null };
}

/** What decides about variables of Services and labels of nodes, which override policies do not look at. */
const HOST_FACTS: Omit<HostFacts, 'namespaceLabels' | 'policies'> = {
  hostId: '',
  services: [],
  apiServer: undefined,
  environmentKeys: () => [],
  nodes: undefined,
  copiesTopology: false,
};

/** Those of the policy itself. */
function changesOf(policy: OverridePolicy, traced: readonly TracedRule[]): OverriddenWorkload['changes'] {
  return traced.flatMap((rule) =>
    rule.policy === policyInWords(policy) ? [{ rule: rule.rule, fields: [...rule.fields] }] : [],
  );
}

function notesOf({ spec: { resourceSelectors } }: OverridePolicy): string[] {
  const isFor = (...kinds: string[]): boolean => resourceSelectors.some(({ kind }) => kinds.includes(kind));
  if (resourceSelectors.length === 0)
    return [
      'it is for everything, so for ConfigMaps, Secrets and claims, too: those were not looked at; name them by selectors to see what becomes of them',
    ];
  return [
    ...(isFor('Secret') ? ['Secrets, for which it is too, were not looked at'] : []),
    ...(isFor('ConfigMap') ? ['ConfigMaps come to a member with the first pod there that refers to them'] : []),
    ...(isFor('PersistentVolumeClaim')
      ? ['the class of a claim is set when it is made in the member, with its first pod, and stays']
      : []),
  ];
}
