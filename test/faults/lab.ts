import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { startKwok, type Kwok, type KwokOptions } from '../../hack/kwok.ts';
import type { KeyPair } from '../../hack/pki.ts';
import { repositoryRoot } from '../../hack/repository.ts';
import { groupsOf, serviceAccountKubeconfig, userOf } from '../../hack/service-account.ts';
import {
  addMember,
  installSpillway,
  MEMBER_ACCOUNT,
  startSpillway,
  SYSTEM_NAMESPACE,
  waitForNode,
  waitReady,
  type Spillway,
} from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { FaultProxy } from '../fixtures/fault-proxy.ts';
import { type Fields, IDLE, isReady, pod, podsOf, podSpec, read, shell } from '../fixtures/live-pods.ts';
import { type Fault, FAULTS, type FaultId } from '../../hack/fault-matrix.ts';
import type { FaultRow } from '../../hack/faults-page.ts';

/** Name of the member, and of its virtual node. */
export const MEMBER = 'far';

type Side = 'host' | 'member';

export interface LabOptions {
  kwok?: Partial<KwokOptions>;
  /** The program reaches the API servers of these clusters through fault proxies. Default: none. */
  proxied?: readonly Side[];
  /** Whom virtual nodes are towards the host. Default NodeCertificate, as where the program is installed. */
  hostIdentity?: 'NodeCertificate' | 'ServiceAccount';
  /** Laid over the MemberCluster's spec. */
  memberSpec?: (host: Cluster) => Record<string, unknown>;
}

/**
 * A host and one member of fake nodes, real API servers, the program between them, and ways to do harm. The program has the
 * rights of the manifests and no more, in both clusters, with proxies and without.
 */
export class Lab {
  readonly workspace: Workspace;
  readonly host: Cluster;
  readonly member: Cluster;
  readonly kwok: Kwok;
  readonly spillway: Spillway;
  /** Whom the program is in the member: a certificate, so that it outlives what is stored there. */
  readonly memberAccess: KeyPair;
  readonly #proxies: Partial<Record<Side, FaultProxy>>;

  private constructor(
    parts: Pick<Lab, 'workspace' | 'host' | 'member' | 'kwok' | 'spillway' | 'memberAccess'>,
    proxies: Partial<Record<Side, FaultProxy>>,
  ) {
    this.workspace = parts.workspace;
    this.host = parts.host;
    this.member = parts.member;
    this.kwok = parts.kwok;
    this.spillway = parts.spillway;
    this.memberAccess = parts.memberAccess;
    this.#proxies = proxies;
  }

  static async start(options: LabOptions = {}): Promise<Lab> {
    const workspace = Workspace.create();
    try {
      const [host, member] = await Promise.all([
        startCluster(workspace, { name: 'host', audit: true }),
        startCluster(workspace, { name: MEMBER, audit: true, serviceCidr: '10.120.0.0/16' }),
      ]);
      const kwok = await startKwok(member, { nodes: 4, pods: '500', ...options.kwok });
      await installSpillway(host);
      const account = { user: userOf(MEMBER_ACCOUNT), groups: groupsOf(MEMBER_ACCOUNT) };
      const memberAccess = await member.issueClient(account.user, account.groups);
      const { proxied = [], hostIdentity = 'NodeCertificate' } = options;
      const proxies: Partial<Record<Side, FaultProxy>> = {
        ...(proxied.includes('host') ? { host: await proxyOfHost(host) } : {}),
        ...(proxied.includes('member') ? { member: await proxyOfMember(member, memberAccess) } : {}),
      };
      const manager = join(host.dir, 'manager.kubeconfig');
      const access = await serviceAccountKubeconfig(host, SYSTEM_NAMESPACE, 'spillway-manager');
      writeFileSync(manager, viaProxy(access, host, proxies.host), { mode: 0o600 });
      const spillway = await startSpillway(host, {
        kubeconfig: manager,
        ...(hostIdentity === 'ServiceAccount' ? { hostIdentity } : { args: ['--host-identity', hostIdentity] }),
      });
      const path = memberKubeconfig(member);
      const kubeconfig = await member.kubeconfigFor(account.user, account.groups);
      writeFileSync(path, viaProxy(kubeconfig, member, proxies.member), { mode: 0o600 });
      await addMember(host, member, {
        kubeconfig: path,
        spec: {
          probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 10 },
          ...options.memberSpec?.(host),
        },
      });
      await waitForNode(host, MEMBER);
      return new Lab({ workspace, host, member, kwok, spillway, memberAccess }, proxies);
    } catch (error) {
      await workspace.close();
      throw error;
    }
  }

  /** Throws for a side where none stands. */
  get proxies(): Readonly<Record<Side, FaultProxy>> {
    const of = (side: Side): FaultProxy => {
      const proxy = this.#proxies[side];
      if (proxy === undefined) throw new Error(`this lab has no proxy before the ${side}`);
      return proxy;
    };
    return {
      get host() {
        return of('host');
      },
      get member() {
        return of('member');
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#proxies).map((proxy) => proxy.close()));
    await this.workspace.close();
  }

  /** Kills the program as a crash would, lets `meanwhile` happen, and starts it again. */
  async crash(meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    await this.spillway.process.stop('SIGKILL');
    await meanwhile();
    this.spillway.process.restart();
    await waitReady(this.spillway);
  }

  /** Ends the program in order and starts the one that was built in `folder` in its place. */
  async upgrade(folder: string): Promise<void> {
    await this.spillway.process.stop('SIGTERM', 15_000);
    this.spillway.process.spec.args[0] = join(folder, 'dist/src/main.js');
    this.spillway.process.restart();
    await waitReady(this.spillway);
  }

  /** Kills a whole control plane; `meanwhile` happens to what it left on disk. */
  async halt(cluster: Cluster, meanwhile: () => void = () => undefined): Promise<void> {
    const late = ['kube-controller-manager', 'kube-scheduler'] as const;
    for (const name of [...late, 'kube-apiserver', 'etcd'] as const) await cluster.component(name).stop('SIGKILL');
    meanwhile();
    for (const name of ['etcd', 'kube-apiserver'] as const) cluster.component(name).restart();
    await cluster.whenReady();
    // These end when they find no API server.
    for (const name of late) cluster.component(name).restart();
  }

  /** Waits until the program does its work: a new pod runs. Answers in ms how long that took. */
  async works(timeoutMs = 60_000): Promise<number> {
    const began = Date.now();
    const name = `probe-${began}`;
    await this.host.apply([idle(name, 'default')]);
    await until(
      `${name} runs`,
      async () => (await podsOf(this.host, 'default')).some((one) => one.metadata.name === name && isReady(one)),
      {
        timeoutMs,
      },
    );
    const took = Date.now() - began;
    await this.host.kubectl(['delete', 'pod', name, '--wait=false']);
    return took;
  }

  /** Creates many pods of a name and waits until all run. */
  async runPods(namespace: string, names: readonly string[], timeoutMs = 120_000): Promise<void> {
    await inBatches(names, (name) =>
      this.host.api.ensure(`/api/v1/namespaces/${namespace}/pods`, idle(name, namespace)),
    );
    await until(
      `${names.length} pods of ${namespace} run`,
      async () => {
        const pods = await podsOf(this.host, namespace);
        return pods.filter(isReady).length >= names.length;
      },
      { timeoutMs, intervalMs: 500 },
    );
  }

  /** What must be the same of every pod of a namespace, on both sides, when nothing happened to it. */
  async lives(namespace: string): Promise<unknown[]> {
    const both = await Promise.all([podsOf(this.host, namespace), podsOf(this.member, namespace)]);
    return both
      .flat()
      .map(({ metadata, status }) => [
        metadata.name,
        metadata.uid,
        metadata.resourceVersion,
        status?.phase,
        status?.containerStatuses?.map(({ restartCount }) => restartCount),
      ]);
  }

  /** One condition of the MemberCluster, as `True Reason: message`. */
  async condition(type: string): Promise<string> {
    const member = await read<{
      status?: { conditions?: { type: string; status: string; reason: string; message: string }[] };
    }>(this.host, `/apis/spillway.dev/v1alpha1/memberclusters/${MEMBER}`);
    const found = member?.status?.conditions?.find((one) => one.type === type);
    return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`;
  }

  /** A counter or gauge of the program, summed over its series whose labels contain `labels`. */
  async metric(name: string, labels = ''): Promise<number> {
    const text = await (await fetch(`${this.spillway.url}/metrics`)).text();
    const lines = text.split('\n').filter((line) => line.startsWith(name) && line.includes(labels));
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }

  /** What guards stopped, in all lives of the program. */
  violations(): string[] {
    return violationsOf(this.spillway);
  }
}

/** What guards stopped, in all lives of the program. */
export function violationsOf({ process }: Spillway): string[] {
  const log = readFileSync(process.spec.logFile, 'utf8');
  return log.split('\n').filter((line) => /"invariant":"I\d+"/.test(line));
}

/** Puts lines into the table that the run writes. */
export function report({ task }: TestContext, ids: readonly FaultId[], result: string, figures: string): void {
  const { faults = [] } = task.meta as { faults?: FaultRow[] };
  const rows = ids.map((id) => ({ id, what: FAULTS[id].what, result, figures }));
  Object.assign(task.meta, { faults: [...faults, ...rows] });
}

/** The same of faults of which the table says already what becomes of them: what a test beside the scenarios measured. */
export function measured(context: TestContext, ids: readonly FaultId[], figures: string): void {
  for (const id of ids) {
    const { elsewhere }: Fault = FAULTS[id];
    report(context, [id], elsewhere?.result ?? '', figures);
  }
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function idle(name: string, namespace: string, more: Fields = {}, metadata: Fields = {}): Fields {
  return pod(name, namespace, podSpec([shell(IDLE)], more), metadata);
}

export function numbered(count: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

export async function inBatches<T>(items: readonly T[], act: (item: T) => Promise<unknown>, width = 16): Promise<void> {
  const queue = items.values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await act(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

export function isPodOf(namespace: string) {
  return ({ objectRef }: { objectRef?: { resource: string; namespace?: string } }): boolean =>
    objectRef?.resource === 'pods' && objectRef.namespace === namespace;
}

export function phaseOf({ status }: Pod): string {
  return status?.phase ?? '';
}

/** Path of the kubeconfig with which the program reaches the member. */
export function memberKubeconfig(member: Cluster): string {
  return join(member.dir, 'of-the-program.kubeconfig');
}

/** Passes tokens on, and tells whom certificates name: the manager has a token, virtual nodes have certificates. */
export async function proxyOfHost(host: Cluster): Promise<FaultProxy> {
  const { server, ca } = host.adminAccess;
  const [cert, key] = ['crt', 'key'].map((end) => readFileSync(host.files.pki(`front-proxy-client.${end}`), 'utf8'));
  const serving = await host.issueServing('proxy', ['127.0.0.1']);
  return await FaultProxy.start({ server, ca, cert, key }, { ...serving, clientCa: host.caPem });
}

/** Is the host's account, whoever asks. */
async function proxyOfMember(member: Cluster, identity: KeyPair): Promise<FaultProxy> {
  const { server, ca } = member.adminAccess;
  return await FaultProxy.start({ server, ca, ...identity }, await member.issueServing('proxy', ['127.0.0.1']));
}

function viaProxy(kubeconfig: string, cluster: Cluster, proxy: FaultProxy | undefined): string {
  return proxy === undefined ? kubeconfig : kubeconfig.replaceAll(cluster.server, proxy.url);
}

/** A folder with the program under another version. */
export function underVersion(workspace: Workspace, version: string): string {
  const root = repositoryRoot();
  const folder = join(workspace.dir, `version-${version}`);
  mkdirSync(folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as object;
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, version }));
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return folder;
}
