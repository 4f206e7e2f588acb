import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { run } from '../../hack/command.ts';
import { findProgram } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { KINDS } from '../../src/api/kinds.ts';
import {
  deployments,
  FOREIGN_SELECTORS,
  foreignSelector,
  gangPod,
  member,
  namespace,
  policy,
  WRONG_MARKS,
  WRONG_TAINTS,
} from '../admission/wrong-objects.ts';
import { GuideShell } from '../fixtures/guide-shell.ts';
import { type Command, Guide } from '../fixtures/guide.ts';
import { rawPolicy } from '../placement/policies.ts';
import { WRONG_POLICIES } from '../placement/wrong-policies.ts';

const file = (name: string): string => readFileSync(new URL(`../../manifests/${name}`, import.meta.url), 'utf8');

let workspace: Workspace;
let host: Cluster;
/** What pages have people type, as it stands there. */
let shell: GuideShell;
const failover = new Guide('docs/concepts/failover.md');

beforeAll(async () => {
  workspace = Workspace.create();
  host = await startCluster(workspace, { name: 'host', components: 'api-only' });
  shell = new GuideShell(host, []);
  for (const { resource } of KINDS) await host.apply(file(`crds/${resource.group}_${resource.plural}.yaml`));
  await host.apply(file('admission/validation.yaml'));
  await host.apply(file('admission/node-taints.yaml'));
  await host.apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'shop' } },
  ]);
  for (const one of [
    foreignSelector('PlacementPolicy'),
    member({ 'spillway.dev/price': 'x' }),
    namespace('a', 'x'),
    gangPod('a', {}),
  ]) {
    await until('wrong objects are refused', async () =>
      (await dryRun(one)).stderr.includes('ValidatingAdmissionPolicy'),
    );
  }
});
afterAll(() => workspace?.close());

async function dryRun(object: object): Promise<{ stdout: string; stderr: string; code: number }> {
  return await host.kubectl(['create', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) });
}

describe('refused', () => {
  test.each([...FOREIGN_SELECTORS, ...WRONG_MARKS])(
    'by kubectl, with words that say why: %s',
    async (_what, object, words) => {
      const { stderr, code } = await dryRun(object);
      expect(code).toBe(1);
      expect(stderr).toContain(words);
    },
  );

  // The rest of them the schemas refuse by themselves.
  test.each(WRONG_POLICIES.filter(({ refusal }) => refusal === undefined))('$what', async ({ spec, field }) => {
    const { stderr, code } = await dryRun(rawPolicy('p', spec, 'shop'));
    expect(code).toBe(1);
    expect(stderr).toContain(field);
  });
});

describe('taken', () => {
  test.each<[string, object]>([
    [
      'a PlacementPolicy that names its own namespace',
      policy('PlacementPolicy', [{ ...deployments, namespace: 'shop' }], 'shop'),
    ],
    [
      'a ClusterPlacementPolicy for one namespace',
      policy('ClusterPlacementPolicy', [{ ...deployments, namespace: 'bank' }]),
    ],
    ['an OverridePolicy for all', policy('OverridePolicy', [], 'shop')],
    [
      'a ClusterOverridePolicy for one namespace',
      policy('ClusterOverridePolicy', [{ ...deployments, namespace: 'bank' }]),
    ],
    ['a member without annotations', member({})],
    [
      'a member with good ones',
      member({ 'spillway.dev/price': '0.25', 'spillway.dev/confirm-identity': '0c7d2c5e-8a4b-4f0e-9c52-2f2a8f3f9c11' }),
    ],
    ['a pod of a gang', gangPod('ring', { 'spillway.dev/gang-size': '8', 'spillway.dev/gang-timeout-seconds': '60' })],
    ['a namespace that may burst', namespace('bank', 'enabled')],
    ['a namespace that bursts by policies', namespace('bank', 'policies')],
    ['a namespace of the cluster itself that stays', namespace('kube-other', 'disabled')],
  ])('%s', async (_what, object) => {
    const { stderr, code } = await dryRun(object);
    expect([code, stderr]).toEqual([0, '']);
  });

  test('a namespace whose label was there before the rule: all else of it can change', async () => {
    const binding = 'validatingadmissionpolicybinding/spillway-burst-label';
    await host.kubectl(['delete', binding]);
    await until('the rule is gone', async () => (await dryRun(namespace('old', 'maybe'))).code === 0);
    await host.apply([namespace('old', 'maybe')]);
    await host.apply(file('admission/validation.yaml'));
    await until('the rule is back', async () => (await dryRun(namespace('new', 'maybe'))).code === 1);
    expect((await host.kubectl(['label', 'namespace', 'old', 'team=a'])).stderr).toBe('');
    expect(
      (await host.kubectl(['label', 'namespace', 'old', '--overwrite', 'spillway.dev/burst=no'])).stderr,
    ).toContain('metadata.labels[spillway.dev/burst]: must be');
    expect((await host.kubectl(['label', 'namespace', 'old', 'spillway.dev/burst-'])).stderr).toBe('');
  });
});

describe('a taint of effect NoExecute, or of a key of ours that there is not', () => {
  const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute';
  const labels = { 'spillway.dev/member': 'east' };
  /** Each with its provider ID, and whether it is Ready. */
  const nodes: Record<string, { providerID?: string; labels?: object; ready?: string }> = {
    east: { providerID: 'spillway://east/east', labels },
    'east-gpu': { providerID: 'spillway://east/east-gpu', labels },
    unlabelled: { providerID: 'spillway://unlabelled/unlabelled' },
    'without-id': { labels: { 'spillway.dev/member': 'without-id' } },
    unready: { providerID: 'spillway://unready/unready', labels, ready: 'Unknown' },
    labelled: { providerID: 'cloud:///i-1', labels },
    real: {},
  };
  const taint = async (node: string, ...words: string[]): Promise<{ stderr: string; code: number }> =>
    await host.kubectl(['taint', 'node', node, ...words]);
  const tried = async (node: string, what: string) => await taint(node, what, '--dry-run=server');
  const REFUSED = 'is a virtual node: for gone:NoExecute Kubernetes would delete all pods there';
  const untilInForce = async (): Promise<void> => {
    await until('the rule is in force', async () => (await tried('east', 'gone:NoExecute')).code === 1);
  };

  beforeAll(async () => {
    for (const [name, { providerID, labels: marks = {}, ready = 'True' }] of Object.entries(nodes)) {
      const spec = providerID === undefined ? {} : { providerID };
      await host.apply([{ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: marks }, spec }]);
      const conditions = [{ type: 'Ready', status: ready }];
      await host.api.call('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions } });
    }
    await untilInForce();
  });

  test.each<readonly [node: string, taint: string, words: string]>([
    ...WRONG_TAINTS,
    ['unlabelled', 'gone:NoExecute', 'spec.taints of MemberCluster unlabelled, or kubectl'],
    ['without-id', 'gone:NoExecute', 'spec.taints of MemberCluster without-id, or kubectl'],
    ['unready', 'gone:NoExecute', 'unready is a virtual node'],
  ])('is refused on a virtual node, with what to do instead: %s %s', async (node, what, words) => {
    const { stderr, code } = await taint(node, what);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `Error from server (Forbidden): nodes "${node}" is forbidden: ValidatingAdmissionPolicy 'spillway-node-taints'`,
    );
    expect(stderr).toContain(words);
  });

  test.each([
    ['east', 'gone:NoSchedule'],
    ['east', 'gone:PreferNoSchedule'],
    ['east', 'spillway.dev/drain:NoSchedule'],
    ['east', OUT_OF_SERVICE],
    ['unready', OUT_OF_SERVICE],
    ['unready', 'node.kubernetes.io/unreachable:NoExecute'],
    ['unready', 'node.kubernetes.io/not-ready:NoExecute'],
    ['labelled', 'gone:NoExecute'],
    ['real', 'gone:NoExecute'],
    ['east', 'spillway.dev/member-unreachable:NoSchedule'],
    ['east', 'spillway.dev.example.com/drian:NoSchedule'],
    ['labelled', 'spillway.dev/drian:NoSchedule'],
    ['labelled', 'spillway.dev/drain:PreferNoSchedule'],
    ['real', 'spillway.dev/drian:NoSchedule'],
  ])('keeps nobody from anything else: %s %s', async (node, what) => {
    expect(await tried(node, what)).toMatchObject({ code: 0, stderr: '' });
  });

  /** In the words that the page shows, but for what it leaves out. */
  async function isRefusedAsShown([command]: readonly Command[]): Promise<void> {
    const { code, stderr } = await shell.tryTo(command?.typed ?? '');
    expect(code).toBe(1);
    const inLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();
    for (const part of command?.shown.split('…') ?? []) expect(inLine(stderr)).toContain(inLine(part));
  }

  test('is refused as the page shows it, and those that it has people set are taken', async () => {
    await isRefusedAsShown(failover.session('kubectl taint node east gone:NoExecute'));
    await isRefusedAsShown(failover.session('kubectl taint node east spillway.dev/drian:NoSchedule'));
    await shell.paste(failover.script('kubectl taint node east node.kubernetes.io/out-of-service'));
    await shell.paste(failover.script('kubectl taint node east spillway.dev/drain:NoSchedule'));
    await shell.paste('kubectl taint node east node.kubernetes.io/out-of-service- spillway.dev/drain-');
  });

  test('that is there keeps nobody from changing the rest, and who wants one takes the rule away', async () => {
    const well = { code: 0, stderr: '' };
    const [away = '', back = ''] = failover.commands(
      'kubectl delete validatingadmissionpolicybinding spillway-node-taints',
    );
    await shell.paste(away);
    await until('the rule is gone', async () => (await taint('east', 'gone=x:NoExecute')).code === 0);
    expect(await taint('east', 'spillway.dev/drian:NoSchedule')).toMatchObject(well);
    expect(await taint('east', 'spillway.dev/drain:PreferNoSchedule')).toMatchObject(well);
    await shell.paste(back);
    await until('the rule is back', async () => (await tried('east', 'other:NoExecute')).code === 1);
    expect(await host.kubectl(['label', 'node', 'east', 'disk=fast'])).toMatchObject(well);
    expect(await host.kubectl(['cordon', 'east'])).toMatchObject(well);
    expect(await taint('east', 'other:NoSchedule')).toMatchObject(well);
    expect(await taint('east', OUT_OF_SERVICE)).toMatchObject(well);
    // Other pods tolerate another value.
    const another = await taint('east', 'gone=y:NoExecute', '--overwrite');
    expect(another.stderr).toContain(REFUSED);
    expect(await taint('east', 'spillway.dev/drian=x:NoSchedule', '--overwrite')).toMatchObject(well);
    expect(await taint('east', 'spillway.dev/drian:PreferNoSchedule')).toMatchObject(well);
    expect((await tried('east', 'spillway.dev/drained:NoSchedule')).stderr).toContain('is no taint of Spillway');
    expect(await taint('east', 'spillway.dev/drian-')).toMatchObject(well);
    expect(await taint('east', 'spillway.dev/drain-')).toMatchObject(well);
    expect((await tried('east', 'spillway.dev/drian:NoSchedule')).stderr).toContain('is no taint of Spillway');
    expect(await taint('east', 'gone-')).toMatchObject(well);
    expect((await tried('east', 'gone=x:NoExecute')).stderr).toContain(REFUSED);
  });

  test('of a key of ours that the manager records as its own is taken, as that of a newer manager may be', async () => {
    const annotations = { 'spillway.dev/node-taints': 'other:NoSchedule,spillway.dev/later:NoSchedule' };
    const put = async (key: string, recorded: object) =>
      await host.api.call('PATCH', '/api/v1/nodes/east-gpu', {
        metadata: { annotations: recorded },
        spec: { taints: [{ key, effect: 'NoSchedule' }] },
      });
    await expect(put('spillway.dev/later', {})).rejects.toThrow('is no taint of Spillway');
    await put('spillway.dev/later', annotations);
    await expect(put('spillway.dev/late', {})).rejects.toThrow('is no taint of Spillway');
  });
});

test('the commands of the page that stop moves of one workload, and let them go on, set purgeMode and nothing else', async () => {
  const text = readFileSync(new URL('../../docs/concepts/failover.md', import.meta.url), 'utf8');
  const commands = [...text.matchAll(/^ {4}kubectl (patch placementpolicy web .*) -p '(.*)'$/gm)];
  await host.apply([rawPolicy('web', { placement: {}, failover: { dryRun: false } }, 'shop')]);
  const modes: unknown[] = [];
  for (const [, words = '', body = ''] of commands) {
    expect(await host.kubectl([...words.split(' '), '-p', body])).toMatchObject({ code: 0, stderr: '' });
    const policy = await host.api.call('GET', '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/web');
    modes.push((policy as { spec: { failover: { cluster: object } } }).spec.failover.cluster);
  }
  const others = { gracePeriodSeconds: 600, onTimeout: 'GiveBack' };
  expect(modes).toEqual([
    { purgeMode: 'Never', ...others },
    { purgeMode: 'Gracefully', ...others },
  ]);
});

const page = readFileSync(new URL('../../docs/guides/backup-and-restore.md', import.meta.url), 'utf8');
const guide = new Guide('docs/guides/backup-and-restore.md');

test.skipIf(findProgram('jq') === undefined)(
  'what was saved by the commands of the page comes back by them',
  async () => {
    const save = guide.script('kubectl get memberclusters,placementpolicies');
    const [, restore = ''] = /`(kubectl apply -f members\.json [^`]*)`/.exec(page) ?? [];
    const env = {
      ...process.env,
      KUBECONFIG: host.kubeconfig,
      KUBECACHEDIR: host.dir,
      PATH: `${dirname(host.kubectlPath)}:${process.env['PATH'] ?? ''}`,
    };
    const shell = async (words: string): Promise<string> => await run('sh', ['-ec', words], { cwd: host.dir, env });
    const secret = { namespace: 'spillway-system', name: 'member-saved' };
    const { spec } = member({}) as { spec: object };
    await host.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: secret.namespace } },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { ...secret, labels: { 'spillway.dev/renew-token': 'true' } },
        stringData: { token: 'abc' },
      },
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'MemberCluster',
        metadata: { name: 'saved', finalizers: ['spillway.dev/leaving'] },
        spec,
      },
      rawPolicy('saved', { placement: {}, priority: 7 }, 'shop'),
    ]);
    await shell(save);
    const noFinalizer = `kubectl patch membercluster saved --type=merge -p '{"metadata":{"finalizers":null}}'`;
    await shell(`${noFinalizer}; kubectl delete membercluster/saved; kubectl delete placementpolicy/saved -n shop`);
    await shell(`kubectl delete secret ${secret.name} -n ${secret.namespace}`);
    expect(await shell(restore)).toMatch(/secret\/member-saved created\nmembercluster.spillway.dev\/saved created\n/);
    const back =
      'kubectl get membercluster saved -o jsonpath={.metadata.finalizers}{.spec.credentials.secretRef.namespace}';
    expect(await shell(back)).toBe('default');
    expect(await shell('kubectl get placementpolicy saved -n shop -o jsonpath={.spec.priority}')).toBe('7');
    expect(await shell(`kubectl get secret ${secret.name} -n ${secret.namespace} -o jsonpath={.data.token}`)).toBe(
      'YWJj',
    );
  },
);

test('other patches of the page set what it says', async () => {
  await host.apply([
    member({}),
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'web', namespace: 'shop' }, spec: {} },
  ]);
  await shell.paste(failover.script('kubectl patch pdb web -n shop'));
  await shell.paste(failover.script('kubectl patch membercluster east --type=merge -p \'{"spec":{"clusterTaints"'));
  await shell.paste(failover.script('kubectl patch membercluster east --type=merge -p \'{"spec":{"probe"'));
  expect(await host.api.call('GET', '/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web')).toMatchObject({
    spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' },
  });
  expect(await host.api.call('GET', '/apis/spillway.dev/v1alpha1/memberclusters/east')).toMatchObject({
    spec: { clusterTaints: [{ key: 'gone', effect: 'NoExecute' }], probe: { nodesReady: 'WhileReachable' } },
  });
});

describe('files that pages have people apply', () => {
  const gangs = new Guide('docs/concepts/gangs.md');
  const admission = new Guide('docs/guides/admission.md');
  const scheduling = new Guide('docs/guides/scheduling.md');
  const prometheus = new Guide('docs/guides/kube-prometheus.md');

  beforeAll(async () => {
    const names = ['spillway-system', 'monitoring'];
    await host.apply(names.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })));
  });

  test.each([
    ['for moves', failover.script('kubectl apply -f manifests/scheduler/descheduler.yaml')],
    ['for gangs', gangs.script('kubectl apply -f manifests/admission/pod-defaults.yaml')],
    ['for what pods get', admission.script('kubectl apply -f manifests/admission/pod-defaults.yaml')],
    ['for schedulers', scheduling.script('kubectl apply -f manifests/secrets.yaml')],
    ['for a second scheduler', scheduling.script('kubectl apply -f manifests/scheduler/service.yaml')],
    ['for the scheduler of the cluster', scheduling.script('kubectl apply -f manifests/scheduler/extender-pods.yaml')],
    ['to let Prometheus in', prometheus.script('kubectl create role prometheus-k8s')],
    ['for Grafana', prometheus.script('kubectl create configmap spillway-dashboard')],
    // Last: it is asked about pods, and does not answer here.
    ['for what pods get by a webhook', admission.script('kubectl apply -f manifests/secrets.yaml')],
  ])('are taken: %s', async (_for, script) => {
    await shell.paste(script);
  });
});
