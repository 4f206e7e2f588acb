import type { Cluster } from '../hack/cluster.ts';
import { until } from '../hack/until.ts';
import { ALLOW_HOST_LABEL } from '../src/api/marks.ts';

/** Makes a namespace that is usable at once: the default ServiceAccount is there, and Spillway may use it in the member. */
export async function makeNamespace(cluster: Cluster, name: string): Promise<void> {
  await cluster.api.ensure('/api/v1/namespaces', { metadata: { name, labels: { [ALLOW_HOST_LABEL]: 'any' } } });
  await until(`the default ServiceAccount of ${name} in ${cluster.name}`, async () => {
    await cluster.api.call('GET', `/api/v1/namespaces/${name}/serviceaccounts/default`);
    return true;
  });
}
