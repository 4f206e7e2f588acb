import type { Command } from 'commander';
import { MEMBER_CLUSTERS, type MemberCluster, parseMemberCluster } from '../api/member-cluster.ts';
import { CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES, type OverridePolicyKind } from '../api/override-policy.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../api/placement-policy.ts';
import { parseWorkloadPlacement, WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { NAMESPACES, type Resource } from '../kube/resource.ts';
import { clusterOf, localCluster } from '../api/cluster.ts';
import type { Cli } from './cli.ts';
import { compiledPolicies } from './compiled-policies.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { explainOverride } from './explain-policy/explain-override.ts';
import { explainPolicy } from './explain-policy/explain.ts';
import { explainedOverrideText } from './explain-policy/explained-override-text.ts';
import { explainedPolicyText } from './explain-policy/explained-policy-text.ts';
import { hostData } from './explain-policy/overridden-data.ts';
import { type HostWorkload, hostWorkloads } from './explain-policy/live-workloads.ts';
import { allPolicies, type NamedPolicy, namedPolicy } from './explain-policy/named-policy.ts';
import {
  allNamespacesFlag,
  type AllNamespacesFlags,
  clusterFlags,
  namespaceFlags,
  outputFlags,
  type NamespaceFlags,
  type OutputFlags,
} from './flags.ts';
import { documented, type Format } from './output.ts';
import { readableOverrides } from './override-policies.ts';
import { MissingRight, type Viewer } from './viewer.ts';

interface Flags extends NamespaceFlags, AllNamespacesFlags, OutputFlags {
  filename?: string;
}
const FORMATS: readonly Format[] = ['table', 'json', 'yaml'];
export function addExplainPolicy(program: Command, cli: Cli): void {
  const command = program
    .command('explain-policy')
    .summary(
      'what a policy does here: which clusters, which workloads, which fields, what moves, and which other policy comes before it',
    )
    .description(
      'Says of a PlacementPolicy or ClusterPlacementPolicy, or of one in a manifest that is not created yet, which clusters it chooses in which order and ' +
        'why not the others, which workloads it matches, whether it or another one decides about them, where their pods are, which namespaces lack the label that lets their pods go to virtual nodes, what its failover moves and when, defaults included, and what in it ' +
        'contradicts itself. Of an OverridePolicy or ClusterOverridePolicy: which of its rules are for which member, which fields of the next pod of which workload they ' +
        'change there, which of the ConfigMaps and claims that its selectors are for, which rule of another policy comes later and wins, and where no pod can be made, and why. Ends with 5 when it cannot be used or is not consistent, ' +
        'or such a pod cannot be made.',
    )
    .argument(
      '[policy]',
      'such as web, placementpolicy/web, clusterplacementpolicy/all, overridepolicy/gold or cop/eu-registry',
    )
    .option('-f, --filename <file>', 'a manifest with one policy, YAML or JSON; - for standard input');
  allNamespacesFlag(command, 'all policies, one after the other, or all of the kind that is named');
  outputFlags(namespaceFlags(clusterFlags(command)), FORMATS).action(
    async (named: string | undefined, flags: Flags) =>
      await cli.withHost(flags, async (host) => await explain(cli, host, named, flags)),
  );
}

async function explain(cli: Cli, host: Viewer, named: string | undefined, flags: Flags): Promise<ExitCode> {
  const { terminal } = cli;
  const { signal } = terminal;
  const missing = new Set<string>();
  const isOfAll = flags.allNamespaces === true;
  const found = isOfAll ? await allPolicies(host, named, flags) : [await namedPolicy(host, named, flags)];
  const answers: Answer[] = [];
  for (const one of found) answers.push(await answered(host, one, missing, signal));
  const texts = answers.map(({ text }) => text).join('\n');
  const [only] = answers;
  const document =
    isOfAll || only === undefined
      ? { kind: 'ExplainedPolicyList', items: answers.map((one) => one.document) }
      : only.document;
  if (flags.output !== 'table') terminal.out(documented(document, flags.output === 'json' ? 'json' : 'yaml'));
  else if (only === undefined) terminal.note('There are no policies.');
  else terminal.out(texts);
  for (const right of missing)
    terminal.note(`note: it would be truer if you were allowed to ${right} (docs/reference/cli.md#rights)`);
  return answers.every(({ isWell }) => isWell) ? EXIT.ok : EXIT.findings;
}

/** `missing`: what has to be said of rights is added to it. */
async function answered(
  host: Viewer,
  { policy, resource: { kind } }: NamedPolicy,
  missing: Set<string>,
  signal: AbortSignal,
): Promise<Answer> {
  const { namespace } = policy.metadata;
  const list = async (resource: Resource): Promise<KubeObject[]> => {
    const listed = await host.tryList<KubeObject>(resource, namespace === undefined ? {} : { namespace });
    if (!(listed instanceof MissingRight)) return listed;
    missing.add(listed.right);
    return [];
  };
  const override = OVERRIDE_KINDS.find((one) => one === kind);
  return override === undefined
    ? await explainedPlacement(host, policy, list)
    : await explainedOverrides(host, override, policy, list, signal);
}

interface Answer {
  text: string;
  document: Record<string, unknown> & { kind: string };
  isWell: boolean;
}
type Lister = (resource: Resource) => Promise<KubeObject[]>;

async function explainedPlacement(host: Viewer, policy: KubeObject, list: Lister): Promise<Answer> {
  const { namespace } = policy.metadata;
  const [members, clusterWide, own, namespaces, placements] = await Promise.all([
    host.list<KubeObject>(MEMBER_CLUSTERS),
    host.list<KubeObject>(CLUSTER_PLACEMENT_POLICIES),
    host.list<KubeObject>(PLACEMENT_POLICIES, namespace === undefined ? {} : { namespace }),
    namespacesOf(host, namespace),
    list(WORKLOAD_PLACEMENTS),
  ]);
  const wheres = wheresIn(placements);
  const workloads = await hostWorkloads(list);
  const known = membersIn(members);
  const explained = explainPolicy({
    policy,
    others: compiledPolicies([...own, ...clusterWide].filter((one) => !isSame(one, policy))),
    clusters: [localCluster(), ...known.map(clusterOf)],
    members: known,
    workloads: workloads.map((workload) => ({ ...workload, where: wheres.get(keyOf(workload)) })),
    namespaceLabels: labelsOf(namespaces),
  });
  return {
    text: explainedPolicyText(explained),
    document: { kind: 'ExplainedPolicy', ...explained },
    isWell: explained.problems.length + explained.warnings.length === 0,
  };
}

const OVERRIDE_KINDS: readonly OverridePolicyKind[] = ['OverridePolicy', 'ClusterOverridePolicy'];

async function explainedOverrides(
  host: Viewer,
  kind: OverridePolicyKind,
  policy: KubeObject,
  list: Lister,
  signal: AbortSignal,
): Promise<Answer> {
  const { namespace } = policy.metadata;
  const [members, clusterWide, own, namespaces] = await Promise.all([
    host.list<KubeObject>(MEMBER_CLUSTERS),
    host.list<KubeObject>(CLUSTER_OVERRIDE_POLICIES),
    host.list<KubeObject>(OVERRIDE_POLICIES, namespace === undefined ? {} : { namespace }),
    namespacesOf(host, namespace),
  ]);
  const others = (one: readonly KubeObject[]): KubeObject[] => one.filter((each) => !isSame(each, policy));
  const explained = await explainOverride(
    {
      kind,
      policy,
      others: [
        ...readableOverrides('ClusterOverridePolicy', others(clusterWide)),
        ...readableOverrides('OverridePolicy', others(own)),
      ],
      members: membersIn(members),
      workloads: await hostWorkloads(list),
      data: async (usable) => await hostData(usable, list),
      namespaceLabels: labelsOf(namespaces),
    },
    signal,
  );
  const { problems, warnings, workloads } = explained;
  return {
    text: explainedOverrideText(explained),
    document: { ...explained, kind: 'ExplainedOverride' },
    isWell: problems.length + warnings.length === 0 && workloads.every(({ refused }) => refused === null),
  };
}

/** Both are of the kinds of one family, and only one of these has namespaces. */
function isSame(one: KubeObject, { metadata }: KubeObject): boolean {
  return one.metadata.name === metadata.name && one.metadata.namespace === metadata.namespace;
}

function membersIn(raw: readonly KubeObject[]): MemberCluster[] {
  return raw.flatMap((one) => {
    const parsed = parseMemberCluster(one);
    return 'member' in parsed ? [parsed.member] : [];
  });
}

function labelsOf(namespaces: readonly Namespace[]): Map<string, Readonly<Record<string, string>>> {
  return new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
}

async function namespacesOf(host: Viewer, namespace: string | undefined): Promise<Namespace[]> {
  if (namespace === undefined) return await host.list<Namespace>(NAMESPACES);
  return [await host.get<Namespace>(NAMESPACES, { name: namespace })];
}

/** `status.where` of each workload that the scheduler component has told of. */
function wheresIn(placements: readonly KubeObject[]): Map<string, string | undefined> {
  return new Map(
    placements.flatMap((raw) => {
      const placement = parseWorkloadPlacement(raw);
      if (placement === undefined) return [];
      const { kind, name } = placement.spec.workload;
      return [[keyOf({ namespace: raw.metadata.namespace ?? '', of: `${kind}/${name}` }), placement.status?.where]];
    }),
  );
}

function keyOf({ namespace, of }: Pick<HostWorkload, 'namespace' | 'of'>): string {
  return `${namespace}/${of}`;
}
