import type { Cluster } from './cluster.ts';

export interface ServiceAccountName {
  namespace: string;
  name: string;
}

/** What RBAC calls it: who has a client certificate with this name and {@link groupsOf} has its rights and no more. */
export function userOf({ namespace, name }: ServiceAccountName): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

export function groupsOf({ namespace }: ServiceAccountName): string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
}

/** Long enough for a demo that is left running. */
const TOKEN_SECONDS = 30 * 24 * 3600;

/** A kubeconfig (self-contained) with a token of a ServiceAccount that exists, so with its rights and no more. */
export async function serviceAccountKubeconfig(cluster: Cluster, namespace: string, name: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const answer = await cluster.api.call('POST', path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  });
  const { token } = (answer as { status: { token: string } }).status;
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: cluster.name,
        cluster: {
          server: cluster.server,
          'certificate-authority-data': Buffer.from(cluster.caPem).toString('base64'),
        },
      },
    ],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: cluster.name, user: name } }],
    'current-context': name,
  });
}
