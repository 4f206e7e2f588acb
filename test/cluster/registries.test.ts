import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { machineNetwork } from '../../hack/machine-network.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { HOST_LABEL } from '../../src/api/marks.ts';
import type { Pod, Secret } from '../../src/kube/core-v1.ts';
import { dockerConfig, type ImageRegistry, imageWithOrigin, startImageRegistry } from '../fixtures/image-registry.ts';
import {
  eventsOf,
  type Fields,
  getPod,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  podSpec,
  podsOf,
  read,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, so nothing is pulled: ${kubelets.reason}`);

const NS = 'shop';
const IMAGE = 'registry.example/team/app:v1';
const MEMBERS = ['east', 'west'] as const;
type MemberName = (typeof MEMBERS)[number];
const USERS = {
  east: { name: 'robot-east', password: 'secret-of-east' },
  west: { name: 'robot-west', password: 'secret-of-west' },
};
const registryOf = (member: MemberName): string => `${member}.registry.example`;

describe.runIf(kubelets.ok)('one Deployment, two members, each with a registry of its own', () => {
  let topology: Topology;
  let host: Cluster;
  const registries = new Map<string, ImageRegistry>();
  const member = (name: MemberName): Cluster => topology.member(name).cluster;

  beforeAll(async () => {
    topology = await startTopology({ members: MEMBERS.map((name) => ({ name, kubelet: `${name}-1` })) });
    ({ host } = topology);
    const address = (await machineNetwork(topology.workspace)).gateway;
    // What the Deployment names exists in neither place.
    registries.set('registry.example', await startImageRegistry({ address, images: {} }));
    for (const name of MEMBERS) {
      const images = { 'mirror/team/app:v1': await imageWithOrigin(`from the registry of ${name}\n`) };
      registries.set(registryOf(name), await startImageRegistry({ address, images, user: USERS[name] }));
    }
    for (const name of MEMBERS) {
      const containerd = topology.member(name).kubelet?.containerd;
      for (const [registry, { url }] of registries) containerd?.useRegistry(registry, url);
    }
    await newNamespace(host, NS);
  });
  afterAll(async () => {
    await topology?.close();
    await Promise.all([...registries.values()].map(async (registry) => await registry.close()));
  });

  const pullSecret = (name: MemberName): Fields => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `pull-${name}`, namespace: NS },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': dockerConfig(registryOf(name), USERS[name]) },
  });
  const registryPolicy = (...more: Fields[]): Fields => ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'ClusterOverridePolicy',
    metadata: { name: 'registries' },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }],
      overrideRules: [
        {
          overriders: {
            imageOverrider: [
              { component: 'Registry', operator: 'replace', value: '${member.name}.registry.example/mirror' },
            ],
          },
        },
        ...more.map((overriders) => ({ overriders })),
      ],
      applyTo: 'RunningPods',
    },
  });

  async function pods(): Promise<Map<string, Pod>> {
    return new Map((await podsOf(host, NS, 'app=web')).map((one) => [one.spec.nodeName ?? '', one]));
  }
  /** Waits until the container of each member's pod waits for its image, for a reason that matches; answers the pods. */
  async function untilNotPulled(what: string, why: (name: MemberName) => RegExp): Promise<Map<string, Pod>> {
    const seen = new Map<string, unknown>();
    return await until(
      what,
      async () => {
        const found = await pods();
        for (const [node, { status }] of found) seen.set(node, status?.containerStatuses?.[0]?.state?.waiting);
        const all = MEMBERS.every((name) => {
          const { reason = '', message = '' } = (seen.get(name) ?? {}) as { reason?: string; message?: string };
          return /^(ErrImagePull|ImagePullBackOff)$/.test(reason) && why(name).test(message);
        });
        return all ? found : undefined;
      },
      { timeoutMs: 60_000 },
    ).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${JSON.stringify([...seen])}`, { cause: error });
    });
  }

  async function untilBothRun(): Promise<Map<string, Pod>> {
    let seen = new Map<string, Pod>();
    return await until(
      'both run',
      async () => {
        seen = await pods();
        return seen.size === 2 && [...seen.values()].every(isReady) ? seen : undefined;
      },
      { timeoutMs: 90_000 },
    ).catch((error: unknown) => {
      const states = [...seen.values()].map(({ metadata, spec, status }) => [metadata, spec.nodeName, status]);
      throw new Error(`${(error as Error).message}: ${JSON.stringify(states)}`, { cause: error });
    });
  }

  test('without an override no image is found', async () => {
    const labels = { app: 'web' };
    const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' };
    const spec = podSpec([{ name: 'main', image: IMAGE, command: ['sh', '-c', `cat /origin; ${IDLE}`] }], {
      topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: labels } }],
    });
    await host.apply([
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: NS },
        spec: {
          replicas: 2,
          strategy: { type: 'Recreate' },
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec },
        },
      },
    ]);
    const found = await untilNotPulled(
      'both look in the wrong place',
      () => /registry\.example\/team\/app:v1.*not found/s,
    );
    expect([...found.keys()].sort()).toEqual([...MEMBERS]);
  });

  test('with the image of each member, but without its secret, the registry says no', async () => {
    const before = await pods();
    await host.apply([registryPolicy()]);
    const after = await untilNotPulled(
      'both are refused',
      (name) => new RegExp(`${registryOf(name)}/mirror/team/app:v1.*(401|unauthorized|authorization|denied)`, 'is'),
    );
    // The policy is for running pods: nothing was replaced.
    for (const name of MEMBERS) expect(after.get(name)?.metadata.uid).toBe(before.get(name)?.metadata.uid);
    for (const name of MEMBERS) {
      const seen = registries.get(registryOf(name))?.seen ?? [];
      expect(seen.filter((line) => !line.startsWith('401 '))).toEqual([]);
      expect(seen.length).toBeGreaterThan(0);
    }
  });

  test('with the secrets it runs in both, and the host pods are as their user wrote them', async () => {
    // One member has its secret from the host, which lets the manager read that one; the other has one of its own.
    await host.apply([
      pullSecret('east'),
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name: 'pull-secrets', namespace: NS },
        rules: [
          { apiGroups: [''], resources: ['secrets'], resourceNames: ['pull-east'], verbs: ['get', 'list', 'watch'] },
        ],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'pull-secrets', namespace: NS },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'pull-secrets' },
        subjects: [{ kind: 'ServiceAccount', name: 'spillway-manager', namespace: 'spillway-system' }],
      },
      registryPolicy({ imagePullSecretsOverrider: [{ operator: 'add', value: ['pull-${member.name}'] }] }),
    ]);
    await member('west').apply([pullSecret('west')]);
    // A pull secret cannot change in a pod that is there.
    await kubectl(host, ['rollout', 'restart', '-n', NS, 'deployment/web']);
    const found = await untilBothRun();
    for (const name of MEMBERS) {
      const hostPod = found.get(name) as Pod;
      const log = async (): Promise<string> => await kubectl(host, ['logs', '-n', NS, hostPod.metadata.name]);
      await expect.poll(log, { timeout: 20_000 }).toBe(`from the registry of ${name}\n`);
      expect(hostPod.spec.containers[0]?.image).toBe(IMAGE);
      expect(hostPod.spec.imagePullSecrets).toBeUndefined();
      const image = `${registryOf(name)}/mirror/team/app:v1`;
      expect((await getPod(member(name), NS, hostPod.metadata.name)).spec.containers[0]?.image).toBe(image);
      expect(hostPod.status?.containerStatuses?.[0]?.image).toBe(image);
      expect(registries.get(registryOf(name))?.seen).toContain(
        `${USERS[name].name} GET /v2/mirror/team/app/manifests/${await manifestOf(name)}`,
      );
    }
    const ours = async (name: MemberName): Promise<boolean> => {
      const secret = await read<Secret>(member(name), `/api/v1/namespaces/${NS}/secrets/pull-${name}`);
      return secret?.metadata.labels?.[HOST_LABEL] !== undefined;
    };
    expect(await Promise.all(MEMBERS.map(ours))).toEqual([true, false]);
    const told = await eventsOf(host, NS, found.get('west')?.metadata.name ?? '');
    expect(told.map(({ reason }) => reason)).toContain('FailedToReadOptionalSecret');
  });

  async function manifestOf(name: MemberName): Promise<string> {
    const { stdout } = await host.kubectl([
      'get',
      'pods',
      '-n',
      NS,
      '-l',
      'app=web',
      '-o',
      `jsonpath={.items[?(@.spec.nodeName=="${name}")].status.containerStatuses[0].imageID}`,
    ]);
    return stdout.replace(/^.*@/, '');
  }
});
