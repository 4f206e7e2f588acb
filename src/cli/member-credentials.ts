import { isIP } from 'node:net';
import { RENEWED_TOKEN_LABEL } from '../api/marks.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { Secret } from '../kube/core-v1.ts';
import { CredentialsError } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { refusalOf } from '../kube/member-trial.ts';
import { parseProxyUrl, proxyInWords, proxyUrl, type Proxy } from '../kube/proxy.ts';
import { CONFIG_MAPS, resourcePath, SECRETS, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import type { KubeObject } from '../kube/object.ts';
import { tokenClaims, tokenIn, tokenRequestFor } from '../kube/service-account-token.ts';
import { remove } from '../kube/verbs.ts';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import { dryRunOption, dryRunWords, type DryRun } from './flags.ts';
import { SYSTEM_NAMESPACE } from './installation.ts';
import type { ManifestObject } from './manifests.ts';
import { MEMBER_ACCOUNT } from './member-grant.ts';
import type { Terminal } from './terminal.ts';
import { viewerAccess, type ClusterFlags } from './viewer-access.ts';
import { MissingRight, type Viewer } from './viewer.ts';
import { waitFor, type Look } from './wait-for.ts';

/** The longest that manifests/member/token.yaml allows, in s. */
const TOKEN_SECONDS = 7 * 24 * 3600;
const PAGE = 'guides/private-members.md';
/** Until rights that were just granted are in force, in ms. */
const RIGHTS_MS = 20_000;

/** Where the manager reaches the member, and how it knows it. */
export interface Endpoint {
  readonly server: string;
  /** Where the person at the terminal reaches it. */
  readonly viewerServer: string;
  /** What makes the connections there, for each of the two. */
  readonly proxy: Proxy | undefined;
  readonly viewerProxy: Proxy | undefined;
  readonly serverName: string | undefined;
  /** PEM. */
  readonly ca: string;
}

/** Where join puts the credentials of a member. */
export function secretOf(member: string): { namespace: string; name: string } {
  return { namespace: SYSTEM_NAMESPACE, name: `member-${member}` };
}

/** Throws CliError where the manager could not reach, or not know, the member by it. */
export async function memberEndpoint(
  flags: ClusterFlags,
  member: Viewer,
  { server, proxyUrl: url }: { server?: string; proxyUrl?: string },
  terminal: Pick<Terminal, 'env'>,
): Promise<Endpoint> {
  const { access } = await viewerAccess(flags, terminal.env);
  const { endpoint } = access;
  const address = server ?? endpoint.server;
  if (!URL.canParse(address) || new URL(address).protocol !== 'https:') {
    throw new CliError(`${address} is no address that the manager may use`, {
      fix: 'give one that begins with https:// by --server',
    });
  }
  const proxy = managersProxy(url, endpoint.proxy);
  // A name, or address, behind a proxy is the proxy's.
  if (server === undefined && proxy === undefined && isLoopback(new URL(address).hostname)) {
    throw new CliError(`the manager cannot reach the member at ${address}`, {
      reason: 'in its pod that is the pod itself',
      fix: 'give the address at which nodes of the host reach the API server of the member by --server (kind: https://NAME-control-plane:6443)',
    });
  }
  const viewerServer = endpoint.server;
  return {
    server: address,
    viewerServer,
    proxy,
    viewerProxy: endpoint.proxy,
    serverName: endpoint.serverName,
    ca: endpoint.ca ?? (await publishedCa(member)),
  };
}

/** Throws CliError where the manager could not use it. */
function managersProxy(given: string | undefined, viewers: Proxy | undefined): Proxy | undefined {
  if (given === 'none') return undefined;
  if (given !== undefined) {
    try {
      return parseProxyUrl(given);
    } catch (error) {
      const reason = error instanceof CredentialsError ? error.message : undefined;
      throw new CliError('--proxy-url cannot be used', { exitCode: EXIT.usage, reason, page: PAGE });
    }
  }
  if (viewers !== undefined && isLoopback(new URL(proxyInWords(viewers).replace(/^[a-z0-9]+:/, 'http:')).hostname)) {
    throw new CliError(`the manager cannot reach the member through ${proxyInWords(viewers)}`, {
      reason: 'in its pod that is the pod itself',
      fix: 'name the proxy that nodes of the host reach by --proxy-url, or --proxy-url=none where the manager needs none',
      page: PAGE,
    });
  }
  return viewers;
}

/** What a cluster tells its own pods to trust: of a kubeconfig that leaves that to the machine, or does not check at all. */
async function publishedCa(member: Viewer): Promise<string> {
  const ref = { namespace: 'kube-system', name: 'kube-root-ca.crt' };
  const found = await member.tryGet<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, ref);
  const ca = found === undefined || found instanceof MissingRight ? undefined : found.data?.['ca.crt'];
  if (ca !== undefined) return ca;
  throw new CliError('it is not known by which authority the manager is to know the member', {
    reason:
      'the kubeconfig has no certificate-authority, and the member publishes none in kube-system/kube-root-ca.crt',
    fix: 'give a kubeconfig with certificate-authority-data by --member-kubeconfig',
  });
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));
}

/**
 * The Secret for the host, with a token that works in the member: the one it has where that is not half over, else a new one.
 * `isOfMember`: the Secret is known to be of this cluster; the token of another one is sent nowhere. Throws CliError.
 */
export async function memberCredentials(o: {
  host: Viewer;
  member: Viewer;
  secret: { namespace: string; name: string };
  isOfMember: boolean;
  endpoint: Endpoint;
  terminal: Terminal;
}): Promise<ManifestObject> {
  const { host, member, secret, isOfMember, endpoint, terminal } = o;
  const kubeconfig = kubeconfigOf(endpoint);
  const tried = kubeconfigOf({ ...endpoint, server: endpoint.viewerServer, proxy: endpoint.viewerProxy });
  const before = isOfMember ? await host.tryGet<Secret>(SECRETS, secret) : undefined;
  const kept = before === undefined || before instanceof MissingRight ? undefined : tokenOf(before);
  const isGood =
    kept !== undefined &&
    isFresh(kept, terminal.now()) &&
    (await refusalOf(member.context, tried, kept, terminal.signal)) === undefined;
  const token = isGood ? kept : await newToken(member);
  if (!isGood) await untilWorks(member.context, tried, token, terminal);
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...secret, labels: { [RENEWED_TOKEN_LABEL]: 'true' } },
    data: { kubeconfig: base64(kubeconfig), token: base64(token) },
  } as ManifestObject;
}

type Member = KubeObject & { spec?: { credentials?: { secretRef: { namespace: string; name: string } } } };

/**
 * Deletes the Secret that join made, once no member needs it; whether it was there. One that was made otherwise is not ours to
 * delete. `check` is asked just before. Throws CliError.
 */
export async function removeCredentials(
  terminal: Terminal,
  host: Viewer,
  left: Member,
  dryRun: DryRun,
  check?: () => Promise<void>,
): Promise<boolean> {
  const { namespace, name } = left.spec?.credentials?.secretRef ?? {};
  if (namespace !== SYSTEM_NAMESPACE || name !== secretOf(left.metadata.name).name) return false;
  const others = await host.list<Member>(MEMBER_CLUSTERS);
  const isNeeded = others.some(
    ({ metadata, spec }) => metadata.uid !== left.metadata.uid && spec?.credentials?.secretRef?.name === name,
  );
  const secret = isNeeded ? undefined : await host.tryGet<Secret>(SECRETS, { namespace, name });
  if (secret instanceof MissingRight) {
    terminal.note(`note: secret/${name} of namespace ${namespace} may still be there, as you may not ${secret.right}`);
    return false;
  }
  if (secret?.metadata.labels?.[RENEWED_TOKEN_LABEL] !== 'true') return false;
  await check?.();
  const { uid, resourceVersion } = secret.metadata;
  if (dryRun !== 'client')
    await host.ask('delete secrets', async (signal) => {
      const options = { signal, ...dryRunOption(dryRun) };
      // Somebody else, who takes the member out too, may be faster.
      await ifThere(remove(host.client, SECRETS, { namespace, name }, { uid, resourceVersion }, options));
    });
  terminal.out(`secret/${name} deleted${dryRunWords(dryRun)}\n`);
  return true;
}

function tokenOf({ data }: Secret): string | undefined {
  const base64 = data?.['token'];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64').toString('utf8');
}

function isFresh(token: string, now: number): boolean {
  const claims = tokenClaims(token);
  return claims !== undefined && now < (claims.issuedAt + claims.expiresAt) / 2;
}

async function newToken(member: Viewer): Promise<string> {
  const path = resourcePath(SERVICE_ACCOUNTS, MEMBER_ACCOUNT.namespace, MEMBER_ACCOUNT.name, 'token');
  const body = tokenRequestFor(TOKEN_SECONDS);
  return await member.ask(`create serviceaccounts/token in namespace ${MEMBER_ACCOUNT.namespace}`, async (signal) =>
    tokenIn(await member.client.request({ method: 'POST', path, body, signal })),
  );
}

/** Without a token: that is beside it, so that it can be renewed without touching the rest. */
function kubeconfigOf({ server, serverName, ca, proxy }: Endpoint): string {
  const cluster = {
    server,
    ...(serverName === undefined ? {} : { 'tls-server-name': serverName }),
    ...(proxy === undefined ? {} : { 'proxy-url': proxyUrl(proxy) }),
    'certificate-authority-data': Buffer.from(ca).toString('base64'),
  };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'member', cluster }],
    users: [{ name: 'spillway', user: {} }],
    contexts: [{ name: 'member', context: { cluster: 'member', user: 'spillway' } }],
    'current-context': 'member',
  });
}

async function untilWorks(context: string, kubeconfig: string, token: string, terminal: Terminal): Promise<void> {
  const look = async (): Promise<Look<true>> => {
    const problem = await refusalOf(context, kubeconfig, token, terminal.signal);
    return problem === undefined ? { value: true } : { waitingFor: `the member to let the new account in: ${problem}` };
  };
  await waitFor(
    terminal,
    'the credentials for the host work',
    RIGHTS_MS,
    look,
    'see kubectl auth can-i --list --as system:serviceaccount:spillway-access:spillway-host',
  );
}
