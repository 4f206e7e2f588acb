import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ApiAccess } from '../hack/api-access.ts';
import type { Cluster } from '../hack/cluster.ts';
import type { ManagedProcess } from '../hack/managed-process.ts';
import { addMember, installSpillway, startSpillway } from '../hack/spillway.ts';
import { GiveUp, until } from '../hack/until.ts';
import type { FloorConfig } from './floor-driver.ts';

/** A program that runs pods of the host in the member: the one that is measured, or the one it is measured against. */
export interface DrivenProgram {
  readonly name: string;
  /** Who it is towards both API servers, to tell its requests apart. */
  readonly users: readonly string[];
  readonly node: string;
  /** It brings every change of a member pod's status to the host, not only that it runs. */
  readonly mirrorsAll: boolean;
  /** Resolves once its node takes pods. */
  start(): Promise<ManagedProcess>;
  /** Ends it, so that it does not disturb another one's turn. */
  stop(): Promise<void>;
}

/** Requests under way at most, for each cluster: the same for both programs. */
const CONNECTIONS = 16;

/** The manager's name at both API servers. */
const USER = 'bench-spillway';

export class FloorProgram implements DrivenProgram {
  readonly name = 'floor';
  readonly mirrorsAll = false;
  readonly users = ['bench-floor'];
  readonly node = 'floor';
  readonly #host: Cluster;
  readonly #member: Cluster;
  #starts = 0;
  #process: ManagedProcess | undefined;

  constructor(host: Cluster, member: Cluster) {
    this.#host = host;
    this.#member = member;
  }

  async start(): Promise<ManagedProcess> {
    const { workspace } = this.#host;
    this.#starts += 1;
    const config: FloorConfig = {
      host: await accessOf(this.#host, 'bench-floor'),
      member: await accessOf(this.#member, 'bench-floor'),
      node: this.node,
      connections: CONNECTIONS,
    };
    const configFile = join(workspace.dir, 'floor.json');
    writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });
    const logFile = join(workspace.dir, `floor-${this.#starts}.log`);
    const script = fileURLToPath(new URL('floor-driver.js', import.meta.url));
    const started = workspace.start({
      name: 'floor driver',
      file: process.execPath,
      args: [script, configFile],
      logFile,
    });
    this.#process = started;
    await untilSo(started, 'the floor driver watches', () => readFileSync(logFile, 'utf8').startsWith('ready'));
    return started;
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
    const { api } = this.#host;
    await api.call('DELETE', `/api/v1/nodes/${this.node}`);
    await api.call('DELETE', leasePath(this.node));
  }
}

export class SpillwayProgram implements DrivenProgram {
  readonly name = 'spillway';
  readonly mirrorsAll = true;
  readonly users: readonly string[];
  readonly node: string;
  readonly #host: Cluster;
  readonly #member: Cluster;
  #starts = 0;
  #process: ManagedProcess | undefined;

  constructor(host: Cluster, member: Cluster) {
    this.#host = host;
    this.#member = member;
    this.node = member.name;
    // The manager's own identity, and that of its virtual node.
    this.users = [USER, `system:node:${member.name}`];
  }

  /** Kinds and the MemberCluster; once per host. */
  async install(): Promise<void> {
    await installSpillway(this.#host);
    await addMember(this.#host, this.#member, { kubeconfig: await this.#kubeconfigFor(this.#member) });
  }

  /** @throws before the first start. */
  get process(): ManagedProcess {
    if (this.#process === undefined) throw new Error('spillway was not started yet');
    return this.#process;
  }

  async start(): Promise<ManagedProcess> {
    const began = Date.now();
    this.#starts += 1;
    const kubeconfig = await this.#kubeconfigFor(this.#host);
    const spillway = await startSpillway(this.#host, { kubeconfig, name: `spillway-${this.#starts}` });
    this.#process = spillway.process;
    await this.#untilItTakesPods(began);
    return spillway.process;
  }

  /** Starts it again in the same place, after it was killed. Resolves once its node takes pods. */
  async restart(): Promise<void> {
    const began = Date.now();
    this.process.restart();
    await this.#untilItTakesPods(began);
  }

  async #untilItTakesPods(since: number): Promise<void> {
    await untilSo(this.process, 'the virtual node takes pods', () => this.#takesPods(since), 60_000);
  }

  /** A file with this program's own identity, which the audit logs then show. */
  async #kubeconfigFor(cluster: Cluster): Promise<string> {
    const file = join(cluster.dir, `${USER}.kubeconfig`);
    writeFileSync(file, await cluster.kubeconfigFor(USER, ['system:masters']), { mode: 0o600 });
    return file;
  }

  /** Ready, and kept alive by this very process: the Node object of an earlier one may still look well. */
  async #takesPods(since: number): Promise<boolean> {
    const { api } = this.#host;
    const node = (await api.call('GET', `/api/v1/nodes/${this.node}`)) as {
      spec: { taints?: { key: string }[] };
      status?: { conditions?: { type: string; status: string }[] };
    };
    const lease = (await api.call('GET', leasePath(this.node))) as { spec: { renewTime?: string } };
    const ready = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
    const tainted = node.spec.taints?.some(({ key }) => key.startsWith('node.kubernetes.io/')) ?? false;
    return ready && !tainted && Date.parse(lease.spec.renewTime ?? '') >= since;
  }

  async stop(): Promise<void> {
    await this.#process?.stop('SIGTERM', 15_000);
  }
}

function leasePath(node: string): string {
  return `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`;
}

async function accessOf(cluster: Cluster, user: string): Promise<ApiAccess> {
  const { cert, key } = await cluster.issueClient(user, ['system:masters']);
  return { server: cluster.server, ca: cluster.caPem, cert, key };
}

async function untilSo(
  program: ManagedProcess,
  what: string,
  question: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
): Promise<void> {
  await until(
    what,
    () => {
      if (!program.running) throw new GiveUp(program.describeExit());
      return question();
    },
    { timeoutMs, intervalMs: 100 },
  );
}
