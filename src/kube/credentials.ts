import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { Access } from './access.ts';
import { CredentialsError } from './errors.ts';
import { fileAccess, type Source } from './file-access.ts';
import { checkServer, decodeData, nonEmpty, proxyOf, readKubeconfig, type KubeconfigContext } from './kubeconfig.ts';
import { pluginAccess } from './plugin-access.ts';

export type { Access, Credentials } from './access.ts';

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface HostAccessOptions {
  /** Path of a kubeconfig file. Without one: the pod's service account, else $KUBECONFIG, else ~/.kube/config. */
  kubeconfig?: string;
  context?: string;
  /** For tests. */
  env?: NodeJS.ProcessEnv;
  serviceAccountDirectory?: string;
}

/**
 * Access to the cluster this program belongs to, with its admin's own kubeconfig or as a pod. Files are followed when
 * they change. Exec plugins and auth providers work. Throws {@link CredentialsError}.
 */
export async function hostAccess(options: HostAccessOptions = {}): Promise<Access> {
  const env = options.env ?? process.env;
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (options.kubeconfig === undefined && host !== undefined && port !== undefined) {
    const directory = options.serviceAccountDirectory ?? SERVICE_ACCOUNT;
    return fileAccess({
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      ca: { file: join(directory, 'ca.crt') },
      token: { file: join(directory, 'token') },
    });
  }
  const path = options.kubeconfig ?? nonEmpty(env['KUBECONFIG']) ?? join(homedir(), '.kube', 'config');
  if (options.kubeconfig === undefined && path.includes(':')) {
    throw new CredentialsError('InvalidKubeconfig', 'KUBECONFIG names several files; give one with --kubeconfig');
  }
  return kubeconfigAccess(resolve(path), options.context);
}

async function kubeconfigAccess(file: string, context: string | undefined): Promise<Access> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (e) {
    const code = e instanceof Error && 'code' in e ? String(e.code) : 'unknown error';
    throw new CredentialsError('FileUnreadable', `kubeconfig ${file} cannot be read: ${code}`);
  }
  const chosen = readKubeconfig(text, context);
  const { cluster, user } = chosen;
  if (
    (user['as-groups']?.length ?? 0) > 0 ||
    nonEmpty(user['as-uid']) !== undefined ||
    hasKeys(user['as-user-extra'])
  ) {
    throw new CredentialsError('ImpersonationRefused', `kubeconfig ${file}: of the as-* fields only as is supported`);
  }
  const server = checkServer(cluster.server, true);
  if ((user.exec ?? undefined) !== undefined || (user['auth-provider'] ?? undefined) !== undefined) {
    return pluginAccess(file, chosen.context, { server, proxy: proxyOf(cluster) });
  }
  return fileAccess(fileOptions(chosen, server, dirname(file)));
}

function fileOptions({ cluster, user }: KubeconfigContext, server: string, directory: string) {
  // Files win over data for the token, data over files for the rest: client-go's rule.
  const source = (
    field: string,
    data: string | null | undefined,
    file: string | null | undefined,
  ): Source | undefined => {
    const decoded = decodeData(`${field}-data`, data);
    return decoded === undefined ? fromFile(file, directory) : { data: decoded };
  };
  const token = nonEmpty(user.token);
  return {
    server,
    serverName: nonEmpty(cluster['tls-server-name']),
    insecureSkipTlsVerify: cluster['insecure-skip-tls-verify'] ?? false,
    proxy: proxyOf(cluster),
    ca: source('certificate-authority', cluster['certificate-authority-data'], cluster['certificate-authority']),
    cert: source('client-certificate', user['client-certificate-data'], user['client-certificate']),
    key: source('client-key', user['client-key-data'], user['client-key']),
    token: fromFile(user.tokenFile, directory) ?? (token === undefined ? undefined : { data: token }),
    username: nonEmpty(user.username),
    password: nonEmpty(user.password),
    impersonate: nonEmpty(user.as),
  };
}

/** Paths in a kubeconfig are relative to the kubeconfig. */
function fromFile(file: string | null | undefined, directory: string): Source | undefined {
  const path = nonEmpty(file);
  return path === undefined ? undefined : { file: isAbsolute(path) ? path : join(directory, path) };
}

function hasKeys(value: Record<string, unknown> | null | undefined): boolean {
  return value !== null && value !== undefined && Object.keys(value).length > 0;
}
