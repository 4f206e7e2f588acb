import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';

/** `user.exec` of a kubeconfig, as far as it is read here. */
export interface ExecConfig {
  apiVersion?: string;
  command?: string;
  args?: string[] | null;
  env?: { name: string; value: string }[] | null;
  provideClusterInfo?: boolean;
}

/** As far as a plugin may know it. */
export interface ExecCluster {
  server: string;
  caData?: string;
  proxyUrl?: string;
}

/** What a plugin answered: `status` of an ExecCredential. */
export interface ExecStatus {
  token?: string;
  /** PEM */
  clientCertificateData?: string;
  clientKeyData?: string;
}

const MAX_ANSWER_BYTES = 1 << 20;

/**
 * A credential plugin by the contract of client.authentication.k8s.io/v1 and v1beta1: its answer is kept until it
 * expires, and it is ended when it is not waited for any more. Its errors hold nothing that it said.
 */
export class ExecPlugin {
  readonly #exec: ExecConfig;
  readonly #file: string;
  readonly #cluster: ExecCluster | null;
  #kept: { status: ExecStatus; untilMs: number } | undefined;

  constructor(exec: ExecConfig, file: string, cluster: ExecCluster | null) {
    this.#exec = exec;
    this.#file = file;
    this.#cluster = cluster;
  }

  async status(signal: AbortSignal): Promise<ExecStatus> {
    if (this.#kept !== undefined && Date.now() < this.#kept.untilMs) return this.#kept.status;
    this.#kept = undefined;
    const answer = JSON.parse(await this.#run(signal)) as { status?: ExecStatus & { expirationTimestamp?: string } };
    const { expirationTimestamp, ...status } = answer.status ?? {};
    if (status.token === undefined && status.clientCertificateData === undefined) throw new Error('no credential');
    const expires = expirationTimestamp === undefined ? Infinity : Date.parse(expirationTimestamp);
    this.#kept = { status, untilMs: Number.isNaN(expires) ? 0 : expires };
    return status;
  }

  #run(signal: AbortSignal): Promise<string> {
    const { command = '', args, env } = this.#exec;
    // A path is relative to the kubeconfig, a bare name is looked up in PATH.
    const file = command.includes('/') && !command.startsWith('/') ? join(dirname(this.#file), command) : command;
    const own = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    return new Promise((resolve, reject) => {
      execFile(
        file,
        args ?? [],
        {
          env: { ...process.env, ...own, KUBERNETES_EXEC_INFO: this.#info() },
          signal,
          killSignal: 'SIGKILL',
          maxBuffer: MAX_ANSWER_BYTES,
        },
        (error, stdout) => {
          if (error === null) resolve(stdout);
          else reject(new Error('it failed or could not be started'));
        },
      ).stdin?.end();
    });
  }

  #info(): string {
    const { apiVersion = 'client.authentication.k8s.io/v1', provideClusterInfo } = this.#exec;
    const cluster =
      provideClusterInfo === true && this.#cluster !== null
        ? {
            cluster: {
              server: this.#cluster.server,
              'certificate-authority-data': this.#cluster.caData,
              'proxy-url': this.#cluster.proxyUrl,
            },
          }
        : {};
    return JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false, ...cluster } });
  }
}
