import type { JsonObject } from '../../src/kube/json-equal.ts';
import { kubeconfig } from './certificate.ts';
import { crowdedRules } from './crowded-rules.ts';
import { asOldHostReads, MISNAMED, SMALL_NODES, SMALL_POOLS, smallNode } from './crowded.ts';
import { dividingPolicies } from './divisions.ts';
import { EventLoop } from './event-loop.ts';
import { Network } from './network.ts';
import { admitting, OPTED_OUT } from './opted-out.ts';
import { handingOn, placementRules } from './placement-rules.ts';
import { Random } from './random.ts';
import { residencePolicies } from './residence.ts';
import { SimCluster, type Change } from './sim-cluster.ts';
import type { Call } from './sim-pool.ts';

/** Where one finds what in an API server. */
export const PATHS = {
  pods: (namespace: string) => `/api/v1/namespaces/${namespace}/pods`,
  secrets: (namespace: string) => `/api/v1/namespaces/${namespace}/secrets`,
  namespaces: '/api/v1/namespaces',
  nodes: '/api/v1/nodes',
  members: '/apis/spillway.dev/v1alpha1/memberclusters',
  taintPolicies: '/apis/spillway.dev/v1alpha1/clustertaintpolicies',
};

/** Namespaces that users of the host work in. */
export const USER_NAMESPACES = ['shop', 'lab'] as const;
const MEMBERS = ['east', 'west'] as const;

/** All clusters, the network between them, and time. */
export class World {
  readonly loop: EventLoop;
  readonly network: Network;
  readonly host: SimCluster;
  /**
   * Whether the scheduler of the host asks the extender; `marked`: and binds nothing without its word, as it does with pods
   * that manifests/scheduler/extender-pods.yaml has marked.
   */
  readonly wiring: 'none' | 'wired' | 'marked';
  /** Room is short: see crowded.ts. */
  readonly isCrowded: boolean;
  readonly members = new Map<string, SimCluster>();
  /** What happened in all clusters, in order. */
  readonly changes: Change[] = [];
  readonly onChange: ((change: Change) => void)[] = [];
  /** Told of what the program writes, and what is there already. */
  onVainWrite: ((cluster: SimCluster, call: Call) => void) | undefined;

  /**
   * `hasRules`: whatever chance says there are policies, and the scheduler asks about them. `hasResidence`: some say where pods
   * have to be. `isCrowded`: there is little room, and rules of its own.
   */
  constructor(
    seed: number,
    {
      ca,
      hasRules,
      hasResidence,
      isCrowded = false,
    }: { ca: string; hasRules: boolean; hasResidence: boolean; isCrowded?: boolean },
  ) {
    this.isCrowded = isCrowded;
    this.loop = new EventLoop(new Random(seed, 1));
    this.network = new Network(this.loop, new Random(seed, 2));
    this.host = this.#cluster('host');
    for (const system of ['spillway-system', 'kube-node-lease']) namespace(this.host, system);
    this.host.create('setup', '/api/v1/namespaces/kube-system/configmaps', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
      data: { 'client-ca-file': Buffer.from(ca, 'base64').toString() },
    });
    for (const name of USER_NAMESPACES) namespace(this.host, name);
    if (isCrowded) this.host.reads = asOldHostReads;
    if (hasResidence) {
      namespace(this.host, OPTED_OUT);
      this.host.reads = admitting((node) => MEMBERS.some((member) => member === node));
    }
    this.#nodes(this.host, () => node(this.host, 'real-1', '4'));
    for (const name of MEMBERS) this.#member(name, ca);
    const chance = new Random(seed, 4);
    const wiring = chance.pick(['none', 'none', 'none', 'wired', 'marked'] as const) ?? 'none';
    this.wiring = hasRules && wiring === 'none' ? 'wired' : wiring;
    if (isCrowded) {
      this.host.create('setup', PATHS.members, memberCluster(MISNAMED.name, { virtualNodes: [...MISNAMED.pools] }));
      for (const { path, policy } of crowdedRules()) this.host.create('setup', path, policy);
      return;
    }
    // Without rules nothing says that a pod may leave the host.
    if (this.wiring === 'none' && chance.chance(0.7)) return;
    const residence = hasResidence
      ? [...residencePolicies(MEMBERS, USER_NAMESPACES), ...dividingPolicies(MEMBERS, USER_NAMESPACES)]
      : [];
    const rules = placementRules(chance);
    const given = new Random(seed, 23).chance(0.5) ? handingOn(rules) : rules;
    for (const { path, policy } of [...given, ...residence]) this.host.create('setup', path, policy);
  }

  get clusters(): SimCluster[] {
    return [this.host, ...this.members.values()];
  }

  #member(name: string, ca: string): void {
    const cluster = this.#cluster(name);
    this.#nodes(cluster, () => {
      for (const number of [1, 2]) node(cluster, `${name}-${number}`, '16');
    });
    this.members.set(name, cluster);
    this.host.create('setup', PATHS.secrets('spillway-system'), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'spillway-system' },
      data: { kubeconfig: Buffer.from(kubeconfig(cluster.origin, ca, 'spillway')).toString('base64') },
    });
    const pools = this.isCrowded ? { virtualNodes: [...(SMALL_POOLS[name] ?? [])] } : {};
    this.host.create('setup', PATHS.members, memberCluster(name, pools));
  }

  #nodes(cluster: SimCluster, usual: () => void): void {
    if (!this.isCrowded) {
      usual();
      return;
    }
    for (const one of SMALL_NODES[cluster.name] ?? []) cluster.api.put(`${PATHS.nodes}/${one.name}`, smallNode(one));
  }

  #cluster(name: string): SimCluster {
    const cluster = new SimCluster(name, this.loop);
    cluster.onChange = (change) => {
      this.changes.push(change);
      for (const listener of this.onChange) listener(change);
    };
    cluster.onVainWrite = (call) => this.onVainWrite?.(cluster, call);
    for (const system of ['kube-system', 'default']) namespace(cluster, system);
    this.network.endpoints.set(cluster.origin, cluster);
    return cluster;
  }
}

function memberCluster(name: string, more: JsonObject): JsonObject {
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name, generation: 1 },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...more },
  };
}

function namespace(cluster: SimCluster, name: string): void {
  cluster.create('setup', PATHS.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}

function node(cluster: SimCluster, name: string, cpu: string): void {
  const resources = { cpu, memory: '64Gi', pods: '110' };
  cluster.api.put(`${PATHS.nodes}/${name}`, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' },
    },
    spec: {},
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }],
      nodeInfo: { kubeletVersion: 'v1.36.0', operatingSystem: 'linux', architecture: 'amd64' },
    },
  });
}
