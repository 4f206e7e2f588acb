import { isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { z } from 'zod';
import { CredentialsError } from './errors.ts';
import { parseProxyUrl, type Proxy } from './proxy.ts';

const listOf = <T extends z.ZodType>(item: T) => z.array(item).nullish();

const clusterSchema = z.looseObject({
  server: z.string().nullish(),
  'certificate-authority': z.string().nullish(),
  'certificate-authority-data': z.string().nullish(),
  'tls-server-name': z.string().nullish(),
  'insecure-skip-tls-verify': z.boolean().nullish(),
  'proxy-url': z.string().nullish(),
});

const execSchema = z.looseObject({
  apiVersion: z.string().nullish(),
  provideClusterInfo: z.boolean().nullish(),
});

const userSchema = z.looseObject({
  'client-certificate': z.string().nullish(),
  'client-certificate-data': z.string().nullish(),
  'client-key': z.string().nullish(),
  'client-key-data': z.string().nullish(),
  token: z.string().nullish(),
  tokenFile: z.string().nullish(),
  username: z.string().nullish(),
  password: z.string().nullish(),
  as: z.string().nullish(),
  'as-uid': z.string().nullish(),
  'as-groups': z.array(z.string()).nullish(),
  'as-user-extra': z.record(z.string(), z.array(z.string())).nullish(),
  exec: execSchema.nullish(),
  'auth-provider': z.looseObject({}).nullish(),
});

const kubeconfigSchema = z.looseObject({
  clusters: listOf(z.looseObject({ name: z.string(), cluster: clusterSchema })),
  users: listOf(z.looseObject({ name: z.string(), user: userSchema.nullish() })),
  contexts: listOf(
    z.looseObject({
      name: z.string(),
      context: z.looseObject({ cluster: z.string(), user: z.string().nullish(), namespace: z.string().nullish() }),
    }),
  ),
  'current-context': z.string().nullish(),
});

export type KubeconfigCluster = z.infer<typeof clusterSchema>;
export type KubeconfigUser = z.infer<typeof userSchema>;

/** One context of a kubeconfig with its cluster and user looked up. */
export interface KubeconfigContext {
  context: string;
  /** That the context names; undefined: none. */
  namespace: string | undefined;
  userName: string;
  cluster: KubeconfigCluster;
  user: KubeconfigUser;
}

/**
 * Reads a kubeconfig and picks `context`, else `current-context`, else the only one there is. Throws
 * {@link CredentialsError} without quoting the text, which holds secrets.
 */
export function readKubeconfig(text: string, context?: string): KubeconfigContext {
  const config = parseKubeconfig(text);
  const contexts = config.contexts ?? [];
  const only = contexts.length === 1 ? contexts[0]?.name : undefined;
  const wanted = nonEmpty(context) ?? nonEmpty(config['current-context']) ?? only;
  if (wanted === undefined) {
    throw invalid('it has no current-context');
  }
  const found = contexts.find((entry) => entry.name === wanted)?.context;
  if (found === undefined) {
    throw invalid(`it has no context ${quoted(wanted)}`);
  }
  const cluster = config.clusters?.find((entry) => entry.name === found.cluster)?.cluster;
  if (cluster === undefined) {
    throw invalid(`context ${quoted(wanted)} names cluster ${quoted(found.cluster)}, which is not there`);
  }
  const userName = found.user ?? '';
  const userEntry = config.users?.find((entry) => entry.name === userName);
  if (userEntry === undefined && userName !== '') {
    throw invalid(`context ${quoted(wanted)} names user ${quoted(userName)}, which is not there`);
  }
  return { context: wanted, namespace: nonEmpty(found.namespace), userName, cluster, user: userEntry?.user ?? {} };
}

/** The contexts that a kubeconfig has, and which one it names as the current. Throws {@link CredentialsError}. */
export function contextNames(text: string): { names: string[]; current: string | undefined } {
  const config = parseKubeconfig(text);
  return {
    names: (config.contexts ?? []).map(({ name }) => name),
    current: nonEmpty(config['current-context']),
  };
}

function parseKubeconfig(text: string): z.infer<typeof kubeconfigSchema> {
  const result = kubeconfigSchema.safeParse(parseYaml(text));
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const where = issue === undefined || issue.path.length === 0 ? 'the document' : issue.path.join('.');
  throw invalid(`${where}: ${issue?.message ?? 'not a kubeconfig'}`);
}

/** The server's URL, checked: https (or http where `allowHttp`), a host, and nothing that carries secrets. */
export function checkServer(server: string | null | undefined, allowHttp: boolean): string {
  const url = server === null || server === undefined || !URL.canParse(server) ? undefined : new URL(server);
  if (url === undefined || url.hostname === '') {
    throw new CredentialsError('InvalidServer', 'the kubeconfig has no valid cluster.server URL');
  }
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) {
    throw new CredentialsError('InvalidServer', `cluster.server must be an https URL, not ${url.protocol}`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new CredentialsError('InvalidServer', 'cluster.server must not hold a user, a query or a fragment');
  }
  let end = url.href.length;
  while (url.href[end - 1] === '/') end -= 1;
  return url.href.slice(0, end);
}

/** What makes the connections to the cluster; undefined: they are made straight. Throws {@link CredentialsError}. */
export function proxyOf(cluster: KubeconfigCluster): Proxy | undefined {
  const url = nonEmpty(cluster['proxy-url']);
  return url === undefined ? undefined : parseProxyUrl(url);
}

/** Decodes a `*-data` field. */
export function decodeData(field: string, data: string | null | undefined): string | undefined {
  const base64 = nonEmpty(data)?.replaceAll(/\s/g, '');
  if (base64 === undefined) {
    return undefined;
  }
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64)) {
    throw invalid(`${field} is not base64`);
  }
  return Buffer.from(base64, 'base64').toString('utf8');
}

/** Kubeconfigs spell "not set" as null, an empty string or by leaving the key out. */
export function nonEmpty(value: string | null | undefined): string | undefined {
  return value === null || value === '' ? undefined : value;
}

function parseYaml(text: string): unknown {
  try {
    const lineCounter = new LineCounter();
    // Its pretty errors quote the line, which may be a token or a key, and take time by the square of their number.
    const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, lineCounter });
    const [error] = document.errors;
    if (error !== undefined) throw notYaml(lineCounter.linePos(error.pos[0]).line);
    visit(document, {
      Pair(_, { key }) {
        // Which is written out for each level above it: the time that takes grows with the fourth power of the depth.
        if (!isScalar(key)) throw notYaml();
      },
    });
    return document.toJS();
  } catch (e) {
    throw e instanceof CredentialsError ? e : notYaml();
  }
}

function notYaml(line?: number): CredentialsError {
  return invalid(`it is not valid YAML${line === undefined ? '' : ` at line ${line}`}`);
}

function quoted(name: string): string {
  return JSON.stringify(name);
}

function invalid(message: string): CredentialsError {
  return new CredentialsError('InvalidKubeconfig', `the kubeconfig cannot be used: ${message}`);
}
