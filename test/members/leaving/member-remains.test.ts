import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { KubeRequest } from '../../../src/kube/request.ts';
import { readMemberRemains } from '../../../src/members/leaving/member-remains.ts';
import type { Remains } from '../../../src/members/leaving/remains.ts';
import { KINDS_IN_MEMBERS } from '../../fixtures/kinds-in-members.ts';

interface Plan {
  namespaces?: string[];
  /** Collections, as the ends of their paths. */
  forbidden?: string[];
  /** A Service, a Secret and a ServiceImport are there that the MemberCluster of that name wrote last. */
  writer?: string;
  /** Another MemberCluster `twin` stands for the same cluster, or may. */
  shared?: 'known' | 'may be';
  /** Budgets, Services and claims were made there. */
  held?: boolean;
}

/** What is said to be left in a member. */
async function remains({
  namespaces = ['shop'],
  forbidden = [],
  writer,
  shared,
  held = false,
}: Plan): Promise<Remains> {
  const itemsOf = (kind: string): object[] => {
    if (writer === undefined || !['ServiceImport', 'Service', 'Secret'].includes(kind)) return [];
    const labels = { 'spillway.dev/host': 'h1', 'spillway.dev/member': writer };
    const spec = { type: 'ClusterSetIP', ports: [] };
    const metadata = { namespace: 'shop', name: 'web', uid: 'u', resourceVersion: '1', labels };
    return [kind === 'ServiceImport' ? { metadata, spec } : { metadata }];
  };
  const request = ({ method = 'GET', path }: KubeRequest): Promise<unknown> => {
    if (forbidden.some((end) => path.endsWith(`/${end}`)))
      return Promise.reject(new ApiError({ cluster: 'east', method, path, code: 403, status: { kind: 'Status' } }));
    const kind = KINDS_IN_MEMBERS[path.split('/').at(-1) ?? ''] ?? '';
    return Promise.resolve({ kind: `${kind}List`, metadata: { resourceVersion: '9' }, items: itemsOf(kind) });
  };
  const options = {
    client: { cluster: 'east', request } as unknown as KubeClient,
    hostId: 'h1',
    namespaces: () => namespaces,
    isOthersNode: () => false,
    isOthersWork: (member: string) => shared !== undefined && member === 'twin',
    isShared: () => shared !== undefined,
    isKnownToBeShared: () => shared === 'known',
    mayHold: () => ({ budgets: held, services: held, imports: held, claims: held }),
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

  it('may be budgets, Services and claims that were made there, where these may not be listed any more', async () => {
    const forbidden = [
      'poddisruptionbudgets',
      'serviceimports',
      'services',
      'endpointslices',
      'persistentvolumeclaims',
    ];
    const { unseen } = await remains({ forbidden, held: true });
    expect(unseen).toEqual([
      'PodDisruptionBudgets (which may not be listed)',
      'ServiceImports (which may not be listed)',
      'Services of namespace shop (which may not be listed)',
      'EndpointSlices of namespace shop (which may not be listed)',
      'PersistentVolumeClaims of namespace shop (which may not be listed)',
    ]);
  });

  it('is no budget, Service or claim where nobody gave the right to make any', async () => {
    const forbidden = ['poddisruptionbudgets', 'services', 'endpointslices', 'persistentvolumeclaims'];
    expect(await remains({ forbidden })).toEqual({ pods: [], copies: [], others: [], unseen: [] });
  });

  it.each<[string, Plan, Partial<Remains>]>([
    ['ours, alone', { writer: 'east' }, { copies: ['Service shop/web', 'Secret shop/web'], others: [] }],
    ['of one that is gone', { writer: 'twin' }, { copies: ['Service shop/web', 'Secret shop/web'], others: [] }],
    [
      'ours, where another one may be in the same cluster',
      { writer: 'east', shared: 'may be' },
      { copies: ['Secret shop/web'], others: ['Service shop/web'] },
    ],
    [
      'of another one that may be in the same cluster',
      { writer: 'twin', shared: 'may be' },
      { copies: [], others: ['Service shop/web', 'Secret shop/web'] },
    ],
    ['of another one that is in the same cluster', { writer: 'twin', shared: 'known' }, { copies: [], others: [] }],
  ])('is a copy, or is named, unless another MemberCluster is known to see to it: %s', async (_, plan, left) => {
    expect(await remains(plan)).toMatchObject(left);
  });

  it('is a ServiceImport, unless another MemberCluster is known to see to it', async () => {
    const labels = ['ServiceImport shop/web', 'Service shop/web', 'Secret shop/web'];
    expect((await remains({ writer: 'east', held: true })).copies).toEqual(labels);
    expect(await remains({ writer: 'twin', held: true, shared: 'known' })).toMatchObject({ copies: [], others: [] });
    const { others } = await remains({ writer: 'east', held: true, shared: 'may be' });
    expect(others).toEqual(['ServiceImport shop/web', 'Service shop/web']);
  });

  it('is not known while pods may not be listed', async () => {
    await expect(remains({ forbidden: ['pods'] })).rejects.toThrow(/GET \/api\/v1\/pods in cluster east: 403/);
  });
});
