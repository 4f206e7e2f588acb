import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { LOCAL } from '../api/cluster-tiers.ts';
import { hostIdOf } from '../api/marks.ts';
import { MEMBER_CLUSTERS, parseMemberCluster, virtualNodesOf, type MemberCluster } from '../api/member-cluster.ts';
import { CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES, type OverridePolicy } from '../api/override-policy.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../api/placement-policy.ts';
import { memberOfNode } from '../api/provider-id.ts';
import { describeError, isAlreadyExists, isForbidden } from '../kube/errors.ts';
import type { Namespace, Node, Pod, Secret } from '../kube/core-v1.ts';
import type { Service } from '../kube/service.ts';
import type { KubeObject } from '../kube/object.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS, SERVICES, type Resource } from '../kube/resource.ts';
import { usesClaims } from '../kube/uses-claims.ts';
import { create } from '../kube/verbs.ts';
import { clusterOf, localCluster } from '../api/cluster.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { selectPolicy, type CompiledPolicy, type Rules } from '../placement/policy-selection.ts';
import { asksForItself } from '../scheduler/node-demands.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { compiledPolicies } from './compiled-policies.ts';
import { EXIT } from './exit-code.ts';
import { clusterFlags, namespaceFlags, outputFlags, type NamespaceFlags, type OutputFlags } from './flags.ts';
import { manifestText } from './manifest-file.ts';
import { documented, type Format } from './output.ts';
import { identitiesOf } from './override-identities.ts';
import { readableOverrides } from './override-policies.ts';
import { versionOf } from './host-version.ts';
import { addressesNotKnown, memberPod, type HostFacts } from './simulate/member-pod.ts';
import { placesByRules, placesWithoutRules, type Places } from './simulate/places.ts';
import { roomsFor, type RoomFacts } from './simulate/rooms.ts';
import type { SimulatedPlace, Simulation } from './simulate/simulation.ts';
import { simulationText } from './simulate/simulation-text.ts';
import { wantedPods, type WantedPods } from './simulate/workload-pods.ts';
import { MissingRight, type Viewer } from './viewer.ts';

interface Flags extends NamespaceFlags, OutputFlags {
  filename: string;
}
const FORMATS: readonly Format[] = ['table', 'json', 'yaml'];
/** From this minor version on the API server copies topology labels of its node to a pod. */
const COPIES_TOPOLOGY = 35;
/** Pods that may hold resources. */
const UNFINISHED = 'status.phase!=Succeeded,status.phase!=Failed';

export function addSimulate(program: Command, cli: Cli): void {
  const command = program
    .command('simulate')
    .summary('where would the pods of a manifest go, and what would each become there; nothing is created')
    .description(
      'Takes Pods, Deployments, StatefulSets, ReplicaSets, Jobs, CronJobs and ReplicationControllers of a manifest. Lets the API server fill in ' +
        'what it would (a dry run), applies policies as the scheduler component does, and renders the pod for every virtual node by the very functions ' +
        'of the manager: -o yaml shows it whole. Room in members is an estimate from what they show; claims are not looked at. Ends with 5 when ' +
        'some pod would go nowhere.',
    )
    .requiredOption('-f, --filename <file>', 'the manifest, YAML or JSON; - for standard input');
  outputFlags(namespaceFlags(clusterFlags(command)), FORMATS).action(
    async (flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        const { wanted, passedOver } = wantedPods(
          await manifestText(flags.filename),
          flags.namespace ?? host.namespace,
        );
        if (wanted.length === 0) {
          throw new CliError('there are no pods in the manifest', {
            exitCode: EXIT.usage,
            fix: 'name a file with Pods or workloads such as Deployments',
          });
        }
        const world = await readWorld(host);
        const found: Simulation[] = [];
        for (const one of wanted) found.push(await simulated(host, world, one, cli));
        if (flags.output === 'json' || flags.output === 'yaml') {
          cli.terminal.out(documented({ kind: 'SimulationList', items: found }, flags.output));
        } else {
          cli.terminal.out(simulationText(found, flags.headers));
        }
        if (passedOver.length > 0) cli.terminal.note(`note: passed over: ${passedOver.join(', ')}`);
        for (const right of world.missing)
          cli.terminal.note(`note: it would be truer if you were allowed to ${right} (docs/reference/cli.md#rights)`);
        return found.some(({ waiting }) => waiting > 0) ? EXIT.findings : EXIT.ok;
      }),
  );
}

/** What is the same for all objects of the manifest. */
interface World extends RoomFacts {
  hostId: string;
  apiServer: Service | undefined;
  clusterWide: { placement: readonly KubeObject[]; overrides: readonly OverridePolicy[] };
  missing: Set<string>;
  copiesTopology: boolean;
}

async function readWorld(host: Viewer): Promise<World> {
  const [system, raw, nodes, pods, placement, overrides, apiServer, version] = await Promise.all([
    host.get<Namespace>(NAMESPACES, { name: 'kube-system' }),
    host.list<KubeObject>(MEMBER_CLUSTERS),
    host.tryList<Node>(NODES),
    host.tryList<Pod>(PODS, { fieldSelector: UNFINISHED }),
    host.list<KubeObject>(CLUSTER_PLACEMENT_POLICIES),
    host.list<KubeObject>(CLUSTER_OVERRIDE_POLICIES),
    host.tryGet<Service>(SERVICES, { namespace: 'default', name: 'kubernetes' }),
    versionOf(host),
  ]);
  const missing = [nodes, pods, apiServer].flatMap((one) => (one instanceof MissingRight ? [one.right] : []));
  return {
    hostId: hostIdOf(system.metadata.uid ?? ''),
    members: raw.flatMap((one): MemberCluster[] => {
      const parsed = parseMemberCluster(one);
      return 'member' in parsed ? [parsed.member] : [];
    }),
    nodes: nodes instanceof MissingRight ? undefined : nodes,
    pods: pods instanceof MissingRight ? undefined : pods,
    apiServer: apiServer instanceof MissingRight ? undefined : apiServer,
    clusterWide: { placement, overrides: readableOverrides('ClusterOverridePolicy', overrides) },
    missing: new Set(missing),
    copiesTopology: version.minor >= COPIES_TOPOLOGY,
  };
}

async function simulated(host: Viewer, world: World, wanted: WantedPods, cli: Cli): Promise<Simulation> {
  const namespace = wanted.pod.metadata.namespace ?? '';
  const [labels, services, own, overrides] = await Promise.all([
    host.get<Namespace>(NAMESPACES, { name: namespace }),
    host.tryList<Service>(SERVICES, { namespace }),
    host.list<KubeObject>(PLACEMENT_POLICIES, { namespace }),
    host.list<KubeObject>(OVERRIDE_POLICIES, { namespace }),
  ]);
  if (services instanceof MissingRight) world.missing.add(services.right);
  const notes: string[] = [];
  const pod = await admitted(host, wanted.pod, notes);
  const hostFacts: HostFacts = {
    hostId: world.hostId,
    namespaceLabels: labels.metadata.labels ?? {},
    services: services instanceof MissingRight ? [] : services,
    apiServer: world.apiServer,
    policies: [...world.clusterWide.overrides, ...readableOverrides('OverridePolicy', overrides)],
    environmentKeys: await environmentKeys(host, pod, world.missing),
    nodes: world.nodes,
    copiesTopology: world.copiesTopology,
  };
  if (usesClaims(pod)) {
    notes.push('its claims were not looked at: where their data are decides, too (docs/concepts/storage.md)');
  }
  const unknown = addressesNotKnown(pod, hostFacts.services, world.members);
  if (unknown !== undefined) notes.push(unknown);
  const policies = compiledPolicies([...own, ...world.clusterWide.placement]);
  const chain: OwnerChain = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }, ...wanted.owners];
  const { rules, places } = decided(
    pod,
    chain,
    policies,
    wanted.replicas,
    world,
    hostFacts.namespaceLabels,
    cli.terminal.now(),
  );
  const identities = identitiesOf(chain);
  const found: SimulatedPlace[] = [placeOf(LOCAL, places, [])];
  for (const member of world.members) {
    const becomes: SimulatedPlace['becomes'] = [];
    for (const { name } of virtualNodesOf(member)) {
      const made = await memberPod(pod, identities, member, name, hostFacts, cli.terminal.signal);
      becomes.push(
        'pod' in made ? { node: name, pod: made.pod, refused: null } : { node: name, pod: null, refused: made.refused },
      );
    }
    found.push(placeOf(member.metadata.name, places, becomes));
  }
  return {
    object: wanted.of,
    namespace,
    replicas: wanted.replicas,
    rules: rules === undefined ? null : `${rules.source.kind} ${rules.source.name}`,
    waiting: places.waiting,
    places: found,
    notes,
  };
}

function placeOf(cluster: string, { counts, why }: Places, becomes: SimulatedPlace['becomes']): SimulatedPlace {
  return { cluster, pods: counts.get(cluster) ?? 0, says: why.get(cluster) ?? 'others come first', becomes };
}

function decided(
  pod: Pod,
  chain: OwnerChain,
  policies: readonly CompiledPolicy[],
  replicas: number,
  world: World,
  namespaceLabels: Readonly<Record<string, string>>,
  now: number,
): { rules: Rules | undefined; places: Places } {
  const rooms = roomsFor(pod, world);
  const { chosen: rules } = selectPolicy(chain, policies, namespaceLabels);
  const clusters = [localCluster(), ...world.members.map(clusterOf)];
  if (rules !== undefined) return { rules, places: placesByRules({ rules, clusters, rooms, replicas, now }) };
  const unavailable = new Map(clusters.map((one) => [one.name, one.unavailable]));
  const places = placesWithoutRules(rooms, replicas, (member) => {
    const nodes = (world.nodes ?? []).filter((node) => memberOfNode(node) === member);
    const asks = nodes.some((node) => asksForItself(pod, node, namespaceLabels));
    return unavailable.get(member) ?? (asks ? undefined : 'nothing says that the pod may leave this cluster');
  });
  return { rules, places };
}

/** The pod as the API server of this cluster would store it, admission included. Nothing is stored. */
async function admitted(host: Viewer, pod: Pod, notes: string[]): Promise<Pod> {
  const { namespace = '', name } = pod.metadata;
  const asked = async (as: string): Promise<Pod> =>
    await host.ask(`create pods (as a dry run) in namespace ${namespace}`, async (signal) => {
      const body = { ...pod, apiVersion: 'v1', kind: 'Pod', metadata: { ...pod.metadata, name: as } };
      const made = await create<Pod>(host.client, PODS, body, { signal, dryRun: true });
      return { ...made, metadata: { ...made.metadata, name } };
    });
  try {
    return await asked(name).catch(async (error: unknown) => {
      // It is there already, so another name has to do: nothing else follows from it in the host.
      if (!isAlreadyExists(causeOf(error))) throw error;
      return await asked(`simulated-${randomUUID()}`);
    });
  } catch (error) {
    if (!isForbidden(causeOf(error))) throw error;
    notes.push(
      `the API server did not fill in what it would, as it refused a dry run: ${describeError(causeOf(error))}`,
    );
    return { ...pod, metadata: { ...pod.metadata, uid: '00000000-0000-4000-8000-000000000000' } };
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof CliError ? error.cause : error;
}

/** Keys of what containers take all variables from: they come before variables of services. */
async function environmentKeys(host: Viewer, pod: Pod, missing: Set<string>): Promise<HostFacts['environmentKeys']> {
  const { namespace } = pod.metadata;
  const keys = new Map<string, string[]>();
  const containers = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  for (const { configMapRef, secretRef } of containers.flatMap(({ envFrom = [] }) => envFrom)) {
    const [kind, resource, name]: [string, Resource, string] =
      configMapRef === undefined
        ? ['Secret', SECRETS, secretRef?.name ?? '']
        : ['ConfigMap', CONFIG_MAPS, configMapRef.name ?? ''];
    if (name === '' || keys.has(`${kind}/${name}`)) continue;
    const found = await host.tryGet<Secret>(resource, { namespace, name });
    if (found instanceof MissingRight) missing.add(found.right);
    keys.set(`${kind}/${name}`, found instanceof MissingRight ? [] : Object.keys(found?.data ?? {}));
  }
  return (kind, name) => keys.get(`${kind}/${name}`) ?? [];
}
