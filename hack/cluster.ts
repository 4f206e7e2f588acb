import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { freePort } from './addresses.ts';
import { Api, type ApiAccess } from './api-access.ts';
import { type AuditEvent, AuditLog } from './audit-log.ts';
import { ensureBinaries } from './binaries.ts';
import * as plane from './control-plane.ts';
import { extenderSettings, ownSchedulerConfiguration } from './extender.ts';
import { raiseInotifyLimit } from './inotify.ts';
import { runKubectl, type KubectlOptions, type KubectlResult } from './kubectl.ts';
import type { ManagedProcess } from './managed-process.ts';
import { issueClient, issueServing, kubeconfigYaml, type KeyPair } from './pki.ts';
import type { Usage } from './process-table.ts';
import { CONTROL_PLANE_TOOLS, type OtherVersion } from './tools.ts';
import { GiveUp, until } from './until.ts';
import type { Workspace } from './workspace.ts';

export type ComponentName = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

export interface ClusterOptions {
  /** Unique in the workspace; letters, digits, dashes. */
  name: string;
  /** Default all; api-only is etcd and kube-apiserver (no default ServiceAccounts, so no pods by default). */
  components?: 'all' | 'api-only';
  /** Minor version of API server, controllers and scheduler. Default: the project's own, see `make tools`. */
  kubernetes?: OtherVersion;
  /** Where the API server listens. Default 127.0.0.1; clusters with kubelets need `machineNetwork().gateway`. */
  bindAddress?: string;
  /** Default 10.96.0.0/16. */
  serviceCidr?: string;
  /** Takes the keys of another cluster, whose certificates are good for both then. Default: keys of its own. */
  keysOf?: Cluster;
  /** Further top-level fields of KubeSchedulerConfiguration, like `profiles` or `extenders`. */
  schedulerConfig?: Record<string, unknown>;
  /** Port on this machine where the scheduler asks the extender of Spillway, as manifests/scheduler/kube-scheduler.yaml says. */
  extenderPort?: number;
  /** How long the scheduler waits for its answers before it goes on without, such as `30s`. Default: as shipped. */
  extenderTimeout?: string;
  schedulerFlags?: plane.Flags;
  controllerManagerFlags?: plane.Flags;
  apiServerFlags?: plane.Flags;
  etcdFlags?: plane.Flags;
  /** Node failure detection and autoscaling in seconds; default false: as in production. */
  fastControllers?: boolean;
  /** Record every request at Metadata level, see {@link Cluster.auditEvents}. Default false. */
  audit?: boolean;
  /** Check nodes' serving certificates against the cluster's CA, as hardened clusters do. Default false. */
  verifyKubelets?: boolean;
  /** Milliseconds for the whole start. Default 90,000. */
  timeoutMs?: number;
}

/**
 * A Kubernetes control plane from plain processes: its own etcd, CA, ports and folder. It ends with its workspace,
 * or earlier by `stop`.
 */
export class Cluster {
  readonly workspace: Workspace;
  readonly name: string;
  readonly dir: string;
  /** https://ADDRESS:PORT */
  readonly server: string;
  /** Path of the administrator's kubeconfig; everything is inside it, so it can be copied into a Secret. */
  readonly kubeconfig: string;
  readonly caPem: string;
  readonly adminAccess: ApiAccess;
  readonly serviceCidr: string;
  /** Simple requests as the administrator. */
  readonly api: Api;
  /** The kubectl that belongs to this cluster's version. */
  readonly kubectlPath: string;
  /** Its certificates and keys. */
  readonly files: plane.ControlPlaneFiles;
  readonly #components = new Map<ComponentName, ManagedProcess>();
  readonly #auditLog: AuditLog | undefined;

  /** Use {@link startCluster}. */
  constructor(
    workspace: Workspace,
    name: string,
    files: plane.ControlPlaneFiles,
    settings: { serviceCidr: string; kubectl: string; auditLog: string | undefined },
  ) {
    this.workspace = workspace;
    this.name = name;
    this.dir = files.dir;
    this.server = files.server;
    this.kubeconfig = join(files.dir, 'admin.kubeconfig');
    this.caPem = files.authority.cert;
    this.serviceCidr = settings.serviceCidr;
    this.api = new Api(files.server, files.authority.cert, files.admin);
    this.adminAccess = this.api.access;
    this.files = files;
    this.kubectlPath = settings.kubectl;
    this.#auditLog = settings.auditLog === undefined ? undefined : new AuditLog(settings.auditLog);
  }

  /** For startCluster: registers a started process. */
  adopt(name: ComponentName, process: ManagedProcess): void {
    this.#components.set(name, process);
  }

  /** One process of the control plane, to stop, signal, restart or measure. */
  component(name: ComponentName): ManagedProcess {
    const found = this.#components.get(name);
    if (found === undefined) throw new Error(`cluster ${this.name} was started without ${name}`);
    return found;
  }

  /** Memory and CPU of every running component. */
  usage(): Map<ComponentName, Usage> {
    const all = new Map<ComponentName, Usage>();
    for (const [name, process] of this.#components) {
      const usage = process.usage();
      if (usage !== undefined) all.set(name, usage);
    }
    return all;
  }

  /** Runs kubectl as the administrator, or with `options.kubeconfig`. Never throws for an exit code. */
  kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<KubectlResult> {
    return runKubectl(this.kubectlPath, args, { kubeconfig: this.kubeconfig, cacheDir: this.dir, ...options });
  }

  /** Creates or updates objects by `kubectl apply`; `documents` is YAML text or objects. */
  async apply(documents: string | readonly unknown[]): Promise<string> {
    const input =
      typeof documents === 'string' ? documents : documents.map((one) => JSON.stringify(one)).join('\n---\n');
    const result = await this.kubectl(['apply', '-f', '-'], { input });
    if (result.code !== 0) throw new Error(`kubectl apply in ${this.name}: ${result.stderr.trim()}`);
    return result.stdout;
  }

  /** A client certificate for any user and groups. */
  issueClient(user: string, groups: readonly string[] = []): Promise<KeyPair> {
    return issueClient(this.files.authority, user, groups);
  }

  /** A serving certificate of this cluster's CA; `client` makes it a client certificate too (kubelets). */
  issueServing(
    commonName: string,
    hosts: readonly string[],
    options?: { groups?: readonly string[]; client?: boolean },
  ): Promise<KeyPair> {
    return issueServing(this.files.authority, commonName, hosts, options);
  }

  /** A kubeconfig (YAML text, self-contained) for any user and groups; RBAC says what it may do. */
  async kubeconfigFor(user: string, groups: readonly string[] = []): Promise<string> {
    const client = await this.issueClient(user, groups);
    return kubeconfigYaml({ server: this.server, ca: this.caPem, user, client });
  }

  /** Every finished request so far, oldest first; needs `audit: true`. */
  auditEvents(): AuditEvent[] {
    if (this.#auditLog === undefined) throw new Error(`cluster ${this.name} was started without audit`);
    return this.#auditLog.events();
  }

  /** Waits until /readyz says ok; ends early when the API server or etcd has died. */
  async whenReady(timeoutMs = 60_000): Promise<void> {
    await until(`API server of ${this.name} is ready`, () => this.#askReady(), { timeoutMs, intervalMs: 50 });
  }

  async #askReady(): Promise<boolean> {
    for (const name of ['etcd', 'kube-apiserver'] as const) {
      const process = this.component(name);
      if (!process.running) throw new GiveUp(process.describeExit());
    }
    return (await this.api.call('GET', '/readyz')) === 'ok';
  }

  /** Ends the control plane at once; the folder stays until the workspace closes. */
  async stop(): Promise<void> {
    await Promise.all([...this.#components.values()].map((process) => process.stop('SIGKILL')));
    await this.api.close();
  }
}

/**
 * Starts a cluster and waits until it can be used: API ready, and with `components: 'all'` controllers and scheduler
 * healthy and the `default` ServiceAccount made, so that pods can be created at once.
 */
export async function startCluster(workspace: Workspace, options: ClusterOptions): Promise<Cluster> {
  const { name } = options;
  const began = Date.now();
  raiseInotifyLimit(workspace.say);
  const timeoutMs = options.timeoutMs ?? 90_000;
  const binaries = await ensureBinaries(CONTROL_PLANE_TOOLS, {
    say: workspace.say,
    ...(options.kubernetes === undefined ? {} : { kubernetes: options.kubernetes }),
  });
  const dir = join(workspace.dir, name);
  mkdirSync(dir, { mode: 0o700 });
  const bindAddress = options.bindAddress ?? '127.0.0.1';
  const serviceCidr = options.serviceCidr ?? '10.96.0.0/16';
  const port = await freePort(bindAddress);
  const etcdPort = await freePort();
  const server = `https://${bindAddress}:${port}`;
  const files =
    options.keysOf === undefined
      ? await plane.writeControlPlaneFiles(dir, name, server, bindAddress, serviceCidr)
      : plane.shareControlPlaneFiles(options.keysOf.files, dir, server);
  const auditLog = options.audit === true ? join(dir, 'audit.log') : undefined;
  const cluster = new Cluster(workspace, name, files, { serviceCidr, kubectl: binaries.kubectl, auditLog });

  const start = (component: ComponentName, args: string[]): ManagedProcess => {
    const file = binaries[component];
    const process = workspace.start({
      name: `${name}/${component}`,
      file,
      args,
      logFile: join(dir, `${component}.log`),
      cwd: dir,
    });
    cluster.adopt(component, process);
    return process;
  };

  start('etcd', plane.toArguments(plane.etcdFlags(name, dir, etcdPort, await freePort()), options.etcdFlags));
  const verifyKubelets = options.verifyKubelets ?? false;
  const settings = { files, etcdPort, bindAddress, port, serviceCidr, verifyKubelets, auditLog };
  start('kube-apiserver', plane.toArguments(plane.apiServerFlags(settings), options.apiServerFlags));
  await cluster.whenReady(timeoutMs);
  await cluster.api.ensure('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: plane.KUBELET_CLIENT_USER },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: plane.KUBELET_CLIENT_USER }],
  });

  if ((options.components ?? 'all') === 'all') {
    const controllersPort = await freePort();
    const schedulerPort = await freePort();
    const controllers = start(
      'kube-controller-manager',
      plane.toArguments(
        plane.controllerManagerFlags(files, controllersPort),
        options.fastControllers === true ? plane.FAST_CONTROLLERS : undefined,
        options.controllerManagerFlags,
      ),
    );
    const scheduler = start(
      'kube-scheduler',
      plane.toArguments(
        plane.schedulerFlags(files, schedulerPort, {
          ...(options.extenderPort === undefined
            ? {}
            : extenderSettings(
                ownSchedulerConfiguration(),
                options.extenderPort,
                {
                  ca: files.pki('ca.crt'),
                  cert: files.pki('kube-scheduler.crt'),
                  key: files.pki('kube-scheduler.key'),
                },
                options.extenderTimeout,
              )),
          ...options.schedulerConfig,
        }),
        options.schedulerFlags,
      ),
    );
    const left = Math.max(10_000, timeoutMs - (Date.now() - began));
    await Promise.all([
      healthy(controllers, controllersPort, left),
      healthy(scheduler, schedulerPort, left),
      until(
        `the default ServiceAccount of ${name}`,
        async () => {
          await cluster.api.call('GET', '/api/v1/namespaces/default/serviceaccounts/default');
          return true;
        },
        { timeoutMs: left, intervalMs: 50 },
      ),
    ]);
  }
  workspace.say(`cluster ${name} is ready at ${server} after ${((Date.now() - began) / 1000).toFixed(1)} s`);
  return cluster;
}

/** Waits for /healthz of a component on this machine; its self-signed certificate is not checked. */
async function healthy(process: ManagedProcess, port: number, timeoutMs: number): Promise<void> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false, timeout: 2_000 } });
  try {
    await until(
      `${process.spec.name} is healthy`,
      async () => {
        if (!process.running) throw new GiveUp(process.describeExit());
        const answer = await request(`https://127.0.0.1:${port}/healthz`, { dispatcher, headersTimeout: 5_000 });
        await answer.body.dump();
        return answer.statusCode === 200;
      },
      { timeoutMs, intervalMs: 50 },
    );
  } finally {
    await dispatcher.destroy();
  }
}
