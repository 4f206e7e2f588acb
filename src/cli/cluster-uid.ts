import type { Namespace } from '../kube/core-v1.ts';
import { NAMESPACES } from '../kube/resource.ts';
import type { Viewer } from './viewer.ts';

/** The UID of namespace kube-system, which stands for a cluster wherever clusters are told apart. Throws CliError. */
export async function clusterUidOf(cluster: Viewer): Promise<string> {
  const { metadata } = await cluster.get<Namespace>(NAMESPACES, { name: 'kube-system' });
  return metadata.uid ?? '';
}
