import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { singleFile } from '../../hack/single-file.ts';
import { until } from '../../hack/until.ts';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import type { PageState, WhyAnswer, WorkloadDetail } from '../../src/cli/ui/view.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { programVersion } from '../../src/version.ts';
import {
  kubectlCompletion,
  kubectlSpillway,
  pluginEnvironment,
  startKubectlSpillway,
} from '../fixtures/kubectl-plugin.ts';
import {
  type Fields,
  getPod,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podSpec,
  podsOf,
  readPod,
  runPod,
  serviceAccountIn,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { KARMADA_OBJECTS } from '../fixtures/karmada.ts';
import { MANIFEST_SHAPES, WORKLOAD_SHAPES } from '../fixtures/manifest-shapes.ts';
import { deployment, policy, settled } from '../fixtures/scheduling.ts';
import { openTerminal } from '../fixtures/terminal.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';
import { AT_LAST, type Break, ONCE_IT_IS_AWAY, untold, WHILE_IT_WORKS } from './broken-on-purpose.ts';

/** `kubectl spillway`, as people run it: the real kubectl finds the program on its PATH. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: [
      {
        name: 'east',
        kwok: { nodes: 2, cpu: '8' },
        options: {
          spec: {
            region: 'eu',
            serviceAccount: { allowed: ['Member'] },
            namespaces: { podSecurity: 'privileged' },
          },
        },
      },
      { name: 'west', kwok: { nodes: 2, cpu: '4' } },
    ],
  });
  ({ host } = topology);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

/** Standard output of a verb that succeeds. */
async function spillway(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await kubectlSpillway(host, words);
  if (code !== 0) throw new Error(`kubectl spillway ${words.join(' ')}: exit code ${code}: ${stderr}`);
  return stdout;
}

/** Path of a kubeconfig of somebody with these rights in the host and no more. */
async function viewer(name: string, rules: readonly object[]): Promise<string> {
  await host.apply([
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
    },
  ]);
  const file = join(host.dir, `${name}.kubeconfig`);
  writeFileSync(file, await host.kubeconfigFor(name), { mode: 0o600 });
  return file;
}

const container = (cpu: string) => ({
  name: 'main',
  image: 'registry.example/app:v1',
  resources: { requests: { cpu, memory: '1Gi' } },
});

describe('clusters', () => {
  test('shows each member, and what no pod has asked for there', async () => {
    await runPod(host, pod('three', 'default', podSpec([container('3')], onNode('east'))));
    const line = await until('the line of east', async () => {
      const lines = (await spillway('clusters')).split('\n');
      return lines.find((one) => /^east +True +True +True +1\/1 +1 +13\/16 +/.test(one));
    });
    expect(line).toMatch(/ v1\.36\.\d+ +\d+[sm]\S* +<none>$/);
    const { items } = JSON.parse(await spillway('clusters', 'east', '-o', 'json')) as { items: object[] };
    expect(items).toEqual([
      expect.objectContaining({
        name: 'east',
        ready: 'True',
        free: expect.objectContaining({ cpu: 13 }),
        region: 'eu',
      }),
    ]);
    expect(await spillway('clusters', '-o', 'name')).toBe('memberclusters/east\nmemberclusters/west\n');
  });

  test('names the right that is missing, and answers what it may', async () => {
    const members = { apiGroups: ['spillway.dev'], resources: ['memberclusters'], verbs: ['list'] };
    const some = await kubectlSpillway(host, ['clusters'], { kubeconfig: await viewer('some', [members]) });
    expect(some).toMatchObject({ code: 0 });
    expect(some.stdout).toMatch(/^east +True +True +True +\? +1 +\?\/16 /m);
    expect(some.stderr).toMatch(/you may not list nodes .*\n.*you may not list pods/);
    const none = await kubectlSpillway(host, ['clusters'], { kubeconfig: await viewer('none', []) });
    expect(none).toMatchObject({ code: 3, stdout: '' });
    expect(none.stderr).toMatch(/^error: you may not list memberclusters\.spillway\.dev in the cluster/);
    const unknown = await kubectlSpillway(host, ['clusters', 'moon']);
    expect(unknown).toMatchObject({ code: 4, stderr: 'error: there is no member moon: there are east, west\n' });
  });

  test('says that Spillway is not installed where it is not', async () => {
    const { cluster } = topology.member('west');
    const { code, stderr } = await kubectlSpillway(cluster, ['clusters']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/Spillway is not installed there[\s\S]*fix: use kubectl spillway install there/);
  });
});

describe('top', () => {
  test('shows what is there, what was asked for, and that nobody measures here', async () => {
    const look = async (...words: string[]) => await kubectlSpillway(host, ['top', 'east', ...words]);
    const line = await until('the line of east', async () => {
      const { stdout } = await look();
      return stdout.split('\n').find((one) => /^east +1\/\d+ +\? +3000m +16000m +\? +1024Mi +\d+Mi$/.test(one));
    });
    expect(line).toBeDefined();
    const { code, stdout, stderr } = await look('--nodes', '-o', 'json');
    expect(code).toBe(0);
    expect(stderr).toContain('note: what pods use is not known: nobody serves metrics.k8s.io in this cluster');
    const { items } = JSON.parse(stdout) as { items: object[] };
    expect(items).toEqual([
      expect.objectContaining({ name: 'east', cluster: 'east', requested: { cpu: 3, memory: 2 ** 30 }, used: null }),
    ]);
    expect((await look('-o', 'name')).stdout).toBe('memberclusters/east\n');
  });
});

describe('status', () => {
  test('shows who works for the members, and pods that are held back', async () => {
    const secret = { name: 'main', secret: { secretName: 'nobody-made-it' } };
    await host.apply([pod('held', 'default', podSpec([container('1')], { ...onNode('east'), volumes: [secret] }))]);
    const screen = await until('the screen has all parts', async () => {
      const text = await spillway('status');
      return /MandatorySecretNotFound +default\/held/.test(text) && text;
    });
    expect(screen).toMatch(/Managers\n {2}NAME.*\n {2}\S+ +\d+s ago +east,west +[a-z,]*scheduler/);
    expect(screen).toMatch(/Policies\n {2}none/);
    const status = JSON.parse(await spillway('status', '-o', 'json')) as Record<string, unknown>;
    expect(status).toMatchObject({
      kind: 'Status',
      managers: [{ members: ['east', 'west'] }],
      pods: { held: [{ reason: 'MandatorySecretNotFound', pods: 1 }] },
    });
  });

  test('with --watch draws the screen again when something changes, until Ctrl-C', async () => {
    const watch = 'trap : INT; "$KUBECTL" spillway status --watch; echo "code=$?"';
    const terminal = openTerminal(pluginEnvironment(host), watch);
    const screens = (): string[] => terminal.screen().split('\u001b[H\u001b[2J').slice(1);
    await until('the first screen is drawn', () => /Policies/.test(screens().at(-1) ?? ''));
    const secret = { name: 'main', secret: { secretName: 'nor-this' } };
    await host.apply([pod('watched', 'default', podSpec([container('1')], { ...onNode('east'), volumes: [secret] }))]);
    await until('a screen shows the change', () => /\n +2 +MandatorySecretNotFound /.test(screens().at(-1) ?? ''));
    expect(screens()[0]).toMatch(/\n +1 +MandatorySecretNotFound /);
    terminal.type('\u0003');
    expect(await terminal.ended).toMatch(/code=130\s*$/);
    await kubectl(host, ['delete', 'pod', 'watched', '--now']);
  });
});

test('what changes in a list is a line more with --watch, until Ctrl-C', async () => {
  const run = startKubectlSpillway(host, ['clusters', '--watch']);
  const lines = (): string[] => run.stdout().trimEnd().split('\n');
  await until('all are listed', () => lines().length >= 3);
  const before = lines().length;
  await spillway('cordon', 'west');
  await until('west is told of again', () =>
    lines()
      .slice(before)
      .some((line) => line.startsWith('west ')),
  );
  await spillway('uncordon', 'west');
  expect(lines().filter((line) => line.startsWith('NAME'))).toHaveLength(1);
  expect(await run.interrupt()).toBe(130);
});

test('logs and exec of a pod that is held say what it waits for', async () => {
  for (const words of [
    ['logs', 'held'],
    ['exec', 'held', '--', 'true'],
  ]) {
    const { code, stderr } = await host.kubectl(words);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /it has no running copy in cluster "east" at the moment: MandatorySecretNotFound: .*nobody-made-it/,
      ) as string,
    });
  }
});

/** Pods in situations of all kinds, and what has to be said of each. */
describe('why', () => {
  const SHOP = 'shop';
  const TOLERATES = { tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }] };
  const main = (more: Fields = {}): Fields => ({ name: 'main', image: 'registry.example/app:v1', ...more });
  const asks = (cpu: string): Fields => main({ resources: { requests: { cpu } } });
  const one = (name: string, spec: Fields, metadata: Fields = {}, namespace = SHOP): Fields =>
    pod(name, namespace, { terminationGracePeriodSeconds: 1, containers: [main()], ...TOLERATES, ...spec }, metadata);
  const inEast = onNode('east');

  beforeAll(async () => {
    const east = topology.member('east').cluster;
    for (const name of [SHOP, 'ruled', 'tight']) await newNamespace(host, name);
    // A namespace that was lent and has a quota, and one in which somebody else has a pod.
    for (const name of [SHOP, 'tight']) {
      const labels = { 'spillway.dev/allow-host': 'any' };
      await east.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }]);
      await serviceAccountIn(east, name);
    }
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'small', namespace: 'tight' } };
    await east.apply([{ ...quota, spec: { hard: { 'requests.cpu': '500m' } } }]);
    await east.apply([pod('taken', SHOP, { containers: [main()] })]);
    const gate = (name: string): Fields => ({ schedulingGates: [{ name }] });
    const gang = {
      labels: { 'spillway.dev/gang': 'train' },
      annotations: { 'spillway.dev/gang-size': '3' },
    };
    const ruled = {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }],
      placement: { clusterAffinity: { clusterNames: ['west'] } },
    };
    await host.apply([
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'PlacementPolicy',
        metadata: { name: 'only-west', namespace: 'ruled' },
        spec: ruled,
      },
      one('untolerating', { tolerations: [] }),
      one('forbidden', { containers: [asks('6')] }, {}, 'ruled'),
      one('bound-past-policy', { nodeName: 'east' }, {}, 'ruled'),
      one('too-large', { containers: [asks('12')] }),
      one('choosy', { nodeSelector: { disk: 'ssd' } }),
      one('over-quota', { containers: [asks('1')], ...inEast }, {}, 'tight'),
      one('taken', inEast),
      one('no-secret', { ...inEast, containers: [main({ envFrom: [{ secretRef: { name: 'absent' } }] })] }),
      one('gated', gate('example.com/budget')),
      one('gang-0', gate('spillway.dev/gang'), gang),
      one('no-scheduler', { schedulerName: 'nobody' }),
      one('image', inEast),
      one('finished', { ...inEast, restartPolicy: 'Never' }),
      one('lost', { ...inEast, restartPolicy: 'Never' }),
      one('well', inEast),
    ]);
    for (const name of ['image', 'finished', 'lost', 'well']) await untilRunning(host, SHOP, name);
    const status = (name: string, patch: Fields): Promise<string> =>
      kubectl(east, [
        'patch',
        'pod',
        '-n',
        SHOP,
        name,
        '--subresource=status',
        '--type=merge',
        '-p',
        JSON.stringify({ status: patch }),
      ]);
    const container = (state: Fields): Fields[] => [
      { name: 'main', image: 'registry.example/app:v1', imageID: '', ready: false, restartCount: 0, state },
    ];
    const pull = { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image: no such host' } };
    await status('image', { containerStatuses: container(pull) });
    const ended = { terminated: { exitCode: 0, reason: 'Completed', finishedAt: new Date().toISOString() } };
    await status('finished', { phase: 'Succeeded', containerStatuses: container(ended) });
    await kubectl(east, ['delete', 'pod', '-n', SHOP, 'lost', '--grace-period=0', '--force']);
  });

  /** Waits until the answer is so; Spillway and schedulers take their time. */
  async function answers(name: string, words: RegExp, namespace = SHOP, timeoutMs = 60_000): Promise<string> {
    return await until(
      `why ${name} says ${String(words)}`,
      async () => {
        const text = await spillway('why', name, '-n', namespace);
        if (words.test(text)) return text;
        throw new Error(text);
      },
      { timeoutMs, intervalMs: 500 },
    );
  }

  test.each<[string, RegExp, (RegExp | undefined)?, string?]>([
    [
      'untolerating',
      /What keeps it from east, west: the pod does not tolerate spillway\.dev\/virtual-node/,
      /- add a toleration/,
    ],
    [
      'forbidden',
      /east: the policy does not name it\n +west: .*no node has 6 cpu free \(largest free slot \d+ cpu\)/,
      /ask for less/,
      'ruled',
    ],
    [
      'bound-past-policy',
      /It was made with spec\.nodeName, for virtual node east, .* no scheduler was asked, .* PlacementPolicy only-west had no effect on it\./,
      /- leave spec\.nodeName out/,
      'ruled',
    ],
    ['too-large', /no node has 12 cpu free \(largest free slot \d+ cpu\)/, /ask for less/],
    ['choosy', /the node selector or node affinity of the pod leaves it out/, /change the node selector/],
    ['over-quota', /east: .*quota small: 1 requests\.cpu wanted, 500m left/, /raise the ResourceQuota/, 'tight'],
    ['taken', /stuck +Spillway +Held back \(NameTaken\): /, /- rename the pod/],
    ['no-secret', /stuck +Spillway +Held back \(MandatorySecretNotFound\): /, /- create the Secret/],
    ['gated', /It is behind scheduling gate example\.com\/budget/],
    ['gang-0', /Gang train is incomplete: 1 of 3 pods are there/],
    ['no-scheduler', /No scheduler has said anything of it in \S+ is nobody running\?/],
    [
      'image',
      /stuck +kubelet +The kubelet of east says: container main waits \(ImagePullBackOff\): .*no such host/,
      /check image registry/,
    ],
    ['finished', /finished \(Succeeded\): It has finished: all its containers ended with exit code 0/],
    ['lost', /lost \(Failed\): It has failed \(Member(PodLost|PodDeleted)\)/],
    [
      'well',
      /well \(Running\): It runs in member east, and all is well\./,
      /host scheduler +default-scheduler bound it to virtual node east/,
    ],
  ])('%s', async (name, words, help, namespace) => {
    const text = await answers(name, words, namespace);
    if (help !== undefined) expect(text).toMatch(help);
  });

  test('says as much as the viewer may know', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
    const kubeconfig = await viewer('pods-only', rules);
    const { code, stdout, stderr } = await kubectlSpillway(host, ['why', 'no-secret', '-n', SHOP], { kubeconfig });
    expect(code).toBe(0);
    expect(stdout).toMatch(/Which policy speaks about it is not known to you/);
    expect(stderr).toMatch(/allowed to list memberclusters\.spillway\.dev/);
    const unknown = await kubectlSpillway(host, ['why', 'nobody-made-this', '-n', SHOP]);
    expect(unknown).toMatchObject({ code: 4, stdout: '' });
  });

  test('of members that cannot be reached', async () => {
    const west = topology.member('west').cluster;
    await host.apply([one('on-west', onNode('west'))]);
    await untilRunning(host, SHOP, 'on-west');
    const servers = west.component('kube-apiserver');
    servers.signal('SIGSTOP');
    try {
      await answers(
        'on-west',
        /waits +Spillway +It is shop\/on-west in member west, which cannot be reached/,
        SHOP,
        60_000,
      );
      await answers('forbidden', /west: it cannot be reached: /, 'ruled', 60_000);
    } finally {
      servers.signal('SIGCONT');
    }
    await answers('on-west', /It runs in member west, and all is well/, SHOP, 60_000);
  });
});

describe('ui', () => {
  /** The page as a browser gets it that opens the address which is printed; `get` asks for more with the cookie. */
  async function open(kubeconfig?: string, ...words: string[]) {
    const run = startKubectlSpillway(host, ['ui', ...words], kubeconfig);
    const url = await until('its address is printed', () => /http:\S+/.exec(run.stdout())?.[0]);
    const entered = await fetch(url);
    const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
    const get = async (path: string): Promise<Response> => await fetch(new URL(path, url), { headers: { cookie } });
    const json = async <T>(path: string): Promise<T> => (await (await get(path)).json()) as T;
    return { run, url, get, json };
  }

  test('serves a page of the fleet with the rights of who runs it, until Ctrl-C', async () => {
    const ns = await newNamespace(host, 'shown');
    await host.apply([
      policy(ns, 'all', { clusterAffinity: { clusterNames: ['east'] } }),
      deployment(ns, 'web', 2, '100m'),
    ]);
    await settled(host, ns, 'web', { east: 2 });
    const { run, url, get, json } = await open();
    expect((await fetch(new URL('/', url))).status).toBe(403);
    const document = await get('/');
    expect(document.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    expect(await document.text()).toContain('<script type="module" src="/main.js">');
    expect((await get('/main.js')).status).toBe(200);
    const state = await until('the page has all parts', async () => {
      const found = await json<PageState>('/api/state');
      return (found.workloads ?? []).some(({ key }) => key === `${ns}/Deployment/web`) && found;
    });
    expect(state).toMatchObject({ missing: [], trouble: '', managers: [expect.anything()] });
    const [local, east] = state.places;
    expect(local).toMatchObject({ name: 'local', isLocal: true });
    expect(east).toMatchObject({
      name: 'east',
      state: 'ready',
      region: 'eu',
      cpu: { offered: 16 },
      nodes: { ready: 1 },
    });
    expect(state.workloads).toContainEqual(
      expect.objectContaining({ key: `${ns}/Deployment/web`, places: [{ cluster: 'east', pods: 2 }], waiting: 0 }),
    );
    expect(state.safety.map(({ id }) => id)).toContain('held');
    const detail = await json<WorkloadDetail>(`/api/workload?key=${encodeURIComponent(`${ns}/Deployment/web`)}`);
    expect(detail).toMatchObject({ history: [{ places: [{ cluster: 'east', pods: 2 }] }] });
    const [, name = ''] = detail.pods[0]?.pod.split('/') ?? [];
    const { explanation } = await json<WhyAnswer>(`/api/why?namespace=${ns}&name=${name}`);
    expect(explanation).toMatchObject({ phase: 'Running', answer: 'It runs in member east, and all is well.' });
    expect(await run.interrupt()).toBe(130);
    await expect(fetch(url)).rejects.toThrow();
  });

  test('shows to who may read one namespace what is there, and names what is missing', async () => {
    const read = ['get', 'list'];
    const kubeconfig = await viewer('page-of-pods', [
      { apiGroups: [''], resources: ['pods'], verbs: read },
      { apiGroups: ['spillway.dev'], resources: ['memberclusters'], verbs: read },
    ]);
    const { run, json } = await open(kubeconfig, '-n', 'shown');
    const state = await json<PageState>('/api/state');
    expect(state.missing).toContain('list nodes');
    expect(state.missing).toContain('list workloadplacements.spillway.dev in namespace shown');
    expect(state.workloads).toEqual([expect.objectContaining({ key: 'shown/Deployment/web' })]);
    expect(state.places.find(({ name }) => name === 'east')).toMatchObject({ cpu: null, pods: { running: 2 } });
    expect(await run.interrupt()).toBe(130);
    await kubectl(host, ['delete', 'namespace', 'shown', '--wait=false']);
  });
});

describe('translate', () => {
  test('what it makes of policies of Karmada and KubeFed the API server takes to the last field', async () => {
    const file = join(host.dir, 'karmada.json');
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: KARMADA_OBJECTS }));
    const ours = join(host.dir, 'translated.yaml');
    const { code, stdout } = await kubectlSpillway(host, ['translate', '-f', file]);
    // Application failover is not all the same.
    expect(code).toBe(5);
    writeFileSync(ours, stdout);
    const taken = await kubectl(host, ['apply', '--dry-run=server', '--validate=strict', '-o', 'name', '-f', ours]);
    // A federated workload with overrides becomes two.
    expect(taken.trim().split('\n')).toHaveLength(KARMADA_OBJECTS.length + 1);
  });
});

describe('simulate', () => {
  const SIM = 'sim';
  const labels = { app: 'shape' };

  /** Of labels, what controllers make up. */
  const MADE_UP = [
    'pod-template-hash',
    'controller-revision-hash',
    'controller-uid',
    'batch.kubernetes.io/controller-uid',
  ];

  /** What a pod is in the member, without what differs between any two pods. */
  const comparable = ({ metadata, spec }: Pod, name: string): unknown => {
    const { 'spillway.dev/host-version': _, ...annotations } = metadata.annotations ?? {};
    // A sum over the labels, too.
    if (MADE_UP.some((key) => key in (metadata.labels ?? {}))) delete annotations['spillway.dev/applied'];
    const { nodeName: __, ...rest } = spec;
    const made = Object.entries(metadata.labels ?? {}).map(([key, value]) => [key, MADE_UP.includes(key) ? '' : value]);
    const text = JSON.stringify({ labels: Object.fromEntries(made), annotations, spec: rest });
    return JSON.parse(
      text
        .replaceAll(metadata.labels?.['spillway.dev/uid'] ?? '', 'the-uid')
        .replaceAll(name, 'the-name')
        .replaceAll(/kube-api-access-\w{5}/g, 'kube-api-access'),
    );
  };

  beforeAll(async () => {
    await newNamespace(host, SIM);
    const service = {
      metadata: { name: 'web', namespace: SIM },
      spec: { selector: labels, ports: [{ name: 'http', port: 80 }] },
    };
    const overriders = {
      imageOverrider: [{ component: 'Registry', operator: 'replace', value: 'mirror.east' }],
      labelsOverrider: [{ operator: 'add', value: { tier: 'burst' } }],
    };
    const member = topology.member('east').cluster;
    const runtime = {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'shapes' },
      handler: 'any',
    };
    for (const cluster of [host, member]) {
      await cluster.apply([{ ...runtime, overhead: { podFixed: { cpu: cluster === host ? '10m' : '20m' } } }]);
    }
    await host.apply([
      { apiVersion: 'v1', kind: 'Service', ...service },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'worker', namespace: SIM } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login', namespace: SIM }, stringData: { user: 'ada' } },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'settings', namespace: SIM },
        data: { WEB_PORT: 'mine', COLOUR: 'red' },
      },
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'OverridePolicy',
        metadata: { name: 'mirror', namespace: SIM },
        spec: {
          resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', name: 'shape-overridden' }],
          overrideRules: [{ targetCluster: { clusterNames: ['east'] }, overriders }],
        },
      },
    ]);
  });

  interface Simulated {
    object: string;
    notes: string[];
    places: { cluster: string; becomes: { pod: Pod | null; refused: string | null }[] }[];
  }
  const simulate = async (manifests: readonly Fields[]): Promise<Simulated[]> => {
    const input = manifests.map((one) => JSON.stringify(one)).join('\n---\n');
    const { code, stdout, stderr } = await kubectlSpillway(host, ['simulate', '-f', '-', '-o', 'json'], { input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return (JSON.parse(stdout) as { items: Simulated[] }).items;
  };

  /** Of what was created, the copy in the member is what was foretold, after the member's API server has filled it in as it did for the other. */
  const expectAsForetold = async (foretold: Simulated | undefined, made: Pod): Promise<void> => {
    const [found] = foretold?.places.find(({ cluster }) => cluster === 'east')?.becomes ?? [];
    if (found?.pod === undefined || found.pod === null)
      throw new Error(`${foretold?.object ?? ''}: ${found?.refused ?? ''}`);
    const { pod: one } = found;
    const again = { ...one, metadata: { ...one.metadata, name: 'once-more' } };
    const path = `/api/v1/namespaces/${SIM}/pods?dryRun=All`;
    const stored = (await topology.member('east').cluster.api.call('POST', path, again)) as Pod;
    expect(comparable(stored, one.metadata.name), foretold?.object).toEqual(comparable(made, made.metadata.name));
  };

  test('renders the very pods that are then created', async () => {
    const east = topology.member('east').cluster;
    const asMember = { 'spillway.dev/service-account-mode': 'Member' };
    const manifests = Object.entries(MANIFEST_SHAPES).map(([name, spec]) => {
      const annotations = { note: name, ...(name === 'account-of-the-member' ? asMember : {}) };
      return pod(`shape-${name}`, SIM, { ...podSpec([], onNode('east')), ...spec }, { labels, annotations });
    });
    expect(manifests.length).toBeGreaterThanOrEqual(30);
    const foretold = await simulate(manifests);
    expect(await podsOf(host, SIM)).toEqual([]);
    expect(foretold.map(({ object, notes }) => [object, notes])).toEqual(
      Object.keys(MANIFEST_SHAPES).map((name) => [`Pod/shape-${name}`, []]),
    );
    await host.apply(manifests);
    for (const [index, name] of Object.keys(MANIFEST_SHAPES).entries()) {
      const made = await until(`${name} is in the member`, async () => await readPod(east, SIM, `shape-${name}`));
      await expectAsForetold(foretold[index], made);
    }
    // Of what is there already it says the same.
    const [plain] = await simulate(manifests.slice(0, 1));
    await expectAsForetold(plain, await getPod(east, SIM, 'shape-plain'));
  }, 120_000);

  test('renders the pods that controllers make', async () => {
    const container = { name: 'main', image: 'registry.example/team/app:v1' };
    const manifests = Object.entries(WORKLOAD_SHAPES).map(([name, { apiVersion, kind, spec, pod: more }]): Fields => {
      const own = { app: name };
      const template = { metadata: { labels: own }, spec: podSpec([container], { ...onNode('east'), ...more }) };
      const selector = kind === 'Job' ? {} : { selector: { matchLabels: own } };
      return { apiVersion, kind, metadata: { name, namespace: SIM }, spec: { ...spec, ...selector, template } };
    });
    const foretold = await simulate(manifests);
    await host.apply(manifests);
    for (const [index, name] of Object.keys(WORKLOAD_SHAPES).entries()) {
      const [made] = await until(`a pod of ${name} is in the member`, async () => {
        const found = await podsOf(topology.member('east').cluster, SIM, `app=${name}`);
        return found.length > 0 ? found : undefined;
      });
      if (made === undefined) throw new Error(`${name} has no pod`);
      await expectAsForetold(foretold[index], made);
    }
  }, 60_000);

  test('divides the pods of a Deployment as the scheduler does', async () => {
    await newNamespace(host, 'sim-weights');
    const weights = { east: 2, west: 1 };
    const staticWeightList = Object.entries(weights).map(([name, weight]) => ({
      weight,
      targetCluster: { clusterNames: [name] },
    }));
    const placement = {
      clusterAffinity: { clusterNames: Object.keys(weights) },
      replicaScheduling: { replicaDivisionPreference: 'Weighted', weightPreference: { staticWeightList } },
    };
    const manifest = deployment('sim-weights', 'web', 6, '500m');
    await host.apply([policy('sim-weights', 'weighted', placement)]);
    const answer = await kubectlSpillway(host, ['simulate', '-f', '-', '-o', 'json'], {
      input: JSON.stringify(manifest),
    });
    const { items } = JSON.parse(answer.stdout) as {
      items: { rules: string; waiting: number; places: { cluster: string; pods: number }[] }[];
    };
    const [found] = items;
    expect(found).toMatchObject({ rules: 'PlacementPolicy weighted', waiting: 0 });
    const counts = (found?.places ?? []).map(({ cluster, pods }) => [cluster, pods]);
    expect(Object.fromEntries(counts)).toEqual({ local: 0, east: 4, west: 2 });
    await host.apply([manifest]);
    await settled(host, 'sim-weights', 'web', { east: 4, west: 2 });
    const table = await kubectlSpillway(host, ['simulate', '-f', '-'], {
      input: JSON.stringify(deployment(SIM, 'huge', 1, '500')),
    });
    expect(table.code).toBe(5);
    expect(table.stdout).toMatch(/Deployment\/huge in sim: 1 pod, no rules speak about it\n[\s\S]*1 pod would wait/);
  });

  test('refuses what it cannot use, and needs a right for the dry run', async () => {
    const wrong = await kubectlSpillway(host, ['simulate', '-f', '-'], { input: 'a: [' });
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
    const nothing = await kubectlSpillway(host, ['simulate', '-f', '/nowhere/at/all']);
    expect(nothing.code).toBe(2);
  });
});

describe('cordon and uncordon', () => {
  const isCordoned = async (): Promise<boolean> => {
    const { stdout } = await host.kubectl(['get', 'node', 'west', '-o', 'jsonpath={.spec.unschedulable}']);
    return stdout === 'true';
  };

  test('reach the virtual nodes through the MemberCluster, and only say so with a dry run', async () => {
    for (const mode of ['client', 'server']) {
      expect(await spillway('cordon', 'west', `--dry-run=${mode}`)).toMatch(
        /^membercluster\/west cordoned \(.*dry run\)\n$/,
      );
    }
    expect(await spillway('uncordon', 'west')).toBe('membercluster/west already uncordoned\n');
    expect(await spillway('cordon', 'west')).toBe('membercluster/west cordoned\n');
    await until('the virtual node is cordoned', isCordoned);
    expect(await spillway('clusters', 'west', '--no-headers')).toMatch(/^west +True,SchedulingDisabled /);
    expect(await spillway('uncordon', 'west')).toBe('membercluster/west uncordoned\n');
    await until('the virtual node is not cordoned any more', async () => !(await isCordoned()));
  });

  test('change nothing without the right to, or for a name that is not there', async () => {
    const get = { apiGroups: ['spillway.dev'], resources: ['memberclusters'], verbs: ['get'] };
    const reader = await kubectlSpillway(host, ['cordon', 'west'], { kubeconfig: await viewer('reader', [get]) });
    expect(reader).toMatchObject({ code: 3, stdout: '' });
    expect(reader.stderr).toMatch(/^error: you may not patch memberclusters\.spillway\.dev/);
    const unknown = await kubectlSpillway(host, ['cordon', 'east', 'moon']);
    expect(unknown).toMatchObject({ code: 4, stdout: '' });
    expect(await spillway('clusters', 'east', '--no-headers')).toMatch(/^east +True /);
  });
});

describe('drain', () => {
  const DRAIN = 'drained';

  test('evicts through budgets, and refuses what would be lost', async () => {
    await newNamespace(host, DRAIN);
    await host.apply([
      deployment(
        DRAIN,
        'web',
        2,
        '100m',
        {},
        { ...onNode('west'), tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }] },
      ),
      {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'web', namespace: DRAIN },
        spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } },
      },
    ]);
    await settled(host, DRAIN, 'web', { west: 2 });
    await host.apply([pod('alone', DRAIN, podSpec([main()], onNode('west')))]);
    await untilRunning(host, DRAIN, 'alone');
    const refused = await kubectlSpillway(host, ['drain', 'west']);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/drained\/alone: it has no controller.*\nfix: /s);
    expect(await spillway('drain', 'west', '--force', '--dry-run=server')).toMatch(
      /^membercluster\/west cordoned \(server dry run\)\n/,
    );
    expect((await podsOf(host, DRAIN)).every(({ metadata }) => metadata.deletionTimestamp === undefined)).toBe(true);
    const before = await podsOf(host, DRAIN, 'app=web');
    // New ones have no place, so the second one has to wait for its budget, and the time is up.
    const late = await kubectlSpillway(host, ['drain', 'west', '--force', '--timeout=8']);
    expect(late.code).toBe(1);
    expect(late.stderr).toMatch(
      /waits: its disruption budget allows no eviction now[\s\S]*note: member west stays cordoned[\s\S]*error: pod drained\/web-\S+ was not evicted in time/,
    );
    await kubectl(host, ['delete', 'pdb', '-n', DRAIN, 'web']);
    expect(await spillway('drain', 'west', '--force', '--timeout=60')).toMatch(
      /membercluster\/west already cordoned\n[\s\S]*membercluster\/west drained\n$/,
    );
    const left = (await podsOf(host, DRAIN)).filter(({ spec }) => spec.nodeName === 'west');
    expect(left).toEqual([]);
    expect(before).toHaveLength(2);
    await kubectl(host, ['delete', 'deployment', '-n', DRAIN, 'web']);
    await spillway('uncordon', 'west');
  }, 180_000);

  const main = (): Fields => ({ name: 'main', image: 'registry.example/app:v1' });
});

describe('leave', () => {
  test('with a dry run on the server deletes nothing and evicts nobody', async () => {
    await newNamespace(host, 'stays');
    await host.apply([deployment('stays', 'web', 1, '100m', {}, onNode('west'))]);
    await settled(host, 'stays', 'web', { west: 1 });
    const [before] = await podsOf(host, 'stays');
    expect(await spillway('leave', 'west', '--force', '--dry-run=server')).toMatch(
      /^membercluster\/west deleted \(server dry run\)\npod\/web-\S+ \(namespace stays\) evicted \(server dry run\)\n/m,
    );
    const { stdout } = await host.kubectl(['get', 'membercluster', 'west', '-o', 'jsonpath={.metadata}']);
    expect(JSON.parse(stdout)).not.toHaveProperty('deletionTimestamp');
    const [after] = await podsOf(host, 'stays');
    expect(after?.metadata).toMatchObject({ uid: before?.metadata.uid });
    expect(after?.metadata.deletionTimestamp).toBeUndefined();
    await kubectl(host, ['delete', 'deployment', '-n', 'stays', 'web']);
  });
});

describe('rebalance', () => {
  const REBALANCED = 'rebalanced';
  const rebalance = async (...words: string[]) =>
    await kubectlSpillway(host, ['rebalance', '-n', REBALANCED, ...words], { timeoutMs: 120_000 });

  test('moves what would be elsewhere, tells what became of each workload, and refuses what is none', async () => {
    await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
    await newNamespace(host, REBALANCED);
    const only = (name: string): Fields =>
      policy(REBALANCED, 'web', { clusterAffinity: { clusterNames: [name] } }, 'web');
    await host.apply([only('west'), deployment(REBALANCED, 'web', 2, '100m')]);
    await settled(host, REBALANCED, 'web', { west: 2 });
    await host.apply([deployment(REBALANCED, 'unruled', 1, '100m', {}, onNode('west')), only('east')]);
    await settled(host, REBALANCED, 'unruled', { west: 1 });

    const none = await rebalance('web');
    expect(none).toMatchObject({ code: 2, stdout: '' });
    expect(none.stderr).toMatch(/^error: web is not the name of a workload\nfix: name it like deployment\/web;/);
    expect(await rebalance('deployment/gone')).toMatchObject({ code: 4, stdout: '' });
    const dry = await rebalance('deploy/web', '--dry-run=server');
    expect(dry.stdout.split('\n')).toEqual([
      expect.stringMatching(/^workloadrebalancer\.spillway\.dev\/web-[0-9a-f]{6} created \(server dry run\)$/),
      'deployment/web: 2 pods would be moved',
      ...Array.from({ length: 2 }, (): unknown =>
        expect.stringMatching(/^ {2}web-\S+: member west to member east \(PolicyChanged: .*\)$/),
      ),
      '',
    ]);
    expect(dry.code).toBe(0);
    await settled(host, REBALANCED, 'web', { west: 2 });
    const get = { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] };
    const kubeconfig = await viewer('looks-only', [get]);
    const words = ['rebalance', '-n', REBALANCED, 'deployment/web'];
    const mayNot = await kubectlSpillway(host, words, { kubeconfig });
    expect(mayNot).toMatchObject({ code: 3, stdout: '' });
    expect(mayNot.stderr).toMatch(/^error: you may not create workloadrebalancers\.spillway\.dev in the cluster/);
    expect(await kubectl(host, ['get', 'workloadrebalancers', '-o', 'name'])).toBe('');

    const done = await rebalance('deployment/web', 'deployment/unruled', '--wait', '--timeout', '90', '--ttl', '60');
    expect({ code: done.code, stdout: done.stdout.replace(/web-\w+/, 'web-x') }).toEqual({
      code: 5,
      stdout:
        'workloadrebalancer.spillway.dev/web-x created\ndeployment/web Successful: Rebalanced\n' +
        'deployment/unruled Failed: NoPolicy: no policy and no label of its namespace speaks about it\n',
    });
    await settled(host, REBALANCED, 'web', { east: 2 });
    const ttl = ['-o', 'jsonpath={.items[*].spec.ttlSecondsAfterFinished}'];
    expect(await kubectl(host, ['get', 'workloadrebalancers', ...ttl])).toBe('60');
    await kubectl(host, ['delete', 'namespace', REBALANCED, '--wait=false']);
  }, 180_000);
});

describe('explain-policy', () => {
  test('tells which clusters a policy chooses, and which workloads it decides about, also before it is created', async () => {
    const ns = await newNamespace(host, 'explained');
    const east = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['moon'] }] } };
    await host.apply([policy(ns, 'all', east), deployment(ns, 'web', 1, '100m')]);
    await settled(host, ns, 'web', { east: 1 });
    const explain = async (...words: string[]) => await kubectlSpillway(host, ['explain-policy', '-n', ns, ...words]);
    const found = await until('its place is told', async () => {
      const answer = await explain('all');
      return /Deployment\/web +this policy decides +east/.test(answer.stdout) ? answer : undefined;
    });
    expect(found.code).toBe(5);
    expect(found.stdout).toMatch(/^PlacementPolicy all in explained\n\nCLUSTER +TIER +SAYS\n/);
    expect(found.stdout).toMatch(/^east +1 +takes pods\nwest +<none> +the policy does not name it$/m);
    expect(found.stdout).toMatch(/^ {2}spec\.placement\..*: there is no member moon$/m);

    // Kinds that nothing has are told there as on the policy itself, which knows of those in the host, too.
    const odd = {
      ...(policy(ns, 'odd', {}) as { spec: object }),
      kind: 'ClusterPlacementPolicy',
      metadata: { name: 'odd' },
    };
    const resourceSelectors = [
      { apiVersion: 'apps/v1', kind: 'Deploymnet' },
      { apiVersion: 'example.com/v1', kind: 'Robot' },
    ];
    await host.apply([{ ...odd, spec: { ...odd.spec, resourceSelectors } }]);
    const never = /resourceSelectors\[0\]\.kind: nothing is chosen by Deploymnet \(apps\/v1\)/;
    const condition = 'jsonpath={.status.conditions[?(@.type=="Consistent")].message}';
    await until('it is told on the policy', async () => {
      const { stdout } = await host.kubectl(['get', 'clusterplacementpolicy', 'odd', '-o', condition]);
      return never.test(stdout) && stdout.includes('the host has no kind Robot (example.com/v1)');
    });
    expect((await explain('cpp/odd')).stdout).toMatch(never);
    await host.kubectl(['delete', 'clusterplacementpolicy', 'odd']);

    // One that is not there yet, and would come before it.
    const wanted = policy(ns, 'web', { clusterAffinity: { clusterNames: ['west'] } }, 'web');
    const input = JSON.stringify(wanted);
    const words = ['explain-policy', '-n', ns, '-f', '-', '-o', 'json'];
    const planned = await kubectlSpillway(host, words, { input });
    expect(planned).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(planned.stdout)).toMatchObject({
      kind: 'ExplainedPolicy',
      policy: 'PlacementPolicy web',
      workloads: [{ workload: 'Deployment/web', decides: true }],
    });
    await host.apply([wanted]);
    expect((await explain('pp/all')).stdout).toMatch(
      /PlacementPolicy web decides: it matches the workload more closely/,
    );

    const labelled = (
      name: string,
      tier: string,
      clusterNames: string[],
      resourceSelectors: object[] = [],
    ): object => ({
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'OverridePolicy',
      metadata: { name, namespace: ns },
      spec: {
        resourceSelectors,
        overrideRules: [
          { targetCluster: { clusterNames }, overriders: { labelsOverrider: [{ operator: 'add', value: { tier } }] } },
        ],
      },
    });
    await host.apply([labelled('gold', 'gold', ['east', 'west'])]);
    const overrides = await explain('op/gold');
    expect(overrides.stdout).toMatch(/^explained +Deployment\/web +east,west +changes \/metadata\/labels\/tier$/m);
    expect(overrides).toMatchObject({ code: 0, stderr: '' });
    // One that is not there yet, before one that comes later by its name.
    const first = JSON.stringify(labelled('a-first', 'silver', ['west']));
    const before = await kubectlSpillway(host, ['explain-policy', '-n', ns, '-f', '-'], { input: first });
    expect(before.stdout).toMatch(/overrideRules\[0\] comes later and wins$/m);
    // ConfigMaps, where it is for them.
    await kubectl(host, ['create', 'configmap', 'settings', '-n', ns, '--from-literal=level=info']);
    const settings = labelled(
      'settings',
      'silver',
      ['west'],
      [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'settings' }],
    );
    const ofData = await kubectlSpillway(host, ['explain-policy', '-n', ns, '-f', '-'], {
      input: JSON.stringify(settings),
    });
    expect(ofData.stdout).toMatch(/^explained +ConfigMap\/settings +west +changes \/metadata\/labels\/tier$/m);
    // All there are, and all of a kind, whatever the namespace.
    const everywhere = await kubectlSpillway(host, ['explain-policy', '-A', '-n', 'default']);
    expect(everywhere.stdout).toMatch(/^PlacementPolicy all in explained$/m);
    expect(everywhere.stdout).toMatch(/^OverridePolicy gold in explained$/m);
    expect(everywhere.code).toBe(5);
    const ofKind = await kubectlSpillway(host, ['explain-policy', 'op', '-A', '-o', 'json']);
    expect(ofKind).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(ofKind.stdout)).toMatchObject({
      kind: 'ExplainedPolicyList',
      items: expect.arrayContaining([
        expect.objectContaining({ kind: 'ExplainedOverride', policy: 'OverridePolicy gold', namespace: ns }),
      ]) as unknown,
    });
    expect(await explain('op/gold', '-A')).toMatchObject({ code: 2, stdout: '' });
    await kubectl(host, ['delete', 'overridepolicies', '-n', ns, '--all']);

    expect(await explain('gone')).toMatchObject({ code: 4, stdout: '' });
    expect(await explain('pod/web')).toMatchObject({ code: 2, stdout: '' });
    const rules = [
      {
        apiGroups: ['spillway.dev'],
        resources: ['memberclusters', 'placementpolicies', 'clusterplacementpolicies'],
        verbs: ['get', 'list'],
      },
      { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
    ];
    const kubeconfig = await viewer('knows-policies-only', rules);
    const little = await kubectlSpillway(host, ['explain-policy', '-n', ns, 'web'], { kubeconfig });
    expect(little.stdout).toContain('It matches no workload');
    expect(little.stderr).toContain(
      'note: it would be truer if you were allowed to list deployments.apps in namespace',
    );
    // The doctor would tell of the member that is not there.
    await kubectl(host, ['delete', 'placementpolicies', '-n', ns, '--all']);
    await kubectl(host, ['delete', 'namespace', ns, '--wait=false']);
  });
});

test('as a single file it has all with it, and needs nothing but Node.js', async () => {
  // Where no package is found.
  const folder = mkdtempSync(join(tmpdir(), 'single-file-'));
  try {
    const file = join(folder, 'kubectl-spillway');
    writeFileSync(file, await singleFile(), { mode: 0o755 });
    symlinkSync('kubectl-spillway', join(folder, 'kubectl_complete-spillway'));
    symlinkSync(process.execPath, join(folder, 'node'));
    const env = { PATH: `${folder}:/usr/bin:/bin` };
    const said = async (...words: string[]): Promise<string> => await kubectl(host, words, { env });
    expect(await said('spillway', '--help')).toContain('Usage: kubectl spillway [options] [command]');
    const version = `kubectl-spillway ${programVersion()}\n`;
    expect(await said('spillway', 'version')).toBe(version);
    // Where Node.js takes it for an ES module.
    const below = join(folder, 'module');
    mkdirSync(below);
    writeFileSync(join(below, 'package.json'), '{"type":"module"}');
    copyFileSync(file, join(below, 'kubectl-spillway'));
    expect(execFileSync(join(below, 'kubectl-spillway'), ['version'], { env, encoding: 'utf8' })).toBe(version);
    expect(await said('spillway', 'clusters', '-o', 'name')).toBe('memberclusters/east\nmemberclusters/west\n');
    expect(await said('spillway', 'install', '--dry-run=client', '-o', 'yaml')).toContain('name: spillway-manager');
    expect(await said('__complete', 'spillway', 'clusters', 'e')).toMatch(/^east\n/);
    const page = startKubectlSpillway(host, ['ui'], host.kubeconfig, env.PATH);
    const url = await until('the address of the page is printed', () => /http:\S+/.exec(page.stdout())?.[0]);
    const cookie = (await fetch(url)).headers.get('set-cookie')?.split(';')[0] ?? '';
    for (const path of ['/', '/main.js', '/style.css', '/packages/jsx-runtime.mjs'])
      expect((await fetch(new URL(path, url), { headers: { cookie } })).status, path).toBe(200);
    expect(await page.interrupt()).toBe(130);
    expect(readFileSync(file, 'utf8')).toMatch(/^commander \d[^\n]*\n+\(The MIT License\)/m);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('completion', () => {
  test('offers verbs and names of members through kubectl', async () => {
    expect(await kubectlCompletion(host, ['spillway', 'cl'])).toContainEqual(expect.stringMatching(/^clusters\t/));
    expect(await kubectlCompletion(host, ['spillway', 'clusters', 'e'])).toContain('east');
  });
});

/** Last, as it breaks what all others need. */
describe('support-bundle', () => {
  test('is one file that tar lists, with what is there and nothing secret', async () => {
    await host.apply([
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'planted', namespace: 'spillway-system' },
        stringData: { kubeconfig: 'planted-here' },
      },
      {
        ...policy('default', 'planted', {}, 'nobody'),
        metadata: { name: 'planted', namespace: 'default', annotations: { note: 'planted-here' } },
      },
    ]);
    const file = join(host.dir, 'support.tar.gz');
    const { code, stderr } = await kubectlSpillway(host, ['support-bundle', '--file', file]);
    expect(code).toBe(0);
    expect(stderr).toContain('reading virtual nodes');
    const tar = (...words: string[]): string => execFileSync('tar', words, { encoding: 'utf8', maxBuffer: 1 << 28 });
    const names = tar('tzf', file).trimEnd().split('\n');
    const paths = names.map((name) => name.replace(/^spillway-support-\d{8}T\d{6}Z\//, ''));
    expect(paths).toEqual(
      expect.arrayContaining([
        'index.json',
        'status.json',
        'doctor.json',
        'nodes.json',
        'spillway.dev/memberclusters.json',
      ]),
    );
    const all = tar('xOzf', file);
    for (const shown of ['"name": "east"', '"planted"', '"providerID"', '"spillway-scheduler"'])
      expect(all).toContain(shown);
    const { ca, cert, key } = host.adminAccess;
    for (const hidden of ['planted-here', 'PRIVATE KEY', cert, key, ca]) expect(all).not.toContain(hidden);
    const index = JSON.parse(tar('xOzf', file, names[0] ?? '')) as { files: object[]; notRead: object[] };
    expect(index.files.length).toBe(names.length - 1);
    expect(index.notRead).toEqual([]);
    const nothing = join(host.dir, 'nothing.tar.gz');
    const kubeconfig = await viewer('bundler', []);
    const answer = await kubectlSpillway(host, ['support-bundle', '-f', nothing, '-o', 'json'], { kubeconfig });
    expect(answer.code).toBe(0);
    const { notRead } = JSON.parse(answer.stdout) as { notRead: object[] };
    expect(notRead).toContainEqual({ what: 'virtual nodes', why: 'you may not list nodes' });
    const again = await kubectlSpillway(host, ['support-bundle', '--file', file]);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('it is there already') as string });
    await kubectl(host, ['delete', 'placementpolicy', 'planted', '-n', 'default']);
  });
});

describe('doctor', () => {
  async function doctor(kubeconfig?: string): Promise<{ code: number; stdout: string; stderr: string }> {
    return await kubectlSpillway(host, ['doctor'], kubeconfig === undefined ? {} : { kubeconfig });
  }

  test('finds nothing wrong where nothing is', async () => {
    // A busy machine may not have answered a probe just then.
    const { code, stdout, stderr } = await until('nothing is wrong', async () => {
      const answer = await doctor();
      if (/^FAIL/m.test(answer.stdout)) throw new Error(answer.stdout);
      return answer;
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const check of [
      'host version',
      'clock',
      'kinds',
      'manager',
      'members',
      'virtual nodes',
      'kubelet ports',
      'rights',
      'guards',
      'policies',
    ]) {
      expect(stdout).toMatch(new RegExp(`^ok +${check} `, 'm'));
    }
    expect(stdout).toMatch(/^warn +metrics API +nobody serves metrics\.k8s\.io[^\n]*\n +fix: install metrics-server/m);
  });

  test('names what the viewer may not look at, which is no failure', async () => {
    const { code, stdout } = await doctor(await viewer('patient', []));
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\? +members +not looked at: you may not list memberclusters\.spillway\.dev/m);
    expect(stdout).toMatch(/^\? +rights +not looked at: you may not create subjectaccessreviews/m);
    expect(stdout).toMatch(/^0 failures, /m);
  });

  test('names each thing that was broken on purpose, and what helps', async () => {
    for (const { work } of WHILE_IT_WORKS) await work(host);
    topology.member('west').cluster.component('kube-apiserver').signal('SIGSTOP');
    await until('west is told to be lost', async () =>
      /^FAIL +members +west: Reachable is False/m.test((await doctor()).stdout),
    );
    // In time to give its leases back.
    await topology.spillway.process.stop('SIGTERM', 30_000);
    for (const { work } of ONCE_IT_IS_AWAY) await work(host);
    const findings = async (): Promise<Finding[]> => {
      const { code, stdout } = await kubectlSpillway(host, ['doctor', '-o', 'json']);
      expect(code).toBe(5);
      return (JSON.parse(stdout) as { findings: Finding[] }).findings;
    };
    const told: Break['told'] = [
      ['failed', 'members', /west: Reachable is False/, /API server of the member/],
      ['failed', 'manager', /no manager works for any member/, /pods of the manager/],
      ['failed', 'scheduling', /nobody answers schedulers.*default\/beyond/, /components: \[members, scheduler\]/],
      ['failed', 'kubelet ports', /does not reach east/, /address and ports/],
    ];
    const stopped: Break = { what: 'a member and the manager that were stopped', told, work: () => Promise.resolve() };
    const all = [...WHILE_IT_WORKS, stopped, ...ONCE_IT_IS_AWAY];
    const untilTold = async (breaks: readonly Break[]): Promise<void> => {
      await until('doctor tells of all that is broken', async () => {
        const found = await findings();
        const left = untold(breaks, found);
        if (left.length > 0) throw new Error(`not of ${left.join('; ')}, but: ${JSON.stringify(found)}`);
        return true;
      });
    };
    await untilTold(all);
    await AT_LAST.work(host);
    await untilTold([AT_LAST]);
    const { stdout } = await doctor();
    expect(stdout).toMatch(
      /^FAIL +manager +no manager works for any member: [^\n]*\n +fix: see that pods of the manager run/m,
    );
  });
});
