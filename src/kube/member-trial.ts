import { KubeClient } from './client.ts';
import type { Namespace } from './core-v1.ts';
import { isForbidden, isUnauthorized } from './errors.ts';
import { memberAccess } from './member-access.ts';
import { NAMESPACES } from './resource.ts';
import { get } from './verbs.ts';

/**
 * Why whoever has this token may not do the first thing that the manager does with it, in words; undefined when that succeeds.
 * Throws where the member cannot be asked.
 */
export async function refusalOf(
  cluster: string,
  kubeconfig: string,
  token: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const client = new KubeClient({ cluster, ...memberAccess(kubeconfig, token), connections: 1 });
  try {
    await get<Namespace>(client, NAMESPACES, { name: 'kube-system' }, { signal });
    return undefined;
  } catch (error) {
    if (isForbidden(error) || isUnauthorized(error)) return error.status.message ?? error.reason;
    throw error;
  } finally {
    await client.close();
  }
}
