import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { startKwok, type Kwok, type KwokOptions } from '../../hack/kwok.ts';
import { repositoryRoot } from '../../hack/repository.ts';
import { serviceAccountKubeconfig } from '../../hack/service-account.ts';
import {
  addMember,
  installSpillway,
  startSpillway,
  SYSTEM_NAMESPACE,
  waitForNode,
  waitReady,
  type Spillway,
} from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import type { Pod } from '../../src/api/wire.ts';
import { FaultProxy } from '../fixtures/fault-proxy.ts';
import { type Fields, IDLE, isReady, pod, podsOf, podSpec, read, shell } from '../fixtures/live-pods.ts';
import { FAULTS, type FaultId } from '../../hack/fault-matrix.ts';
import type { FaultRow } from '../../hack/faults-page.ts';

/** Name of the member, and of its virtual node. */
export const MEMBER = 'far';

export interface LabOptions {
  kwok?: Partial<KwokOptions>;
  /** The program reaches both API servers through fault proxies. */
  proxied?: boolean;
  /** Laid over the MemberCluster's spec. */
  memberSpec?: (host: Cluster) => Record<string, unknown>;
}

/** A host and one member of fake nodes, real API servers, the program between them, and ways to do harm. */
export class Lab {
  readonly workspace: Workspace;
  readonly host: Cluster;
  readonly member: Cluster;
  readonly kwok: Kwok;
  readonly spillway: Spillway;
  readonly #proxies: { host: FaultProxy; member: FaultProxy } | undefined;

  private constructor(
    parts: Pick<Lab, 'workspace' | 'host' | 'member' | 'kwok' | 'spillway'>,
    proxies: Lab['proxies'] | undefined,
  ) {
    this.workspace = parts.workspace;
    this.host = parts.host;
    this.member = parts.member;
    this.kwok = parts.kwok;
    this.spillway = parts.spillway;
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
      const proxies =
        options.proxied === true ? { host: await proxyOf(host), member: await proxyOf(member, true) } : undefined;
      const manager = join(host.dir, 'manager.kubeconfig');
      const access = await serviceAccountKubeconfig(host, SYSTEM_NAMESPACE, 'spillway-manager');
      writeFileSync(manager, viaProxy(access, host, proxies?.host), { mode: 0o600 });
      const spillway = await startSpillway(host, {
        kubeconfig: manager,
        // Certificates of nodes end at a proxy, tokens pass.
        hostIdentity: 'ServiceAccount',
        logLevel: 'info',
      });
      const path = join(member.dir, 'proxied.kubeconfig');
      writeFileSync(path, viaProxy(readFileSync(member.kubeconfig, 'utf8'), member, proxies?.member), { mode: 0o600 });
      await addMember(host, member, {
        kubeconfig: path,
        spec: {
          probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 10 },
          ...options.memberSpec?.(host),
        },
      });
      await waitForNode(host, MEMBER);
      return new Lab({ workspace, host, member, kwok, spillway }, proxies);
    } catch (error) {
      await workspace.close();
      throw error;
    }
  }

  get proxies(): { host: FaultProxy; member: FaultProxy } {
    if (this.#proxies === undefined) throw new Error('this lab has no proxies');
    return this.#proxies;
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#proxies ?? {}).map((proxy) => proxy.close()));
    await this.workspace.close();
  }

  /** Kills the program as a crash would, lets `meanwhile` happen, and starts it again. */
  async crash(meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    await this.spillway.process.stop('SIGKILL');
    await meanwhile();
    this.spillway.process.restart();
    await waitReady(this.spillway);
  }

  /** Ends the program in order and starts this version in its place. */
  async upgrade(version: string): Promise<void> {
    await this.spillway.process.stop('SIGTERM', 15_000);
    this.spillway.process.spec.args[0] = join(versionOf(this.workspace, version), 'dist/src/main.js');
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
    const log = readFileSync(this.spillway.process.spec.logFile, 'utf8');
    return log.split('\n').filter((line) => /"invariant":"I\d+"/.test(line));
  }
}

/** Puts lines into the table that the run writes. */
export function report({ task }: TestContext, ids: readonly FaultId[], result: string, figures: string): void {
  const { faults = [] } = task.meta as { faults?: FaultRow[] };
  const rows = ids.map((id) => ({ id, what: FAULTS[id].what, result, figures }));
  Object.assign(task.meta, { faults: [...faults, ...rows] });
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

/** With `asAdmin` the proxy brings the credentials, so that they outlive what is stored in the cluster. */
async function proxyOf(cluster: Cluster, asAdmin = false): Promise<FaultProxy> {
  const { server, ca, cert, key } = cluster.adminAccess;
  return await FaultProxy.start(
    asAdmin ? { server, ca, cert, key } : { server, ca },
    await cluster.issueServing('proxy', ['127.0.0.1']),
  );
}

function viaProxy(kubeconfig: string, cluster: Cluster, proxy: FaultProxy | undefined): string {
  return proxy === undefined ? kubeconfig : kubeconfig.replaceAll(cluster.server, proxy.url);
}

/** A folder with the program under another version. */
function versionOf(workspace: Workspace, version: string): string {
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
