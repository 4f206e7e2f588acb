import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './addresses.ts';
import type { Cluster } from './cluster.ts';
import type { ManagedProcess } from './managed-process.ts';
import { repositoryRoot } from './repository.ts';
import { GiveUp, until } from './until.ts';

/** Namespace in the host for Spillway's own objects. */
export const SYSTEM_NAMESPACE = 'spillway-system';

export interface SpillwayOptions {
  /** Path of the kubeconfig it runs with. Default: the administrator's. */
  kubeconfig?: string;
  /** Further arguments of `spillway manager`. */
  args?: readonly string[];
  /** Names the process and its log. Default `spillway`. */
  name?: string;
  logLevel?: string;
  env?: NodeJS.ProcessEnv;
}

/** A running `spillway manager`, built from this checkout. */
export interface Spillway {
  process: ManagedProcess;
  /** Base URL of /metrics, /healthz and /readyz. */
  url: string;
}

/** Puts Spillway's kinds and its namespace into a host cluster. */
export async function installSpillway(host: Cluster): Promise<void> {
  const folder = join(repositoryRoot(), 'manifests/crds');
  for (const file of readdirSync(folder)) await host.apply(readFileSync(join(folder, file), 'utf8'));
  await host.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM_NAMESPACE } }]);
  const established = ['wait', '--for=condition=Established', 'crd/memberclusters.spillway.dev', '--timeout=30s'];
  const result = await host.kubectl(established);
  if (result.code !== 0) throw new Error(result.stderr);
}

/** Starts the built program as a process of the host's workspace and waits until it is ready. */
export async function startSpillway(host: Cluster, options: SpillwayOptions = {}): Promise<Spillway> {
  const name = options.name ?? 'spillway';
  const port = await freePort();
  const manager = host.workspace.start({
    name,
    file: process.execPath,
    args: [
      join(repositoryRoot(), 'dist/src/main.js'),
      'manager',
      '--kubeconfig',
      options.kubeconfig ?? host.kubeconfig,
      '--http-address',
      '127.0.0.1',
      '--http-port',
      String(port),
      '--log-level',
      options.logLevel ?? 'info',
      ...(options.args ?? []),
    ],
    logFile: join(host.dir, `${name}.log`),
    end: 'SIGTERM',
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const spillway = { process: manager, url: `http://127.0.0.1:${port}` };
  await waitReady(spillway);
  return spillway;
}

/** Waits until /readyz answers 200. */
export async function waitReady(spillway: Spillway, timeoutMs = 30_000): Promise<void> {
  await until(
    'spillway is ready',
    async () => {
      if (!spillway.process.running) throw new GiveUp(spillway.process.describeExit());
      const answer = await fetch(`${spillway.url}/readyz`).catch(() => undefined);
      return answer?.status === 200;
    },
    { timeoutMs, intervalMs: 50 },
  );
}

export interface MemberOptions {
  /** Laid over the MemberCluster's spec. */
  spec?: Record<string, unknown>;
  /** Default: the member administrator's kubeconfig. */
  kubeconfig?: string;
  /** Let the host use these existing namespaces of the member. Default: `default`. */
  lend?: readonly string[];
}

/** Registers a member: its owner lends namespaces, the host gets a Secret and a MemberCluster. */
export async function addMember(host: Cluster, member: Cluster, options: MemberOptions = {}): Promise<void> {
  for (const namespace of options.lend ?? ['default']) {
    await member.kubectl(['label', 'namespace', namespace, 'spillway.dev/allow-host=any', '--overwrite']);
  }
  const kubeconfig = readFileSync(options.kubeconfig ?? member.kubeconfig, 'utf8');
  const secretRef = { namespace: SYSTEM_NAMESPACE, name: `member-${member.name}` };
  await host.apply([
    { apiVersion: 'v1', kind: 'Secret', metadata: secretRef, stringData: { kubeconfig } },
    {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: member.name },
      spec: { credentials: { secretRef }, ...options.spec },
    },
  ]);
}

/** Waits until a virtual node is there, Ready, and offers pods. */
export async function waitForNode(host: Cluster, name: string, timeoutMs = 30_000): Promise<void> {
  await until(
    `virtual node ${name} is Ready`,
    async () => {
      const template = '{.status.conditions[?(@.type=="Ready")].status} {.status.allocatable.pods}';
      const { stdout } = await host.kubectl(['get', 'node', name, '-o', `jsonpath=${template}`]);
      return /^True [1-9]/.test(stdout);
    },
    { timeoutMs, intervalMs: 100 },
  );
}
