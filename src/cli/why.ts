import type { Command } from 'commander';
import { GANG_LABEL } from '../api/marks.ts';
import { MEMBER_CLUSTERS, parseMemberCluster } from '../api/member-cluster.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../api/placement-policy.ts';
import {
  parseWorkloadPlacement,
  WORKLOAD_PLACEMENTS,
  workloadPlacementName,
  type WorkloadPlacement,
} from '../api/workload-placement.ts';
import type { Event, Namespace, Node, Pod } from '../kube/core-v1.ts';
import type { Lease } from '../kube/lease.ts';
import type { KubeObject } from '../kube/object.ts';
import { EVENTS, LEASES, NAMESPACES, NODES, PODS } from '../kube/resource.ts';
import { workloadOf, type OwnerChain } from '../placement/owner-chain.ts';
import { MEMBER_LABEL } from '../api/marks.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { compiledPolicies } from './compiled-policies.ts';
import { EXIT } from './exit-code.ts';
import {
  clusterFlags,
  namespaceFlags,
  outputFlags,
  systemNamespaceFlag,
  type NamespaceFlags,
  type OutputFlags,
  type SystemFlags,
} from './flags.ts';
import { documented, type Format } from './output.ts';
import { ownersOf } from './owners.ts';
import { isHeld, SCHEDULER_LEASE } from './overview.ts';
import { painted } from './terminal.ts';
import { MissingRight, type Viewer } from './viewer.ts';
import { explain } from './why/explain.ts';
import { explanationText } from './why/explanation-text.ts';
import { heldDeletions } from './why/held-deletions.ts';
import type { PodFacts } from './why/pod-facts.ts';

type Flags = NamespaceFlags & OutputFlags & SystemFlags;
const FORMATS: readonly Format[] = ['table', 'json', 'yaml'];

export function addWhy(program: Command, cli: Cli): void {
  const command = program
    .command('why')
    .summary('why is a pod where it is, or nowhere: from the scheduler here to the kubelet there')
    .description(
      'Follows one pod on its way: gates, policy, the scheduler of this cluster, Spillway, the scheduler of the member, the kubelet there. Says in ' +
        'plain words what each did, where the pod is stuck and what helps; also for pods that run, and for those that have ended.',
    )
    .argument('<pod>', 'name of the pod');
  systemNamespaceFlag(outputFlags(namespaceFlags(clusterFlags(command)), FORMATS)).action(
    async (name: string, flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        const { facts, missing } = await readFacts(host, podName(name), flags, cli.terminal.now());
        const found = explain(facts);
        const { output } = flags;
        if (output === 'json' || output === 'yaml') {
          cli.terminal.out(documented({ kind: 'Explanation', ...found }, output));
        } else {
          cli.terminal.out(explanationText(found, (colour, text) => painted(cli.terminal, colour, text)));
        }
        for (const right of missing)
          cli.terminal.note(`note: more could be said if you were allowed to ${right} (docs/reference/cli.md#rights)`);
        return EXIT.ok;
      }),
  );
}

/** `web-0` or `pod/web-0`, as kubectl takes it. */
function podName(text: string): string {
  const [kind, name] = text.includes('/') ? text.split('/', 2) : ['pod', text];
  if (name !== undefined && name !== '' && ['pod', 'pods', 'po'].includes(kind ?? '')) return name;
  throw new CliError(`${text} is not the name of a pod`, {
    exitCode: EXIT.usage,
    fix: 'name one pod, such as web-0 or pod/web-0',
  });
}

async function readFacts(
  host: Viewer,
  name: string,
  flags: Flags,
  now: number,
): Promise<{ facts: PodFacts; missing: string[] }> {
  const namespace = flags.namespace ?? host.namespace;
  const pod = await host
    .get<Pod>(PODS, { namespace, name })
    .catch(async (error: unknown) => await withHeldDeletions(host, error));
  const about = `involvedObject.kind=Pod,involvedObject.name=${name},involvedObject.uid=${pod.metadata.uid ?? ''}`;
  const gang = pod.metadata.labels?.[GANG_LABEL];
  const [owners, events, labels, members, nodes, own, clusterWide, lease, kin] = await Promise.all([
    ownersOf(host, pod),
    host.tryList<Event>(EVENTS, { namespace, fieldSelector: about }),
    host.tryGet<Namespace>(NAMESPACES, { name: namespace }),
    host.tryList<KubeObject>(MEMBER_CLUSTERS),
    host.tryList<Node>(NODES, { labelSelector: MEMBER_LABEL }),
    host.tryList<KubeObject>(PLACEMENT_POLICIES, { namespace }),
    host.tryList<KubeObject>(CLUSTER_PLACEMENT_POLICIES),
    host.tryGet<Lease>(LEASES, { namespace: flags.systemNamespace, name: SCHEDULER_LEASE }),
    gang === undefined ? undefined : host.tryList<Pod>(PODS, { namespace, labelSelector: `${GANG_LABEL}=${gang}` }),
  ]);
  const placement = await placementOf(host, owners.chain);
  const answers = [owners.missing, events, labels, members, nodes, own, clusterWide, lease, kin, placement];
  const missing = answers.flatMap((one) => (one instanceof MissingRight ? [one.right] : []));
  const facts: PodFacts = {
    pod,
    chain: owners.chain,
    now,
    events: known(events),
    namespaceLabels:
      labels instanceof MissingRight || labels === undefined ? undefined : (labels.metadata.labels ?? {}),
    members: known(members)?.flatMap((raw) => {
      const parsed = parseMemberCluster(raw);
      return 'member' in parsed ? [parsed.member] : [];
    }),
    nodes: known(nodes),
    policies:
      own instanceof MissingRight || clusterWide instanceof MissingRight
        ? undefined
        : compiledPolicies([...own, ...clusterWide]),
    placement: placement instanceof MissingRight ? undefined : placement,
    schedulerAnswers: lease instanceof MissingRight ? undefined : lease !== undefined && isHeld(lease, now),
    gang: kin === undefined ? undefined : known(kin),
  };
  return { facts, missing: [...new Set(missing)] };
}

/** A pod that is not here may run on in a member that keeps what vanished here. Throws always. */
async function withHeldDeletions(host: Viewer, error: unknown): Promise<never> {
  if (!(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error;
  const members = await host.tryList<KubeObject>(MEMBER_CLUSTERS).catch(() => []);
  const held = members instanceof MissingRight ? undefined : heldDeletions(members);
  if (held === undefined) throw error;
  throw new CliError(error.message, { ...held, exitCode: EXIT.notFound, cause: error });
}

function known<T>(answer: T | MissingRight): T | undefined {
  return answer instanceof MissingRight ? undefined : answer;
}

/** What the scheduler component wrote about the workload of the pod; null: nothing. */
async function placementOf(host: Viewer, chain: OwnerChain): Promise<WorkloadPlacement | null | MissingRight> {
  const { apiVersion, kind, metadata } = workloadOf(chain).object;
  const ref = { namespace: metadata.namespace, name: workloadPlacementName({ apiVersion, kind, name: metadata.name }) };
  const raw = await host.tryGet<KubeObject>(WORKLOAD_PLACEMENTS, ref);
  if (raw instanceof MissingRight) return raw;
  const placement = raw === undefined ? undefined : parseWorkloadPlacement(raw);
  return placement?.spec.workload.uid === metadata.uid ? (placement ?? null) : null;
}
