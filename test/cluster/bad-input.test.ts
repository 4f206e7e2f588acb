import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { SYSTEM_NAMESPACE, waitForNode } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { ALLOW_HOST_LABEL } from '../../src/api/marks.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import type { Condition } from '../../src/kube/core-v1.ts';
import {
  eventsOf,
  type Fields,
  IDLE,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podSpec,
  read,
  readPod,
  serviceAccountIn,
  shell,
  untilPod,
  untilRunning,
  withoutManagedFields,
  writesOf,
  describeWrite,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';
import { kubeconfigOf } from './member-harness.ts';

/** The whole program meets what administrators and users get wrong: it says so once, goes on, and touches nothing. */
describe('bad input', () => {
  let topology: Topology;
  let host: Cluster;
  let member: Cluster;
  let pid: number | undefined;

  beforeAll(async () => {
    topology = await startTopology({ members: [{ name: 'good', kwok: { nodes: 1, simulate: true, execHere: true } }] });
    host = topology.host;
    member = topology.member('good').cluster;
    pid = topology.spillway.process.id?.pid;
  });

  afterAll(() => topology?.close());

  /** A MemberCluster with a Secret of its own. */
  async function register(name: string, kubeconfig: string): Promise<void> {
    const secretRef = { namespace: SYSTEM_NAMESPACE, name };
    await host.apply([
      { apiVersion: 'v1', kind: 'Secret', metadata: secretRef, stringData: { kubeconfig } },
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'MemberCluster',
        metadata: { name },
        spec: { credentials: { secretRef }, probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 } },
      },
    ]);
  }

  async function statusOf(name: string): Promise<MemberClusterStatus> {
    const path = `/apis/spillway.dev/v1alpha1/memberclusters/${name}`;
    return (await read<{ status?: MemberClusterStatus }>(host, path))?.status ?? {};
  }

  async function untilCondition(name: string, type: string, reason: string): Promise<Condition> {
    let seen: unknown;
    return await until(`${name}: ${type} is False for ${reason}`, async () => {
      seen = (await statusOf(name)).conditions;
      return (seen as Condition[] | undefined)?.find(
        (one) => one.type === type && one.status === 'False' && one.reason === reason,
      );
    }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${JSON.stringify(seen)}`);
    });
  }

  /** What `kubectl get memberclusters` shows, and that no Node came of it. */
  async function expectNotReady(name: string, reason: string, message: RegExp): Promise<void> {
    const ready = await untilCondition(name, 'Ready', reason);
    expect(ready.message).toMatch(message);
    expect(await kubectl(host, ['get', 'membercluster', name])).toMatch(new RegExp(`^${name} +False`, 'm'));
    expect(await read(host, `/api/v1/nodes/${name}`)).toBeUndefined();
  }

  /** Everything of a member that belongs to its owner. */
  async function ownersObjects(namespace: string): Promise<unknown> {
    const kinds = ['pods', 'configmaps', 'secrets', 'serviceaccounts', 'services'];
    const lists = kinds.map((kind) =>
      read<{ items: { metadata: object }[] }>(member, `/api/v1/namespaces/${namespace}/${kind}`),
    );
    const objects = (await Promise.all(lists)).flatMap((list) => list?.items.map(withoutManagedFields) ?? []);
    return [await read(member, `/api/v1/namespaces/${namespace}`), ...objects];
  }

  async function untilEvent(namespace: string, name: string, reason: string): Promise<string> {
    const event = await until(`Event ${reason} of ${namespace}/${name}`, async () =>
      (await eventsOf(host, namespace, name)).find((one) => one.reason === reason),
    );
    expect(event.type).toBe('Warning');
    return event.message;
  }

  describe('MemberClusters', () => {
    test('a kubeconfig with an exec plugin: refused, and the plugin never runs', async () => {
      const proof = join(topology.workspace.dir, 'the-plugin-ran');
      const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/touch', args: [proof] };
      await register('plugin', await kubeconfigOf(member, { user: { exec } }));
      await untilCondition('plugin', 'CredentialsValid', 'ExecPluginRefused');
      await expectNotReady('plugin', 'ExecPluginRefused', /spillway-system\/plugin.*exec/);
      expect(existsSync(proof)).toBe(false);
    });

    test('a Secret that holds no kubeconfig at all', async () => {
      await register('garbage', '{{ .Values.kubeconfig }}');
      await expectNotReady('garbage', 'InvalidKubeconfig', /spillway-system\/garbage/);
      // NAME, READY, REACHABLE, CREDENTIALS, VERSION, CPU, MEMORY, PODS: no figure is left blank.
      const row = await kubectl(host, ['get', 'membercluster', 'garbage']);
      expect(row.split('\n')[0]).toMatch(/^NAME +READY +REACHABLE +CREDENTIALS +VERSION +CPU +MEMORY +PODS +/);
      expect(row).toMatch(/^garbage +False +\S+ +False +0 +0 +0 +/m);
      const told = await until('an Event says so', async () =>
        (await eventsOf(host, 'default', 'garbage', 'MemberCluster')).find(({ reason }) => reason === 'MemberNotReady'),
      );
      expect(told.message).toMatch(/^InvalidKubeconfig: .*spillway-system\/garbage/);
      const good = await eventsOf(host, 'default', 'good', 'MemberCluster');
      expect(good.map(({ type, reason }) => `${type} ${reason}`)).toContain('Normal MemberReady');
    });

    test('a member that cannot be reached', async () => {
      const server = `https://127.0.0.1:${await freePort()}`;
      await register('nobody-there', await kubeconfigOf(member, { server }));
      await untilCondition('nobody-there', 'Reachable', 'Refused');
      await expectNotReady('nobody-there', 'Refused', /cannot be reached|refused/i);
    });

    test('the CA of another cluster', async () => {
      const ca = Buffer.from(host.caPem).toString('base64');
      await register('wrong-ca', await kubeconfigOf(member, { cluster: { 'certificate-authority-data': ca } }));
      await untilCondition('wrong-ca', 'Reachable', 'TLSVerifyFailed');
      await expectNotReady('wrong-ca', 'TLSVerifyFailed', /certificate/);
    });

    test('none of them keeps the others from working, and they can be taken away', async () => {
      const bad = ['plugin', 'garbage', 'nobody-there', 'wrong-ca'];
      await host.apply([pod('meanwhile', 'default', podSpec([shell(IDLE)]))]);
      await untilRunning(host, 'default', 'meanwhile');
      await kubectl(host, ['delete', 'membercluster', ...bad, '--timeout=50s']);
      for (const name of bad) {
        expect(await read(host, `/apis/spillway.dev/v1alpha1/memberclusters/${name}`)).toBeUndefined();
      }
      expect(await readPod(host, 'default', 'meanwhile')).toBeDefined();
    });
  });

  test('a cluster that is registered twice: neither takes away what the other has made for its pods', async () => {
    const ns = await newNamespace(host, 'twice');
    await host.apply([
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'MemberCluster',
        metadata: { name: 'again' },
        spec: { credentials: { secretRef: { namespace: SYSTEM_NAMESPACE, name: 'member-good' } } },
      },
      ...['here', 'there'].map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: ns } })),
    ]);
    await waitForNode(host, 'again');
    for (const [name, other] of [
      ['good', 'again'],
      ['again', 'good'],
    ] as const) {
      const { message } = await untilCondition(name, 'ClusterUnique', 'SharedCluster');
      expect(message).toContain(`MemberCluster ${other} stands for the same cluster.`);
    }
    const using = (name: string, node: string, ...configMaps: string[]): Fields => {
      const envFrom = configMaps.map((one) => ({ configMapRef: { name: one } }));
      return pod(name, ns, podSpec([shell(IDLE, { envFrom })], onNode(node)));
    };
    const copy = async (name: string) =>
      await read<{ metadata: { uid: string; labels: Record<string, string> } }>(
        member,
        `/api/v1/namespaces/${ns}/configmaps/${name}`,
      );
    // From then on the first one looks after the namespace.
    await host.apply([using('runs', 'good', 'here')]);
    await untilRunning(host, ns, 'runs');
    await host.apply([using('waits', 'again', 'there', 'late')]);
    const made = await until('a copy for the pod that waits', async () => await copy('there'));
    expect(made.metadata.labels['spillway.dev/member']).toBe('again');
    // Nobody says to have made this one. What was there before has been looked at when it is gone.
    const labels = { 'spillway.dev/host': made.metadata.labels['spillway.dev/host'] };
    await member.apply([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'left', namespace: ns, labels } }]);
    await until('what nobody uses is gone', async () => (await copy('left')) === undefined);
    expect(await copy('there')).toEqual(made);
    await host.apply([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late', namespace: ns } }]);
    await untilRunning(host, ns, 'waits');
    await kubectl(host, ['delete', 'pods', '--all', '-n', ns]);
    for (const name of ['here', 'there', 'late']) {
      await until(`${name} is gone`, async () => (await copy(name)) === undefined);
    }
    await kubectl(host, ['delete', 'membercluster', 'again']);
    await kubectl(host, ['delete', 'node', 'again', '--ignore-not-found']);
  });

  describe('places that belong to others', () => {
    test("a namespace that the member's owner has not lent", async () => {
      await member.apply([
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'theirs', labels: { team: 'member' } } },
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'settings', namespace: 'theirs' },
          data: { a: 'theirs' },
        },
      ]);
      await serviceAccountIn(member, 'theirs');
      await until(
        'its CA is published',
        async () => (await read(member, '/api/v1/namespaces/theirs/configmaps/kube-root-ca.crt')) !== undefined,
      );
      const before = await ownersObjects('theirs');
      await newNamespace(host, 'theirs');
      await host.apply([
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'settings', namespace: 'theirs' },
          data: { a: 'host' },
        },
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'login', namespace: 'theirs' },
          stringData: { a: 'host' },
        },
        pod(
          'guest',
          'theirs',
          podSpec([
            shell(IDLE, { envFrom: [{ configMapRef: { name: 'settings' } }, { secretRef: { name: 'login' } }] }),
          ]),
        ),
      ]);
      const held = await untilPod(
        host,
        'theirs',
        'guest',
        'is held',
        ({ status }) => status?.reason === 'NamespaceNotAllowed',
      );
      expect(held.status).toMatchObject({ phase: 'Pending' });
      // It says how to lend it.
      expect(held.status?.message).toMatch(/"good".*kubectl label namespace theirs spillway\.dev\/allow-host=/);
      expect(await untilEvent('theirs', 'guest', 'NamespaceNotAllowed')).toBe(held.status?.message);
      for (const words of [['logs'], ['exec', '--', 'true']]) {
        const [verb = '', ...rest] = words;
        const { stderr } = await host.kubectl([verb, 'guest', '-n', 'theirs', ...rest]);
        expect(stderr, verb).toContain(
          'NamespaceNotAllowed: Cluster "good": namespace theirs exists there and is not ours',
        );
      }
      expect(await ownersObjects('theirs')).toEqual(before);
      // Its owner does as told.
      await kubectl(member, ['delete', 'configmap', 'settings', '-n', 'theirs']);
      await kubectl(member, ['label', 'namespace', 'theirs', `${ALLOW_HOST_LABEL}=any`]);
      await untilRunning(host, 'theirs', 'guest', { timeoutMs: 90_000 });
    });

    test('a namespace of the member that belongs to another host', async () => {
      const labels = { 'spillway.dev/host': '0123456789abcdef' };
      await member.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'rented', labels } }]);
      await serviceAccountIn(member, 'rented');
      await newNamespace(host, 'rented');
      await host.apply([pod('guest', 'rented', podSpec([shell(IDLE)]))]);
      await untilPod(host, 'rented', 'guest', 'is held', ({ status }) => status?.reason === 'NamespaceNotAllowed');
      expect(await untilEvent('rented', 'guest', 'NamespaceNotAllowed')).toContain('another host');
      expect(await readPod(member, 'rented', 'guest')).toBeUndefined();
    });

    test('system namespaces are never used, whatever they are labelled', async () => {
      await kubectl(member, ['label', 'namespace', 'kube-system', `${ALLOW_HOST_LABEL}=any`]);
      await host.apply([pod('agent', 'kube-system', podSpec([shell(IDLE)]))]);
      await untilPod(host, 'kube-system', 'agent', 'is held', ({ status }) => status?.reason === 'NamespaceNotAllowed');
      await untilEvent('kube-system', 'agent', 'NamespaceNotAllowed');
      const writes = writesOf(member).filter(({ objectRef }) => objectRef?.namespace?.startsWith('kube-') === true);
      expect(writes.map(describeWrite)).toEqual([]);
    });

    test('a pod name that is taken in the member', async () => {
      await member.apply([pod('taken', 'default', { containers: [shell(IDLE)] }, { labels: { team: 'member' } })]);
      const before = await untilRunning(member, 'default', 'taken');
      await host.apply([pod('taken', 'default', podSpec([shell(IDLE)]))]);
      const held = await untilPod(host, 'default', 'taken', 'is held', ({ status }) => status?.reason === 'NameTaken');
      expect(held.status?.message).toMatch(/"good".*default\/taken.*left alone/);
      expect(await untilEvent('default', 'taken', 'NameTaken')).toBe(held.status?.message);
      await kubectl(host, ['delete', 'pod', 'taken']);
      expect(await readPod(member, 'default', 'taken')).toEqual(before);
    });
  });

  describe('objects that are too large for the member', () => {
    const ns = 'large';
    const MIB = 1024 * 1024;
    const secrets = `/api/v1/namespaces/${ns}/secrets`;
    /** Base64 of so many bytes. */
    const filled = (bytes: number): string => Buffer.alloc(bytes, 'x').toString('base64');
    /** What the host takes, grows on its way by more than is left to the limit. */
    const growing = (name: string): Fields => ({
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'OverridePolicy',
      metadata: { name: `grow-${name}`, namespace: ns },
      spec: {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'Secret', name }],
        overrideRules: [{ overriders: { plaintext: [{ path: '/data/more', operator: 'add', value: filled(1024) }] } }],
      },
    });
    const user = (name: string): Fields =>
      pod(name, ns, podSpec([shell(IDLE, { envFrom: [{ secretRef: { name } }] })]));
    const TOO_LONG =
      /data: Too long: may not be more than 1048576 bytes \(422 Invalid\)\. This does not pass by itself/;

    const tries = (name: string): number =>
      writesOf(member).filter(
        ({ objectRef }) => objectRef?.resource === 'secrets' && objectRef.namespace === ns && objectRef.name === name,
      ).length;

    beforeAll(async () => {
      await newNamespace(host, ns);
      for (const name of ['swollen', 'swelling']) {
        const data = { bytes: filled(MIB - 512) };
        await host.api.call('POST', secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data });
      }
    });

    test('a Secret that a policy makes too large: the pod says so, for good, until the policy goes', async () => {
      await host.apply([growing('swollen'), user('swollen')]);
      const held = await untilPod(host, ns, 'swollen', 'is held', ({ status }) => status?.reason === 'SecretNotCopied');
      expect(held.status?.phase).toBe('Pending');
      expect(held.status?.message).toMatch(TOO_LONG);
      expect(held.status?.message).not.toContain('eHh4');
      expect(await untilEvent(ns, 'swollen', 'SecretNotCopied')).toBe(held.status?.message);
      expect(await read(member, `${secrets}/swollen`)).toBeUndefined();
      expect(tries('swollen')).toBeLessThan(10);
      await kubectl(host, ['delete', 'overridepolicy', '-n', ns, 'grow-swollen']);
      await untilRunning(host, ns, 'swollen', { timeoutMs: 60_000 });
    });

    test('a Secret in use that becomes too large: its pod goes on with the old copy, and one Event tells', async () => {
      await host.apply([user('swelling')]);
      await untilRunning(host, ns, 'swelling', { timeoutMs: 60_000 });
      const [copy, above, below] = await Promise.all([
        read(member, `${secrets}/swelling`),
        readPod(host, ns, 'swelling'),
        readPod(member, ns, 'swelling'),
      ]);
      await host.apply([growing('swelling')]);
      const told = await until('it is told', async () => {
        const events = await eventsOf(host, ns, 'swelling', 'Secret');
        return events.find(({ reason }) => reason === 'SecretNotCopied');
      });
      expect(told).toMatchObject({ type: 'Warning', count: 1 });
      expect(told.message).toMatch(TOO_LONG);
      expect(await read(member, `${secrets}/swelling`)).toEqual(copy);
      expect(await readPod(host, ns, 'swelling')).toEqual(above);
      expect(await readPod(member, ns, 'swelling')).toEqual(below);
    });
  });

  test('names as long as names may be, and full of dots: run, are read, told about and gone', async () => {
    const ns = await newNamespace(host, `n${'-'.repeat(61)}s`);
    const long = (letter: string): string => `${`${letter}.`.repeat(126)}${letter}`;
    const names = { pod: long('p'), held: long('h'), configMap: long('c'), secret: long('s') };
    expect(Object.values(names).map(({ length }) => length)).toEqual([253, 253, 253, 253]);
    const metadata = { namespace: ns };
    const envFrom = [{ configMapRef: { name: names.configMap } }, { secretRef: { name: names.secret } }];
    await host.apply([
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, name: names.configMap }, data: { a: '1' } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { ...metadata, name: names.secret }, data: { b: 'Mg==' } },
      pod(names.pod, ns, podSpec([shell(IDLE, { envFrom })])),
      pod(names.held, ns, podSpec([shell(IDLE, { envFrom: [{ secretRef: { name: long('x') } }] })])),
    ]);
    const above = await untilRunning(host, ns, names.pod);
    const path = `/api/v1/namespaces/${ns}`;
    const copies = [`${path}/configmaps/${names.configMap}`, `${path}/secrets/${names.secret}`];
    expect(await Promise.all(copies.map((one) => read(member, one)))).toMatchObject([
      { data: { a: '1' } },
      { data: { b: 'Mg==' } },
    ]);
    expect((await readPod(member, ns, names.pod))?.metadata.labels?.['spillway.dev/uid']).toBe(above.metadata.uid);
    expect(await kubectl(host, ['logs', names.pod, '-n', ns])).toContain('simulated');
    expect(await kubectl(host, ['exec', names.pod, '-n', ns, '--', 'echo', 'hello'])).toBe('hello\n');
    expect(await untilEvent(ns, names.held, 'MandatorySecretNotFound')).toContain(long('x'));
    await kubectl(host, ['delete', 'pod', '-n', ns, names.pod, names.held, '--timeout=30s']);
    expect(await readPod(member, ns, names.pod)).toBeUndefined();
    await until(
      'its copies are gone',
      async () => (await Promise.all(copies.map((one) => read(member, one)))).every((one) => one === undefined),
      { timeoutMs: 30_000 },
    );
  });

  test('the program is the process it was, is ready, and gave no secret away', async () => {
    const { process, url } = topology.spillway;
    expect(process.id?.pid).toBe(pid);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const log = readFileSync(process.spec.logFile, 'utf8');
    expect(errorsOf(topology.spillway)).toEqual([]);
    const key = /client-key-data: (\S+)/.exec(readFileSync(member.kubeconfig, 'utf8'))?.[1] ?? '';
    expect(key.length).toBeGreaterThan(100);
    expect(log).not.toContain(key);
    // The first line of the key itself, as PEM.
    expect(log).not.toContain(Buffer.from(key, 'base64').toString().split('\n')[1]);
  });
});
