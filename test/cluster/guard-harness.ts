import { readFileSync } from 'node:fs';
import { Api } from '../../hack/api-access.ts';
import { type Cluster, startCluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';

export const MANAGER = 'system:serviceaccount:spillway-system:spillway-manager';
export const HOST_ACCOUNT = 'system:serviceaccount:spillway-access:spillway-host';

/** An owner that does not exist: the garbage collector deletes what claims to be its. */
export const OWNED = {
  ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: '00000000-0000-4000-8000-000000000000' }],
};
/** Keeps what has it, and its namespace, from ever being deleted. */
export const KEPT = { finalizers: ['example.com/never'] };

/** A cluster with the given manifests, and a client with the key of one of our accounts that somebody stole. */
export interface Guarded {
  cluster: Cluster;
  thief: Api;
  close(): Promise<void>;
}

/** `files`: below manifests/. No controllers run. */
export async function startGuarded(user: string, ...files: string[]): Promise<Guarded> {
  const workspace = Workspace.create();
  const cluster = await startCluster(workspace, { name: 'guarded', components: 'api-only' });
  for (const file of files)
    await cluster.apply(readFileSync(new URL(`../../manifests/${file}`, import.meta.url), 'utf8'));
  const thief = await apiOf(cluster, user);
  return {
    cluster,
    thief,
    close: async () => {
      await thief.close();
      await workspace.close();
    },
  };
}

export async function apiOf(cluster: Cluster, user: string, groups: string[] = []): Promise<Api> {
  const { server, ca } = cluster.adminAccess;
  return new Api(server, ca, await cluster.issueClient(user, groups));
}

/** Policies take a moment to be in force. */
export async function untilRefused(what: () => Promise<unknown>, words: string): Promise<void> {
  await until(`refused with: ${words}`, async () => String(await what().catch(String)).includes(words));
}

/** While `work` is under way RBAC lets the manager serve virtual nodes of these names only. */
export async function serveOnly(cluster: Cluster, resourceNames: string[], work: () => Promise<void>): Promise<void> {
  const role = '/apis/rbac.authorization.k8s.io/v1/clusterroles/spillway-manager';
  const { rules } = (await cluster.api.call('GET', role)) as { rules: { resources: string[] }[] };
  const named = rules.map((rule) => (rule.resources[0] === 'virtualnodes' ? { ...rule, resourceNames } : rule));
  await cluster.api.call('PATCH', role, { rules: named });
  try {
    await work();
  } finally {
    await cluster.api.call('PATCH', role, { rules });
  }
}

/** No controller makes it here. */
export function defaultAccount(namespace: string): object {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } };
}

export const CONTAINERS = [{ name: 'main', image: 'app:v1' }];

export function plainPod(name: string, namespace: string, more: { labels?: object; spec?: object } = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: more.labels ?? { app: name } },
    spec: { containers: CONTAINERS, automountServiceAccountToken: false, ...more.spec },
  };
}
