import { describe, expect, it } from 'vitest';
import { CliError } from '../../src/cli/cli-error.ts';
import { manifestObjects } from '../../src/cli/manifests.ts';
import {
  checkNobodyExchanges,
  isUpstreamKind,
  kindsOfOthers,
  kindsThatStay,
} from '../../src/cli/multi-cluster-kinds.ts';
import { MissingRight } from '../../src/cli/viewer.ts';

const KINDS = manifestObjects('multi-cluster/crds.yaml');
const NAMES = ['serviceexports.multicluster.x-k8s.io', 'serviceimports.multicluster.x-k8s.io'];

/** A cluster in which the kinds were applied by so and so; undefined: it has none. */
const clusterWith = (manager: string | undefined, operation = 'Apply') => ({
  tryGet: async (_resource: unknown, { name }: { name: string }) =>
    await Promise.resolve(
      manager === undefined ? undefined : ({ metadata: { name, managedFields: [{ manager, operation }] } } as never),
    ),
});

describe('kinds that are not of Spillway alone', () => {
  it('are those of the Multi-Cluster Services API, and none of ours', () => {
    expect(KINDS.filter(isUpstreamKind).map(({ metadata }) => metadata.name)).toEqual(NAMES);
    expect(manifestObjects('crds/spillway.dev_memberclusters.yaml').filter(isUpstreamKind)).toEqual([]);
  });

  it.each<[string, Parameters<typeof clusterWith>, number, number]>([
    ['that nobody brought are to be brought', [undefined], 0, 0],
    ['that this program brought are kept up to date', ['kubectl-spillway'], 0, 2],
    ['that somebody else applied are left as they are', ['kubectl'], 2, 0],
    ['that somebody else made are left as they are', ['kubectl-spillway', 'Update'], 2, 0],
  ])('%s', async (_what, [manager, operation], others, ours) => {
    const cluster = clusterWith(manager, operation);
    expect(await kindsOfOthers(cluster, KINDS)).toHaveLength(others);
    expect(await kindsThatStay(cluster)).toHaveLength(ours);
  });

  it('which the viewer may not look at are applied, and the API server says who may', async () => {
    const cluster = { tryGet: async () => await Promise.resolve(new MissingRight('get')) };
    expect(await kindsOfOthers(cluster, KINDS)).toEqual([]);
  });
});

describe('rights to exchange Services', () => {
  const hostWith = (spec: object, conditions: object[] = []) => ({
    list: async () =>
      await Promise.resolve([
        {
          metadata: { name: 'east' },
          spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } }, ...spec },
          status: { conditions },
        } as never,
      ]),
  });
  const exchanged = (reason: string): object => ({
    type: 'ServicesExchanged',
    status: reason === 'Exchanged' ? 'True' : 'False',
    reason,
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  });

  it.each<[string, object, object[]]>([
    ['takes part', { services: { multiCluster: 'Exchange' } }, []],
    ['did, and what stands there was not taken away yet', {}, [exchanged('Exchanged')]],
  ])('are not taken away while a member %s', async (_what, spec, conditions) => {
    const refused = await checkNobodyExchanges(hostWith(spec, conditions)).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(CliError);
    expect(refused).toMatchObject({ reason: expect.stringContaining('east takes part') });
  });

  it.each<[string, object[]]>([
    ['never did', []],
    ['does no more', [exchanged('NotExchanged')]],
  ])('are where one %s', async (_what, conditions) => {
    await expect(checkNobodyExchanges(hostWith({}, conditions))).resolves.toBeUndefined();
  });
});
