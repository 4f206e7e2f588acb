import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import type { KubeRequest } from '../../src/kube/request.ts';
import { readMemberRemains } from '../../src/leaving/member-remains.ts';
import type { Remains } from '../../src/leaving/remains.ts';

const KINDS: Record<string, string> = {
  pods: 'Pod',
  poddisruptionbudgets: 'PodDisruptionBudget',
  services: 'Service',
  endpointslices: 'EndpointSlice',
  configmaps: 'ConfigMap',
  secrets: 'Secret',
  persistentvolumeclaims: 'PersistentVolumeClaim',
};

interface Plan {
  namespaces?: string[];
  /** Collections, as the ends of their paths. */
  forbidden?: string[];
}

/** What is said to be left in a member where nothing is that may be seen. */
async function remains({ namespaces = ['shop'], forbidden = [] }: Plan): Promise<Remains> {
  const request = ({ method = 'GET', path }: KubeRequest): Promise<unknown> => {
    if (forbidden.some((end) => path.endsWith(`/${end}`)))
      return Promise.reject(new ApiError({ cluster: 'east', method, path, code: 403, status: { kind: 'Status' } }));
    const kind = KINDS[path.split('/').at(-1) ?? ''] ?? '';
    return Promise.resolve({ kind: `${kind}List`, metadata: { resourceVersion: '9' }, items: [] });
  };
  const options = {
    client: { cluster: 'east', request } as unknown as KubeClient,
    hostId: 'h1',
    namespaces: () => namespaces,
    isOthersNode: () => false,
    isOthersWork: () => false,
    isShared: () => false,
    isInUse: () => false,
  };
  return await readMemberRemains(options, AbortSignal.timeout(5_000));
}

describe('what is left in a member', () => {
  it('is nothing where all may be looked at', async () => {
    expect(await remains({})).toEqual({ pods: [], copies: [], others: [], unseen: [] });
  });

  it('may be copies where these may not be listed, which are named', async () => {
    const forbidden = ['shop/secrets', 'data/secrets', 'data/configmaps'];
    expect(await remains({ namespaces: ['shop', 'data', 'empty'], forbidden })).toMatchObject({
      copies: [],
      unseen: [
        'Secrets of namespace shop (which may not be listed)',
        'ConfigMaps of namespace data (which may not be listed)',
        'Secrets of namespace data (which may not be listed)',
      ],
    });
  });

  it('is no copy in a namespace of the cluster itself, whoever lends that', async () => {
    const forbidden = ['kube-public/secrets', 'kube-public/configmaps'];
    expect((await remains({ namespaces: ['kube-public'], forbidden })).unseen).toEqual([]);
  });

  it('is no budget, Service or claim where nobody gave the right to make any', async () => {
    const forbidden = ['poddisruptionbudgets', 'services', 'endpointslices', 'persistentvolumeclaims'];
    expect(await remains({ forbidden })).toEqual({ pods: [], copies: [], others: [], unseen: [] });
  });

  it('is not known while pods may not be listed', async () => {
    await expect(remains({ forbidden: ['pods'] })).rejects.toThrow(/GET \/api\/v1\/pods in cluster east: 403/);
  });
});
