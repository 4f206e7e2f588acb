import type { Cluster } from '../../hack/cluster.ts';
import { parseMemberCluster } from '../../src/api/member-cluster.ts';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import type { WorkloadPlacement } from '../../src/api/workload-placement.ts';
import { memberOfNode } from '../../src/api/provider-id.ts';
import { LOCAL } from '../../src/api/cluster-tiers.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject, OwnerReference } from '../../src/kube/object.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import { type Cluster as Place, clusterOf, localCluster } from '../../src/api/cluster.ts';
import type { PlacementFacts } from '../../src/placement/decision.ts';
import { type OwnerChain, type TypedObject, workloadOf } from '../../src/placement/owner-chain.ts';
import { remembered } from '../../src/placement/placement-report.ts';
import { type CompiledPolicy, compilePolicy, selectPolicy } from '../../src/placement/policy-selection.ts';
import { countPods, type PlacedPod } from '../fixtures/count-pods.ts';
import type { Room } from '../../src/placement/candidates.ts';
import type { Lab } from './lab.ts';

/** What is there, read from the API servers at one moment, and what follows from it by the pure functions of placement. */
export interface State {
  readonly pods: readonly Pod[];
  readonly nodes: ReadonlyMap<string, Node>;
  /** By member. */
  readonly inMembers: ReadonlyMap<string, { nodes: readonly Node[]; pods: readonly Pod[] }>;
  readonly clusters: readonly Place[];
  readonly policies: readonly CompiledPolicy[];
  /** By UID of the workload. */
  readonly placements: ReadonlyMap<string, WorkloadPlacement>;
  readonly owners: ReadonlyMap<string, TypedObject>;
  readonly labelsOf: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** Pods that hold a place, by UID of their workload. */
  readonly placed: ReadonlyMap<string, readonly PlacedPod[]>;
}

/** Kinds that own pods and that Spillway follows, by their paths. */
const OWNERS: readonly [path: string, apiVersion: string, kind: string][] = [
  ['/apis/apps/v1/replicasets', 'apps/v1', 'ReplicaSet'],
  ['/apis/apps/v1/deployments', 'apps/v1', 'Deployment'],
  ['/apis/apps/v1/statefulsets', 'apps/v1', 'StatefulSet'],
  ['/apis/apps/v1/daemonsets', 'apps/v1', 'DaemonSet'],
  ['/apis/batch/v1/jobs', 'batch/v1', 'Job'],
  ['/apis/batch/v1/cronjobs', 'batch/v1', 'CronJob'],
  ['/api/v1/replicationcontrollers', 'v1', 'ReplicationController'],
];
const SPILLWAY = '/apis/spillway.dev/v1alpha1';

async function items<T>(cluster: Cluster, path: string): Promise<T[]> {
  return ((await cluster.api.call('GET', path)) as { items: T[] }).items;
}

export async function readState({ host, members }: Lab): Promise<State> {
  const inMembers = new Map<string, { nodes: Node[]; pods: Pod[] }>();
  for (const [name, member] of members) {
    inMembers.set(name, {
      nodes: await items<Node>(member, '/api/v1/nodes'),
      pods: await items<Pod>(member, '/api/v1/pods'),
    });
  }
  const pods = await items<Pod>(host, '/api/v1/pods');
  const nodes = new Map((await items<Node>(host, '/api/v1/nodes')).map((node) => [node.metadata.name, node]));
  const owners = new Map<string, TypedObject>();
  for (const [path, apiVersion, kind] of OWNERS) {
    for (const object of await items<KubeObject>(host, path))
      owners.set(object.metadata.uid ?? '', { ...object, apiVersion, kind });
  }
  const policies = (await items<KubeObject>(host, `${SPILLWAY}/placementpolicies`)).flatMap((raw) => {
    const parsed = parsePlacementPolicy(raw);
    const compiled = 'policy' in parsed ? compilePolicy(parsed.policy) : parsed;
    return 'placement' in compiled ? [compiled] : [];
  });
  const parsed = (await items<KubeObject>(host, `${SPILLWAY}/memberclusters`)).flatMap((raw) => {
    const member = parseMemberCluster(raw);
    return 'member' in member ? [clusterOf(member.member)] : [];
  });
  const placements = await items<WorkloadPlacement>(host, `${SPILLWAY}/workloadplacements`);
  const namespaces = await items<KubeObject>(host, '/api/v1/namespaces');
  const state = {
    pods,
    nodes,
    inMembers,
    clusters: [localCluster(), ...parsed],
    policies,
    placements: new Map(placements.map((one) => [one.spec.workload.uid, one])),
    owners,
    labelsOf: new Map(namespaces.map(({ metadata: { name, labels = {} } }) => [name, labels])),
  };
  return { ...state, placed: placedIn(state) };
}

/** `local`, or the member that the node stands for. */
export function placeOf({ nodes }: Pick<State, 'nodes'>, nodeName: string): string {
  const node = nodes.get(nodeName);
  return (node === undefined ? undefined : memberOfNode(node)) ?? LOCAL;
}

/** Whether a DaemonSet that is there is the owner with that UID: anybody can name one that is not, or of another API group. */
export function isOfDaemonSet({ owners }: Pick<State, 'owners'>, uid: string | undefined): boolean {
  const owner = owners.get(uid ?? '');
  return owner?.kind === 'DaemonSet' && owner.apiVersion === 'apps/v1';
}

export const isFinished = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

/** The pod and its owners; of a kind that Spillway does not follow what the one below says. */
export function chainOf({ owners }: Pick<State, 'owners'>, pod: Pod): OwnerChain {
  const chain: [TypedObject, ...TypedObject[]] = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }];
  for (let above = controllerOf(pod); above !== undefined && chain.length < 5;) {
    const { apiVersion, kind, name, uid } = above;
    const { namespace = '' } = pod.metadata;
    const object: TypedObject = owners.get(uid) ?? { apiVersion, kind, metadata: { name, uid, namespace } };
    chain.push(object);
    above = controllerOf(object);
  }
  return chain;
}

export function placedIn(state: Pick<State, 'pods' | 'owners' | 'nodes'>): Map<string, PlacedPod[]> {
  const found = new Map<string, PlacedPod[]>();
  for (const pod of state.pods) {
    const { nodeName = '' } = pod.spec;
    if (nodeName === '' || pod.metadata.deletionTimestamp !== undefined || isFinished(pod)) continue;
    const { object, revision } = workloadOf(chainOf(state, pod));
    const uid = object.metadata.uid ?? '';
    const one = { uid: pod.metadata.uid ?? '', cluster: placeOf(state, nodeName), revision };
    found.set(uid, [...(found.get(uid) ?? []), one]);
  }
  return found;
}

/** All that the pure functions want to know of a pod and its workload. Undefined: no rules speak about it. */
export function factsOf(state: State, pod: Pod, rooms: ReadonlyMap<string, Room>): PlacementFacts | undefined {
  const chain = chainOf(state, pod);
  const { chosen } = selectPolicy(chain, state.policies, state.labelsOf.get(pod.metadata.namespace ?? ''));
  if (chosen === undefined) return undefined;
  const { object, replicas, revision } = workloadOf(chain);
  const uid = object.metadata.uid ?? '';
  const status = state.placements.get(uid)?.status;
  const known = status === undefined ? undefined : remembered(status);
  return {
    placement: chosen.placement,
    clusters: state.clusters,
    workload: { uid, replicas, pods: countPods(state.placed.get(uid) ?? []) },
    pod: { revision, waitedMs: Date.now() - Date.parse(pod.metadata.creationTimestamp ?? '') },
    rooms,
    avoided: known?.avoided ?? [],
    remembered: known?.plan,
    signals: new Map(),
    scoring: scoringConfig.parse({}),
    now: Date.now(),
  };
}
