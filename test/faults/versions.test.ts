import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { addMember, installSpillway, startSpillway, waitForNode, type Spillway } from '../../hack/spillway.ts';
import { describeTool, OTHER_VERSIONS } from '../../hack/tools.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { diskClass, startProvisioner } from '../fixtures/provisioner.ts';
import {
  expectMirrored,
  type Fields,
  getPod,
  isReady,
  kubectl,
  letGo,
  newNamespace,
  onNode,
  podsOf,
  read,
  untilGone,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { errorsOf } from '../fixtures/topology.ts';
import { idle, report, violationsOf } from './lab.ts';

/** One host, and one member of each other version, one after another. */
let workspace: Workspace;
let host: Cluster;
let spillway: Spillway;
beforeAll(async () => {
  workspace = Workspace.create();
  host = await startCluster(workspace, { name: 'host' });
  await installSpillway(host);
  spillway = await startSpillway(host, { logLevel: 'debug' });
  await host.apply([diskClass('disk', { provisioner: 'member.spillway.dev' })]);
});
afterAll(() => workspace?.close());

describe.each(OTHER_VERSIONS)('a member of Kubernetes %s', (version) => {
  const name = `v${version.replace('.', '-')}`;
  let member: Cluster;
  const here = (podName: string, namespace: string, more: Fields = {}): Fields =>
    idle(podName, namespace, { ...onNode(name), ...more });
  const logged = (): string[] => errorsOf(spillway);

  beforeAll(async () => {
    member = await startCluster(workspace, { name, kubernetes: version, serviceCidr: '10.120.0.0/16' });
    await startKwok(member, { nodes: 2 });
    startProvisioner(member);
    await member.apply([diskClass('disk')]);
    const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 };
    const storage = { classes: [{ host: 'disk', member: 'disk' }] };
    await addMember(host, member, { spec: { probe, storage } });
    await waitForNode(host, name);
  });
  afterAll(async () => {
    await letGo(host, name);
    await member?.stop();
  });

  test('F35: shows its version, and takes WebSockets', async () => {
    const path = `/apis/spillway.dev/v1alpha1/memberclusters/${name}`;
    const shown = await read<{ status: { version: string } }>(host, path);
    expect(shown?.status.version).toBe(describeTool('kube-apiserver', version).version);
    await until('the Node says what its streams can do', async () => {
      const node = await read<{ status: { declaredFeatures?: string[] } }>(host, `/api/v1/nodes/${name}`);
      return node?.status.declaredFeatures?.includes('ExtendWebSocketsToKubelet');
    });
  });

  test('F35: pods are made, follow edits, and end', async () => {
    const ns = await newNamespace(host, `${name}-pods`);
    const configMap = (text: string): Fields => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'c', namespace: ns },
      data: { text },
    });
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's', namespace: ns },
      stringData: { word: 'x' },
    };
    await host.apply([configMap('one'), secret]);
    const volumes = [
      { name: 'c', configMap: { name: 'c' } },
      { name: 's', secret: { secretName: 's' } },
    ];
    await host.apply([here('web', ns, { volumes })]);
    await untilRunning(host, ns, 'web');
    await expectMirrored(host, member, ns, 'web');
    await host.apply([configMap('two')]);
    await until('the copy follows', async () => {
      const copies = (await member.api.call('GET', `/api/v1/namespaces/${ns}/configmaps`)) as {
        items: { data?: Fields }[];
      };
      return copies.items.some(({ data }) => data?.['text'] === 'two');
    });
    await kubectl(host, ['label', 'pod', 'web', '-n', ns, 'edited=yes']);
    await untilPod(member, ns, 'web', 'is edited', ({ metadata }) => metadata.labels?.['edited'] === 'yes');
    await kubectl(host, ['delete', 'pod', 'web', '-n', ns, '--wait=false']);
    await untilGone(member, ns, 'web');
    await untilGone(host, ns, 'web');
  });

  test('F35: Deployments, StatefulSets with claims, and Jobs', async () => {
    const ns = await newNamespace(host, `${name}-sets`);
    const workload = (kind: string, more: Fields, spec: Fields = {}): Fields => ({
      apiVersion: kind === 'Job' ? 'batch/v1' : 'apps/v1',
      kind,
      metadata: { name: kind.toLowerCase(), namespace: ns },
      spec: {
        ...(kind === 'Job' ? {} : { selector: { matchLabels: { kind } } }),
        template: { metadata: { labels: { kind } }, spec: { ...(here('x', ns, spec)['spec'] as Fields) } },
        ...more,
      },
    });
    const claim = {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'disk', resources: { requests: { storage: '1Gi' } } },
    };
    await host.apply([
      workload('Deployment', { replicas: 2 }),
      workload('StatefulSet', { replicas: 2, serviceName: 'x', volumeClaimTemplates: [claim] }),
      workload('Job', {}, { restartPolicy: 'Never' }),
    ]);
    const ready = async (kind: string): Promise<number> =>
      (await podsOf(host, ns, `kind=${kind}`)).filter(isReady).length;
    await until('the Deployment runs', async () => (await ready('Deployment')) === 2);
    await until('the StatefulSet runs', async () => (await ready('StatefulSet')) === 2, { timeoutMs: 60_000 });
    await kubectl(host, ['wait', 'job/job', '-n', ns, '--for=condition=Complete', '--timeout=60s']);
    const claims = (await member.api.call('GET', `/api/v1/namespaces/${ns}/persistentvolumeclaims`)) as {
      items: { status: { phase: string } }[];
    };
    expect(claims.items.map(({ status }) => status.phase)).toEqual(['Bound', 'Bound']);
    await kubectl(host, ['delete', 'namespace', ns, '--wait=true', '--timeout=60s']);
    expect(await podsOf(member, ns)).toEqual([]);
  });

  test('F35: logs and commands without a kubelet fail in words, and nothing is done to the pod', async () => {
    const ns = await newNamespace(host, `${name}-streams`);
    await host.apply([here('quiet', ns)]);
    await untilRunning(host, ns, 'quiet');
    const before = await getPod(member, ns, 'quiet');
    for (const ask of [
      ['logs', 'quiet'],
      ['exec', 'quiet', '--', 'true'],
    ]) {
      const { code, stderr } = await host.kubectl([ask[0] ?? '', '-n', ns, ...ask.slice(1)]);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/\S/)]);
    }
    expect((await getPod(member, ns, 'quiet')).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  test('F35: a field that it knows, of a feature that is off there, is dropped by its API server', async () => {
    const ns = await newNamespace(host, `${name}-off`);
    await host.apply([here('whole', ns, { resources: { requests: { cpu: '10m' } } })]);
    await untilRunning(host, ns, 'whole');
    const { spec } = await getPod(member, ns, 'whole');
    expect(spec.resources).toEqual(version < '1.34' ? undefined : { requests: { cpu: '10m' } });
  });

  test('F35: a field that it does not know is refused in words', async (context) => {
    const ns = await newNamespace(host, `${name}-fields`);
    await host.apply([here('named', ns, { hostnameOverride: 'other' })]);
    const seen = await untilPod(
      host,
      ns,
      'named',
      'runs or says why not',
      (one) => isReady(one) || one.status?.reason === 'MemberInvalid',
    );
    if (version < '1.34') {
      expect(seen.status?.message).toMatch(/unknown field "spec.hostnameOverride"/);
      expect(await podsOf(member, ns)).toEqual([]);
    }
    expect(logged()).toEqual([]);
    expect(violationsOf(spillway)).toEqual([]);
    report(
      context,
      ['F35'],
      'pods, sets, Jobs, claims and copies as ever; unknown fields refused in words',
      describeTool('kube-apiserver', version).version,
    );
  });
});
