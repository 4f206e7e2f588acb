import type { KubeConfig } from '@kubernetes/client-node';
import { fingerprintOf, type Access, type ClusterEndpoint, type Credentials } from './access.ts';
import { CredentialsError } from './errors.ts';

/** How long an answer is used before the plugin layer is asked again; it keeps tokens until they expire itself. */
const RECHECK_MS = 30_000;
/** A plugin that waits for a person must not hold requests for ever. */
const PLUGIN_DEADLINE_MS = 30_000;

/**
 * Access for users whose kubeconfig runs an exec plugin or an auth provider (OIDC). The official client does that
 * work; it costs about 90 MB of memory, so it is loaded here and nowhere else. Throws {@link CredentialsError}.
 */
export async function pluginAccess(file: string, context: string, server: string): Promise<Access> {
  const plugin = new PluginCredentials(file, context, server);
  await plugin.headers();
  return { endpoint: plugin.endpoint, credentials: plugin };
}

interface Answer {
  headers: Record<string, string>;
  ca: string | undefined;
  cert: string | undefined;
  key: string | undefined;
  serverName: string | undefined;
  insecure: boolean;
}

class PluginCredentials implements Credentials {
  readonly endpoint: ClusterEndpoint;
  readonly #file: string;
  readonly #context: string;
  #config: KubeConfig | undefined;
  #answer: Answer = {
    headers: {},
    ca: undefined,
    cert: undefined,
    key: undefined,
    serverName: undefined,
    insecure: false,
  };
  #askedAt = -Infinity;
  #asking: Promise<Record<string, string>> | undefined;

  constructor(file: string, context: string, server: string) {
    this.#file = file;
    this.#context = context;
    const answer = () => this.#answer;
    this.endpoint = {
      server,
      get ca() {
        return answer().ca;
      },
      get serverName() {
        return answer().serverName;
      },
      get insecureSkipTlsVerify() {
        return answer().insecure;
      },
    };
  }

  headers(force = false): Promise<Record<string, string>> {
    if (!force && performance.now() - this.#askedAt < RECHECK_MS) {
      return Promise.resolve(this.#answer.headers);
    }
    this.#asking ??= this.#ask(force).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  tls(): { cert?: string; key?: string } {
    const { cert, key } = this.#answer;
    return { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
  }

  fingerprint(): string {
    return fingerprintOf(this.#answer.cert, this.#answer.key);
  }

  async #ask(force: boolean): Promise<Record<string, string>> {
    // A fresh KubeConfig has no cached token, so the plugin runs again.
    if (this.#config === undefined || force) {
      this.#config = await loadConfig(this.#file, this.#context);
    }
    const options: Parameters<KubeConfig['applyToHTTPSOptions']>[0] = {};
    try {
      await withDeadline(this.#config.applyToHTTPSOptions(options));
    } catch (e) {
      // The plugin's own words may hold a token; its exit is all that is told.
      const what = e instanceof CredentialsError ? e.message : 'it failed or could not be started';
      throw new CredentialsError('CredentialPluginFailed', `the credential plugin of ${this.#file}: ${what}`);
    }
    this.#answer = {
      headers: stringHeaders(options.headers),
      ca: pem(options.ca),
      cert: pem(options.cert),
      key: pem(options.key),
      serverName: options.servername,
      insecure: options.rejectUnauthorized === false,
    };
    this.#askedAt = performance.now();
    return this.#answer.headers;
  }
}

async function loadConfig(file: string, context: string): Promise<KubeConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromFile(file);
  config.setCurrentContext(context);
  const user = config.getCurrentUser();
  const cluster = config.getCurrentCluster();
  const exec: unknown = user?.exec;
  if (typeof exec === 'object' && exec !== null) {
    passExecInfo(exec, cluster);
  }
  return config;
}

/** Plugins read KUBERNETES_EXEC_INFO (client.authentication.k8s.io); the official client does not set it. */
function passExecInfo(exec: object, cluster: { server: string; caData?: string } | null): void {
  const plugin = exec as { apiVersion?: string; provideClusterInfo?: boolean; env?: { name: string; value: string }[] };
  const info = {
    apiVersion: plugin.apiVersion ?? 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      ...(plugin.provideClusterInfo === true && cluster !== null
        ? { cluster: { server: cluster.server, 'certificate-authority-data': cluster.caData } }
        : {}),
    },
  };
  plugin.env = [...(plugin.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }];
}

async function withDeadline(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new CredentialsError('CredentialPluginFailed', `no answer within ${PLUGIN_DEADLINE_MS / 1000} s`));
    }, PLUGIN_DEADLINE_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function stringHeaders(headers: unknown): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value === 'string') {
      result[name.toLowerCase()] = value;
    }
  }
  return result;
}

function pem(value: unknown): string | undefined {
  if (typeof value === 'string') {
    return value;
  }
  return Buffer.isBuffer(value) ? value.toString('utf8') : undefined;
}
