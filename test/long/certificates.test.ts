import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import type { ManagedProcess } from '../../hack/managed-process.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { pause } from '../../src/kube/timers.ts';
import { IDLE, kubectl, newNamespace, pod, podSpec, read, runPod, shell, untilRunning } from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, so no streams are tried: ${kubelets.reason}`);

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
/**
 * The signer dates certificates five minutes back, so that 70 % of the life of one that ends after 150 s are over after
 * 15 s.
 */
const SIGNED_FOR = '150s';

interface SigningRequest {
  metadata: { name: string };
  spec: { signerName: string; username: string };
  status?: { conditions?: { type: string }[] };
}

describe.runIf(kubelets.ok)('certificates that end after minutes', () => {
  const stop = new AbortController();
  let folder: string;
  let topology: Topology;
  let host: Cluster;
  let east: Cluster;
  let approving: Promise<void>;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'certificates-'));
    const config = join(folder, 'config.yaml');
    writeFileSync(config, 'hostIdentity: NodeCertificate\nkubelet: { servingCertificate: { mode: Csr } }\n');
    topology = await startTopology({
      members: [{ name: 'east', kubelet: 'east-1' }],
      // A host that does not talk to virtual nodes without a certificate of its own signer.
      host: { verifyKubelets: true, controllerManagerFlags: { 'cluster-signing-duration': SIGNED_FOR } },
      spillway: { args: ['--config', config] },
    });
    ({ host } = topology);
    east = topology.member('east').cluster;
    approving = approveServing();
    await newNamespace(host, 'shop');
  });
  afterAll(async () => {
    stop.abort();
    await approving;
    await topology?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function requests(signer: string): Promise<SigningRequest[]> {
    const { items } = (await host.api.call('GET', CSRS)) as { items: SigningRequest[] };
    return items.filter(({ spec }) => spec.signerName === `kubernetes.io/${signer}`);
  }

  /** The host's administrator, or an approver that he runs. */
  async function approveServing(): Promise<void> {
    while (!stop.signal.aborted) {
      const open = (await requests('kubelet-serving')).filter(({ status }) => status?.conditions === undefined);
      for (const { metadata } of open) await kubectl(host, ['certificate', 'approve', metadata.name]);
      await pause(250, stop.signal);
    }
  }

  /** What the port of the virtual node shows to a new connection. */
  async function served(): Promise<X509Certificate> {
    const node = await read<{
      status: { addresses: { address: string }[]; daemonEndpoints: { kubeletEndpoint: { Port: number } } };
    }>(host, '/api/v1/nodes/east');
    const [first] = node?.status.addresses ?? [];
    const port = node?.status.daemonEndpoints.kubeletEndpoint.Port ?? 0;
    const socket = connect({ host: first?.address ?? '', port, rejectUnauthorized: false });
    try {
      await new Promise((resolve, reject) => {
        socket.once('secureConnect', resolve);
        socket.once('error', reject);
      });
      return new X509Certificate(socket.getPeerCertificate().raw);
    } finally {
      socket.destroy();
    }
  }

  /** When the certificate with which the virtual node speaks to the host ends, in ms. */
  async function clientEnd(): Promise<number> {
    const metrics = await (await fetch(`${topology.spillway.url}/metrics`)).text();
    const match = /^spillway_node_certificate_expiry_timestamp_seconds\{node="east"\} (.*)$/m.exec(metrics);
    return Number(match?.[1]) * 1000;
  }

  function start(name: string, args: readonly string[]): ManagedProcess {
    return topology.workspace.start({
      name,
      file: host.kubectlPath,
      args: ['--kubeconfig', host.kubeconfig, ...args],
      logFile: join(host.dir, `${name}.log`),
    });
  }

  const ticksOf = (stream: ManagedProcess): string[] =>
    readFileSync(stream.spec.logFile, 'utf8').split('\n').filter(Boolean);

  test(
    'are renewed over and over; streams outlive those that they began with, and work goes on',
    { timeout: 300_000 },
    async () => {
      const ticking = 'i=0; while :; do echo $i; i=$((i+1)); sleep 0.5; done';
      await host.apply([
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'shop' }, data: { a: 'one' } },
      ]);
      const volumes = [{ name: 'settings', configMap: { name: 'settings' } }];
      const listening = shell('httpd -f -p 8080 -h /', {
        name: 'www',
        volumeMounts: [{ name: 'settings', mountPath: '/settings' }],
      });
      await runPod(host, pod('web', 'shop', podSpec([shell(ticking), listening], { volumes })));
      // The host believes in the port once somebody has approved its certificate.
      await until('exec works', async () => {
        const { code } = await host.kubectl(['exec', '-n', 'shop', 'web', '-c', 'main', '--', 'true']);
        return code === 0;
      });
      const [firstServed, firstClientEnd] = [await served(), await clientEnd()];
      const exec = start('exec', ['exec', '-n', 'shop', 'web', '-c', 'main', '--', 'sh', '-c', ticking]);
      const logs = start('logs', ['logs', '-f', '-n', 'shop', 'web', '-c', 'main']);
      const forward = start('forward', ['port-forward', '-n', 'shop', 'web', ':8080']);
      const url = await until('a port is open', () => {
        const port = /127\.0\.0\.1:(\d+) ->/.exec(forward.logTail())?.[1];
        return port === undefined ? undefined : `http://127.0.0.1:${port}/settings/a`;
      });
      expect(await (await fetch(url)).text()).toBe('one');

      const firstEnd = Math.max(Date.parse(firstServed.validTo), firstClientEnd);
      expect(firstEnd - Date.now()).toBeLessThan(151_000);
      await until('the first certificates have ended', () => Date.now() > firstEnd + 1_000, { timeoutMs: 200_000 });

      for (const signer of ['kubelet-serving', 'kube-apiserver-client-kubelet']) {
        const asked = await requests(signer);
        expect(asked.length, signer).toBeGreaterThan(3);
        // Each at 70 % of the life of the one before, not sooner.
        expect(asked.length, signer).toBeLessThan(20);
      }
      expect(await clientEnd()).toBeGreaterThan(Date.now());
      const now = await served();
      expect(Date.parse(now.validTo)).toBeGreaterThan(Date.now());
      expect(now.checkIssued(new X509Certificate(host.caPem))).toBe(true);
      expect(now.fingerprint256).not.toBe(firstServed.fingerprint256);

      for (const stream of [exec, logs]) {
        expect(stream.running, stream.spec.name).toBe(true);
        const ticks = ticksOf(stream);
        expect(ticks.length, stream.spec.name).toBeGreaterThan(200);
        expect(ticks, stream.spec.name).toEqual(ticks.map((_, index) => String(index)));
      }
      expect(await (await fetch(url)).text()).toBe('one');
      await Promise.all([exec, logs, forward].map((stream) => stream.stop()));

      // Watches go on, and what is new is done in the name of the new certificates.
      await host.api.call('PATCH', '/api/v1/namespaces/shop/configmaps/settings', { data: { a: 'two' } });
      await until('the change has arrived', async () => {
        const copy = await read<{ data: { a: string } }>(east, '/api/v1/namespaces/shop/configmaps/settings');
        return copy?.data.a === 'two';
      });
      await host.apply([pod('late', 'shop', podSpec([shell(IDLE)]))]);
      await untilRunning(host, 'shop', 'late');
      expect(await kubectl(host, ['exec', '-n', 'shop', 'late', '--', 'echo', 'here'])).toBe('here\n');
      await kubectl(host, ['delete', 'pod', '-n', 'shop', 'late', 'web']);
    },
  );

  test('are never used after their end, and their renewal disturbs nobody', async () => {
    await topology.spillway.process.stop('SIGTERM');
    const node = host.auditEvents().filter(({ user }) => user.username === 'system:node:east');
    expect(node.length).toBeGreaterThan(20);
    expect(host.auditEvents().filter(({ responseStatus }) => responseStatus?.code === 401)).toEqual([]);
    expect(errorsOf(topology.spillway)).toEqual([]);
    const lines = readFileSync(topology.spillway.process.spec.logFile, 'utf8').split('\n');
    // A kind that was just made is not served at once.
    const warnings = lines.filter((line) => line.includes('"level":"warn"') && !line.includes('(re)initializing'));
    expect(warnings.filter((line) => /watching|certificate from|client certificate/.test(line))).toEqual([]);
  });
});
