import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import { startCluster } from '../../hack/cluster.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { LeaseElection } from '../../src/kube/lease-election.ts';
import { NAME_REFUSAL, WRONG_MEMBER_NAMES, WRONG_MEMBERS } from '../api/wrong-members.ts';
import { OBSERVER_AGENT } from '../../src/members/connection.ts';
import type { MemberLease } from '../../src/members/member-scope.ts';
import { letGo } from '../fixtures/live-pods.ts';
import { TcpProxy } from '../members/tcp-proxy.ts';
import { applyMember, applySecret, kubeconfigOf, MemberHarness, uidOf } from './member-harness.ts';

let workspace: Workspace;
let host: Cluster;
let east: Cluster;
let west: Cluster;

beforeAll(async () => {
  workspace = Workspace.create();
  [host, east, west] = await Promise.all([
    startCluster(workspace, { name: 'host', components: 'api-only' }),
    startCluster(workspace, { name: 'east', components: 'api-only', audit: true }),
    startCluster(workspace, { name: 'west', components: 'api-only' }),
  ]);
  await host.apply(manifest('crds/spillway.dev_memberclusters.yaml'));
  await host.apply(manifest('rbac.yaml'));
  await east.apply(manifest('member/read.yaml'));
  await until('the kinds are served', async () => {
    await host.api.call('GET', '/apis/spillway.dev/v1alpha1/memberclusters');
    return true;
  });
  // The manifests let the manager read Secrets in its own namespace; any other must be granted.
  const meta = { name: 'kubeconfigs', namespace: 'fleet' };
  const group = 'rbac.authorization.k8s.io';
  const manager = { kind: 'ServiceAccount', name: 'spillway-manager', namespace: 'spillway-system' };
  await host.apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fleet' } },
    {
      apiVersion: `${group}/v1`,
      kind: 'Role',
      metadata: meta,
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] }],
    },
    {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: meta,
      roleRef: { apiGroup: group, kind: 'Role', name: meta.name },
      subjects: [manager],
    },
  ]);
});

afterAll(async () => {
  await workspace.close();
});

function manifest(file: string): string {
  return readFileSync(new URL(`../../manifests/${file}`, import.meta.url), 'utf8');
}

describe('the kind', () => {
  it('is structural and established', async () => {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/memberclusters.spillway.dev';
    const crd = (await host.api.call('GET', path)) as { status: { conditions: { type: string; status: string }[] } };
    const conditions = Object.fromEntries(crd.status.conditions.map(({ type, status }) => [type, status]));
    expect(conditions).toEqual({ NamesAccepted: 'True', Established: 'True' });
  });

  it('explains every field of the spec', async () => {
    // Documents of the API server follow a new kind a moment later.
    const stdout = await until('the kind is documented', async () => {
      const result = await host.kubectl(['explain', 'membercluster.spec', '--recursive=false']);
      return result.code === 0 ? result.stdout : undefined;
    });
    expect(stdout).toContain('enum: NoSchedule, PreferNoSchedule, None');
    expect(stdout).toMatch(/credentials\s+<Object> -required-\s+How to reach the member/);
    expect(stdout).toMatch(/virtualNodes\s+<\[\]Object>\s+Node pools of the member/);
    const probe = await host.kubectl(['explain', 'mc.spec.probe.periodSeconds']);
    expect(probe.stdout).toContain('Time between two probes');
  });

  it('gets its defaults from the API server', async () => {
    const { stdout, stderr } = await dryRun({});
    expect(stderr).toBe('');
    expect((JSON.parse(stdout) as { spec: object }).spec).toEqual({
      credentials: { secretRef: { namespace: 'fleet', name: 'x', key: 'kubeconfig' } },
      taintMode: 'NoSchedule',
      namespaces: { mapping: 'Same', create: true, adoptExisting: true, podSecurity: 'baseline' },
      unschedulable: false,
      probe: {
        periodSeconds: 10,
        timeoutSeconds: 5,
        failureThreshold: 3,
        successThreshold: 1,
        podsUnreadyAfterSeconds: 60,
        nodesReady: 'WhileServed',
      },
      network: 'Flat',
      podEvents: 'Problems',
      serviceAccount: { mode: 'None' },
      daemonSets: 'Ignore',
      storage: { classes: [{ host: 'spillway' }] },
      hostPath: { policy: 'Refuse' },
      disruptionBudgets: 'Mirror',
      services: { mode: 'None', multiCluster: 'None' },
    });
  });

  it.each(WRONG_MEMBERS)('refuses %s and names the field', async (_what, spec, words) => {
    const { stderr, code } = await dryRun(spec);
    expect(code).not.toBe(0);
    expect(stderr).toContain(words);
  });

  it.each(WRONG_MEMBER_NAMES)('refuses the name %s', async (name) => {
    const { stderr, code } = await dryRun({}, name);
    expect(code).not.toBe(0);
    expect(stderr).toContain(NAME_REFUSAL);
  });

  async function dryRun(spec: object, name = 'x') {
    const object = {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name },
      spec: { credentials: { secretRef: { namespace: 'fleet', name: 'x' } }, ...spec },
    };
    return await host.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], {
      input: JSON.stringify(object),
    });
  }
});

describe('the controller', () => {
  let harness: MemberHarness;
  const proxies: TcpProxy[] = [];

  beforeAll(async () => {
    harness = await MemberHarness.on(host);
    await harness.start();
  });
  afterAll(async () => {
    await harness.stop();
    for (const proxy of proxies) await proxy.close();
    const secrets = (await host.api.call('GET', '/api/v1/namespaces/fleet/secrets')) as {
      items: { data: { kubeconfig: string } }[];
    };
    const keys = secrets.items.map(({ data }) => /client-key-data":"([^"]{40})/.exec(atob(data.kubeconfig))?.[1]);
    for (const key of keys) if (key !== undefined) expect(harness.logs.join('')).not.toContain(key);
  });

  async function proxyTo(cluster: Cluster): Promise<TcpProxy> {
    const proxy = await TcpProxy.to(cluster.server);
    proxies.push(proxy);
    return proxy;
  }

  it('takes a good member into service', async () => {
    // The rights of manifests/member/read.yaml are all that a connection needs.
    await applyMember(host, 'good', await east.kubeconfigFor('system:serviceaccount:spillway-access:spillway-host'));
    await harness.whenCondition('good', 'Ready', 'True');
    const conditions = await harness.conditions('good');
    expect([...conditions].map(([type, { status }]) => [type, status])).toEqual([
      ['Ready', 'True'],
      ['CredentialsValid', 'True'],
      ['Reachable', 'True'],
      ['IdentityPinned', 'True'],
      ['CapacityFresh', 'True'],
    ]);
    const status = await until('figures', async () => {
      const seen = await harness.status('good');
      return seen.allocatable?.['cpu'] === '4' ? seen : undefined;
    });
    expect(status).toMatchObject({
      observedGeneration: 1,
      identity: await uidOf(east),
      version: expect.stringMatching(/^v1\.\d+\./),
      allocatable: { cpu: '4', memory: '8Gi' },
    });
    expect(await harness.scopeOf('good')).toMatchObject({ starts: 1, ends: 0 });
    const { stdout } = await host.kubectl(['get', 'mc', 'good']);
    expect(stdout).toMatch(
      /^NAME +READY +REACHABLE +CREDENTIALS +VERSION +CPU +MEMORY +PODS +AGE +LEAVING\ngood +True +True +True +v1\.\d+\S* +4 +8Gi +0 /,
    );
  });

  it('tells the scope of an edit, and only of edits', async () => {
    const scope = await harness.scopeOf('good');
    expect(scope?.changes).toEqual([]);
    await applyMember(host, 'good', await kubeconfigOf(east), { unschedulable: true });
    await until('the edit arrives', () => scope?.changes.length === 1);
    expect(scope?.changes[0]?.spec.unschedulable).toBe(true);
    await until('the generation is observed', async () => (await harness.status('good')).observedGeneration === 2);
    expect(scope).toMatchObject({ starts: 1, ends: 0 });
  });

  it('writes nothing while nothing changes', async () => {
    const version = async () => {
      const object = await host.api.call('GET', '/apis/spillway.dev/v1alpha1/memberclusters/good');
      return (object as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
    };
    let last = await version();
    let since = Date.now();
    // Six probes and three looks of the writer.
    await until('six quiet seconds', async () => {
      const now = await version();
      if (now !== last) since = Date.now();
      last = now;
      return Date.now() - since > 6_000;
    });
  });

  it.each([
    [
      'exec',
      {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: '/bin/touch',
          args: ['/tmp/spillway-exec-ran'],
        },
      },
      'ExecPluginRefused',
    ],
    ['provider', { 'auth-provider': { name: 'gcp' } }, 'AuthProviderRefused'],
    ['paths', { 'client-certificate': '/etc/x.crt', 'client-key': '/etc/x.key' }, 'FilePathRefused'],
    ['nobody', {}, 'NoCredentials'],
  ])('refuses a kubeconfig with %s', async (name, user, reason) => {
    await applyMember(host, name, await kubeconfigOf(east, { user }));
    const credentials = await harness.whenCondition(name, 'CredentialsValid', 'False', reason);
    expect(credentials.message).toContain(`Secret fleet/${name}, key kubeconfig`);
    expect(await harness.whenCondition(name, 'Ready', 'False')).toMatchObject({ reason });
    expect(harness.scopes.has(name)).toBe(false);
    expect(existsSync('/tmp/spillway-exec-ran')).toBe(false);
  });

  it('refuses a kubeconfig that does not verify the server', async () => {
    await applyMember(host, 'insecure', await kubeconfigOf(east, { cluster: { 'insecure-skip-tls-verify': true } }));
    await harness.whenCondition('insecure', 'CredentialsValid', 'False', 'InsecureRefused');
  });

  it('says when the Secret or its key is missing, and goes on when it appears', async () => {
    await applyMember(host, 'later', await kubeconfigOf(east));
    await host.api.call('DELETE', '/api/v1/namespaces/fleet/secrets/later');
    await harness.whenCondition('later', 'CredentialsValid', 'False', 'SecretNotFound');
    await host.apply([
      { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'fleet', name: 'later' }, stringData: { other: 'x' } },
    ]);
    await harness.whenCondition('later', 'CredentialsValid', 'False', 'SecretKeyMissing');
    await applySecret(host, 'later', await kubeconfigOf(east));
    await harness.whenCondition('later', 'Ready', 'True');
  });

  it('says when nobody listens at the address', async () => {
    const port = await freePort();
    await applyMember(host, 'silent', await kubeconfigOf(east, { server: `https://127.0.0.1:${String(port)}` }));
    const reachable = await harness.whenCondition('silent', 'Reachable', 'False', 'Refused');
    expect(reachable.message).toContain('cluster silent');
    expect(await harness.whenCondition('silent', 'Ready', 'False')).toMatchObject({ reason: 'Refused' });
    expect(harness.scopes.has('silent')).toBe(false);
  });

  it('never trusts another CA', async () => {
    const ca = Buffer.from(west.caPem).toString('base64');
    await applyMember(host, 'stranger', await kubeconfigOf(east, { cluster: { 'certificate-authority-data': ca } }));
    const reachable = await harness.whenCondition('stranger', 'Reachable', 'False', 'TLSVerifyFailed');
    expect(reachable.message).toContain('not of the CA in the kubeconfig');
  });

  it('says when the member does not accept the credentials', async () => {
    await applyMember(host, 'denied', await kubeconfigOf(east, { user: { token: 'not-a-token-of-this-cluster' } }));
    await harness.whenCondition('denied', 'CredentialsValid', 'False', 'Unauthorized');
    expect(await harness.whenCondition('denied', 'Ready', 'False')).toMatchObject({ reason: 'Unauthorized' });
  });

  it('says when the credentials lack rights', async () => {
    await applyMember(host, 'powerless', await east.kubeconfigFor('nobody-special'));
    const reachable = await harness.whenCondition('powerless', 'Reachable', 'False', 'Forbidden');
    expect(reachable.message).toContain('manifests/member');
  });

  it('refuses the host as its own member', async () => {
    await applyMember(host, 'self', await kubeconfigOf(host));
    await harness.whenCondition('self', 'IdentityPinned', 'False', 'MemberIsHost');
    expect(harness.scopes.has('self')).toBe(false);
  });

  it('keeps every other member prompt while one does not answer for longer', async () => {
    const proxy = await proxyTo(east);
    proxy.delayMs = 120_000;
    // Whoever waited for it would be late, as a probe is not given up before.
    const probe = { periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 2 };
    await applyMember(host, 'slow', await kubeconfigOf(east, { server: proxy.url }), { probe });
    await until('it is asked', () => proxy.connections > 0);
    const began = Date.now();
    await applyMember(host, 'prompt', await kubeconfigOf(west));
    await harness.whenCondition('prompt', 'Ready', 'True');
    expect(Date.now() - began).toBeLessThan(25_000);
    proxy.delayMs = 0;
    proxy.breakAll();
    await harness.whenCondition('slow', 'Ready', 'True', undefined, 40_000);
  });

  it('notices a member that turns slow, and its return, without a new scope', async () => {
    const proxy = await proxyTo(west);
    await applyMember(host, 'tide', await kubeconfigOf(west, { server: proxy.url }));
    await harness.whenCondition('tide', 'Ready', 'True');
    proxy.delayMs = 30_000;
    await harness.whenCondition('tide', 'Reachable', 'False', 'Timeout');
    const { connection } = await harness.scopeOf('tide');
    expect(connection.reachable()).toBe(false);
    expect(connection.unreachableSince()?.wall).toBeLessThan(Date.now());
    expect(connection.identityOk()).toBe(true);
    proxy.delayMs = 0;
    proxy.breakAll();
    await harness.whenCondition('tide', 'Ready', 'True', undefined, 40_000);
    expect(connection.unreachableSince()).toBeUndefined();
    expect(await harness.scopeOf('tide')).toMatchObject({ starts: 1, ends: 0 });
  });

  it('takes rotated credentials into the running connection', async () => {
    await applyMember(host, 'rotated', await east.kubeconfigFor('first', ['system:masters']));
    await harness.whenCondition('rotated', 'Ready', 'True');
    await applySecret(host, 'rotated', await east.kubeconfigFor('second', ['system:masters']));
    await until('the member is asked by the new user', () => usersOf(east).has('second'));
    await harness.whenCondition('rotated', 'Ready', 'True');
    expect(await harness.scopeOf('rotated')).toMatchObject({ starts: 1, ends: 0 });
    expect(usersOf(east).has('first')).toBe(true);
  });

  it('keeps the old credentials when the new ones cannot be used, and stops when they are taken away', async () => {
    await applySecret(host, 'rotated', 'apiVersion: v1');
    const refused = await harness.whenCondition('rotated', 'CredentialsValid', 'False', 'InvalidKubeconfig');
    expect(refused.message).toContain('The credentials read before stay in use');
    await harness.whenCondition('rotated', 'Ready', 'True');
    await host.api.call('DELETE', '/api/v1/namespaces/fleet/secrets/rotated');
    await harness.whenCondition('rotated', 'Ready', 'False', 'SecretNotFound');
    await applySecret(host, 'rotated', await east.kubeconfigFor('third', ['system:masters']));
    await harness.whenCondition('rotated', 'Ready', 'True');
    expect(await harness.scopeOf('rotated')).toMatchObject({ starts: 1, ends: 0 });
  });

  it('is read-only while another cluster answers, until that is confirmed', async () => {
    await applyMember(host, 'swapped', await kubeconfigOf(east));
    await harness.whenCondition('swapped', 'Ready', 'True');
    expect((await harness.scopeOf('swapped')).connection.identityOk()).toBe(true);
    await applySecret(host, 'swapped', await kubeconfigOf(west));
    const pinned = await harness.whenCondition('swapped', 'IdentityPinned', 'False', 'IdentityChanged');
    const found = await uidOf(west);
    expect(pinned.message).toContain(`spillway.dev/confirm-identity=${found}`);
    expect((await harness.status('swapped')).identity).toBe(await uidOf(east));
    const scope = await harness.scopeOf('swapped', 2);
    expect(scope.starts).toBe(2);
    expect(scope?.connection.identityOk()).toBe(false);
    expect(await scope?.connection.confirmIdentity(AbortSignal.timeout(5_000))).toBe(false);
    await host.kubectl(['annotate', 'mc', 'swapped', `spillway.dev/confirm-identity=${found}`]);
    await harness.whenCondition('swapped', 'IdentityPinned', 'True');
    const { connection } = await harness.scopeOf('swapped', 3);
    await until('it may be written to', () => connection.identityOk());
    expect((await harness.status('swapped')).identity).toBe(found);
  });

  it('begins anew with a member that was wiped, once that is confirmed', async () => {
    const wiped = await startCluster(workspace, { name: 'wiped', components: 'api-only' });
    await applyMember(host, 'wiped', await kubeconfigOf(wiped));
    await harness.whenCondition('wiped', 'Ready', 'True');
    // Its history has come further than that of the new one will.
    for (let i = 0; i < 300; i++) {
      const body = { metadata: { annotations: { turn: String(i) } } };
      await wiped.api.call('PATCH', '/api/v1/namespaces/default', body);
    }
    for (const name of ['kube-apiserver', 'etcd'] as const) await wiped.component(name).stop('SIGKILL');
    rmSync(join(wiped.dir, 'etcd'), { recursive: true });
    for (const name of ['etcd', 'kube-apiserver'] as const) wiped.component(name).restart();
    await wiped.whenReady();
    await harness.whenCondition('wiped', 'IdentityPinned', 'False', 'IdentityChanged');
    await host.kubectl(['annotate', 'mc', 'wiped', `spillway.dev/confirm-identity=${await uidOf(wiped)}`]);
    await harness.whenCondition('wiped', 'IdentityPinned', 'True');
    const { connection } = await harness.scopeOf('wiped', 2);
    await wiped.api.call('POST', '/api/v1/namespaces', { metadata: { name: 'fresh' } });
    await until('its caches follow the new cluster', () => connection.namespaces.get('fresh') !== undefined);
    expect(connection.namespaces.get('default')?.metadata.annotations).toBeUndefined();
    expect(connection.identityOk()).toBe(true);
    await harness.whenCondition('wiped', 'Ready', 'True');
    await host.api.call('DELETE', '/apis/spillway.dev/v1alpha1/memberclusters/wiped');
    await wiped.stop();
  });

  it('ends the scope with the MemberCluster and touches nothing else', async () => {
    await host.apply([
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'good', labels: { 'spillway.dev/member': 'good' } } },
    ]);
    await host.api.call('DELETE', '/apis/spillway.dev/v1alpha1/memberclusters/good');
    await until('the scope ends', () => harness.scopes.get('good')?.ends === 1);
    await host.api.call('GET', '/api/v1/nodes/good');
    await applyMember(host, 'good', await kubeconfigOf(east));
    await harness.whenCondition('good', 'Ready', 'True');
    expect(await harness.scopeOf('good', 2)).toMatchObject({ starts: 2, ends: 1 });
  });
});

/** Where nobody listens. */
const NOBODY = 'https://127.0.0.1:1';

/** No replica runs that would take the finalizers off. */
async function letAllGo(host: Cluster): Promise<void> {
  const { stdout } = await host.kubectl(['get', 'memberclusters', '-o', 'jsonpath={.items[*].metadata.name}']);
  for (const name of stdout.split(' ').filter((one) => one !== '')) await letGo(host, name);
}

describe('two replicas', () => {
  it('share a member through its lease, and a known member keeps its scope although it does not answer', async () => {
    const proxy = await TcpProxy.to(west.server);
    const first = await MemberHarness.on(host);
    const second = await MemberHarness.on(host);
    const leaseOf = (replica: MemberHarness, identity: string) => (member: string) =>
      new LeaseElection({
        client: replica.client,
        namespace: 'spillway-system',
        name: `spillway-member-${member}`,
        identity,
        // Longer than a busy machine stands still: the first one gives it back when it ends.
        leaseMs: 15_000,
        renewMs: 10_000,
        retryMs: 300,
      });
    try {
      await letAllGo(host);
      // The second one has to learn from the host which cluster the first one finds.
      await applyMember(host, 'shared', await kubeconfigOf(west, { server: NOBODY }));
      await first.start(undefined, leaseOf(first, 'first'));
      await first.whenCondition('shared', 'Ready', 'False');
      await second.start(undefined, leaseOf(second, 'second'));
      await until('the second one competes', () => second.logs.join('').includes('following the member'));
      await applySecret(host, 'shared', await kubeconfigOf(west, { server: proxy.url }));
      await first.whenCondition('shared', 'Ready', 'True');
      expect(second.scopes.size).toBe(0);
      proxy.delayMs = 60_000;
      await first.stop();
      expect(first.scopes.get('shared')).toMatchObject({ starts: 1, ends: 1 });
      await until('the second one takes over', () => second.scopes.get('shared')?.starts === 1);
      expect(second.scopes.get('shared')?.connection.identityOk()).toBe(false);
      await second.whenCondition('shared', 'Reachable', 'False', 'Timeout');
    } finally {
      await Promise.all([first.stop(), second.stop()]);
      await proxy.close();
    }
  });
});

/** A lease that is given and taken as the test likes. */
class GivenLease implements MemberLease {
  #term: AbortController | undefined;
  #given = () => {};

  get held(): boolean {
    return this.#term !== undefined;
  }

  give(): void {
    this.#term = new AbortController();
    this.#given();
  }

  take(): void {
    this.#term?.abort();
    this.#term = undefined;
  }

  async run({ signal, onAcquired }: Parameters<MemberLease['run']>[0]): Promise<void> {
    while (!signal.aborted) {
      if (this.#term !== undefined) await onAcquired(AbortSignal.any([signal, this.#term.signal]));
      else {
        await new Promise<void>((resolve) => {
          this.#given = resolve;
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
      }
    }
  }
}

describe('a replica that wants to know of members it does not act for', () => {
  it('reads them, believes only the pinned cluster, and lets go once it acts with all it has to know', async () => {
    const holder = await MemberHarness.on(host);
    const other = await MemberHarness.on(host);
    const lease = new GivenLease();
    try {
      await letAllGo(host);
      await applyMember(host, 'seen', await kubeconfigOf(east, { server: NOBODY }));
      await other.start(undefined, () => lease, { observe: true });
      await holder.start();
      // Whoever acts for it has not pinned it yet, and nobody else does.
      await holder.whenCondition('seen', 'Ready', 'False');
      expect(other.observed.size).toBe(0);
      await applySecret(host, 'seen', await kubeconfigOf(east));
      await holder.whenCondition('seen', 'Ready', 'True');
      const first = await until('it is observed', () => {
        const connection = other.observed.get('seen')?.connection;
        return connection?.synced() === true && connection.identityOk() && connection;
      });
      const path = '/api/v1/namespaces/default/configmaps/kube-root-ca.crt';
      await expect(first.client.request({ method: 'DELETE', path })).rejects.toThrow(/observes the member/);

      const { identity } = await other.status('seen');
      await applySecret(host, 'seen', await kubeconfigOf(west));
      const misled = await until('another cluster answers', async () => {
        const connection = other.observed.get('seen')?.connection;
        return connection?.observedIdentity === (await uidOf(west)) && connection;
      });
      expect(misled.identityOk()).toBe(false);
      await holder.whenCondition('seen', 'IdentityPinned', 'False');
      expect(await other.status('seen')).toMatchObject({ identity });
      // To the administrator that is a move: caches of the former cluster say nothing about the new one.
      await kubectlAnnotate('seen', `spillway.dev/confirm-identity=${await uidOf(west)}`);
      await until('the cluster that is pinned now is observed, from the beginning', () => {
        const connection = other.observed.get('seen')?.connection;
        return connection !== misled && connection?.synced() === true && connection.identityOk();
      });
      await holder.stop();

      const observing = (): number => {
        const { starts = 0, ends = 0 } = other.observed.get('seen') ?? {};
        return starts - ends;
      };
      other.roomsKnown = false;
      lease.give();
      await other.scopeOf('seen');
      expect(observing()).toBe(1);
      other.roomsKnown = true;
      await until('nothing is observed any more', () => observing() === 0);
      lease.take();
      await until('it is observed again', () => observing() === 1 && other.scopes.get('seen')?.ends === 1);
      const verbs = new Set(
        east
          .auditEvents()
          .filter(isObserver)
          .map(({ verb }) => verb),
      );
      expect(verbs).toContain('watch');
      expect([...verbs].filter((verb) => !['get', 'list', 'watch'].includes(verb))).toEqual([]);
    } finally {
      await Promise.all([holder.stop(), other.stop()]);
    }
  });
});

async function kubectlAnnotate(member: string, annotation: string): Promise<void> {
  const { code, stderr } = await host.kubectl(['annotate', 'membercluster', member, annotation, '--overwrite']);
  if (code !== 0) throw new Error(stderr);
}

function isObserver({ userAgent }: { userAgent?: string }): boolean {
  return userAgent === OBSERVER_AGENT;
}

function usersOf(cluster: Cluster): Set<string> {
  return new Set(cluster.auditEvents().map((event) => event.user.username));
}
