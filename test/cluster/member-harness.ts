import { readFile } from 'node:fs/promises';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { parse } from 'yaml';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { hostIdOf } from '../../src/api/marks.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import type { MemberConnection } from '../../src/members/connection.ts';
import { MemberClusterController } from '../../src/members/member-cluster-controller.ts';
import { MemberMetrics } from '../../src/members/member-metrics.ts';
import type { MemberLease } from '../../src/members/member-scope.ts';
import { idleScope } from '../fixtures/idle-scope.ts';

/** What happened to the scope of one member. */
export interface ScopeRecord {
  starts: number;
  ends: number;
  changes: MemberCluster[];
  connection: MemberConnection;
}

type Conditions = Map<string, { status: string; reason: string; message: string }>;

/** The MemberCluster controller on a real host, with scopes that only record what is asked of them. */
export class MemberHarness {
  readonly host: Cluster;
  readonly client: KubeClient;
  readonly scopes = new Map<string, ScopeRecord>();
  /** Of members that this replica only observes. */
  readonly observed = new Map<string, ScopeRecord>();
  /** What scopes say of their rooms. */
  roomsKnown = true;
  readonly logs: string[] = [];
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  private constructor(host: Cluster, client: KubeClient) {
    this.host = host;
    this.client = client;
  }

  /** With exactly the rights of manifests/rbac.yaml, which must be installed. */
  static async on(host: Cluster): Promise<MemberHarness> {
    const { server, ca } = host.adminAccess;
    const identity = await host.issueClient('system:serviceaccount:spillway-system:spillway-manager');
    return new MemberHarness(
      host,
      new KubeClient({ cluster: 'host', ...staticAccess({ endpoint: { server, ca }, ...identity }) }),
    );
  }

  /** `observe`: members that this replica does not act for, too. */
  async start(
    hostId?: string,
    leaseFor: (member: string) => MemberLease = () => alwaysHeld,
    { observe = false } = {},
  ): Promise<void> {
    const controller = new MemberClusterController({
      host: this.client,
      hostId: hostId ?? hostIdOf(await uidOf(this.host)),
      leaseFor,
      startScope: (member, connection, signal) => this.#scope(this.scopes, member, connection, signal),
      ...(observe
        ? { startObserved: (member, connection, signal) => this.#scope(this.observed, member, connection, signal) }
        : {}),
      metrics: new MemberMetrics(new Registry()),
      logger: pino({ level: 'debug' }, { write: (line: string) => void this.logs.push(line) }),
    });
    this.#running = controller.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.client.close();
  }

  async conditions(name: string): Promise<Conditions> {
    const status = await this.status(name);
    return new Map((status.conditions ?? []).map((condition) => [condition.type, condition]));
  }

  async status(name: string): Promise<MemberClusterStatus> {
    const path = `/apis/spillway.dev/v1alpha1/memberclusters/${name}`;
    const object = (await this.host.api.call('GET', path)) as { status?: MemberClusterStatus };
    return object.status ?? {};
  }

  /** Waits until a condition is so, and returns it. */
  async whenCondition(name: string, type: string, status: string, reason?: string, timeoutMs = 45_000) {
    return await until(
      `${name}: ${type}=${status} ${reason ?? ''}`,
      async () => {
        const condition = (await this.conditions(name)).get(type);
        if (condition === undefined) throw new Error('no such condition');
        if (condition.status === status && (reason === undefined || condition.reason === reason)) return condition;
        throw new Error(`it is ${condition.status} ${condition.reason}: ${condition.message}`);
      },
      { timeoutMs },
    );
  }

  /** The scope of a member, once it was started that often: others can read the status a moment before. */
  async scopeOf(name: string, starts = 1): Promise<ScopeRecord> {
    return await until(`the scope of ${name} was started ${starts} times`, () => {
      const scope = this.scopes.get(name);
      return scope !== undefined && scope.starts >= starts && scope;
    });
  }

  #scope(records: Map<string, ScopeRecord>, member: MemberCluster, connection: MemberConnection, signal: AbortSignal) {
    const { name } = member.metadata;
    const record = records.get(name) ?? { starts: 0, ends: 0, changes: [], connection };
    record.starts += 1;
    record.connection = connection;
    records.set(name, record);
    const done = new Promise<void>((resolve) => {
      signal.addEventListener(
        'abort',
        () => {
          record.ends += 1;
          resolve();
        },
        { once: true },
      );
    });
    return idleScope(signal, {
      changed: (edited: MemberCluster) => void record.changes.push(edited),
      done,
      podCounts: () => ({ running: connection.pods.size, pending: 0, total: connection.pods.size }),
      takenNames: () => [],
      allocatable: () => ({ cpu: '4', memory: '8Gi' }),
      roomsKnown: () => this.roomsKnown,
    });
  }
}

const alwaysHeld: MemberLease = {
  held: true,
  run: async ({ signal, onAcquired }) => await onAcquired(signal),
};

export async function uidOf(cluster: Cluster): Promise<string> {
  const namespace = (await cluster.api.call('GET', '/api/v1/namespaces/kube-system')) as { metadata: { uid: string } };
  return namespace.metadata.uid;
}

/** The administrator's kubeconfig of a member as an object, with changes. */
export async function kubeconfigOf(
  cluster: Cluster,
  change: { server?: string; cluster?: object; user?: object } = {},
): Promise<string> {
  const config = parse(await readFile(cluster.kubeconfig, 'utf8')) as {
    clusters: { cluster: Record<string, unknown> }[];
    users: { user: Record<string, unknown> }[];
  };
  const [first] = config.clusters;
  const [user] = config.users;
  if (first === undefined || user === undefined) throw new Error('the kubeconfig has no cluster or no user');
  first.cluster = {
    ...first.cluster,
    ...(change.server === undefined ? {} : { server: change.server }),
    ...change.cluster,
  };
  if (change.user !== undefined) user.user = { ...change.user };
  return JSON.stringify(config);
}

/** Applies a MemberCluster and the Secret with its kubeconfig. */
export async function applyMember(host: Cluster, name: string, kubeconfig: string, spec: object = {}): Promise<void> {
  await applySecret(host, name, kubeconfig);
  await host.apply([
    {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name },
      spec: {
        credentials: { secretRef: { namespace: 'fleet', name } },
        probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 },
        ...spec,
      },
    },
  ]);
}

export async function applySecret(host: Cluster, name: string, kubeconfig: string): Promise<void> {
  await host.apply([
    { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'fleet', name }, stringData: { kubeconfig } },
  ]);
}
