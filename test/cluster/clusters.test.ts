import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { startKubelet, type KubeletNode } from '../../hack/kubelet.ts';
import { startKwok, type Kwok } from '../../hack/kwok.ts';
import { machineNetwork } from '../../hack/machine-network.ts';
import { repositoryRoot } from '../../hack/repository.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { sweepLeftovers, Workspace } from '../../hack/workspace.ts';
import { mountsUnder } from '../../hack/workspace-cleaning.ts';
import { processesUsing, remains } from './remains.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

const pod = (name: string, node: string, command: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: {
    nodeName: node,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: IMAGES.busybox, command: ['sh', '-c', command] }],
  },
});

describe('control planes and kwok', () => {
  let workspace: Workspace;
  let host: Cluster;
  let member: Cluster;
  let kwok: Kwok;

  beforeAll(async () => {
    workspace = Workspace.create();
    [host, member] = await Promise.all([
      startCluster(workspace, { name: 'host', audit: true }),
      startCluster(workspace, { name: 'member', serviceCidr: '10.97.0.0/16' }),
    ]);
    kwok = await startKwok(member, { nodes: 3, cpu: '4', extended: { 'example.com/gpu': '2' }, labels: { zone: 'a' } });
  });

  afterAll(() => workspace.close());

  test('kubectl works on both, and they are two clusters', async () => {
    const uid = async (cluster: Cluster): Promise<string> => {
      const result = await cluster.kubectl(['get', 'namespace', 'kube-system', '-o', 'jsonpath={.metadata.uid}']);
      expect(result).toMatchObject({ code: 0, stderr: '' });
      return result.stdout;
    };
    expect(await uid(host)).not.toBe(await uid(member));
    const version = await host.kubectl(['version', '-o', 'json']);
    expect(JSON.parse(version.stdout)).toMatchObject({ serverVersion: { major: '1', minor: '36' } });
    const service = await member.kubectl(['get', 'service', 'kubernetes', '-o', 'jsonpath={.spec.clusterIP}']);
    expect(service.stdout).toBe('10.97.0.1');
  });

  test('a failing kubectl is an exit code, not an exception', async () => {
    const result = await host.kubectl(['get', 'pod', 'no-such-pod']);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('NotFound');
  });

  test('kwok nodes are Ready and offer what was asked', async () => {
    const path = 'jsonpath={range .items[*]}{.metadata.name} {.status.allocatable} {.metadata.labels.zone}{"\\n"}{end}';
    const nodes = (await member.kubectl(['get', 'nodes', '-o', path])).stdout.trim().split('\n');
    expect(nodes.map((line) => line.split(' ')[0])).toEqual(['kwok-0', 'kwok-1', 'kwok-2']);
    expect(nodes[0]).toContain('"cpu":"4"');
    expect(nodes[0]).toContain('"example.com/gpu":"2"');
    expect(nodes[0]?.endsWith(' a')).toBe(true);
    expect(await kwok.addNodes({ nodes: 2, prefix: 'more' })).toEqual(['more-0', 'more-1']);
  });

  test('the scheduler places pods on them and they run; Jobs complete', async () => {
    const template = { spec: { containers: [{ name: 'c', image: 'any' }] } };
    const labels = { app: 'web' };
    await member.apply([
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: 'default' },
        spec: { replicas: 20, selector: { matchLabels: labels }, template: { metadata: { labels }, ...template } },
      },
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'once', namespace: 'default' },
        spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
      },
    ]);
    const wait = (what: string, condition: string) =>
      member.kubectl(['wait', what, `--for=condition=${condition}`, '--timeout=60s']);
    expect((await wait('deployment/web', 'Available')).code).toBe(0);
    expect((await wait('job/once', 'Complete')).code).toBe(0);
    const deleted = await member.kubectl([
      'delete',
      'deployment/web',
      'job/once',
      '--cascade=foreground',
      '--timeout=60s',
    ]);
    expect(deleted.code).toBe(0);
  });

  test('a user has the rights that RBAC gives and no others', async () => {
    const kubeconfig = join(workspace.dir, 'alice.kubeconfig');
    writeFileSync(kubeconfig, await host.kubeconfigFor('alice', ['readers']));
    const whoami = await host.kubectl(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo}'], { kubeconfig });
    expect(JSON.parse(whoami.stdout)).toMatchObject({ username: 'alice', groups: ['readers', 'system:authenticated'] });
    expect((await host.kubectl(['get', 'pods'], { kubeconfig })).stderr).toContain('Forbidden');
    await host.kubectl(['create', 'rolebinding', 'readers', '--clusterrole=view', '--group=readers']);
    await until('alice may read', async () => (await host.kubectl(['get', 'pods'], { kubeconfig })).code === 0);
  });

  test('the audit log has every finished request once', async () => {
    await host.kubectl(['create', 'configmap', 'audited']);
    const creations = await until('it is in the log', () => {
      const found = host
        .auditEvents()
        .filter(
          ({ verb, objectRef }) =>
            verb === 'create' && objectRef?.name === 'audited' && objectRef.resource === 'configmaps',
        );
      return found.length > 0 && found;
    });
    expect(creations).toHaveLength(1);
    expect(creations[0]).toMatchObject({
      stage: 'ResponseComplete',
      responseStatus: { code: 201 },
      user: { username: 'admin' },
    });
  });

  test('an API server that was killed comes back with the same data on the same port', async () => {
    await host.kubectl(['create', 'configmap', 'before']);
    const server = host.component('kube-apiserver');
    await server.stop('SIGKILL');
    expect((await host.kubectl(['get', 'configmap', 'before'])).code).not.toBe(0);
    server.restart();
    await host.whenReady();
    expect((await host.kubectl(['get', 'configmap', 'before', '-o', 'name'])).stdout).toBe('configmap/before\n');
  });

  test('etcd too', async () => {
    const etcd = host.component('etcd');
    await etcd.stop('SIGKILL');
    etcd.restart();
    await host.whenReady();
    expect((await host.kubectl(['get', 'configmap', 'before', '-o', 'name'])).stdout).toBe('configmap/before\n');
  });

  test('a component that cannot start is told with its own words', async () => {
    const apiServerFlags = { 'service-cluster-ip-range': 'nonsense' };
    const failing = startCluster(workspace, { name: 'wrong', components: 'api-only', apiServerFlags });
    await expect(failing).rejects.toThrow(/wrong\/kube-apiserver ended[\s\S]*service-cluster-ip-range/);
  });

  test('memory and CPU of every component can be read', () => {
    const usage = member.usage();
    expect([...usage.keys()]).toEqual(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']);
    expect(usage.get('kube-apiserver')?.rssBytes).toBeGreaterThan(50_000_000);
  });

  test('closing leaves nothing', async () => {
    expect(processesUsing(workspace.dir).length).toBeGreaterThanOrEqual(9);
    await workspace.close();
    expect(remains(workspace.dir, workspace.id)).toEqual([]);
  });
});

describe.runIf(kubelets.ok)('real kubelets', () => {
  let workspace: Workspace;
  let cluster: Cluster;
  let nodes: KubeletNode[];

  beforeAll(async () => {
    workspace = Workspace.create();
    const bindAddress = (await machineNetwork(workspace)).gateway;
    cluster = await startCluster(workspace, { name: 'real', bindAddress, verifyKubelets: true });
    nodes = await Promise.all(
      ['real-a', 'real-b'].map((node) => startKubelet(cluster, { node, labels: { tier: node } })),
    );
    const serve = 'echo "hello from $HOSTNAME"; echo page > /tmp/index.html; exec httpd -f -p 8080 -h /tmp';
    await cluster.apply([pod('one', 'real-a', serve), pod('two', 'real-b', serve)]);
    const ready = await cluster.kubectl(['wait', 'pod', '--all', '--for=condition=Ready', '--timeout=60s']);
    expect(ready).toMatchObject({ code: 0 });
  });

  afterAll(() => workspace.close());

  test('logs and exec work, with exit codes, streams apart and standard input', async () => {
    expect((await cluster.kubectl(['logs', 'one'])).stdout).toBe('hello from one\n');
    const script = 'cat; echo problem >&2; exit 7';
    const result = await cluster.kubectl(['exec', '-i', 'one', '--', 'sh', '-c', script], { input: 'given' });
    expect(result.stdout).toBe('given');
    expect(result.stderr).toContain('problem\n');
    expect(result.code).toBe(7);
  });

  test('pods of two nodes reach each other, and this machine reaches both', async () => {
    const list = await cluster.kubectl(['get', 'pods', '-o', 'jsonpath={range .items[*]}{.status.podIP} {end}']);
    const [one, two] = list.stdout.trim().split(' ');
    const across = await cluster.kubectl(['exec', 'one', '--', 'wget', '-q', '-O', '-', `http://${two}:8080/`]);
    expect(across.stdout).toBe('page\n');
    for (const address of [one, two]) {
      const answer = await fetch(`http://${address}:8080/`, { signal: AbortSignal.timeout(20_000) });
      expect(await answer.text()).toBe('page\n');
    }
  });

  test('a node is what it was asked to be', async () => {
    const path = 'jsonpath={.status.addresses[0].address} {.metadata.labels.tier} {.status.nodeInfo.kubeletVersion}';
    const { stdout } = await cluster.kubectl(['get', 'node', 'real-b', '-o', path]);
    expect(stdout).toMatch(new RegExp(`^${nodes[1]?.machine.address} real-b v1\\.36\\.`));
    expect((await cluster.kubectl(['get', '--raw', '/api/v1/nodes/real-a/proxy/healthz'])).stdout).toBe('ok');
  });

  test('the agnhost image runs, and a container that ends badly is restarted', async () => {
    const agnhost = { name: 'main', image: IMAGES.agnhost, args: ['netexec', '--http-port=8081'] };
    const metadata = { name: 'agnhost', namespace: 'default' };
    await cluster.apply([
      { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'real-a', containers: [agnhost] } },
      pod('failing', 'real-b', 'exit 3'),
    ]);
    await cluster.kubectl(['wait', 'pod/agnhost', '--for=condition=Ready', '--timeout=60s']);
    const shell = await cluster.kubectl(['exec', 'agnhost', '--', '/agnhost-2', 'help']);
    expect(shell.stdout).toContain('netexec');
    const restarts =
      'jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].lastState.terminated.exitCode}';
    await until('a restart', async () => {
      const { stdout } = await cluster.kubectl(['get', 'pod', 'failing', '-o', restarts]);
      return /^[1-9]\d* 3$/.test(stdout);
    });
  });

  test('what a machine does stays inside: no sockets, mounts or settings outside', () => {
    expect(mountsUnder(workspace.dir)).toEqual([]);
    expect(existsSync('/run/containerd/s')).toBe(false);
    expect(existsSync('/var/lib/kubelet/device-plugins/kubelet.sock')).toBe(false);
    const inside = nodes[0]?.machine;
    expect(readdirSync(join(inside?.dir ?? '', 'var-lib'))).toContain('kubelet');
  });

  test('a kubelet that is killed leaves containers running, and finds them again', async () => {
    const before = await cluster.kubectl([
      'get',
      'pod',
      'one',
      '-o',
      'jsonpath={.status.containerStatuses[0].containerID}',
    ]);
    const kubelet = nodes[0]?.kubelet;
    await kubelet?.stop('SIGKILL');
    const running = nodes[0]?.containerd;
    const id = before.stdout.replace('containerd://', '');
    expect(await running?.ctr(['tasks', 'list'])).toMatch(new RegExp(`${id}\\s+\\d+\\s+RUNNING`));
    kubelet?.restart();
    await until('exec works again', async () => (await cluster.kubectl(['exec', 'one', '--', 'true'])).code === 0);
    const after = await cluster.kubectl([
      'get',
      'pod',
      'one',
      '-o',
      'jsonpath={.status.containerStatuses[0].containerID}',
    ]);
    expect(after.stdout).toBe(before.stdout);
  });

  test('a machine can be unplugged alone', async () => {
    const machine = nodes[1]?.machine;
    await nodes[1]?.stop();
    expect(processesUsing(machine?.dir ?? '?')).toEqual([]);
    expect((await cluster.kubectl(['exec', 'one', '--', 'true'])).code).toBe(0);
  });

  test('closing leaves nothing', async () => {
    await workspace.close();
    expect(remains(workspace.dir, workspace.id)).toEqual([]);
  });
});

describe('the command line', () => {
  const main = join(repositoryRoot(), 'dist', 'hack', 'main.js');
  const member = kubelets.ok ? 'm=kubelet:1' : 'm=kwok:1';
  let parent: string;

  beforeAll(() => {
    if (!existsSync(main)) throw new Error(`${main} is missing: run make build first`);
    parent = mkdtempSync(join(tmpdir(), 'up-test-'));
  });
  afterAll(() => rmSync(parent, { recursive: true }));

  const workspaceIn = (): string | undefined => readdirSync(parent).find((name) => name.startsWith('spillway-'));

  /** Starts `up` and waits until the member's control plane or machine is on its way. */
  async function halfWayUp(name: string): Promise<ReturnType<typeof spawn>> {
    const child = spawn(process.execPath, [main, 'up', '--name', name, '--member', member], {
      env: { ...process.env, TMPDIR: parent },
      stdio: 'ignore',
    });
    await until(
      'processes have been started',
      () => {
        const dir = workspaceIn();
        return dir !== undefined && processesUsing(join(parent, dir)).length >= 3;
      },
      { timeoutMs: 60_000, intervalMs: 20 },
    );
    return child;
  }

  test.each([['SIGINT'], ['SIGTERM']] as const)('%s in the middle of a start leaves nothing', async (signal) => {
    const child = await halfWayUp('interrupted');
    const dir = join(parent, workspaceIn() ?? '');
    const ended = once(child, 'exit');
    child.kill(signal);
    expect(await ended).toEqual([null, signal]);
    expect(remains(dir, dir.slice(-6).toLowerCase())).toEqual([]);
  });

  test('what a kill -9 leaves is found and cleaned', async () => {
    const child = await halfWayUp('killed');
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    const dir = join(parent, workspaceIn() ?? '');
    expect(processesUsing(dir).length).toBeGreaterThan(0);
    expect(sweepLeftovers(parent)).toEqual([dir]);
    expect(remains(dir, dir.slice(-6).toLowerCase())).toEqual([]);
  });

  test('up outlives its command, down ends it', async () => {
    const run = async (...args: string[]): Promise<string> => {
      const child = spawn(process.execPath, [main, ...args, '--name', 'test-up'], {
        env: { ...process.env, TMPDIR: parent },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let stdout = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
      expect(await once(child, 'close')).toEqual([0, null]);
      return stdout;
    };
    const table = await run('up', '--member', 'm=kwok:1');
    const dir = join(parent, workspaceIn() ?? '');
    try {
      expect(
        table
          .trim()
          .split('\n')
          .map((line) => line.split('\t')[0]),
      ).toEqual(['host', 'm']);
      expect(sweepLeftovers(parent)).toEqual([]);
      expect(processesUsing(dir).length).toBeGreaterThanOrEqual(9);
    } finally {
      await run('down');
    }
    expect(remains(dir, dir.slice(-6).toLowerCase())).toEqual([]);
  });
});
