import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEvent, Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import {
  type Fields,
  getPod,
  IDLE,
  kubectl,
  newNamespace,
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

const MANAGER = 'system:serviceaccount:spillway-system:spillway-manager';
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

  const on = (node: string): Fields => ({ nodeSelector: { type: 'virtual-kubelet', 'kubernetes.io/hostname': node } });

  function deployment(node: string): Fields {
    const labels = { app: node };
    const main = shell(`cat /settings/a; echo; httpd -p 8080 -h /settings; ${IDLE}`, {
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'key', key: 'k' } } }],
      volumeMounts: [{ name: 'settings', mountPath: '/settings' }],
    });
    const spec = podSpec([main], {
      ...on(node),
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
        ...on('lent'),
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
      const events = cluster.auditEvents().filter((event) => event.user.username === user);
      expect(events.length, `${user} in ${cluster.name}`).toBeGreaterThan(20);
      return events.filter(({ responseStatus }) => responseStatus?.code === 403);
    };
    expect(refused(host, MANAGER).map(asked)).toEqual([]);
    expect(refused(member('own'), IN_MEMBER).map(asked)).toEqual([]);
    // Whether Events of all namespaces may be followed at once is asked by trying: once per start.
    const [first, second, ...more] = refused(member('lent'), IN_MEMBER).map(asked);
    expect([first, second]).toEqual(['list events./ /', 'list events./ /']);
    expect(more).toEqual([]);
  });
});

function asked({ verb, objectRef }: AuditEvent): string {
  const { apiGroup = '', resource = '', subresource = '', namespace = '', name = '' } = objectRef ?? {};
  return `${verb} ${resource}.${apiGroup}/${subresource} ${namespace}/${name}`;
}
