import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { dashboard } from '../../hack/dashboard.ts';
import { COMBINATIONS } from '../../hack/helm-chart.ts';
import { startKwok } from '../../hack/kwok.ts';
import { addMember, startSpillway, waitForNode, waitReady, type Spillway } from '../../hack/spillway.ts';
import { Workspace } from '../../hack/workspace.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { DEFAULT_CHOICES, installation, type Choices } from '../../src/cli/installation.ts';
import { nameOf } from '../../src/cli/known-kinds.ts';
import { manifestObjects, type ManifestObject } from '../../src/cli/manifests.ts';
import { CHART, helmIn, type Helm } from '../fixtures/helm.ts';
import { type Fields, IDLE, pod, podsOf, podSpec, runPod, shell } from '../fixtures/live-pods.ts';

/** The Helm chart by the real helm: the same objects as `kubectl spillway install`, and a release's life on a real API server. */
let folder: string;
let helm: Helm;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'helm-'));
  helm = await helmIn(folder);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const set = (values: object): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);

describe('the chart', () => {
  /** What is rendered for a cluster of the version that the manifests name. */
  const KUBERNETES = ['--kube-version', 'v1.36.3', '--namespace', 'default'];

  interface Loose extends ManifestObject {
    data?: Record<string, string>;
    spec?: { template?: { metadata: { annotations?: Record<string, string> } } };
  }

  /** Without what only a release needs, and a configuration by what it says. */
  function comparable(objects: readonly ManifestObject[]): Record<string, unknown> {
    return Object.fromEntries(
      objects.map((one) => {
        const object: Loose = structuredClone(one);
        if (object.data !== undefined) {
          const read = Object.entries(object.data).map(([key, text]) => [key, parse(text)] as const);
          return [nameOf(one), { ...object, data: Object.fromEntries(read) }];
        }
        const { annotations } = object.metadata;
        if (object.kind === 'CustomResourceDefinition' && annotations !== undefined) delete object.metadata.annotations;
        delete object.spec?.template?.metadata.annotations;
        return [nameOf(one), object];
      }),
    );
  }

  test('passes the strictest lint', async () => {
    expect(await helm.run('lint', '--strict', CHART)).toContain('1 chart(s) linted, 0 chart(s) failed');
  });

  test.each(COMBINATIONS)(
    'renders what install applies: $scheduler, $admission, $hostIdentity, $multiCluster',
    async (chosen) => {
      const expected = comparable(installation({ ...DEFAULT_CHOICES, ...chosen }));
      expect(comparable(await helm.template(...KUBERNETES, ...set(chosen)))).toEqual(expected);
    },
  );

  test('and with other images and numbers', async () => {
    const chosen: Partial<Choices> = {
      image: 'example.test/spillway:1',
      schedulerImage: 'example.test/scheduler:2',
      replicas: 3,
    };
    const expected = comparable(installation({ ...DEFAULT_CHOICES, ...chosen }));
    expect(comparable(await helm.template(...KUBERNETES, ...set(chosen)))).toEqual(expected);
  });

  test('chooses by the version of the cluster what install chooses by it', async () => {
    const old = await helm.template('--kube-version', 'v1.33.9-vendor.4', '--namespace', 'default');
    const expected = installation({ ...DEFAULT_CHOICES, admission: 'Webhook' });
    expect(old.map(nameOf).toSorted()).toEqual(expected.map(nameOf).toSorted());
    expect(JSON.stringify(old)).toContain('registry.k8s.io/kube-scheduler:v1.33.9"');
    const recent = await helm.template('--kube-version', 'v1.36.0-vendor.1', '--namespace', 'default');
    expect(recent.map(nameOf)).toContain('mutatingadmissionpolicy.admissionregistration.k8s.io/spillway-pod-defaults');
    await expect(helm.template('--kube-version', 'v1.29.0')).rejects.toThrow(/kubeVersion: >=1\.30/);
  });

  test('keeps the kinds of the Multi-Cluster Services API, too, and leaves them out where the cluster has them', async () => {
    const kindsWith = async (values: object): Promise<(string | undefined)[]> =>
      (await helm.template(...KUBERNETES, ...set(values)))
        .filter(({ metadata }) => metadata.name.endsWith('.multicluster.x-k8s.io'))
        .map(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy']);
    expect(await kindsWith({ multiCluster: 'Exchange' })).toEqual(['keep', 'keep']);
    expect(await kindsWith({ multiCluster: 'Exchange', 'crds.multiCluster': false })).toEqual([]);
  });

  test('keeps the kinds when the release goes, and restarts the manager when its configuration changes', async () => {
    const kinds = (await helm.template(...KUBERNETES)).filter(({ kind }) => kind === 'CustomResourceDefinition');
    expect(kinds.map(({ metadata }) => metadata.annotations)).toEqual(
      kinds.map(() => ({ 'helm.sh/resource-policy': 'keep' })),
    );
    const mark = async (values: object): Promise<string | undefined> => {
      const objects: Loose[] = await helm.template(...KUBERNETES, ...set(values));
      const manager = objects.find((one) => nameOf(one) === 'deployment.apps/spillway-manager');
      return manager?.spec?.template?.metadata.annotations?.['checksum/config'];
    };
    expect(await mark({})).toMatch(/^[0-9a-f]{64}$/);
    expect(await mark({ replicas: 5 })).toBe(await mark({}));
    expect(await mark({ 'config.logLevel': 'debug' })).not.toBe(await mark({}));
  });

  test('takes what is said of the configuration, also what is nothing', async () => {
    const config = {
      outages: { admissionSeconds: 0, toleration: 3600 },
      descheduler: { dryRun: false, movesPerSecond: 0.5 },
      kubelet: { servingCertificate: { mode: 'Csr' } },
      scheduler: { clientNames: ['someone'] },
      logLevel: 'debug',
    };
    const objects: Loose[] = await helm.template(...KUBERNETES, ...set({ config, admission: 'Webhook' }));
    const map = objects.find((one) => nameOf(one) === 'configmap/spillway-manager');
    expect(parse(map?.data?.['config.yaml'] ?? '')).toMatchObject({
      ...config,
      kubelet: { firstPort: 10_260, servingCertificate: { mode: 'Csr' } },
      admission: { schedulerName: 'spillway-scheduler', webhook: { enabled: true } },
    });
  });

  test('gives all pods what clusters ask of pods', async () => {
    const wanted = {
      imagePullSecrets: [{ name: 'ours' }],
      nodeSelector: { pool: 'system' },
      tolerations: [{ key: 'system', operator: 'Exists' }],
    };
    const objects = await helm.template(...KUBERNETES, ...set({ ...wanted, resources: { requests: { cpu: '1' } } }));
    const pods = objects
      .filter(({ kind }) => kind === 'Deployment')
      .map((one) => (one as unknown as { spec: { template: { spec: object } } }).spec.template.spec);
    expect(pods).toMatchObject([wanted, wanted]);
    expect(JSON.stringify(pods)).toContain('"requests":{"cpu":"1","memory":"256Mi"}');
  });

  test('brings what the Prometheus operator and Grafana need, word for word, and with a label that is asked for', async () => {
    const isOurs = ({ apiVersion, metadata }: ManifestObject): boolean =>
      apiVersion === 'monitoring.coreos.com/v1' || metadata.name === 'spillway-dashboard';
    expect((await helm.template(...KUBERNETES)).filter(isOurs)).toEqual([]);
    const labels = { release: 'ours' };
    const monitoring = { podMonitor: true, alerts: true, dashboard: true, labels };
    const added = (await helm.template(...KUBERNETES, ...set({ monitoring }))).filter(isOurs);
    const expected = ['pod-monitor.yaml', 'prometheus-rule.yaml'].flatMap((file) =>
      manifestObjects(`monitoring/${file}`),
    );
    const [board, ...others] = added.toSorted((a, b) => a.kind.localeCompare(b.kind));
    expect(board).toMatchObject({
      kind: 'ConfigMap',
      metadata: { labels: { grafana_dashboard: '1', ...labels } },
      data: { 'spillway.json': dashboard() },
    });
    expect(others).toEqual(
      expected.map((one) => ({
        ...one,
        metadata: { ...one.metadata, labels: { ...one.metadata.labels, ...labels } },
      })),
    );
  });

  test.each([
    [{ replica: 2 }, "'replica' not allowed"],
    [{ replicas: '2' }, "at '/replicas'"],
    [{ replicas: 0 }, "at '/replicas'"],
    [{ image: '' }, "at '/image'"],
    [{ scheduler: 'second' }, "at '/scheduler'"],
    [{ admission: 'None' }, "at '/admission'"],
    [{ multiCluster: 'Mirror' }, "at '/multiCluster'"],
    [{ crds: { keep: false } }, "at '/crds'"],
    [{ config: { logLevel: 'loud' } }, "at '/config/logLevel'"],
    [{ config: { descheduler: { movesPerSecond: -1 } } }, "at '/config/descheduler/movesPerSecond'"],
    [{ config: { http: { port: 9090 } } }, "'http' not allowed"],
    [
      { config: { kubelet: { servingCertificate: { mode: 'Files' } } } },
      "at '/config/kubelet/servingCertificate/mode'",
    ],
  ])('refuses %j by its name', async (values, name) => {
    // In a file: what fails repeats its own command line.
    const file = join(folder, 'values.json');
    writeFileSync(file, JSON.stringify(values));
    await expect(helm.template(...KUBERNETES, '--values', file)).rejects.toThrow(name);
    await expect(helm.run('lint', CHART, '--values', file)).rejects.toThrow('1 chart(s) failed');
  });
});

describe('a release', () => {
  let workspace: Workspace;
  let host: Cluster;
  let member: Cluster;
  let release: Helm;
  const IN = ['--namespace', 'spillway-system'];

  beforeAll(async () => {
    workspace = Workspace.create();
    [host, member] = await Promise.all([
      startCluster(workspace, { name: 'host' }),
      startCluster(workspace, { name: 'east', serviceCidr: '10.97.0.0/16' }),
    ]);
    await Promise.all([
      startKwok(host, { nodes: 2, prefix: 'local', cpu: '4' }),
      startKwok(member, { nodes: 1, cpu: '8' }),
    ]);
    release = await helmIn(host.dir, host.kubeconfig);
  });
  afterAll(async () => {
    await workspace?.close();
  });

  async function names(kinds: string): Promise<string[]> {
    const { stdout } = await host.kubectl(['get', kinds, '-A', '-o', 'name']);
    return stdout.split('\n').filter((line) => line.includes('spillway'));
  }
  async function shortNames(): Promise<unknown> {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/placementscores.spillway.dev';
    const { spec } = (await host.api.call('GET', path)) as { spec: { names: { shortNames?: string[] } } };
    return spec.names.shortNames;
  }
  async function replicas(name: string): Promise<string> {
    const path = `jsonpath={.spec.replicas} {.status.availableReplicas}`;
    return (await host.kubectl(['get', 'deployment', name, '-n', 'spillway-system', '-o', path])).stdout;
  }

  /** The chart as an older version could have been: a kind with less. */
  function older(): string {
    const copy = join(host.dir, 'older');
    cpSync(CHART, copy, { recursive: true });
    const kind = join(copy, 'templates/crds/spillway.dev_placementscores.yaml');
    const chart = join(copy, 'Chart.yaml');
    writeFileSync(kind, readFileSync(kind, 'utf8').replace(/ {4}shortNames:\n {6}- pscore\n/, ''));
    writeFileSync(chart, readFileSync(chart, 'utf8').replaceAll(/ersion: \d.*/gi, 'ersion: 0.0.1'));
    return copy;
  }

  test('is installed and ready, and says what is next', async () => {
    await release.run('install', 'spillway', CHART, ...IN, '--create-namespace', '--dry-run=server');
    expect(await names('crds,clusterroles,deployments')).toEqual([]);
    const said = await release.run('install', 'spillway', older(), ...IN, '--create-namespace', '--wait');
    expect(said).toContain('kubectl spillway join NAME --member-context CONTEXT');
    expect(said).toContain('pod-security.kubernetes.io/enforce=restricted');
    expect([await replicas('spillway-manager'), await replicas('spillway-kube-scheduler')]).toEqual(['2 2', '2 2']);
    expect(await shortNames()).toBeUndefined();
    const expected = installation(DEFAULT_CHOICES).filter(({ kind }) => kind !== 'Namespace');
    for (const object of expected) {
      const { kind, metadata } = object;
      const where = metadata.namespace === undefined ? [] : ['-n', metadata.namespace];
      const found = await host.kubectl(['get', kind, metadata.name, ...where, '-o', 'name']);
      expect(found.stdout.trim(), found.stderr).toBe(nameOf(object));
    }
  });

  describe('with pods in a member', () => {
    let spillway: Spillway;

    beforeAll(async () => {
      // Plays the manager's pods, which are kwok's: with the account that the chart made.
      // Else each pod is written to once, ten seconds after it is bound.
      const config = join(host.dir, 'config.yaml');
      writeFileSync(config, 'outages: { toleration: Keep }\n');
      spillway = await startSpillway(host, { args: ['--config', config] });
      await addMember(host, member);
      await waitForNode(host, 'east');
      await Promise.all(['one', 'two', 'three'].map(async (name) => await runPod(host, inEast(name))));
    });

    // Bound by hand: kwok plays the scheduler, too.
    const inEast = (name: string): Fields => pod(name, 'default', podSpec([shell(IDLE)], { nodeName: 'east' }));

    /** What any write to a pod changes, or a copy that is not the same any more. */
    async function versions(): Promise<string[]> {
      const pods = (await Promise.all([podsOf(host, 'default'), podsOf(member, 'default')])).flat();
      return pods
        .filter(({ metadata }) => ['one', 'two', 'three'].includes(metadata.name))
        .map(({ metadata }) => `${metadata.name} ${metadata.uid ?? ''} ${metadata.resourceVersion ?? ''}`);
    }

    /** What a Deployment does with pods whose template has changed. */
    async function replaced(work: () => Promise<unknown>): Promise<void> {
      await work();
      await spillway.process.stop();
      spillway.process.restart();
      await waitReady(spillway);
    }

    test.each([
      ['upgraded', async () => await release.run('upgrade', 'spillway', CHART, ...IN, '--wait')],
      ['rolled back', async () => await release.run('rollback', 'spillway', '1', ...IN, '--wait')],
    ])('is %s: no pod is written to, none is made anew, and new ones come', async (how, work) => {
      const before = await versions();
      expect(before).toHaveLength(6);
      await replaced(work);
      await runPod(host, inEast(`after-it-is-${how.replace(' ', '-')}`));
      expect(await versions()).toEqual(before);
    });

    afterAll(async () => {
      await spillway?.process.stop();
    });
  });

  test('is upgraded, its kinds, too, and takes away what is not chosen any more', async () => {
    const values = set({ replicas: 1, scheduler: 'Own', 'config.logLevel': 'debug' });
    await release.run('upgrade', 'spillway', CHART, ...IN, ...values, '--wait');
    expect(await shortNames()).toEqual(['pscore']);
    expect(await replicas('spillway-manager')).toBe('1 1');
    expect(await names('deployments')).toEqual(['deployment.apps/spillway-manager']);
    expect(await names('mutatingadmissionpolicies')).toContain(
      'mutatingadmissionpolicy.admissionregistration.k8s.io/spillway-extender-pods',
    );
    const { stdout } = await host.kubectl(['get', 'cm', 'spillway-manager', '-n', 'spillway-system', '-o', 'yaml']);
    expect(stdout).toContain('logLevel: debug');
  });

  test('again changes nothing', async () => {
    const objects = 'deployments,clusterroles,crds,validatingadmissionpolicies,configmaps';
    const versions = async (): Promise<string> =>
      (
        await host.kubectl([
          'get',
          objects,
          '-A',
          '-o',
          'jsonpath={range .items[*]}{.metadata.uid}{.metadata.generation}{"\\n"}{end}',
        ])
      ).stdout;
    const before = await versions();
    await release.run('upgrade', 'spillway', CHART, ...IN, '--reuse-values', '--wait');
    expect(await versions()).toBe(before);
  });

  test('is rolled back', async () => {
    await release.run('rollback', 'spillway', '1', ...IN, '--wait');
    expect([await replicas('spillway-manager'), await replicas('spillway-kube-scheduler')]).toEqual(['2 2', '2 2']);
    expect(await names('mutatingadmissionpolicies')).not.toContain(
      'mutatingadmissionpolicy.admissionregistration.k8s.io/spillway-extender-pods',
    );
    expect(await shortNames()).toBeUndefined();
  });

  test('is uninstalled: the kinds and what people made of them stay, all else goes, and it can come again', async () => {
    await host.apply([
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'PlacementPolicy',
        metadata: { name: 'web', namespace: 'default' },
        spec: {
          resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }],
          placement: { clusterAffinity: { clusterNames: ['local'] } },
        },
      },
    ]);
    await release.run('uninstall', 'spillway', ...IN, '--wait');
    const others = [
      'clusterroles,clusterrolebindings,roles,rolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings',
      'mutatingadmissionpolicies,mutatingadmissionpolicybindings,mutatingwebhookconfigurations,csidrivers,storageclasses',
      'deployments,configmaps,services,serviceaccounts,poddisruptionbudgets',
    ];
    expect(await names(others.join(','))).toEqual([]);
    expect(await names('crds')).toHaveLength(KINDS.length);
    await release.run('install', 'spillway', CHART, ...IN, '--wait');
    expect(await shortNames()).toEqual(['pscore']);
    expect(await names('placementpolicies.spillway.dev')).toEqual(['placementpolicy.spillway.dev/web']);
  });
});
