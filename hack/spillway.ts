import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Node } from '../src/kube/core-v1.ts';
import { freePort } from './addresses.ts';
import type { Cluster } from './cluster.ts';
import { writeExtenderConfig } from './extender.ts';
import type { ManagedProcess } from './managed-process.ts';
import { manifest } from './manifest.ts';
import { repositoryRoot } from './repository.ts';
import { serviceAccountKubeconfig } from './service-account.ts';
import { GiveUp, until } from './until.ts';

/** Namespace in the host for Spillway's own objects. */
export const SYSTEM_NAMESPACE = 'spillway-system';

/** As the image has it. Half of Node's usual room for young objects: 15 MB less memory, and no more CPU that could be measured. */
export const NODE_OPTIONS = '--max-semi-space-size=8';

/** Whom the host is in a member, by manifests/member/. */
export const MEMBER_ACCOUNT = { namespace: 'spillway-access', name: 'spillway-host' };

export interface SpillwayOptions {
  /** Path of the kubeconfig it runs with. Default: one with exactly the rights of manifests/rbac.yaml. */
  kubeconfig?: string;
  /** Grants the manager what nodes do, and lets it do that itself; else virtual nodes get identities of their own. */
  hostIdentity?: 'ServiceAccount';
  /** Port on this machine where schedulers are answered (see ClusterOptions.extenderPort). Default: they are not. */
  extenderPort?: number;
  /** What it shows them: a certificate of the host (default), or one that it makes by itself, as it does without a configuration. */
  extenderCertificates?: 'Files' | 'SelfManaged';
  /** Further parts of its configuration, with `extenderPort`. */
  configuration?: object;
  /** Further arguments of `spillway manager`. */
  args?: readonly string[];
  /** How long it may take until it is ready, in ms. Default 60 s. */
  readyMs?: number;
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

/** Puts Spillway's kinds, its namespace and its rights into a host cluster, as its administrator would. */
export async function installSpillway(host: Cluster): Promise<void> {
  const kinds = readdirSync(join(repositoryRoot(), 'manifests/crds')).map((file) => `crds/${file}`);
  await applyManifests(host, [
    ...kinds,
    'rbac.yaml',
    'node-guard.yaml',
    'storage.yaml',
    'secrets.yaml',
    'admission/node-taints.yaml',
  ]);
  const established = ['wait', '--for=condition=Established', 'crd/memberclusters.spillway.dev', '--timeout=60s'];
  const result = await host.kubectl(established);
  if (result.code !== 0) throw new Error(result.stderr);
}

/** Applies files below manifests/ all at once: every kubectl takes its time, and so does each change of the server's own API. */
async function applyManifests(cluster: Cluster, files: readonly string[]): Promise<void> {
  await cluster.apply(files.map(manifest).join('\n---\n'));
}

/** Starts the built program as a process of the host's workspace and waits until it is ready. */
export async function startSpillway(host: Cluster, options: SpillwayOptions = {}): Promise<Spillway> {
  const name = options.name ?? 'spillway';
  const port = await freePort();
  const { hostIdentity } = options;
  if (hostIdentity !== undefined) await host.apply(manifest('rbac-service-account.yaml'));
  const { extenderPort, extenderCertificates, configuration } = options;
  if (extenderPort !== undefined) {
    await applyManifests(host, ['scheduler/rbac.yaml', 'scheduler/pod-guard.yaml']);
  }
  const components =
    extenderPort === undefined
      ? ['--components', 'members']
      : ['--config', await writeExtenderConfig(host, name, extenderPort, extenderCertificates, configuration)];
  let { kubeconfig } = options;
  if (kubeconfig === undefined) {
    kubeconfig = join(host.dir, `${name}.kubeconfig`);
    const content = await serviceAccountKubeconfig(host, SYSTEM_NAMESPACE, 'spillway-manager');
    writeFileSync(kubeconfig, content, { mode: 0o600 });
  }
  const manager = host.workspace.start({
    name,
    file: process.execPath,
    args: [
      join(repositoryRoot(), 'dist/src/main.js'),
      'manager',
      '--kubeconfig',
      kubeconfig,
      '--http-address',
      '127.0.0.1',
      '--http-port',
      String(port),
      '--log-level',
      options.logLevel ?? 'info',
      ...components,
      ...(hostIdentity === undefined ? [] : ['--host-identity', hostIdentity]),
      ...(options.args ?? []),
    ],
    logFile: join(host.dir, `${name}.log`),
    end: 'SIGTERM',
    env: { NODE_OPTIONS, ...(options.env ?? process.env) },
  });
  const spillway = { process: manager, url: `http://127.0.0.1:${port}` };
  await waitReady(spillway, options.readyMs);
  return spillway;
}

/** Waits until /readyz answers 200. */
export async function waitReady(spillway: Spillway, timeoutMs = 60_000): Promise<void> {
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
  spec?: Record<string, unknown> & { namespaces?: { podSecurity?: string } & Record<string, unknown> };
  /** Path of the kubeconfig. Default: one with the rights of manifests/member/ and no more. */
  kubeconfig?: string;
  /** Let the host use these existing namespaces of the member. Default: `default`. */
  lend?: readonly string[];
  /**
   * What the member's owner grants: `dedicated` (default) all namespaces and making new ones, `namespaced` only those
   * that are lent.
   */
  rights?: 'dedicated' | 'namespaced';
  /** Services of the host stand in the member. Default false. */
  services?: boolean;
  /** Services are exchanged with the member. Default false. */
  exchange?: boolean;
}

/** What the owner of a member does for a host: grants rights and lends namespaces. */
export async function admitHost(
  member: Cluster,
  {
    lend = ['default'],
    rights = 'dedicated',
    services = false,
    exchange = false,
    spec,
  }: Pick<MemberOptions, 'lend' | 'rights' | 'services' | 'exchange' | 'spec'> = {},
): Promise<void> {
  const files = ['read', 'guard', ...(services ? ['services'] : []), ...(exchange ? ['multi-cluster'] : [])];
  if (rights === 'dedicated') files.push('dedicated');
  if (spec?.namespaces?.podSecurity === 'privileged') files.push('privileged');
  const kinds = exchange ? ['multi-cluster/crds.yaml'] : [];
  await applyManifests(member, [...kinds, ...files.map((file) => `member/${file}.yaml`)]);
  for (const namespace of lend) {
    if (rights === 'namespaced') await member.apply(lendingOf(namespace));
    const labels = { 'spillway.dev/allow-host': 'any' };
    await member.api.call('PATCH', `/api/v1/namespaces/${namespace}`, { metadata: { labels } });
  }
}

/** Registers a member: its owner admits the host, which gets a Secret and a MemberCluster. */
export async function addMember(host: Cluster, member: Cluster, options: MemberOptions = {}): Promise<void> {
  await admitHost(member, options);
  await registerMember(host, member, options);
}

/** What the host gets of a member that admits it: a Secret and a MemberCluster. */
export async function registerMember(host: Cluster, member: Cluster, options: MemberOptions = {}): Promise<void> {
  if (options.exchange === true) await applyManifests(host, ['multi-cluster/crds.yaml', 'multi-cluster/host.yaml']);
  const kubeconfig =
    options.kubeconfig === undefined
      ? await serviceAccountKubeconfig(member, MEMBER_ACCOUNT.namespace, MEMBER_ACCOUNT.name)
      : readFileSync(options.kubeconfig, 'utf8');
  const secretRef = { namespace: SYSTEM_NAMESPACE, name: `member-${member.name}` };
  await host.apply([
    { apiVersion: 'v1', kind: 'Secret', metadata: secretRef, stringData: { kubeconfig } },
    {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: member.name },
      spec: {
        credentials: { secretRef },
        ...(options.rights === 'namespaced' ? { namespaces: { create: false } } : {}),
        ...(options.services === true || options.exchange === true
          ? {
              services: {
                ...(options.services === true ? { mode: 'Mirror' } : {}),
                ...(options.exchange === true ? { multiCluster: 'Exchange' } : {}),
              },
            }
          : {}),
        ...options.spec,
      },
    },
  ]);
}

/** What manifests/member/namespaced.yaml does for `shop`, without its quota. */
function lendingOf(namespace: string): unknown[] {
  const documents = parseAllDocuments(manifest('member/namespaced.yaml').replaceAll(/\bshop\b/g, namespace));
  return documents.map((one) => one.toJS() as { kind: string }).filter(({ kind }) => kind !== 'ResourceQuota');
}

/** Waits until a virtual node is there, Ready, and offers pods. */
export async function waitForNode(host: Cluster, name: string, timeoutMs = 60_000): Promise<void> {
  await until(
    `virtual node ${name} is Ready`,
    async () => {
      const { status } = (await host.api.call('GET', `/api/v1/nodes/${name}`)) as Node;
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      // A quantity, such as 1k.
      return ready?.status === 'True' && /^[1-9]/.test(String(status?.allocatable?.['pods'] ?? ''));
    },
    { timeoutMs, intervalMs: 100 },
  );
}
