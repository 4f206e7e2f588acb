import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort, nonLoopbackAddress } from '../../hack/addresses.ts';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { OVERLAYS } from '../../hack/kustomize.ts';
import { startKwok } from '../../hack/kwok.ts';
import { joinedKubeconfig } from '../../hack/joined-kubeconfig.ts';
import type { KubectlResult } from '../../hack/kubectl.ts';
import { repositoryRoot } from '../../hack/repository.ts';
import { startSecondScheduler } from '../../hack/second-scheduler.ts';
import { serviceAccountKubeconfig } from '../../hack/service-account.ts';
import { startSpillway, type Spillway } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { HOST_LABEL } from '../../src/api/marks.ts';
import { DEFAULT_CHOICES, installation } from '../../src/cli/installation.ts';
import { nameOf } from '../../src/cli/known-kinds.ts';
import { manifestObjects, objectsIn, type ManifestObject } from '../../src/cli/manifests.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { hostAccess } from '../../src/kube/credentials.ts';
import { memberAccess } from '../../src/kube/member-access.ts';
import { refusalOf } from '../../src/kube/member-trial.ts';
import { tokenClaims } from '../../src/kube/service-account-token.ts';
import { TokenRenewal } from '../../src/members/token-renewal.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import {
  eventsOf,
  type Fields,
  IDLE,
  newNamespace,
  pod,
  podSpec,
  podsOf,
  readPod,
  runPod,
  shell,
  untilPod,
} from '../fixtures/live-pods.ts';

/**
 * From two bare clusters to a burst, and back, by `kubectl spillway` as people run it. The pods of the manager and its scheduler
 * are played by kwok; both run as processes here, with the accounts and the Secrets that are installed.
 */
let workspace: Workspace;
let host: Cluster;
let member: Cluster;
/** With contexts `host` and `east`. */
let kubeconfig: string;
let spillway: Spillway;
/** As of somebody who left component `scheduler` out. */
let withoutScheduler: Spillway;
/** What the commands of docs/guides/install.md took from the first to the first pod in the member, in ms. */
let spent = 0;

async function timed<T>(work: Promise<T>): Promise<T> {
  const began = performance.now();
  const done = await work;
  spent += performance.now() - began;
  return done;
}

beforeAll(async () => {
  workspace = Workspace.create();
  const bindAddress = nonLoopbackAddress();
  [host, member] = await Promise.all([
    startCluster(workspace, { name: 'host' }),
    startCluster(workspace, { name: 'east', serviceCidr: '10.97.0.0/16', bindAddress }),
  ]);
  await Promise.all([
    startKwok(host, { nodes: 2, prefix: 'local', cpu: '4' }),
    startKwok(member, { nodes: 2, cpu: '8' }),
  ]);
  kubeconfig = join(host.dir, 'both.kubeconfig');
  writeFileSync(kubeconfig, joinedKubeconfig([host, member]), { mode: 0o600 });
});
afterAll(async () => {
  await workspace?.close();
});

/** A configuration in a ConfigMap by what it says. */
function withoutNotes(object: ManifestObject): unknown {
  const { data } = object as ManifestObject & { data?: Record<string, string> };
  return data === undefined
    ? object
    : { ...object, data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, parse(text)])) };
}

async function attempt(...words: string[]): Promise<KubectlResult> {
  return await kubectlSpillway(host, words, { kubeconfig, timeoutMs: 120_000 });
}

/** Standard output of a verb that succeeds, line by line. */
async function run(...words: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await attempt(...words);
  if (code !== 0) throw new Error(`kubectl spillway ${words.join(' ')}: exit code ${code}: ${stdout}${stderr}`);
  return stdout.trimEnd().split('\n');
}

async function secretOf(
  name: string,
): Promise<{ metadata: { resourceVersion: string }; data: Record<string, string> }> {
  return (await host.api.call('GET', `/api/v1/namespaces/spillway-system/secrets/${name}`)) as Awaited<
    ReturnType<typeof secretOf>
  >;
}

async function effective(namespace = 'shop', name = 'web'): Promise<string | undefined> {
  const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/placementpolicies/${name}`;
  const { status } = (await host.api.call('GET', path)) as {
    status?: { conditions?: { type: string; status: string; reason: string }[] };
  };
  const found = status?.conditions?.find(({ type }) => type === 'Effective');
  return found === undefined ? undefined : `${found.status} ${found.reason}`;
}

/** That a policy says so itself, by an Event, and through `doctor`. */
async function expectUnheeded(reason: string, words: RegExp): Promise<void> {
  const says = `False ${reason}`;
  await until(`it says ${says}`, async () => (await effective('plain', 'early')) === says, { timeoutMs: 90_000 });
  await until('an Event tells', async () =>
    (await eventsOf(host, 'plain', 'early', 'PlacementPolicy')).some((one) => one.reason === reason),
  );
  const { stdout } = await attempt('doctor');
  expect(stdout).toMatch(new RegExp(`^warn +policies +plain/early: .*${words.source}`, 'm'));
}

describe('install', () => {
  test('with a dry run stores nothing', async () => {
    const lines = await run('install', '--dry-run', 'server');
    expect(lines).toContain('clusterrole.rbac.authorization.k8s.io/spillway-manager created (server dry run)');
    expect(lines).toContain('deployment.apps/spillway-manager not judged (server dry run)');
    expect((await host.kubectl(['get', 'namespace', 'spillway-system'])).stderr).toContain('NotFound');
  });

  test('applies what the manifests say, and waits until it is ready', async () => {
    const lines = await timed(run('install', '--image', 'example.test/spillway:1'));
    const all = installation(DEFAULT_CHOICES).map(nameOf);
    const home = 'namespace/spillway-system';
    const names = [home, ...all.filter((name) => name !== home)];
    expect(lines.slice(0, -1)).toEqual(names.map((name) => `${name} created`));
    expect(lines.at(-1)).toMatch(/^Spillway .* is ready/);
    const images = [
      'get',
      'deployments',
      '-n',
      'spillway-system',
      '-o',
      'jsonpath={.items[*].spec.template.spec.containers[*].image}',
    ];
    const { stdout } = await host.kubectl(images);
    expect(stdout).toMatch(/^registry\.k8s\.io\/kube-scheduler:v1\.36\.\d+ example\.test\/spillway:1$/);
  });

  test('again changes nothing, and remembers what was chosen', async () => {
    const lines = await run('install');
    expect(lines.slice(0, -1).filter((line) => !line.endsWith(' unchanged'))).toEqual([]);
  });

  test('lets policies come before anybody can follow them', async () => {
    // What policies need to be told of they are told after a minute: meanwhile the rest goes on.
    withoutScheduler = await startSpillway(host, { name: 'without-scheduler', logLevel: 'debug' });
    const ns = await newNamespace(host, 'plain');
    await host.apply([
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'PlacementPolicy',
        metadata: { name: 'early', namespace: ns },
        spec: {
          resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }],
          placement: { clusterAffinity: { clusterNames: ['local'] } },
        },
      },
      pod('of-another-scheduler', ns, { containers: [shell(IDLE)] }),
    ]);
  });

  test('is not undone by a dry run of uninstall', async () => {
    const lines = await run('uninstall', '--purge', '--dry-run', 'server');
    expect(lines).toContain('namespace/spillway-system deleted (server dry run)');
    expect(lines.filter((line) => !line.endsWith(' deleted (server dry run)'))).toEqual([]);
    const again = await run('install');
    expect(again.slice(0, -1).filter((line) => !line.endsWith(' unchanged'))).toEqual([]);
  });

  test('upgrade repairs what somebody changed, and takes away what is not chosen any more', async () => {
    await host.kubectl(['delete', 'clusterrole', 'spillway-scheduler']);
    await host.kubectl(['scale', '-n', 'spillway-system', 'deployment/spillway-manager', '--replicas=7']);
    const lines = await run('upgrade', '--scheduler', 'Own');
    const changed = lines.slice(0, -1).filter((line) => !line.endsWith(' unchanged'));
    expect(changed).toContain('clusterrole.rbac.authorization.k8s.io/spillway-scheduler created');
    expect(changed).toContain('deployment.apps/spillway-manager configured');
    expect(changed).toContain('deployment.apps/spillway-kube-scheduler deleted');
    expect(changed).toContain('mutatingadmissionpolicy.admissionregistration.k8s.io/spillway-extender-pods created');
    const back = await run('upgrade', '--scheduler', 'Second');
    expect(back).toContain('mutatingadmissionpolicy.admissionregistration.k8s.io/spillway-extender-pods deleted');
    expect(back).toContain('deployment.apps/spillway-kube-scheduler created');
  });

  test('brings what the exchange of Services needs only where that is chosen; the upstream kinds stay, and others are left alone', async () => {
    const may = async (): Promise<string> => {
      const as = ['--as', 'system:serviceaccount:spillway-system:spillway-manager'];
      return (
        await host.kubectl(['auth', 'can-i', 'create', 'serviceimports.multicluster.x-k8s.io', '-A', ...as])
      ).stdout.trim();
    };
    const kinds = 'customresourcedefinition.apiextensions.k8s.io';
    const guard = 'validatingadmissionpolicy.admissionregistration.k8s.io/spillway-multi-cluster-guard';
    const theirs = manifestObjects('multi-cluster/crds.yaml').filter(({ metadata }) => /imports/.test(metadata.name));
    await host.apply(theirs);
    const chosen = await attempt('upgrade', '--multi-cluster', 'Exchange', '--no-wait');
    expect(chosen.stdout).toContain(`${kinds}/serviceexports.multicluster.x-k8s.io created`);
    expect(chosen.stdout).toContain(`${guard} created`);
    expect(chosen.stderr).toContain(`${kinds}/serviceimports.multicluster.x-k8s.io is left as it is: somebody else`);
    await until('it may', async () => (await may()) === 'yes');
    const back = await attempt('upgrade', '--multi-cluster', 'None', '--no-wait');
    expect(back.stdout).toContain(`${guard} deleted`);
    expect(back.stderr).toContain(`note: ${kinds}/serviceexports.multicluster.x-k8s.io stays`);
    await until('it may not', async () => (await may()) === 'no');
  });

  test('names a context that is not there', async () => {
    const { code, stderr } = await attempt('install', '--context', 'nowhere');
    expect(code).toBe(1);
    expect(stderr).toContain('nowhere');
  });
});

test('kustomizations make the same objects, and the API server takes each of them', async () => {
  const byName = (objects: readonly ManifestObject[]) =>
    Object.fromEntries(objects.map((one) => [nameOf(one), withoutNotes(one)]));
  const looks = OVERLAYS.map(async ({ name, choices }) => {
    const folder = join(repositoryRoot(), 'deploy/kustomize', name);
    const { stdout, stderr } = await host.kubectl(['kustomize', folder]);
    expect(stderr).toBe('');
    const objects = objectsIn(stdout);
    expect(byName(objects), name).toEqual(byName(installation({ ...DEFAULT_CHOICES, ...choices })));
    const flags = ['--server-side', '--force-conflicts', '--validate=strict', '--dry-run=server', '-o', 'name'];
    const taken = await host.kubectl(['apply', '-k', folder, ...flags], { timeoutMs: 100_000 });
    expect(taken.code, `${name}: ${taken.stderr}`).toBe(0);
    expect(taken.stdout.trimEnd().split('\n').toSorted(), name).toEqual(objects.map(nameOf).toSorted());
  });
  await Promise.all(looks);
});

test('a policy says that no replica of the manager answers schedulers', async () => {
  await expectUnheeded('NoSchedulerComponent', /no replica of the manager answers schedulers/);
  expect((await attempt('doctor')).stdout).toMatch(/^FAIL +scheduling +nobody answers schedulers.*plain\/early/m);
  await withoutScheduler.process.stop('SIGTERM', 30_000);
});

describe('join', () => {
  beforeAll(async () => {
    const extenderPort = await freePort();
    spillway = await startSpillway(host, { extenderPort, extenderCertificates: 'SelfManaged', logLevel: 'debug' });
    await startSecondScheduler(host, { extenderPort });
  });

  test('refuses what cannot be a member, with the reason', async () => {
    const self = await attempt('join', 'me', '--member-context', 'host', '--server', host.server);
    expect(self.code).toBe(1);
    expect(self.stderr).toContain('a cluster cannot be a member of itself');
    expect((await attempt('join', 'east')).code).toBe(2);
  });

  test('judges all that may be granted on top, with a dry run, and grants nothing', async () => {
    const more = ['--node-metrics', '--mirror-services', '--exchange-services', '--allow-privileged'];
    const words = ['join', 'east', '--member-context', 'east', '--dry-run', 'server'];
    const { code, stdout, stderr } = await attempt(...words, ...more);
    expect(code, stderr).toBe(0);
    for (const name of ['spillway-node-metrics', 'spillway-services', 'spillway-imports', 'spillway-privileged'])
      expect(stdout).toContain(`clusterrolebinding.rbac.authorization.k8s.io/${name} created (server dry run)`);
    expect(stdout).toContain('serviceimports.multicluster.x-k8s.io created (server dry run)');
    expect(stderr).toContain('can do everything on the nodes that they run on');
    expect((await member.kubectl(['get', 'crds,clusterrolebindings', '-o', 'name'])).stdout).not.toMatch(
      /spillway|multicluster/,
    );
  });

  test('limits what is lent, if that is asked for', async () => {
    await member.api.call('POST', '/api/v1/namespaces', { metadata: { name: 'lent' } });
    const limits = ['--lend', 'lent', '--quota', 'pods=5', '--network-policy'];
    const lines = await run('join', 'east', '--member-context', 'east', '--dry-run', 'server', ...limits);
    expect(lines).toContain('resourcequota/spillway created (server dry run)');
    expect(lines).toContain('networkpolicy.networking.k8s.io/spillway created (server dry run)');
    const own = { metadata: { name: 'spillway' }, spec: { hard: { pods: '1' } } };
    await member.api.call('POST', '/api/v1/namespaces/lent/resourcequotas', own);
    const { code, stderr } = await attempt('join', 'east', '--member-context', 'east', ...limits);
    expect(code).toBe(1);
    expect(stderr).toContain('nothing shows that join made resourcequota/spillway in namespace lent\n');
    await member.api.call('DELETE', '/api/v1/namespaces/lent');
  });

  test('makes a cluster a member within a minute', async () => {
    const before = spent;
    const lines = await timed(run('join', 'east', '--member-context', 'east'));
    expect(spent - before).toBeLessThan(60_000);
    expect(lines.at(-1)).toMatch(/^east is Ready: room for 16 CPUs, .* of memory, \d+ pods$/);
    const { data } = await secretOf('member-east');
    expect(Object.keys(data).sort()).toEqual(['kubeconfig', 'token']);
    expect(Buffer.from(data['kubeconfig'] ?? '', 'base64').toString()).not.toContain('token');
  });

  test('again changes nothing', async () => {
    const before = await secretOf('member-east');
    const lines = await run('join', 'east', '--member-context', 'east');
    expect(lines.slice(0, -1).filter((line) => !line.endsWith(' unchanged'))).toEqual([]);
    expect((await secretOf('member-east')).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  test('a policy says that nobody asks, as another scheduler has bound its pods', async () => {
    await expectUnheeded('NoSchedulerAsks', /no kube-scheduler has ever asked Spillway about one/);
  });

  test('the token is renewed by the account itself, with the rights that both clusters grant', async () => {
    const before = await secretOf('member-east');
    const text = (key: string): string => Buffer.from(before.data[key] ?? '', 'base64').toString();
    const file = join(host.dir, 'manager.kubeconfig');
    writeFileSync(file, await serviceAccountKubeconfig(host, 'spillway-system', 'spillway-manager'), { mode: 0o600 });
    const clients = [
      new KubeClient({ cluster: 'host', ...(await hostAccess({ kubeconfig: file })) }),
      new KubeClient({ cluster: 'east', ...memberAccess(text('kubeconfig'), text('token')) }),
    ] as const;
    const ended = new AbortController();
    const failures: string[] = [];
    const renewal = new TokenRenewal({
      host: clients[0],
      member: clients[1],
      reference: () => ({ namespace: 'spillway-system', name: 'member-east', key: 'kubeconfig' }),
      refusal: async (...tried) => await refusalOf('east', ...tried),
      mayWrite: () => true,
      failed: (words) => failures.push(words),
      logger: pino({ level: 'silent' }),
      // A day and an hour later.
      clock: () => Date.now() + 25 * 3_600_000,
    });
    const running = renewal.run(ended.signal);
    const after = await until('there is another token', async () => {
      expect(failures).toEqual([]);
      const now = await secretOf('member-east');
      return now.data['token'] === before.data['token'] ? undefined : now;
    });
    ended.abort();
    await running;
    await Promise.all(clients.map((client) => client.close()));
    expect({ ...after.data, token: '' }).toEqual({ ...before.data, token: '' });
    const claims = tokenClaims(Buffer.from(after.data['token'] ?? '', 'base64').toString());
    expect(claims).toMatchObject({ namespace: 'spillway-access', name: 'spillway-host' });
    expect((claims?.expiresAt ?? 0) - (claims?.issuedAt ?? 0)).toBe(7 * 24 * 3_600_000);
  });

  test('then pods burst by a policy, and nothing was configured for it', async () => {
    await host.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { 'spillway.dev/burst': 'policies' } } },
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'PlacementPolicy',
        metadata: { name: 'web', namespace: 'shop' },
        spec: {
          resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }],
          placement: { clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ clusterNames: ['east'] }] } },
        },
      },
    ]);
    await until('it is told that nobody has asked', async () => (await effective()) === 'Unknown NotAskedYet');
    const create = ['create', 'deployment', 'web', '-n', 'shop', '--image=example.test/web:1', '--replicas=10'];
    expect((await host.kubectl(create)).code).toBe(0);
    expect((await host.kubectl(['set', 'resources', 'deployment/web', '-n', 'shop', '--requests=cpu=1'])).code).toBe(0);
    const running = until(
      'ten pods run, some of them in the member',
      async () => {
        const path = '/api/v1/namespaces/shop/pods?fieldSelector=status.phase%3DRunning';
        const { items } = (await host.api.call('GET', path)) as {
          items: { spec: { nodeName: string; containers: { resources: object }[] } }[];
        };
        const asking = items.filter(({ spec }) => JSON.stringify(spec.containers[0]?.resources).includes('cpu'));
        return (
          asking.length === 10 &&
          asking.some(({ spec }) => spec.nodeName === 'east') &&
          asking.some(({ spec }) => spec.nodeName !== 'east')
        );
      },
      { timeoutMs: 60_000 },
    );
    await timed(running);
    expect(spent).toBeLessThan(180_000);
    for (const [namespace, name] of [
      ['shop', 'web'],
      ['plain', 'early'],
    ] as const)
      await until('it is told that one asks', async () => (await effective(namespace, name)) === 'True SchedulerAsks');
  });

  test('limits what comes into a namespace that is lent then', async () => {
    const limits = ['--lend', 'lent', '--quota', 'pods=1', '--network-policy'];
    await run('join', 'east', '--member-context', 'east', ...limits);
    const ns = await newNamespace(host, 'lent');
    const inEast = (name: string): Fields => pod(name, ns, podSpec([shell(IDLE)], { nodeName: 'east' }));
    await runPod(host, inEast('first'));
    await host.apply([inEast('second')]);
    const words = 'exceeded quota: spillway, requested: pods=1, used: pods=1, limited: pods=1';
    await untilPod(
      host,
      ns,
      'second',
      'is held by the quota',
      ({ status }) => status?.message?.includes(words) ?? false,
    );
    expect(await readPod(member, ns, 'second')).toBeUndefined();
    // Nothing here enforces network policies; it is for the copies.
    const path = `/apis/networking.k8s.io/v1/namespaces/${ns}/networkpolicies/spillway`;
    const { spec } = (await member.api.call('GET', path)) as { spec: object };
    const ours = { podSelector: { matchExpressions: [{ key: HOST_LABEL, operator: 'Exists' }] } };
    expect(spec).toEqual({ ...ours, policyTypes: ['Ingress'], ingress: [{ from: [ours] }] });
    expect((await podsOf(member, ns, HOST_LABEL)).map(({ metadata }) => metadata.name)).toEqual(['first']);
  });
});

describe('uninstall', () => {
  test('refuses while there are members', async () => {
    const { code, stderr } = await attempt('uninstall');
    expect(code).toBe(1);
    expect(stderr).toContain('pods in east would be left behind');
    expect((await host.kubectl(['get', 'deployment', '-n', 'spillway-system', 'spillway-manager'])).code).toBe(0);
  });

  test('leaves nothing behind', async () => {
    await host.kubectl(['delete', 'namespace', 'shop', 'lent', '--wait=false']);
    await until(
      'the pods are gone',
      async () => {
        const { items } = (await member.api.call('GET', '/api/v1/pods?labelSelector=spillway.dev%2Fhost')) as {
          items: unknown[];
        };
        return items.length === 0;
      },
      { timeoutMs: 60_000 },
    );
    const left = await run('leave', 'east', '--member-context', 'east', '--timeout', '100');
    expect(left).toContain('secret/member-east deleted');
    expect(left).toContain('namespace/lent labeled');
    expect(left.at(-1)).toBe('namespace/spillway-access deleted');
    await until('nothing is left in the member', async () => {
      const all = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings', 'serviceaccounts', 'configmaps'];
      all.push(
        'resourcequotas',
        'networkpolicies',
        'namespaces',
        'secrets',
        'validatingadmissionpolicies',
        'validatingadmissionpolicybindings',
      );
      const { stdout } = await member.kubectl(['get', all.join(','), '-A', '-o', 'name']);
      const ours = stdout.split('\n').filter((line) => /spillway|joined-by/.test(line));
      if (ours.length > 0) throw new Error(ours.join(', '));
      return true;
    });
    await spillway.process.stop();
    await run('uninstall', '--purge', '--timeout', '100');
    const kinds = [
      'clusterroles',
      'clusterrolebindings',
      'crds',
      'validatingadmissionpolicies',
      'mutatingadmissionpolicies',
      'rolebindings',
      'csidrivers',
      'namespaces',
    ];
    const { stdout } = await host.kubectl(['get', kinds.join(','), '-A', '-o', 'name']);
    expect(stdout.split('\n').filter((line) => line.includes('spillway'))).toEqual([]);
  }, 300_000);
});
