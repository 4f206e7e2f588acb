import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pino from 'pino';
import { Registry } from 'prom-client';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { installSpillway, type Spillway, startSpillway } from '../../hack/spillway.ts';
import { freePort, nonLoopbackAddress } from '../../hack/addresses.ts';
import { createAuthority, issueServing } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { admissionMetrics } from '../../src/admission/metrics.ts';
import { requiredTerms } from '../../src/api/virtual-node-choice.ts';
import { WebhookServer } from '../../src/admission/webhook-server.ts';
import { CONSTRAINT_CASES } from '../admission/constraint-cases.ts';
import {
  MEMBERS,
  NAMESPACES,
  POD_CASES,
  type PodCase,
  podOf,
  SCHEDULER,
  VIRTUAL_NODES,
} from '../admission/pod-cases.ts';

interface AdmittedPod {
  metadata: { labels?: object; annotations?: Record<string, string> };
  spec: Record<string, unknown> & {
    tolerations?: { key?: string; operator?: string; effect?: string }[];
    schedulingGates?: { name: string }[];
    schedulerName: string;
    nodeSelector?: object;
    affinity?: object;
  };
}

const file = (name: string): string => readFileSync(new URL(`../../manifests/${name}`, import.meta.url), 'utf8');
const POLICIES = ['pod-defaults.yaml', 'scheduler-name.yaml', 'node-constraints.yaml'];
const CONSTRAINTS = 'spillway.dev/member-constraints';

let workspace: Workspace;
let host: Cluster;

beforeAll(async () => {
  workspace = Workspace.create();
  // Without controllers nobody makes ServiceAccounts.
  const apiServerFlags = { 'disable-admission-plugins': 'ServiceAccount' };
  host = await startCluster(workspace, { name: 'host', components: 'api-only', apiServerFlags });
  await host.apply(file('crds/spillway.dev_memberclusters.yaml'));
  await until('MemberClusters are served', () => host.api.call('GET', '/apis/spillway.dev/v1alpha1/memberclusters'));
  await host.apply([
    ...Object.entries(NAMESPACES).map(([name, burst]) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: burst === undefined ? {} : { 'spillway.dev/burst': burst } },
    })),
    ...Object.entries(MEMBERS).map(([name, pools]) => ({
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name },
      spec: {
        credentials: { secretRef: { namespace: 'default', name } },
        virtualNodes: pools.map((pool) => ({ name: pool })),
      },
    })),
  ]);
});
afterAll(() => workspace?.close());

/** What the API server would store. */
async function admitted(pod: Record<string, unknown>): Promise<AdmittedPod> {
  const { namespace } = pod['metadata'] as { namespace: string };
  return (await host.api.call('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, pod)) as AdmittedPod;
}

/** What the pod has of what admission gives. */
function has({ spec }: AdmittedPod): object {
  const { tolerations = [], schedulingGates = [], schedulerName, affinity } = spec;
  return { tolerations, schedulingGates, schedulerName, host: isKept(affinity) };
}

/** Whether no term of the pod lets it go to a virtual node. */
function isKept(affinity: object | undefined): boolean {
  const terms = requiredTerms({ affinity }) as { matchExpressions?: { key: string; operator: string }[] }[];
  const isLine = ({ key, operator }: { key: string; operator: string }): boolean =>
    key === 'spillway.dev/member' && operator === 'DoesNotExist';
  return terms.length > 0 && terms.every(({ matchExpressions = [] }) => matchExpressions.some(isLine));
}

function expected({ spec, gets }: PodCase): object {
  const {
    tolerations = [],
    schedulingGates = [],
    schedulerName = 'default-scheduler',
    affinity,
  } = (spec ?? {}) as Record<string, never>;
  // Every API server gives pods these two, before the policies and webhooks are asked.
  const everybody = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  }));
  const all = (tolerations as { key?: string; operator?: string; effect?: string }[]).some(
    ({ key, operator, effect = 'NoExecute' }) => key === undefined && operator === 'Exists' && effect === 'NoExecute',
  );
  return {
    tolerations: [
      ...(gets.includes('outage') ? everybody.map(({ key, effect }) => ({ key, operator: 'Equal', effect })) : []),
      ...tolerations,
      ...(all ? [] : everybody),
      ...(gets.includes('toleration')
        ? [{ key: 'spillway.dev/virtual-node', operator: 'Exists', effect: 'NoSchedule' }]
        : []),
    ],
    schedulingGates: [...schedulingGates, ...(gets.includes('gate') ? [{ name: 'spillway.dev/gang' }] : [])],
    schedulerName: gets.includes('scheduler') ? SCHEDULER : schedulerName,
    host: gets.includes('host') || isKept(affinity),
  };
}

/** Each case, and what comes of it admitted once more. */
function runTable(): void {
  test.each(POD_CASES)('$what', async (one) => {
    const first = await admitted(podOf(one));
    expect(has(first)).toEqual(expected(one));
    const { spec } = first;
    const again = await admitted({ ...podOf(one), spec });
    expect(has(again)).toEqual(has(first));
  });
}

/** What a pod asks of nodes itself stays as it is, beside the one line. */
function runStaying(): void {
  test('a pod that tolerates everything is kept on the host, and on what it asked for', async () => {
    const line = (key: string, operator: string, ...values: string[]) => ({
      key,
      operator,
      ...(values.length > 0 && { values }),
    });
    const stay = line('spillway.dev/member', 'DoesNotExist');
    const preferredDuringSchedulingIgnoredDuringExecution = [
      { weight: 1, preference: { matchExpressions: [line('disk', 'Exists')] } },
    ];
    const nodeSelectorTerms = [
      { matchExpressions: [line('zone', 'NotIn', 'a')] },
      {},
      { matchFields: [line('metadata.name', 'NotIn', 'worker-1')] },
      { matchExpressions: [stay] },
      // These mean nodes by their names; the others do not become names by it.
      { matchExpressions: [line('kubernetes.io/hostname', 'In', 'worker-1')] },
      { matchFields: [line('metadata.name', 'In', 'worker-1')] },
    ];
    const affinity = {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution,
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
      },
    };
    const spec = { tolerations: [{ operator: 'Exists' }], affinity };
    const { spec: kept } = await admitted(podOf({ what: '', namespace: 'plain', spec, gets: [] }));
    expect(kept.affinity).toEqual({
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution,
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [line('zone', 'NotIn', 'a'), stay] },
            {},
            { matchExpressions: [stay], matchFields: [line('metadata.name', 'NotIn', 'worker-1')] },
            { matchExpressions: [stay] },
            { matchExpressions: [line('kubernetes.io/hostname', 'In', 'worker-1')] },
            { matchFields: [line('metadata.name', 'In', 'worker-1')] },
          ],
        },
      },
    });
  });
}

/** What pods ask of nodes, split into two levels, and what comes of it admitted once more. */
function runConstraints(): void {
  test.each(CONSTRAINT_CASES)('constraints: $what', async ({ annotations = {}, spec, split }) => {
    const pod = podOf({ what: '', namespace: 'shop', metadata: { annotations }, spec, gets: [] });
    const first = await admitted(pod);
    const { [CONSTRAINTS]: constraints, ...others } = first.metadata.annotations ?? {};
    const { nodeSelector, affinity } = first.spec;
    if (split === undefined) {
      expect({ ...(nodeSelector && { nodeSelector }), ...(affinity && { affinity }) }).toEqual(spec);
      expect(first.metadata.annotations ?? {}).toEqual(annotations);
    } else {
      expect(nodeSelector).toEqual(split.nodeSelector);
      expect(affinity).toEqual(split.affinity);
      expect(JSON.parse(constraints ?? '')).toEqual(split.constraints);
      // To the byte, so that both ways write the same.
      expect(constraints).toBe(JSON.stringify(split.constraints));
      expect(others).toEqual(annotations);
    }
    const again = await admitted({
      ...pod,
      metadata: { ...(pod['metadata'] as object), annotations: first.metadata.annotations },
      spec: first.spec,
    });
    expect(again.spec).toEqual(first.spec);
    expect(again.metadata.annotations).toEqual(first.metadata.annotations);
  });
}

/** Waits until all parts do, or no longer do, what they should. */
async function untilActive(active: boolean): Promise<void> {
  const asking: PodCase = {
    what: '',
    namespace: 'plain',
    spec: { nodeSelector: { 'kubernetes.io/hostname': 'west-cpu' } },
    gets: active ? ['outage', 'toleration', 'scheduler'] : [],
  };
  const bursting: PodCase = { what: '', namespace: 'shop', gets: active ? ['toleration', 'scheduler'] : [] };
  const spec = { tolerations: [{ operator: 'Exists' }] };
  const staying: PodCase = { what: '', namespace: 'kube-system', spec, gets: active ? ['host'] : [] };
  const split = podOf({ what: '', namespace: 'shop', spec: { nodeSelector: { disk: 'ssd' } }, gets: [] });
  const done = async (): Promise<boolean> => {
    for (const one of [asking, bursting, staying]) {
      if (JSON.stringify(has(await admitted(podOf(one)))) !== JSON.stringify(expected(one))) return false;
    }
    return ((await admitted(split)).metadata.annotations?.[CONSTRAINTS] !== undefined) === active;
  };
  // Each policy is followed by itself, and taken out for a moment while what it depends on is followed anew.
  let rounds = 0;
  const settled = async (): Promise<boolean> => {
    rounds = (await done()) ? rounds + 1 : 0;
    return rounds >= 20;
  };
  // A busy machine takes its time to follow kinds, objects of them, and policies.
  await until(`pods are ${active ? '' : 'not '}changed`, settled, { timeoutMs: 120_000 });
}

describe('policies in the API server', () => {
  beforeAll(async () => {
    for (const name of POLICIES) await host.apply(file(`admission/${name}`));
    await untilActive(true);
  });
  runTable();
  runStaying();
  runConstraints();
  test('a pod is changed when it is created, and never after', async () => {
    await host.apply([podOf({ what: '', namespace: 'plain', gets: [] })]);
    await host.kubectl(['label', 'namespace', 'plain', 'spillway.dev/burst=enabled']);
    await host.kubectl(['label', 'pod', 'web', '-n', 'plain', 'a=b']);
    const stored = (await host.api.call('GET', '/api/v1/namespaces/plain/pods/web')) as AdmittedPod;
    expect(stored.metadata.labels).toEqual({ a: 'b' });
    expect(has(stored)).toEqual(expected({ what: '', namespace: 'plain', gets: [] }));
    await host.kubectl(['label', 'namespace', 'plain', 'spillway.dev/burst-']);
    await host.kubectl(['delete', 'pod', 'web', '-n', 'plain', '--grace-period=0', '--force']);
  });
});

describe('the webhook', () => {
  let server: WebhookServer;
  let asked: () => Promise<number>;

  beforeAll(async () => {
    for (const name of POLICIES) await host.kubectl(['delete', '-f', '-'], { input: file(`admission/${name}`) });
    await untilActive(false);
    const authority = await createAuthority('webhook-ca');
    const pair = await issueServing(authority, 'webhook', ['127.0.0.1']);
    const registry = new Registry();
    server = new WebhookServer({
      address: '127.0.0.1',
      port: 0,
      certificate: () => pair,
      settings: {
        schedulerName: SCHEDULER,
        isVirtualNode: (name) => VIRTUAL_NODES.includes(name),
        splitConstraints: true,
        outages: { toleration: 'Forever', admissionSeconds: 300 },
      },
      metrics: admissionMetrics(registry),
      logger: pino({ level: 'silent' }),
    });
    asked = async () => {
      const { values } = (await registry.getSingleMetric('spillway_admission_reviews_total')?.get()) ?? { values: [] };
      return values.reduce((sum, { value }) => sum + value, 0);
    };
    const { port } = await server.listen();
    await host.apply([webhookConfiguration(`https://127.0.0.1:${String(port)}`, authority.cert)]);
    await untilActive(true);
  });
  afterAll(() => server?.close(1000));

  runTable();
  runStaying();
  runConstraints();

  test('pods that cannot concern it are not asked about', async () => {
    const before = await asked();
    const pods: PodCase[] = [
      { what: '', namespace: 'plain', gets: [] },
      { what: '', namespace: 'kube-system', spec: { nodeSelector: { type: 'virtual-kubelet' } }, gets: [] },
      { what: '', namespace: 'plain', spec: { nodeSelector: { disk: 'ssd' } }, gets: [] },
      { what: '', namespace: 'shop', spec: { nodeName: 'worker-1' }, gets: [] },
    ];
    for (const one of pods) await admitted(podOf(one));
    expect(await asked()).toBe(before);
    await admitted(podOf({ what: '', namespace: 'shop', gets: [] }));
    expect(await asked()).toBeGreaterThan(before);
  });

  describe('beside the policies', () => {
    beforeAll(async () => {
      for (const name of POLICIES) await host.apply(file(`admission/${name}`));
    });
    runTable();
    runConstraints();
  });

  test('while it is down, pods are created as they are, and soon', async () => {
    for (const name of POLICIES) await host.kubectl(['delete', '-f', '-'], { input: file(`admission/${name}`) });
    await server.close(0);
    await untilActive(false);
    const began = Date.now();
    const pod = await admitted(podOf({ what: '', namespace: 'shop', gets: [] }));
    expect(has(pod)).toEqual(expected({ what: '', namespace: 'shop', gets: [] }));
    expect(Date.now() - began).toBeLessThan(8_000);
  });
});

describe('the webhook of the manager, as shipped', () => {
  let spillway: Spillway;
  const bursting: PodCase = {
    what: '',
    namespace: 'shop',
    gets: [],
  };
  const changed = expected({ ...bursting, gets: ['toleration', 'scheduler'] });
  const secretPath = '/api/v1/namespaces/spillway-system/secrets/spillway-webhook';
  const untilAsked = async (): Promise<void> => {
    await until(
      'pods are changed',
      async () => JSON.stringify(has(await admitted(podOf(bursting)))) === JSON.stringify(changed),
    );
  };

  beforeAll(async () => {
    await host.kubectl(['delete', 'mutatingwebhookconfiguration', 'spillway-pod-defaults']);
    await untilActive(false);
    await installSpillway(host);
    await host.apply(file('admission/webhook.yaml'));
    const address = nonLoopbackAddress();
    const port = await freePort(address);
    const config = join(host.dir, 'spillway.yaml');
    const admission = { schedulerName: SCHEDULER, webhook: { enabled: true, bindAddress: address, port } };
    writeFileSync(config, JSON.stringify({ admission }));
    // What the endpoints controller does for the pods of the manager.
    await host.apply([
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          name: 'spillway-webhook',
          namespace: 'spillway-system',
          labels: { 'kubernetes.io/service-name': 'spillway-webhook' },
        },
        addressType: 'IPv4',
        ports: [{ name: 'webhook', port, protocol: 'TCP' }],
        endpoints: [{ addresses: [address], conditions: { ready: true } }],
      },
    ]);
    spillway = await startSpillway(host, { args: ['--config', config] });
  });

  test('makes its certificate and tells the API server', async () => {
    await untilAsked();
    // By name, as the MemberClusters say.
    const named: PodCase = {
      what: '',
      namespace: 'plain',
      spec: { nodeSelector: { 'kubernetes.io/hostname': 'west-gpu' } },
      gets: ['outage', 'toleration', 'scheduler'],
    };
    await expect.poll(async () => has(await admitted(podOf(named))), { timeout: 30_000 }).toEqual(expected(named));
    const metrics = await (await fetch(`${spillway.url}/metrics`)).text();
    expect(metrics).toMatch(/spillway_admission_reviews_total\{outcome="changed"\} [1-9]/);
  });

  test("killed, it is in nobody's way; back, it has the same certificate, and the API server is told again", async () => {
    const before = (await host.api.call('GET', secretPath)) as { metadata: { resourceVersion: string } };
    await spillway.process.stop('SIGKILL');
    const pods = ['one', 'two', 'three'].map((name) => ({ ...podOf(bursting), metadata: { name, namespace: 'shop' } }));
    const began = Date.now();
    await host.apply(pods);
    expect(Date.now() - began).toBeLessThan(8_000);
    const { stdout } = await host.kubectl(['get', 'pods', '-n', 'shop', '-o', 'name']);
    expect(stdout.trim().split('\n')).toHaveLength(3);
    // Without caBundle, as when the file is applied anew by other means.
    const strip = webhookNames().map((_, index) => ({
      op: 'remove',
      path: `/webhooks/${String(index)}/clientConfig/caBundle`,
    }));
    const args = [
      'patch',
      'mutatingwebhookconfiguration',
      'spillway-pod-defaults',
      '--type=json',
      '-p',
      JSON.stringify(strip),
    ];
    expect((await host.kubectl(args)).stderr).toBe('');
    spillway.process.restart();
    await untilAsked();
    const after = (await host.api.call('GET', secretPath)) as { metadata: { resourceVersion: string } };
    expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });
});

/** Names of the webhooks that are shipped. */
function webhookNames(): string[] {
  return configuration().webhooks.map(({ name }) => name);
}

interface Configuration {
  kind: string;
  webhooks: { name: string; clientConfig: { service: { path: string } } }[];
}

function configuration(): Configuration {
  for (const document of parseAllDocuments(file('admission/webhook.yaml'))) {
    const object = document.toJS() as Configuration;
    if (object.kind === 'MutatingWebhookConfiguration') return object;
  }
  throw new Error('no MutatingWebhookConfiguration is shipped');
}

/** As shipped, but the server of this test is no pod: it is called by its address. */
function webhookConfiguration(url: string, ca: string): object {
  const caBundle = Buffer.from(ca).toString('base64');
  const webhooks = configuration().webhooks.map((one) => ({
    ...one,
    clientConfig: { url: `${url}${one.clientConfig.service.path}`, caBundle },
  }));
  return { ...configuration(), webhooks };
}
