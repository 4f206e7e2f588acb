import type { KubeConfig } from '@kubernetes/client-node';
import { fingerprintOf, type Access, type ClusterEndpoint, type Credentials } from './access.ts';
import { monotonic } from './clock.ts';
import { CredentialsError } from './errors.ts';
import { ExecPlugin, type ExecStatus } from './exec-plugin.ts';

/** How long an answer is used before the plugin layer is asked again; it keeps tokens until they expire itself. */
const RECHECK_MS = 30_000;
/** A plugin that waits for a person must not hold requests for ever. */
const PLUGIN_DEADLINE_MS = 30_000;

/**
 * Access for users whose kubeconfig runs an exec plugin or an auth provider (OIDC). The official client does that
 * work; it costs about 90 MB of memory, so it is loaded here and nowhere else. Throws {@link CredentialsError}.
 */
export async function pluginAccess(file: string, context: string, address: Address): Promise<Access> {
  const plugin = new PluginCredentials(file, context, address);
  await plugin.headers();
  return { endpoint: plugin.endpoint, credentials: plugin };
}

type Address = Pick<ClusterEndpoint, 'server' | 'proxy'>;

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
  #loaded: Loaded | undefined;
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

  constructor(file: string, context: string, { server, proxy }: Address) {
    this.#file = file;
    this.#context = context;
    const answer = () => this.#answer;
    this.endpoint = {
      server,
      proxy,
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
    if (!force && monotonic() - this.#askedAt < RECHECK_MS) {
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
    // A fresh one has no cached token, so the plugin runs again.
    if (this.#loaded === undefined || force) {
      this.#loaded = await loadConfig(this.#file, this.#context);
    }
    const { config, plugin } = this.#loaded;
    const options: Parameters<KubeConfig['applyToHTTPSOptions']>[0] = {};
    let given: ExecStatus = {};
    try {
      await withDeadline(async (signal) => {
        await config.applyToHTTPSOptions(options);
        if (plugin !== undefined) given = await plugin.status(signal);
      });
    } catch (e) {
      // The plugin's own words may hold a token; its exit is all that is told.
      const what = e instanceof CredentialsError ? e.message : 'it failed or could not be started';
      throw new CredentialsError('CredentialPluginFailed', `the credential plugin of ${this.#file}: ${what}`);
    }
    this.#answer = {
      headers: {
        ...stringHeaders(options.headers),
        ...(given.token === undefined ? {} : { authorization: `Bearer ${given.token}` }),
      },
      ca: pem(options.ca),
      cert: given.clientCertificateData ?? pem(options.cert),
      key: given.clientKeyData ?? pem(options.key),
      serverName: options.servername,
      insecure: options.rejectUnauthorized === false,
    };
    this.#askedAt = monotonic();
    return this.#answer.headers;
  }
}

interface Loaded {
  config: KubeConfig;
  plugin: ExecPlugin | undefined;
}

async function loadConfig(file: string, context: string): Promise<Loaded> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromFile(file);
  config.setCurrentContext(context);
  const user = config.getCurrentUser();
  const named = config.getCurrentCluster();
  const cluster = named === null ? null : { ...named };
  // It would make an agent for the proxy, which nobody uses.
  if (named !== null) Reflect.deleteProperty(named, 'proxyUrl');
  const exec: unknown = user?.exec;
  if (user === null || typeof exec !== 'object' || exec === null) return { config, plugin: undefined };
  // The official client would wait for a plugin for ever, and leave it running.
  Reflect.deleteProperty(user, 'exec');
  return { config, plugin: new ExecPlugin(exec, file, cluster) };
}

/** Runs `work`; its signal aborts when it takes too long. */
async function withDeadline(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const deadline = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new CredentialsError('CredentialPluginFailed', `no answer within ${PLUGIN_DEADLINE_MS / 1000} s`));
      deadline.abort();
    }, PLUGIN_DEADLINE_MS);
  });
  try {
    await Promise.race([work(deadline.signal), late]);
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
