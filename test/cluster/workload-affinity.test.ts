import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { until } from '../../hack/until.ts';
import { MEMBER_LABEL } from '../../src/api/marks.ts';
import { type Fields, getPod, kubectl, podsOf } from '../fixtures/live-pods.ts';
import {
  burstNamespace,
  deployment,
  LOCAL_PREFIX,
  schedulingMessage,
  settled,
  whereAre,
} from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** What docs/guides/from-karmada.md has in the place of `workloadAffinity`: Kubernetes' own affinity between pods, by members and by regions. */
let topology: Topology;
let host: Cluster;
const SHOP = 'shop';
const REGION = 'topology.kubernetes.io/region';

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: [
      { name: 'east', kwok: { nodes: 2 }, options: { spec: { region: 'eu' } } },
      { name: 'west', kwok: { nodes: 2 }, options: { spec: { region: 'us' } } },
    ],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 2, prefix: LOCAL_PREFIX });
  await burstNamespace(host, SHOP);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});
afterEach(async () => {
  await kubectl(host, ['delete', 'deployment', '--all', '-n', SHOP, '--wait=false']);
  await until('no pods are left', async () => (await podsOf(host, SHOP)).length === 0);
});

/** Near pods of that app, or away from them, by the label of nodes. */
function by(topologyKey: string, kind: 'podAffinity' | 'podAntiAffinity', app: string): Fields {
  const terms = [{ topologyKey, labelSelector: { matchLabels: { app } } }];
  return { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: terms } } };
}

const onHost: Fields = { nodeSelector: { type: 'kwok' } };
const onMembers: Fields = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: MEMBER_LABEL, operator: 'Exists' }] }],
    },
  },
};

async function apply(name: string, replicas: number, more: Fields): Promise<void> {
  await host.apply([deployment(SHOP, name, replicas, '100m', {}, more)]);
}

async function placesOf(name: string, count: number): Promise<Record<string, number>> {
  return await until(`${String(count)} pods of ${name} run`, async () => {
    const pods = await podsOf(host, SHOP, `app=${name}`);
    return pods.length === count && pods.every(({ status }) => status?.phase === 'Running')
      ? whereAre(pods)
      : undefined;
  });
}

describe('a required affinity by member', () => {
  test('brings all pods into one member, and others to them, though the host has room', async () => {
    await apply('web', 4, by(MEMBER_LABEL, 'podAffinity', 'web'));
    const places = Object.keys(await placesOf('web', 4));
    expect([['east'], ['west']]).toContainEqual(places);
    const [member = ''] = places;
    await apply('cache', 2, by(MEMBER_LABEL, 'podAffinity', 'web'));
    expect(await placesOf('cache', 2)).toEqual({ [member]: 2 });
    // The nodes of the member know nothing of members.
    const [one] = await podsOf(host, SHOP, 'app=cache');
    const copy = await getPod(topology.member(member).cluster, SHOP, one?.metadata.name ?? '');
    expect(copy.spec).not.toHaveProperty('affinity');
  });

  test('never lets a pod run on the host, nor anywhere for the sake of pods that run there', async () => {
    await apply('home', 1, onHost);
    await settled(host, SHOP, 'home', { local: 1 });
    await apply('near', 1, by(MEMBER_LABEL, 'podAffinity', 'home'));
    expect(await schedulingMessage(host, SHOP, 'near')).toMatch(/didn't match pod affinity rules/);
  });
});

describe('a required anti-affinity by member', () => {
  test('lets one pod into each member, and any number of them run on the host', async () => {
    const apart = by(MEMBER_LABEL, 'podAntiAffinity', 'alone');
    const { podAntiAffinity } = apart['affinity'] as { podAntiAffinity: object };
    await apply('alone', 3, { affinity: { ...onMembers, podAntiAffinity } });
    const pods = await until('two of three are bound', async () => {
      const found = await podsOf(host, SHOP, 'app=alone');
      return found.length === 3 && whereAre(found)['waiting'] === 1 ? found : undefined;
    });
    expect(whereAre(pods)).toEqual({ east: 1, west: 1, waiting: 1 });
    expect(await schedulingMessage(host, SHOP, 'alone')).toMatch(/didn't match pod anti-affinity rules/);
    await apply('beside', 3, by(MEMBER_LABEL, 'podAntiAffinity', 'alone'));
    expect(await placesOf('beside', 3)).toEqual({ local: 3 });
  });
});

describe('an affinity by region', () => {
  test('includes the host once its nodes have that label', async () => {
    await apply('home', 1, onHost);
    await settled(host, SHOP, 'home', { local: 1 });
    await apply('near', 2, by(REGION, 'podAffinity', 'home'));
    expect(await schedulingMessage(host, SHOP, 'near')).toMatch(/didn't match pod affinity rules/);
    await kubectl(host, ['label', 'node', '-l', 'type=kwok', `${REGION}=eu`]);
    const near = await placesOf('near', 2);
    expect(Object.keys(near).filter((place) => place !== 'local' && place !== 'east')).toEqual([]);
    await apply('away', 2, by(REGION, 'podAntiAffinity', 'home'));
    expect(await placesOf('away', 2)).toEqual({ west: 2 });
  });
});
