import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Pod, Secret } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { manifestsOn } from '../fixtures/documented.ts';
import {
  condition,
  describeWrite,
  eventsOf,
  type Fields,
  getPod,
  isReady,
  kubectl,
  newNamespace,
  ON_VIRTUAL_NODE,
  pod,
  podsOf,
  read,
  readPod,
  untilPod,
  untilRunning,
  writesOf,
} from '../fixtures/live-pods.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const APPLIED = 'spillway.dev/applied-overrides';
const NS = 'shop';
let topology: Topology;
let host: Cluster;
let east: Cluster;
let west: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    members: [
      { name: 'east', kwok: { nodes: 1 }, options: { spec: { region: 'eu-1', labels: { tier: 'gold' } } } },
      { name: 'west', kwok: { nodes: 1 }, options: { spec: { region: 'us-1' } } },
    ],
  });
  ({ host } = topology);
  [east, west] = [topology.member('east').cluster, topology.member('west').cluster];
  await newNamespace(host, NS);
});

afterAll(async () => {
  const log = topology === undefined ? '' : readFileSync(topology.spillway.process.spec.logFile, 'utf8');
  const errors = log.split('\n').filter((line) => line.includes('"level":"error"'));
  await topology?.close();
  expect(errors).toEqual([]);
});

function policy(kind: 'OverridePolicy' | 'ClusterOverridePolicy', name: string, spec: Fields): Fields {
  const metadata = kind === 'OverridePolicy' ? { name, namespace: NS } : { name };
  return { apiVersion: 'spillway.dev/v1alpha1', kind, metadata, spec };
}
const rules = (...overriders: Fields[]) => ({ overrideRules: overriders.map((one) => ({ overriders: one })) });
const labelled = (value: string) => ({ labelsOverrider: [{ operator: 'add', value: { seen: value } }] });

/** The manifests on the page for users, and those of one kind. */
const EXAMPLES = manifestsOn('concepts/overrides.md');
const examples = (...kinds: string[]) => EXAMPLES.filter(({ kind }) => kinds.includes(kind ?? ''));

function on(member: string, more: Fields = {}): Fields {
  const nodeSelector = { 'kubernetes.io/hostname': member };
  return {
    ...ON_VIRTUAL_NODE,
    nodeSelector,
    containers: [{ name: 'main', image: 'registry.example/app:v1' }],
    ...more,
  };
}
function deployment(name: string, member: string, replicas: number, more: Fields = {}): Fields {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: NS, labels: { team: name } },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: on(member, more) },
    },
  };
}
async function ready(name: string, replicas: number): Promise<Pod[]> {
  let seen: Pod[] = [];
  return await until(
    `${replicas} pods of ${name} are ready`,
    async () => {
      seen = await podsOf(host, NS, `app=${name}`);
      return seen.length === replicas && seen.every(isReady) ? seen : undefined;
    },
    { timeoutMs: 60_000 },
  ).catch((error: unknown) => {
    const states = seen.map(({ metadata, spec, status }) => JSON.stringify([metadata.name, spec.nodeName, status]));
    throw new Error([(error as Error).message, ...states].join('\n'), { cause: error });
  });
}
const images = ({ spec }: Pod) => spec.containers.map(({ image }) => image);
const configMap = async (cluster: Cluster, name: string) =>
  await read<KubeObject & { data?: Record<string, string> }>(cluster, `/api/v1/namespaces/${NS}/configmaps/${name}`);

describe('one Deployment in two members with registries of their own', () => {
  beforeAll(async () => {
    await host.apply([
      policy('ClusterOverridePolicy', 'registries', {
        resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
        overrideRules: [
          {
            targetCluster: {
              fieldSelector: { matchExpressions: [{ key: 'region', operator: 'In', values: ['eu-1'] }] },
            },
            overriders: { imageOverrider: [{ component: 'Registry', operator: 'replace', value: 'eu.example' }] },
          },
          {
            targetCluster: { exclude: ['east'] },
            overriders: {
              imageOverrider: [{ component: 'Registry', operator: 'replace', value: 'us.example:5000/mirror' }],
            },
          },
          { overriders: { imagePullSecretsOverrider: [{ operator: 'add', value: ['pull-${member.name}'] }] } },
        ],
      }),
      policy('OverridePolicy', 'regional', {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'settings' }],
        ...rules({
          fieldOverrider: [
            {
              fieldPath: '/data/app.yaml',
              yaml: [{ subPath: '/region', operator: 'replace', value: '${member.region}' }],
            },
          ],
        }),
      }),
      ...['east', 'west'].map((name) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `pull-${name}`, namespace: NS },
        type: 'kubernetes.io/dockerconfigjson',
        stringData: { '.dockerconfigjson': '{"auths":{}}' },
      })),
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'settings', namespace: NS },
        data: { 'app.yaml': '# ours\nregion: none\n' },
      },
    ]);
    const env = {
      containers: [
        { name: 'main', image: 'registry.example/app:v1', envFrom: [{ configMapRef: { name: 'settings' } }] },
      ],
    };
    await host.apply([deployment('web-east', 'east', 2, env), deployment('web-west', 'west', 1, env)]);
    await Promise.all([ready('web-east', 2), ready('web-west', 1)]);
  });

  it('says that nobody may read the pull secrets, and copies them once somebody gives the right', async () => {
    const secretsIn = async (member: Cluster) => {
      const { items } = (await member.api.call('GET', `/api/v1/namespaces/${NS}/secrets`)) as { items: Secret[] };
      return items.map(({ metadata }) => metadata.name);
    };
    const [web] = await podsOf(host, NS, 'app=web-east');
    await until('the Event', async () => {
      const told = await eventsOf(host, NS, web?.metadata.name ?? '');
      return told.some(({ reason }) => reason === 'FailedToReadOptionalSecret');
    });
    for (const member of [east, west]) expect(await secretsIn(member)).toEqual([]);
    await host.apply(examples('Role', 'RoleBinding'));
    for (const member of [east, west]) {
      await until(`the Secret is in ${member.name}`, async () => (await secretsIn(member)).length > 0, {
        timeoutMs: 60_000,
      });
      expect(await secretsIn(member)).toEqual([`pull-${member.name}`]);
    }
  });

  it('runs other images in each, with the pull secret of each, and leaves the host pods as they are', async () => {
    for (const [member, image, count] of [
      [east, 'eu.example/app:v1', 2],
      [west, 'us.example:5000/mirror/app:v1', 1],
    ] as const) {
      const pods = await podsOf(member, NS);
      expect(pods.map(images)).toEqual(Array.from({ length: count }, () => [image]));
      expect(pods.map(({ spec }) => spec.imagePullSecrets)).toEqual(pods.map(() => [{ name: `pull-${member.name}` }]));
    }
    for (const one of await podsOf(host, NS)) {
      expect(images(one)).toEqual(['registry.example/app:v1']);
      expect(one.spec.imagePullSecrets).toBeUndefined();
    }
  });

  it('says on member pod and host pod what was applied', async () => {
    const [hostPod] = await podsOf(host, NS, 'app=web-east');
    const memberPod = await getPod(east, NS, hostPod?.metadata.name ?? '');
    expect(JSON.parse(memberPod.metadata.annotations?.[APPLIED] ?? '')).toMatchObject({
      rules: [
        { policy: 'ClusterOverridePolicy registries', rule: 0, changes: ['imageOverrider'] },
        {
          policy: 'ClusterOverridePolicy registries',
          rule: 2,
          overriders: { imagePullSecretsOverrider: [{ value: ['pull-east'] }] },
        },
      ],
    });
    expect(condition(hostPod as Pod, 'spillway.dev/Mirrored')?.message).toMatch(
      / overrides=ClusterOverridePolicy\/registries$/,
    );
  });

  it('renders ConfigMaps for each', async () => {
    expect((await configMap(east, 'settings'))?.data).toEqual({ 'app.yaml': '# ours\nregion: eu-1\n' });
    expect((await configMap(west, 'settings'))?.data).toEqual({ 'app.yaml': '# ours\nregion: us-1\n' });
    expect((await configMap(host, 'settings'))?.data).toEqual({ 'app.yaml': '# ours\nregion: none\n' });
  });

  it('follows an edit in ConfigMaps at once, and in pods only with the next ones', async () => {
    const before = await podsOf(east, NS, 'app=web-east');
    await host.apply([
      policy('OverridePolicy', 'regional', {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'settings' }],
        ...rules({ plaintext: [{ path: '/data/member', operator: 'add', value: '${member.name}' }] }),
      }),
      policy('ClusterOverridePolicy', 'registries', {
        resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
        ...rules({ imageOverrider: [{ component: 'Registry', operator: 'replace', value: '${member.name}.example' }] }),
      }),
    ]);
    // What kubectl takes is not what is measured.
    const since = Date.now();
    await until('the ConfigMap of east', async () => (await configMap(east, 'settings'))?.data?.['member'] === 'east');
    expect(Date.now() - since).toBeLessThan(15_000);
    expect((await configMap(east, 'settings'))?.data).toEqual({ 'app.yaml': '# ours\nregion: none\n', member: 'east' });
    await kubectl(host, ['scale', '-n', NS, 'deployment/web-east', '--replicas=3']);
    await ready('web-east', 3);
    const after = await podsOf(east, NS, 'app=web-east');
    const old = after.filter(({ metadata }) => before.some((one) => one.metadata.uid === metadata.uid));
    expect(old.map(images)).toEqual([['eu.example/app:v1'], ['eu.example/app:v1']]);
    expect(old.map(({ metadata }) => metadata.generation)).toEqual(before.map(({ metadata }) => metadata.generation));
    const [fresh] = after.filter((one) => !old.includes(one));
    expect(fresh === undefined ? [] : images(fresh)).toEqual(['east.example/app:v1']);
  });

  it('keeps the rules of a running pod when its host pod changes', async () => {
    const [hostPod] = await podsOf(host, NS, 'app=web-west');
    const name = hostPod?.metadata.name ?? '';
    await kubectl(host, ['label', '-n', NS, 'pod', name, 'extra=1']);
    const changed = await untilPod(
      west,
      NS,
      name,
      'has the label',
      ({ metadata }) => metadata.labels?.['extra'] === '1',
    );
    expect(images(changed)).toEqual(['us.example:5000/mirror/app:v1']);
    await kubectl(host, ['set', 'image', '-n', NS, `pod/${name}`, 'main=registry.example/app:v2']);
    const updated = await untilPod(
      west,
      NS,
      name,
      'has the new tag',
      (one) => images(one)[0]?.endsWith(':v2') === true,
    );
    expect(images(updated)).toEqual(['us.example:5000/mirror/app:v2']);
  });
});

it('follows a label of the MemberCluster as it follows an edit of the policy', async () => {
  const labelled = async (change: string) => await kubectl(host, ['label', 'membercluster', 'west', change]);
  const value = async () => (await configMap(west, 'by-tier'))?.data?.['tier'];
  await host.apply([
    policy('OverridePolicy', 'tier', {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'by-tier' }],
      overrideRules: [
        {
          targetCluster: { labelSelector: { matchLabels: { tier: 'silver' } } },
          overriders: { plaintext: [{ path: '/data/tier', operator: 'replace', value: "${member.labels['tier']}" }] },
        },
      ],
    }),
    policy('OverridePolicy', 'tier-of-pod', {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', name: 'tiered' }],
      overrideRules: [
        {
          targetCluster: { labelSelector: { matchLabels: { tier: 'silver' } } },
          overriders: { labelsOverrider: [{ operator: 'add', value: { tier: 'silver' } }] },
        },
      ],
      applyTo: 'RunningPods',
    }),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'by-tier', namespace: NS }, data: { tier: 'none' } },
    pod('tiered', NS, on('west', { volumes: [{ name: 'settings', configMap: { name: 'by-tier' } }] })),
  ]);
  const { metadata } = await untilRunning(west, NS, 'tiered');
  expect(await value()).toBe('none');
  await labelled('tier=silver');
  const since = Date.now();
  await until('the ConfigMap follows', async () => (await value()) === 'silver');
  expect(Date.now() - since).toBeLessThan(15_000);
  const follows = await untilPod(west, NS, 'tiered', 'follows', (one) => one.metadata.labels?.['tier'] === 'silver');
  expect(follows.metadata.uid).toBe(metadata.uid);
  await labelled('tier-');
  await until('the ConfigMap is as before', async () => (await value()) === 'none');
  await untilPod(west, NS, 'tiered', 'is as before', (one) => one.metadata.labels?.['tier'] === undefined);
});

it('says on a policy whether it is in use, and which members that it names are not there', async () => {
  const rule = (clusterNames: string[]) => ({
    targetCluster: { clusterNames },
    overriders: { labelsOverrider: [{ operator: 'add', value: { typo: 'x' } }] },
  });
  await host.apply([policy('OverridePolicy', 'typo', { overrideRules: [rule(['east']), rule(['esat'])] })]);
  const row = async (): Promise<string> => await kubectl(host, ['get', 'overridepolicy', 'typo', '-n', NS]);
  await until('it is said', async () => /^typo +True +False /m.test(await row()));
  expect((await row()).split('\n')[0]).toMatch(/^NAME +ACCEPTED +CONSISTENT /);
  const words = ['get', 'overridepolicy', 'typo', '-n', NS, '-o', 'jsonpath={.status.conditions[1].message}'];
  expect(await kubectl(host, words)).toBe('spec.overrideRules[1].targetCluster: there is no member esat');
  await host.apply([policy('OverridePolicy', 'typo', { overrideRules: [rule(['east'])] })]);
  await until('it is put right', async () => /^typo +True +True /m.test(await row()));
  await kubectl(host, ['delete', 'overridepolicy', 'typo', '-n', NS]);
});

it('says on a policy which kinds that it names are not there, or are never changed', async () => {
  const selectors = [
    { apiVersion: 'apps/v1', kind: 'Deploymnet', name: 'web' },
    { apiVersion: 'example.com/v1', kind: 'Robot', name: 'r2' },
  ];
  await host.apply([
    policy('ClusterOverridePolicy', 'kinds', { resourceSelectors: selectors, ...rules(labelled('x')) }),
  ]);
  const words = ['get', 'clusteroverridepolicy', 'kinds', '-o', 'jsonpath={.status.conditions[1].message}'];
  const said = await until('it is said', async () => (await kubectl(host, words)) || undefined);
  expect(said).toMatch(/Selectors\[0\]\.kind: nothing is chosen by Deploymnet \(apps\/v1\); .* \(batch\/v1\); /);
  expect(said).toMatch(/Selectors\[1\]\.kind: the host has no kind Robot \(example\.com\/v1\), .* until it has$/);
  await kubectl(host, ['delete', 'clusteroverridepolicy', 'kinds']);
});

it('says on a policy which containers that it names no pod has, until one has', async () => {
  const env = (containerName: string) => ({
    overriders: { envOverrider: [{ containerName, operator: 'add', value: [{ name: 'REGION', value: 'eu' }] }] },
  });
  const named = (...names: string[]) =>
    policy('OverridePolicy', 'names', {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'named' }],
      overrideRules: names.map(env),
    });
  await host.apply([named('main', 'mian'), deployment('named', 'east', 1)]);
  await ready('named', 1);
  const row = async (): Promise<string> => await kubectl(host, ['get', 'overridepolicy', 'names', '-n', NS]);
  await until('it is said', async () => /^names +True +False /m.test(await row()));
  const words = ['get', 'overridepolicy', 'names', '-n', NS, '-o', 'jsonpath={.status.conditions[1].message}'];
  const said =
    'spec.overrideRules[1].overriders.envOverrider[0].containerName: no pod that it is for has a container "mian", there are main';
  expect(await kubectl(host, words)).toBe(said);
  const { code, stdout } = await kubectlSpillway(host, ['explain-policy', 'overridepolicy/names', '-n', NS]);
  expect(code).toBe(5);
  expect(stdout).toContain(`Not consistent:\n  ${said}\n`);
  await host.apply([named('main')]);
  await until('it is put right', async () => /^names +True +True /m.test(await row()));
  await kubectl(host, ['delete', 'overridepolicy/names', 'deployment/named', '-n', NS]);
});

it('chooses by labels of the workload', async () => {
  await host.apply([
    policy('OverridePolicy', 'by-team', {
      resourceSelectors: [
        { apiVersion: 'apps/v1', kind: 'Deployment', labelSelector: { matchLabels: { team: 'labelled' } } },
      ],
      ...rules(labelled('by-team')),
    }),
    deployment('labelled', 'west', 1),
    deployment('plain', 'west', 1),
  ]);
  await Promise.all([ready('labelled', 1), ready('plain', 1)]);
  expect((await podsOf(west, NS, 'app=labelled')).map(({ metadata }) => metadata.labels?.['seen'])).toEqual([
    'by-team',
  ]);
  expect((await podsOf(west, NS, 'app=plain')).map(({ metadata }) => metadata.labels?.['seen'])).toEqual([undefined]);
});

it('brings a policy for running pods to them, without replacing them', async () => {
  await host.apply([pod('steady', NS, on('west'))]);
  const { metadata } = await untilRunning(west, NS, 'steady');
  await host.apply([
    policy('OverridePolicy', 'live', {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', name: 'steady' }],
      ...rules(labelled('one'), { imageOverrider: [{ component: 'Tag', operator: 'replace', value: 'v9' }] }),
      applyTo: 'RunningPods',
    }),
  ]);
  const changed = await untilPod(west, NS, 'steady', 'is changed', (one) => one.metadata.labels?.['seen'] === 'one');
  expect(changed.metadata.uid).toBe(metadata.uid);
  expect(images(changed)).toEqual(['registry.example/app:v9']);
  await untilPod(
    host,
    NS,
    'steady',
    'tells of the policy',
    (one) => condition(one, 'spillway.dev/Mirrored')?.message?.endsWith('overrides=OverridePolicy/shop/live') === true,
  );
  await host.kubectl(['delete', 'overridepolicy', '-n', NS, 'live']);
  const back = await untilPod(west, NS, 'steady', 'is as before', (one) => one.metadata.labels?.['seen'] === undefined);
  expect(back.metadata.uid).toBe(metadata.uid);
  expect(images(back)).toEqual(['registry.example/app:v1']);
  expect(back.metadata.annotations?.[APPLIED]).toBeUndefined();
});

it('blocks only the pod that a bad patch is for, says why, and starts it when the policy is corrected', async () => {
  const selected = { resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', name: 'held' }] };
  await host.apply([
    policy('OverridePolicy', 'typo', {
      ...selected,
      ...rules({ plaintext: [{ path: '/spec/containers/7/image', operator: 'replace', value: 'x' }] }),
    }),
    pod('held', NS, on('east')),
    pod('free', NS, on('east')),
  ]);
  await untilRunning(host, NS, 'free');
  const held = await untilPod(host, NS, 'held', 'is held', ({ status }) => status?.reason === 'OverrideRefused');
  for (const word of ['OverridePolicy shop/typo', '/spec/containers/7', 'cluster "east"'])
    expect(held.status?.message).toContain(word);
  const events = await until('the Event', async () => {
    const { items } = (await host.api.call(
      'GET',
      `/api/v1/namespaces/${NS}/events?fieldSelector=involvedObject.name=held,reason=OverrideRefused`,
    )) as { items: { message: string; count: number }[] };
    return items.length > 0 ? items : undefined;
  });
  expect(events).toHaveLength(1);
  expect(events[0]?.message).toContain('OverridePolicy shop/typo, overrideRules[0].plaintext[0] at /spec/containers/7');
  await host.apply([
    policy('OverridePolicy', 'typo', {
      ...selected,
      ...rules({ plaintext: [{ path: '/spec/containers/0/image', operator: 'replace', value: 'fixed:v1' }] }),
    }),
  ]);
  await untilRunning(host, NS, 'held');
  expect(images(await getPod(east, NS, 'held'))).toEqual(['fixed:v1']);
});

it('takes a restriction away for an administrator of the host only', async () => {
  const bold = {
    resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', name: 'careful' }],
    ...rules({ plaintext: [{ path: '/spec/securityContext/runAsNonRoot', operator: 'remove' }] }),
  };
  await host.apply([
    policy('OverridePolicy', 'bold', bold),
    pod('careful', NS, on('east', { securityContext: { runAsNonRoot: true, runAsUser: 1000 } })),
  ]);
  const held = await untilPod(host, NS, 'careful', 'is held', ({ status }) => status?.reason === 'OverrideRefused');
  for (const word of ['OverridePolicy shop/bold', 'runAsNonRoot']) expect(held.status?.message).toContain(word);
  expect(await readPod(east, NS, 'careful')).toBeUndefined();
  await host.apply([policy('ClusterOverridePolicy', 'bold', bold)]);
  await kubectl(host, ['delete', 'overridepolicy', '-n', NS, 'bold']);
  await untilRunning(host, NS, 'careful');
  expect((await getPod(east, NS, 'careful')).spec.securityContext).toEqual({ runAsUser: 1000 });
  await kubectl(host, ['delete', 'clusteroverridepolicy', 'bold', '--wait=false']);
});

it('does what the page says, with the manifests of the page', async () => {
  const settings = { 'app.yaml': '# ours\ndatabase:\n  host: none\n' };
  await host.apply([
    ...examples('ClusterOverridePolicy', 'OverridePolicy'),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web-settings', namespace: NS }, data: settings },
    deployment('web', 'east', 1, {
      containers: [
        { name: 'app', image: 'registry.example/web:v1', envFrom: [{ configMapRef: { name: 'web-settings' } }] },
      ],
    }),
  ]);
  await ready('web', 1);
  const [{ spec }] = (await podsOf(east, NS, 'app=web')) as [Pod];
  // The policy of this test is as close a match as that of the page, and comes later by its name.
  expect(spec.containers).toMatchObject([
    {
      image: 'east.example/web:v1',
      env: expect.arrayContaining([{ name: 'CLUSTER', value: 'east' }]) as unknown,
      resources: { requests: { memory: '2Gi' }, limits: { memory: '2Gi' } },
    },
  ]);
  expect(spec.imagePullSecrets).toEqual([{ name: 'pull-east' }]);
  expect((await configMap(east, 'web-settings'))?.data).toEqual({
    'app.yaml': '# ours\ndatabase:\n  host: db.eu-1.internal\n',
  });
  await kubectl(host, ['delete', 'clusteroverridepolicy', 'registries']);
  await kubectl(host, ['rollout', 'restart', '-n', NS, 'deployment/web']);
  await kubectl(host, ['rollout', 'status', '-n', NS, 'deployment/web', '--timeout=60s']);
  const [last] = await ready('web', 1);
  expect(images(await getPod(east, NS, last?.metadata.name ?? ''))).toEqual(['mirror.eu-1.example:5000/web:v1']);
});

it('writes nothing for healthy pods and copies when the program starts again', async () => {
  const { spillway } = topology;
  await spillway.process.stop();
  const since = Date.now();
  spillway.process.restart();
  await waitReady(spillway);
  // A pod that is made now has to be through all queues before it runs: so has everything else by then.
  await host.apply([pod('after', NS, on('east'))]);
  await untilRunning(host, NS, 'after');
  for (const cluster of [host, east, west]) {
    const writes = writesOf(cluster, since).filter(
      ({ objectRef }) =>
        ['pods', 'configmaps', 'secrets'].includes(objectRef?.resource ?? '') &&
        objectRef?.namespace === NS &&
        objectRef.name !== 'after',
    );
    expect(writes.map(describeWrite)).toEqual([]);
  }
});
