import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';

interface Kubeconfig {
  clusters: { name: string }[];
  users: { name: string }[];
}

/** One kubeconfig for several clusters, as guides assume it: a context for each, of its name; the first is current. */
export function joinedKubeconfig(clusters: readonly { name: string; kubeconfig: string }[]): string {
  const parts = clusters.map(({ name, kubeconfig }) => {
    const one = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig;
    return {
      clusters: one.clusters.map((part) => ({ ...part, name })),
      users: one.users.map((part) => ({ ...part, name })),
      contexts: [{ name, context: { cluster: name, user: name } }],
    };
  });
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: parts.flatMap((part) => part.clusters),
    users: parts.flatMap((part) => part.users),
    contexts: parts.flatMap((part) => part.contexts),
    'current-context': clusters[0]?.name,
  });
}
