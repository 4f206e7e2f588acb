import type { Command } from 'commander';
import { MEMBER_CLUSTERS, parseMemberCluster } from '../api/member-cluster.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../api/placement-policy.ts';
import { parseWorkloadPlacement, WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { OWNER_KINDS } from '../kube/owner-kinds.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { apiVersionOf, NAMESPACES, PODS, type Resource } from '../kube/resource.ts';
import { clusterOf, localCluster } from '../placement/cluster.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { compiledPolicies } from './compiled-policies.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { explainPolicy, type LiveWorkload } from './explain-policy/explain.ts';
import { explainedPolicyText } from './explain-policy/explained-policy-text.ts';
import { clusterFlags, namespaceFlags, outputFlags, type NamespaceFlags, type OutputFlags } from './flags.ts';
import { manifestText } from './manifest-file.ts';
import { documented, type Format } from './output.ts';
import { manifestObject, manifestObjects } from './simulate/manifest-objects.ts';
import { podsOf } from './simulate/workload-pods.ts';
import { MissingRight, type Viewer } from './viewer.ts';

interface Flags extends NamespaceFlags, OutputFlags {
  filename?: string;
}
const FORMATS: readonly Format[] = ['table', 'json', 'yaml'];
const TYPES: Readonly<Record<string, Resource>> = {
  placementpolicy: PLACEMENT_POLICIES,
  placementpolicies: PLACEMENT_POLICIES,
  pp: PLACEMENT_POLICIES,
  clusterplacementpolicy: CLUSTER_PLACEMENT_POLICIES,
  clusterplacementpolicies: CLUSTER_PLACEMENT_POLICIES,
  cpp: CLUSTER_PLACEMENT_POLICIES,
};

export function addExplainPolicy(program: Command, cli: Cli): void {
  const command = program
    .command('explain-policy')
    .summary(
      'what a placement policy does here: which clusters, which workloads, and which other policy comes before it',
    )
    .description(
      'Says of a PlacementPolicy or ClusterPlacementPolicy, or of one in a manifest that is not created yet, which clusters it chooses in which order and ' +
        'why not the others, which workloads it matches, whether it or another one decides about them, where their pods are, and what in it ' +
        'contradicts itself. Ends with 5 when it cannot be used or is not consistent.',
    )
    .argument('[policy]', 'such as web, placementpolicy/web or clusterplacementpolicy/all')
    .option('-f, --filename <file>', 'a manifest with one policy, YAML or JSON; - for standard input');
  outputFlags(namespaceFlags(clusterFlags(command)), FORMATS).action(
    async (named: string | undefined, flags: Flags) =>
      await cli.withHost(flags, async (host) => await explain(cli, host, named, flags)),
  );
}

async function explain(cli: Cli, host: Viewer, named: string | undefined, flags: Flags): Promise<ExitCode> {
  const policy = await policyOf(host, named, flags);
  const { namespace } = policy.metadata;
  const missing = new Set<string>();
  const list = async <T extends KubeObject>(resource: Resource): Promise<T[]> => {
    const found = await host.tryList<T>(resource, namespace === undefined ? {} : { namespace });
    if (!(found instanceof MissingRight)) return found;
    missing.add(found.right);
    return [];
  };
  const [members, clusterWide, own, namespaces, placements] = await Promise.all([
    host.list<KubeObject>(MEMBER_CLUSTERS),
    host.list<KubeObject>(CLUSTER_PLACEMENT_POLICIES),
    host.list<KubeObject>(PLACEMENT_POLICIES, namespace === undefined ? {} : { namespace }),
    namespacesOf(host, namespace),
    list<KubeObject>(WORKLOAD_PLACEMENTS),
  ]);
  const wheres = wheresIn(placements);
  const workloads: LiveWorkload[] = [];
  for (const resource of [...OWNER_KINDS, PODS]) {
    for (const object of await list<KubeObject>(resource)) {
      const workload = liveWorkload(object, resource);
      if (workload !== undefined) workloads.push({ ...workload, where: wheres.get(keyOf(workload)) });
    }
  }
  const isSame = (one: KubeObject): boolean =>
    one.metadata.name === policy.metadata.name && one.metadata.namespace === namespace;
  const explained = explainPolicy({
    policy,
    others: compiledPolicies([...own, ...clusterWide].filter((one) => !isSame(one))),
    clusters: [
      localCluster(),
      ...members.flatMap((raw) => {
        const parsed = parseMemberCluster(raw);
        return 'member' in parsed ? [clusterOf(parsed.member)] : [];
      }),
    ],
    workloads,
    namespaceLabels: new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
  });
  cli.terminal.out(
    flags.output === 'table'
      ? explainedPolicyText(explained)
      : documented({ kind: 'ExplainedPolicy', ...explained }, flags.output === 'json' ? 'json' : 'yaml'),
  );
  for (const right of missing)
    cli.terminal.note(`note: it would be truer if you were allowed to ${right} (docs/reference/cli.md#rights)`);
  return explained.problems.length + explained.warnings.length === 0 ? EXIT.ok : EXIT.findings;
}

/** The one that is named, or that of the manifest. Throws CliError. */
async function policyOf(host: Viewer, named: string | undefined, flags: Flags): Promise<KubeObject> {
  const namespace = flags.namespace ?? host.namespace;
  if ((named === undefined) === (flags.filename === undefined)) {
    throw new CliError('it takes either the name of a policy or a manifest', {
      exitCode: EXIT.usage,
      fix: 'kubectl spillway explain-policy web, or: kubectl spillway explain-policy -f policy.yaml',
    });
  }
  if (named === undefined) return policyIn(await manifestText(flags.filename ?? ''), namespace);
  const [type, name, more] = named.includes('/') ? named.split('/') : ['placementpolicy', named];
  const resource = TYPES[(type ?? '').toLowerCase().replace(/\.spillway\.dev$/, '')];
  if (resource === undefined || name === undefined || name === '' || more !== undefined) {
    throw new CliError(`${named} is not the name of a placement policy`, {
      exitCode: EXIT.usage,
      fix: 'name it like web, placementpolicy/web or clusterplacementpolicy/all',
    });
  }
  return await host.get<KubeObject>(resource, resource.namespaced ? { namespace, name } : { name });
}

function policyIn(text: string, fallback: string): KubeObject {
  const kinds = [PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES];
  const policies = manifestObjects(text).flatMap((object) => {
    const resource = kinds.find((one) => one.kind === object.kind && apiVersionOf(one) === object.apiVersion);
    return resource === undefined ? [] : [{ object, resource }];
  });
  const [found, another] = policies;
  if (found === undefined || another !== undefined) {
    throw new CliError(
      `the manifest has ${found === undefined ? 'no placement policy' : 'more than one placement policy'}`,
      {
        exitCode: EXIT.usage,
        fix: 'name a file with one PlacementPolicy or ClusterPlacementPolicy',
      },
    );
  }
  const { metadata, ...rest } = found.object;
  const { name, namespace, labels = {} } = metadata;
  const place = found.resource.namespaced ? { namespace: namespace ?? fallback } : {};
  return { ...rest, metadata: { name, labels, ...place } };
}

async function namespacesOf(host: Viewer, namespace: string | undefined): Promise<Namespace[]> {
  if (namespace === undefined) return await host.list<Namespace>(NAMESPACES);
  return [await host.get<Namespace>(NAMESPACES, { name: namespace })];
}

/** A workload that no other one makes; undefined: it is part of another one, or goes where its nodes are. */
function liveWorkload(raw: KubeObject, resource: Resource): Omit<LiveWorkload, 'where'> | undefined {
  if (controllerOf(raw) !== undefined) return undefined;
  const { namespace = '' } = raw.metadata;
  const made = podsOf(manifestObject({ ...raw, apiVersion: apiVersionOf(resource), kind: resource.kind }), namespace);
  if (made === undefined) return undefined;
  return { namespace, of: made.of, chain: [{ ...made.pod, apiVersion: 'v1', kind: 'Pod' }, ...made.owners] };
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

function keyOf({ namespace, of }: Pick<LiveWorkload, 'namespace' | 'of'>): string {
  return `${namespace}/${of}`;
}
