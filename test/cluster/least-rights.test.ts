import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Api } from '../../hack/api-access.ts';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import {
  type Fields,
  getPod,
  IDLE,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podSpec,
  podsOf,
  read,
  readPod,
  shell,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, so no rights are tried: ${kubelets.reason}`);

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const MANAGER = 'system:serviceaccount:spillway-system:spillway-manager';
/** A watch is in the log a moment after it has ended. */
const LOGGED = { timeout: 20_000 };
const IN_MEMBER = 'system:serviceaccount:spillway-access:spillway-host';

describe.runIf(kubelets.ok)('with the rights of the manifests and no more', () => {
  let topology: Topology;
  let host: Cluster;

  beforeAll(async () => {
    topology = await startTopology({
      members: [
        { name: 'lent', kubelet: 'lent-1', options: { rights: 'namespaced', lend: ['shop'] } },
        { name: 'own', kwok: { nodes: 1 } },
      ],
    });
    ({ host } = topology);
    await newNamespace(host, 'shop');
    await host.apply([
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'shop' }, data: { a: 'one' } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'shop' }, stringData: { k: 'hidden' } },
      deployment('lent'),
      deployment('own'),
    ]);
    for (const node of ['lent', 'own']) {
      await kubectl(host, ['rollout', 'status', `deployment/${node}`, '-n', 'shop', '--timeout=120s']);
    }
  });
  afterAll(() => topology?.close());

  function deployment(node: string): Fields {
    const labels = { app: node };
    const main = shell(`cat /settings/a; echo; httpd -p 8080 -h /settings; ${IDLE}`, {
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'key', key: 'k' } } }],
      volumeMounts: [{ name: 'settings', mountPath: '/settings' }],
    });
    const spec = podSpec([main], {
      ...onNode(node),
      volumes: [{ name: 'settings', configMap: { name: 'settings' } }],
    });
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: node, namespace: 'shop' },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    };
  }

  const member = (name: string): Cluster => topology.member(name).cluster;
  const inMembers = ['lent', 'own'] as const;
  const inShop = (kind: string, name: string): string => `/api/v1/namespaces/shop/${kind}/${name}`;

  async function firstPod(app: string): Promise<string> {
    const [first] = await podsOf(host, 'shop', `app=${app}`);
    return first?.metadata.name ?? '';
  }

  test('logs, exec, attach and port-forward work', async () => {
    const name = await firstPod('lent');
    expect(await kubectl(host, ['logs', '-n', 'shop', name])).toBe('one\n');
    expect(await kubectl(host, ['exec', '-n', 'shop', name, '--', 'sh', '-c', 'echo $KEY'])).toBe('hidden\n');
    const listening = pod(
      'listening',
      'shop',
      podSpec([shell('read line; echo "heard $line"', { stdin: true, stdinOnce: true })], {
        restartPolicy: 'Never',
        ...onNode('lent'),
      }),
    );
    await host.apply([listening]);
    await untilRunning(host, 'shop', 'listening');
    const attached = await kubectl(host, ['attach', '-i', '-n', 'shop', 'listening'], { input: 'us\n' });
    expect(attached).toContain('heard us');

    const forward = topology.workspace.start({
      name: 'port-forward',
      file: host.kubectlPath,
      args: ['--kubeconfig', host.kubeconfig, 'port-forward', '-n', 'shop', name, ':8080'],
      logFile: join(host.dir, 'port-forward.log'),
    });
    const url = await until('a port is open', () => {
      const port = /127\.0\.0\.1:(\d+) ->/.exec(forward.logTail())?.[1];
      return Promise.resolve(port === undefined ? undefined : `http://127.0.0.1:${port}`);
    });
    expect(await (await fetch(`${url}/a`)).text()).toBe('one');
    await forward.stop();
    await kubectl(host, ['delete', 'pod', '-n', 'shop', 'listening']);
  });

  test('a changed ConfigMap arrives, a pod is debugged, scaled, replaced', async () => {
    await host.api.call('PATCH', inShop('configmaps', 'settings'), { data: { a: 'two' } });
    for (const name of inMembers) {
      await until(`the change is in ${name}`, async () => {
        const copy = await read<{ data: { a: string } }>(member(name), inShop('configmaps', 'settings'));
        return copy?.data.a === 'two';
      });
    }
    const name = await firstPod('lent');
    const before = await getPod(member('lent'), 'shop', name);
    // The default profile asks for SYS_PTRACE, which the Pod Security level of the lent namespace does not allow.
    await kubectl(host, ['debug', '-n', 'shop', name, '--profile=baseline', `--image=${IMAGES.busybox}`, '--', 'true']);
    await untilPod(
      member('lent'),
      'shop',
      name,
      'has the ephemeral container',
      ({ spec }) => (spec?.ephemeralContainers ?? []).length === 1,
    );
    expect((await getPod(member('lent'), 'shop', name)).metadata.uid).toBe(before.metadata.uid);
    await kubectl(host, ['scale', '-n', 'shop', 'deployment/lent', '--replicas=3']);
    await kubectl(host, ['rollout', 'status', 'deployment/lent', '-n', 'shop', '--timeout=60s']);
    await kubectl(host, ['delete', 'pod', '-n', 'shop', name]);
    expect(await readPod(member('lent'), 'shop', name)).toBeUndefined();
  });

  test('each virtual node asked for one certificate', async () => {
    const { items } = (await host.api.call('GET', CSRS)) as { items: { spec: { username: string } }[] };
    // Unless certificates are made to end within minutes, see hack/control-plane.ts.
    const signedForMinutes = process.env['SPILLWAY_SIGNED_FOR'] !== undefined;
    const users = items.map(({ spec }) => spec.username);
    expect(signedForMinutes ? [...new Set(users)] : users).toEqual(signedForMinutes ? [MANAGER] : [MANAGER, MANAGER]);
    const metrics = await (await fetch(`${topology.spillway.url}/metrics`)).text();
    for (const name of inMembers) {
      const expiry = new RegExp(`^spillway_node_certificate_expiry_timestamp_seconds\\{node="${name}"\\} (.*)$`, 'm');
      const days = (Number(expiry.exec(metrics)?.[1]) - Date.now() / 1000) / 86_400;
      expect(days).toBeGreaterThan(signedForMinutes ? 0 : 6.9);
      expect(days).toBeLessThan(7.1);
    }
  });

  describe('the identity of a virtual node', () => {
    let node: Api;
    beforeAll(async () => {
      const { server, ca } = host.adminAccess;
      node = new Api(server, ca, await host.issueClient('system:node:lent', ['system:nodes']));
      await host.apply([
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'private', namespace: 'shop' }, stringData: { k: 'x' } },
        { apiVersion: 'v1', kind: 'Node', metadata: { name: 'real' } },
      ]);
    });
    afterAll(() => node?.close());

    test('may read its own pods and what they refer to', async () => {
      await expect(node.call('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dlent')).resolves.toBeDefined();
      await expect(node.call('GET', inShop('secrets', 'key'))).resolves.toBeDefined();
      await expect(node.call('GET', inShop('configmaps', 'settings'))).resolves.toBeDefined();
      await expect(node.call('GET', '/api/v1/nodes/lent')).resolves.toBeDefined();
    });

    test.each([
      ['GET', '/api/v1/namespaces/shop/secrets/private'],
      ['GET', '/api/v1/namespaces/shop/secrets'],
      ['GET', '/api/v1/secrets'],
      ['GET', '/api/v1/namespaces/spillway-system/secrets/member-lent'],
      ['GET', '/api/v1/pods'],
      ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Down'],
      ['GET', '/api/v1/nodes/own'],
      ['GET', '/api/v1/nodes'],
      ['PATCH', '/api/v1/nodes/own', { metadata: { labels: { a: 'b' } } }],
      ['PATCH', '/api/v1/nodes/own/status', { status: { capacity: { cpu: '1' } } }],
      ['PATCH', '/api/v1/nodes/real', { spec: { unschedulable: true } }],
      ['PATCH', '/api/v1/nodes/lent', { spec: { taints: [] } }],
      ['PATCH', '/api/v1/nodes/lent', { metadata: { labels: { 'node-restriction.kubernetes.io/a': 'b' } } }],
      ['DELETE', '/api/v1/nodes/lent'],
      ['GET', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/own'],
      ['GET', '/apis/spillway.dev/v1alpha1/memberclusters'],
      ['GET', '/apis/apps/v1/deployments'],
      ['POST', '/api/v1/namespaces/shop/pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } }],
    ] as const)('may not %s %s', async (method, path, body?: object) => {
      await expect(node.call(method, path, body)).rejects.toThrow('HTTP 403');
    });

    test('may neither change nor end pods of another node', async () => {
      const [other] = await podsOf(host, 'shop', 'app=own');
      const path = inShop('pods', other?.metadata.name ?? '');
      for (const [method, where, body] of [
        ['DELETE', path, undefined],
        ['PATCH', `${path}/status`, { status: { phase: 'Failed' } }],
        ['GET', path, undefined],
      ] as const) {
        await expect(node.call(method, where, body)).rejects.toThrow('HTTP 403');
      }
    });
  });

  test('a new start knows its own again, and finds what is left over', async () => {
    const copies = async (): Promise<number> =>
      (await Promise.all(inMembers.map(async (name) => await read(member(name), inShop('secrets', 'key'))))).filter(
        (copy) => copy !== undefined,
      ).length;
    expect(await copies()).toBe(2);
    await topology.spillway.process.stop('SIGKILL');
    await kubectl(host, ['delete', 'deployment', 'lent', 'own', '-n', 'shop', '--wait=false']);
    topology.spillway.process.restart();
    for (const name of inMembers) {
      await until(`nothing is left in ${name}`, async () => (await podsOf(member(name), 'shop')).length === 0, {
        timeoutMs: 90_000,
      });
    }
    await until('the copies are gone', async () => (await copies()) === 0, { timeoutMs: 60_000 });
    await until('nothing is left in the host', async () => (await podsOf(host, 'shop')).length === 0);
  });

  test('nothing was ever refused', async () => {
    // The end of the watches is what brings them into the log.
    await topology.spillway.process.stop('SIGTERM');
    const refused = (cluster: Cluster, user: string): AuditEvent[] => {
      const events = eventsOf(cluster, user);
      expect(events.length, `${user} in ${cluster.name}`).toBeGreaterThan(10);
      return events.filter(({ responseStatus }) => responseStatus?.code === 403);
    };
    for (const user of [MANAGER, ...inMembers.map((name) => `system:node:${name}`)]) {
      expect(refused(host, user).map(asked), user).toEqual([]);
    }
    expect(refused(member('own'), IN_MEMBER).map(asked)).toEqual([]);
    // Whether Events of all namespaces may be followed at once is asked by trying: once per start.
    const [first, second, ...more] = refused(member('lent'), IN_MEMBER).map(asked);
    expect([first, second]).toEqual(['list events./ /', 'list events./ /']);
    expect(more).toEqual([]);
  });

  test('each virtual node speaks for itself, and the manager only where nodes may not', async () => {
    const done = (user: string): Set<string> => new Set(eventsOf(host, user).map(kindOf));
    const work = ['create nodes', 'watch nodes', 'patch nodes/status', 'update leases', 'watch pods'];
    for (const name of inMembers) {
      await expect
        .poll(() => [...done(`system:node:${name}`)], LOGGED)
        .toEqual(expect.arrayContaining([...work, 'patch pods/status', 'delete pods']));
    }
    // Both refer to them, one watch is enough.
    await expect
      .poll(() => inMembers.flatMap((name) => [...done(`system:node:${name}`)]), LOGGED)
      .toEqual(expect.arrayContaining(['watch secrets', 'watch configmaps', 'create subjectaccessreviews']));
    const manager = [...done(MANAGER)].filter((kind) => /pods|nodes|configmaps|reviews|leases/.test(kind));
    // Which Nodes it made before, nodes may not ask. Ten seconds after the first pod it asks what it may change of pods.
    expect(manager.filter((kind) => kind !== 'create selfsubjectaccessreviews').sort()).toEqual([
      'create leases',
      'get configmaps',
      'get leases',
      'get nodes',
      'list nodes',
      'update leases',
    ]);
  });
});

describe('where virtual nodes have no identities of their own, with the rights for that on top', () => {
  let topology: Topology;
  let host: Cluster;

  beforeAll(async () => {
    topology = await startTopology({
      members: [{ name: 'east', kwok: { nodes: 1 } }],
      spillway: { hostIdentity: 'ServiceAccount' },
    });
    ({ host } = topology);
    await newNamespace(host, 'shop');
  });
  afterAll(() => topology?.close());

  test('pods come and go with what they refer to, and nothing is refused', async () => {
    const east = topology.member('east').cluster;
    await host.apply([{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'shop' } }]);
    const main = shell(IDLE, { envFrom: [{ secretRef: { name: 'key' } }] });
    await host.apply([pod('web', 'shop', podSpec([main]))]);
    await untilRunning(host, 'shop', 'web');
    expect(await read(east, '/api/v1/namespaces/shop/secrets/key')).toBeDefined();
    await kubectl(host, ['delete', 'pod', 'web', '-n', 'shop']);
    await until(
      'the copy is gone',
      async () => (await read(east, '/api/v1/namespaces/shop/secrets/key')) === undefined,
      { timeoutMs: 30_000 },
    );
    await topology.spillway.process.stop('SIGTERM');
    await expect
      .poll(() => eventsOf(host, MANAGER).map(kindOf), LOGGED)
      .toEqual(expect.arrayContaining(['watch secrets', 'create nodes', 'delete pods']));
    const events = eventsOf(host, MANAGER);
    expect(events.filter(({ responseStatus }) => responseStatus?.code === 403).map(asked)).toEqual([]);
    expect(((await host.api.call('GET', CSRS)) as { items: unknown[] }).items).toEqual([]);
  });
});

/** What the program itself asked as that user. */
function eventsOf(cluster: Cluster, user: string): AuditEvent[] {
  return cluster
    .auditEvents()
    .filter((event) => event.user.username === user && event.userAgent?.startsWith('spillway') === true);
}

function kindOf({ verb, objectRef }: AuditEvent): string {
  const { resource = '', subresource } = objectRef ?? {};
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}

function asked({ verb, objectRef }: AuditEvent): string {
  const { apiGroup = '', resource = '', subresource = '', namespace = '', name = '' } = objectRef ?? {};
  return `${verb} ${resource}.${apiGroup}/${subresource} ${namespace}/${name}`;
}
