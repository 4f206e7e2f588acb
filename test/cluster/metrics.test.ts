import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { USAGE_ANNOTATIONS } from '../../hack/kwok.ts';
import { startMetricsServer } from '../../hack/metrics-server.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/api/wire.ts';
import {
  type Fields,
  getPod,
  IDLE,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podsOf,
  podSpec,
  readPod,
  runPod,
  shell,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/** A kubelet measures every ten seconds or so, metrics-server looks every fifteen and needs two points. */
const MEASURED = { timeoutMs: 90_000, intervalMs: 1000 };

/** Unmodified metrics-server, kubectl top and HorizontalPodAutoscaler on the host. */
describe.runIf(kubelets.ok)('what pods on virtual nodes use', () => {
  const ns = 'usage';
  let topology: Topology;
  let host: Cluster;
  /** A real kubelet. */
  let east: Cluster;
  /** kwok nodes that make usage up. */
  let played: Cluster;

  /** About a fifth of a core. */
  const BUSY = 'while :; do :; done';
  const limited = { resources: { limits: { cpu: '200m', memory: '64Mi' } } };

  beforeAll(async () => {
    topology = await startTopology({
      host: { fastControllers: true },
      members: [
        { name: 'east', kubelet: 'east-1' },
        { name: 'played', kwok: { nodes: 2, usage: true } },
      ],
    });
    host = topology.host;
    east = topology.member('east').cluster;
    played = topology.member('played').cluster;
    const optional = readFileSync(new URL('../../manifests/member/node-metrics.yaml', import.meta.url), 'utf8');
    await Promise.all([
      east.apply(optional),
      played.apply(optional),
      newNamespace(host, ns),
      startMetricsServer(host),
      startMetricsServer(east),
    ]);
    await runPod(
      host,
      pod('busy', ns, podSpec([shell(BUSY, limited), { ...shell(IDLE), name: 'beside' }], onNode('east'))),
    );
    const stranger = { ...pod('stranger', 'default', { containers: [shell(IDLE)] }) };
    await east.apply([stranger]);
    await untilRunning(east, 'default', 'stranger', { timeoutMs: 60_000 });
  });

  afterAll(() => topology?.close());

  /** A path of a node's kubelet port, through the cluster's API server. */
  const raw = (cluster: Cluster, node: string, path: string): Promise<string> =>
    kubectl(cluster, ['get', '--raw', `/api/v1/nodes/${node}/proxy${path}`]);

  /** `name -> cpu (millicores), memory (MiB)` of kubectl top. */
  async function top(...what: string[]): Promise<Map<string, { cpu: number; memory: number }>> {
    const { stdout } = await host.kubectl(['top', ...what, '--no-headers']);
    const rows = stdout.split('\n').filter((line) => line !== '');
    return new Map(
      rows.map((row) => {
        const [name = '', ...cells] = row.split(/\s+/);
        const millicores = Number.parseInt(cells.find((cell) => /^\d+m$/.test(cell)) ?? 'NaN', 10);
        const memory = Number.parseInt(cells.find((cell) => /^\d+Mi$/.test(cell)) ?? 'NaN', 10);
        return [name, { cpu: millicores, memory }];
      }),
    );
  }

  const samples = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

  test('kubectl top pods shows what a kubelet of the member measures', async () => {
    const busy = await until(
      'kubectl top shows about a fifth of a core',
      async () => {
        const found = (await top('pods', '-n', ns)).get('busy');
        return found !== undefined && found.cpu > 100 ? found : undefined;
      },
      MEASURED,
    );
    expect(busy.cpu).toBeLessThan(320);
    const { stdout } = await host.kubectl(['top', 'pod', 'busy', '-n', ns, '--containers', '--no-headers']);
    expect(stdout).toMatch(/busy\s+main\s+\d+m/);
    expect(stdout).toMatch(/busy\s+beside\s+\d+m/);
  });

  test('kubectl top nodes shows the sum of our pods, not of the member', async () => {
    const busy = await until(
      'both virtual nodes are measured',
      async () => {
        const found = await top('nodes');
        const cpu = found.get('east')?.cpu ?? 0;
        return found.has('played') && cpu > 100 ? cpu : undefined;
      },
      MEASURED,
    );
    expect(busy).toBeLessThan(400);
  });

  test('counters and times are those of the kubelet, to the last digit', async () => {
    // Pods as a whole are measured every ten seconds or so: in between, two readings are the same.
    const ofPods = async (cluster: Cluster, node: string): Promise<Map<string, string>> =>
      new Map(
        samples(await raw(cluster, node, '/metrics/resource'))
          .filter((line) => line.startsWith('pod_') && line.includes('pod="busy"'))
          .map((line) => line.split(/\{.*\} /) as [string, string]),
      );
    const above = await until(
      'both show the same',
      async () => {
        const [seen, truth] = [await ofPods(host, 'east'), await ofPods(east, 'east-1')];
        return seen.size > 0 && isDeepStrictEqual(seen, truth) ? seen : undefined;
      },
      { timeoutMs: 60_000, intervalMs: 2000 },
    );
    expect([...above.keys()]).toContain('pod_cpu_usage_seconds_total');
    expect(samples(await raw(host, 'east', '/metrics/resource'))).toContain('resource_scrape_error 0');
  });

  test('the node counter grows and is never zero', async () => {
    const read = async (): Promise<number> => {
      const line = samples(await raw(host, 'east', '/metrics/resource')).find((one) => one.startsWith('node_cpu'));
      return Number(line?.split(' ')[1]);
    };
    const first = await read();
    expect(first).toBeGreaterThan(0);
    await until('it has grown', async () => (await read()) > first + 1, MEASURED);
  });

  test('nothing of other pods of the member is shown', async () => {
    for (const path of ['/metrics/resource', '/metrics/cadvisor', '/stats/summary']) {
      expect(await raw(east, 'east-1', path), path).toContain('stranger');
      const above = await raw(host, 'east', path);
      expect(above, path).toContain('busy');
      expect(above, path).not.toContain('stranger');
    }
  });

  test('/metrics/cadvisor has what dashboards read', async () => {
    const lines = samples(await raw(host, 'east', '/metrics/cadvisor'));
    for (const family of [
      'container_cpu_usage_seconds_total',
      'container_memory_working_set_bytes',
      'container_memory_rss',
    ]) {
      const line = lines.find((one) => one.startsWith(`${family}{`));
      expect([family, line]).toEqual([family, expect.stringContaining(`namespace="${ns}",pod="busy"`)]);
    }
    expect(lines).toContain('container_scrape_error 0');
    expect(lines.every((line) => line.startsWith('container_'))).toBe(true);
  });

  test('/stats/summary speaks of host pods', async () => {
    const summary = JSON.parse(await raw(host, 'east', '/stats/summary')) as {
      node: { nodeName: string; cpu: { usageCoreNanoSeconds: number } };
      pods: { podRef: object; containers: { name: string; memory: { workingSetBytes: number } }[] }[];
    };
    const { uid } = (await getPod(host, ns, 'busy')).metadata;
    expect(summary.node.nodeName).toBe('east');
    expect(summary.node.cpu.usageCoreNanoSeconds).toBeGreaterThan(0);
    expect(summary.pods.map(({ podRef }) => podRef)).toEqual([{ name: 'busy', namespace: ns, uid }]);
    expect(summary.pods[0]?.containers.map(({ name }) => name).sort()).toEqual(['beside', 'main']);
    expect(summary.pods[0]?.containers[0]?.memory.workingSetBytes).toBeGreaterThan(0);
  });

  describe('on kwok', () => {
    const labels = { app: 'scaled' };
    const deployment = (cpu: string): Fields => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'scaled', namespace: ns },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations: { [USAGE_ANNOTATIONS.cpu]: cpu, [USAGE_ANNOTATIONS.memory]: '50Mi' } },
          spec: podSpec([shell(IDLE, { resources: { requests: { cpu: '100m' } } })], onNode('played')),
        },
      },
    });

    test('an autoscaler on CPU adds pods, and takes them away again', async () => {
      await host.apply([
        deployment('150m'),
        {
          apiVersion: 'autoscaling/v2',
          kind: 'HorizontalPodAutoscaler',
          metadata: { name: 'scaled', namespace: ns },
          spec: {
            scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'scaled' },
            minReplicas: 1,
            maxReplicas: 3,
            metrics: [
              { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
            ],
          },
        },
      ]);
      const running = async (): Promise<Pod[]> =>
        (await podsOf(host, ns, 'app=scaled')).filter(({ status }) => status?.phase === 'Running');
      await until('three pods run', async () => (await running()).length === 3, {
        timeoutMs: 120_000,
        intervalMs: 500,
      });
      const { stdout } = await host.kubectl(['top', 'pods', '-n', ns, '-l', 'app=scaled', '--no-headers']);
      expect(stdout).toMatch(/scaled-\S+\s+1[45]\dm\s+50Mi/);
      // The annotation is of the pods: others take their place.
      const { replicas: _, ...spec } = deployment('1m')['spec'] as Fields;
      await host.apply([{ ...deployment('1m'), spec }]);
      await until('one pod is left', async () => (await podsOf(host, ns, 'app=scaled')).length === 1, {
        timeoutMs: 120_000,
        intervalMs: 500,
      });
    }, 300_000);
  });

  test('without nodes/proxy in the member its own metrics-server is the source', async () => {
    const counter = async (): Promise<number> => {
      const lines = samples(await raw(host, 'east', '/metrics/resource'));
      expect(lines).toContain('resource_scrape_error 0');
      const line = lines.find((one) => one.startsWith('container_cpu_usage_seconds_total{container="main",pod="busy"'));
      return Number(line?.split(' ')[1]);
    };
    const reads = async (): Promise<number> => {
      const text = await (await fetch(`${topology.spillway.url}/metrics`)).text();
      const series = 'spillway_usage_reads_total{member="east",source="metrics-api",result="ok"} ';
      return Number(text.split(series)[1]?.split('\n')[0] ?? 0);
    };
    const before = await counter();
    expect(await reads()).toBe(0);
    await kubectl(east, ['delete', 'clusterrolebinding', 'spillway-node-metrics']);
    await until('the other source is used', async () => (await counter()) > 0 && (await reads()) > 1, MEASURED);
    // The counter goes on from where it was.
    const first = await counter();
    expect(first).toBeGreaterThanOrEqual(before);
    await until('the counter grows', async () => (await counter()) > first, MEASURED);
    const began = Date.now();
    await until(
      'kubectl top shows about a fifth of a core',
      async () => {
        const cpu = (await top('pods', '-n', ns)).get('busy')?.cpu ?? 0;
        return cpu > 100 && cpu < 320 && Date.now() - began > 30_000;
      },
      MEASURED,
    );
    const cadvisor = await raw(host, 'east', '/metrics/cadvisor');
    expect(cadvisor).toMatch(
      /container_cpu_usage_seconds_total\{container="main",image="[^"]+",namespace="usage",pod="busy"\}/,
    );
  });

  test('a pod that is being deleted does not run any more within a second', async () => {
    const slow = podSpec([shell('trap "" TERM; while :; do sleep 0.1; done')], {
      ...onNode('east'),
      terminationGracePeriodSeconds: 20,
    });
    await runPod(host, pod('slow', ns, slow));
    const running = async (): Promise<string[]> => {
      const list = JSON.parse(await raw(host, 'east', '/runningpods/')) as { items: Pod[] };
      return list.items.map(({ metadata }) => metadata.name);
    };
    expect(await running()).toContain('slow');
    await kubectl(host, ['delete', 'pod', 'slow', '-n', ns, '--wait=false']);
    expect((await getPod(host, ns, 'slow')).metadata.deletionTimestamp).toBeDefined();
    await until('it is not listed', async () => !(await running()).includes('slow'), { timeoutMs: 1000 });
    expect(await readPod(host, ns, 'slow')).toBeDefined();
  });
});
