import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { USAGE_ANNOTATIONS } from '../../hack/kwok.ts';
import { startMetricsServer } from '../../hack/metrics-server.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
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
  let fake: Cluster;

  /** Millicores at least, of the 200 that it may have: others may be busy on this machine, too. What idles takes a tenth of it. */
  const BUSY_CPU = 50;

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
    fake = topology.member('played').cluster;
    const optional = readFileSync(new URL('../../manifests/member/node-metrics.yaml', import.meta.url), 'utf8');
    await Promise.all([
      east.apply(optional),
      fake.apply(optional),
      newNamespace(host, ns),
      startMetricsServer(host),
      startMetricsServer(east),
    ]);
    const both = (member: string): Fields =>
      podSpec([shell(BUSY, limited), { ...shell(IDLE), name: 'beside' }], onNode(member));
    const made = { annotations: { [USAGE_ANNOTATIONS.cpu]: '250m', [USAGE_ANNOTATIONS.memory]: '50Mi' } };
    await Promise.all([
      runPod(host, pod('busy', ns, both('east'))),
      runPod(host, pod('busy-played', ns, both('played'), made)),
    ]);
    for (const { cluster } of ['east', 'played'].map((name) => topology.member(name))) {
      await cluster.apply([pod('stranger', 'default', { containers: [shell(IDLE)] })]);
      await untilRunning(cluster, 'default', 'stranger', { timeoutMs: 60_000 });
    }
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

  /** What is asked of the virtual nodes of both: one whose nodes measure all, and one whose nodes know CPU and memory only. */
  const MEMBERS = [
    { member: 'east', name: 'busy', families: ['container_memory_rss'] },
    { member: 'played', name: 'busy-played', families: [] },
  ];

  /** What the member's own node says on /metrics/resource, of the node where a pod of the member runs. */
  async function truth(member: string, namespace: string, name: string): Promise<string> {
    const { cluster } = topology.member(member);
    const { nodeName = '' } = (await getPod(cluster, namespace, name)).spec;
    const path = member === 'played' ? `/metrics/nodes/${nodeName}/metrics/resource` : '/metrics/resource';
    return await raw(cluster, nodeName, path);
  }

  const samples = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

  test('kubectl top pods shows what a kubelet of the member measures', async () => {
    const busy = await until(
      'kubectl top shows about a fifth of a core',
      async () => {
        const found = (await top('pods', '-n', ns)).get('busy');
        return found !== undefined && found.cpu > BUSY_CPU ? found : undefined;
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
        return found.has('played') && cpu > BUSY_CPU ? cpu : undefined;
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

  test('a counter that every look finds higher is passed on, too', async () => {
    const counter = (text: string): number => {
      const line = samples(text).find((one) => one.startsWith('pod_cpu_') && one.includes('pod="busy-played"'));
      return Number(line?.split(' ')[1]);
    };
    const before = counter(await truth('played', ns, 'busy-played'));
    expect(before).toBeGreaterThan(0);
    const shown = await until(
      'what was measured since is shown',
      async () => {
        const seen = counter(await raw(host, 'played', '/metrics/resource'));
        return seen > before ? seen : undefined;
      },
      MEASURED,
    );
    expect(shown).toBeLessThanOrEqual(counter(await truth('played', ns, 'busy-played')));
    expect(samples(await raw(host, 'played', '/metrics/resource'))).toContain('resource_scrape_error 0');
  });

  describe.each(MEMBERS)('of $member', ({ member, name, families }) => {
    test('the node counter grows and is never zero', async () => {
      const read = async (): Promise<number> => {
        const line = samples(await raw(host, member, '/metrics/resource')).find((one) => one.startsWith('node_cpu'));
        return Number(line?.split(' ')[1]);
      };
      const first = await read();
      expect(first).toBeGreaterThan(0);
      await until('it has grown', async () => (await read()) > first + 0.5, MEASURED);
    });

    test('nothing of other pods of the member is shown', async () => {
      expect(await truth(member, 'default', 'stranger')).toContain('pod="stranger"');
      for (const path of ['/metrics/resource', '/metrics/cadvisor', '/stats/summary']) {
        if (member === 'east') expect(await raw(east, 'east-1', path), path).toContain('stranger');
        const above = await raw(host, member, path);
        expect(above, path).toContain(`"${name}"`);
        expect(above, path).not.toContain('stranger');
      }
    });

    test('/metrics/cadvisor has what dashboards read', async () => {
      const lines = samples(await raw(host, member, '/metrics/cadvisor'));
      const shared = ['container_cpu_usage_seconds_total', 'container_memory_working_set_bytes'];
      for (const family of [...shared, ...families]) {
        const line = lines.find((one) => one.startsWith(`${family}{`));
        expect([family, line]).toEqual([family, expect.stringContaining(`namespace="${ns}",pod="${name}"`)]);
      }
      expect(lines).toContain('container_scrape_error 0');
      expect(lines.every((line) => line.startsWith('container_'))).toBe(true);
    });

    test('/stats/summary speaks of host pods', async () => {
      const summary = JSON.parse(await raw(host, member, '/stats/summary')) as {
        node: { nodeName: string; cpu: { usageCoreNanoSeconds: number } };
        pods: { podRef: object; containers: { name: string; memory: { workingSetBytes: number } }[] }[];
      };
      const { uid } = (await getPod(host, ns, name)).metadata;
      expect(summary.node.nodeName).toBe(member);
      expect(summary.node.cpu.usageCoreNanoSeconds).toBeGreaterThan(0);
      expect(summary.pods.map(({ podRef }) => podRef)).toEqual([{ name, namespace: ns, uid }]);
      const [{ containers } = { containers: [] }] = summary.pods;
      expect(containers.map((container) => container.name).sort()).toEqual(['beside', 'main']);
      expect(containers[0]?.memory.workingSetBytes).toBeGreaterThan(0);
    });
  });

  /** What each container of the autoscaled pods does, and what its kwok node says it uses, if it is one. */
  interface Load {
    script: string;
    annotations: Record<string, string>;
  }
  const played = (cpu: string): Load => ({
    script: IDLE,
    annotations: { [USAGE_ANNOTATIONS.cpu]: cpu, [USAGE_ANNOTATIONS.memory]: '50Mi' },
  });
  const SCALED = [
    {
      member: 'east',
      busy: { script: BUSY, annotations: {} },
      // Unlike IDLE it needs nothing at all.
      calm: { script: 'trap "exit 0" TERM; sleep 100000 & wait', annotations: {} },
      // What it gets of its limit depends on who else is busy on this machine.
      top: /scaled-east-\S+\s+[1-9]\d+m\s+\d+Mi/,
    },
    { member: 'played', busy: played('150m'), calm: played('1m'), top: /scaled-played-\S+\s+1[45]\dm\s+50Mi/ },
  ];

  test('autoscalers on CPU add pods in both members, and take them away again', async () => {
    const app = (member: string): string => `scaled-${member}`;
    const deployment = (member: string, { script, annotations }: Load): Fields => {
      const labels = { app: app(member) };
      const resources = { requests: { cpu: '20m' }, limits: { cpu: '100m' } };
      return {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: app(member), namespace: ns },
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels, annotations },
            spec: podSpec([shell(script, { resources })], onNode(member)),
          },
        },
      };
    };
    const autoscaler = (member: string): Fields => ({
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: app(member), namespace: ns },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: app(member) },
        minReplicas: 1,
        maxReplicas: 3,
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
        ],
      },
    });
    const untilThere = async (count: number): Promise<void> => {
      await Promise.all(
        SCALED.map(({ member }) =>
          until(
            `${count} pods of ${app(member)} run and no others are there`,
            async () => {
              const pods = await podsOf(host, ns, `app=${app(member)}`);
              return pods.length === count && pods.every(({ status }) => status?.phase === 'Running');
            },
            { timeoutMs: 180_000, intervalMs: 500 },
          ),
        ),
      );
    };
    await host.apply(SCALED.flatMap(({ member, busy }) => [deployment(member, busy), autoscaler(member)]));
    await untilThere(3);
    for (const { member, top: row } of SCALED) {
      const { stdout } = await host.kubectl(['top', 'pods', '-n', ns, '-l', `app=${app(member)}`, '--no-headers']);
      expect(stdout).toMatch(row);
    }
    // Others take their place, which need next to nothing.
    await host.apply(SCALED.map(({ member, calm }) => deployment(member, calm)));
    await untilThere(1);
    await kubectl(host, ['delete', 'hpa,deployment', '-n', ns, ...SCALED.map(({ member }) => app(member))]);
  }, 400_000);

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
        return cpu > BUSY_CPU && cpu < 320 && Date.now() - began > 30_000;
      },
      MEASURED,
    );
    const cadvisor = await raw(host, 'east', '/metrics/cadvisor');
    expect(cadvisor).toMatch(
      /container_cpu_usage_seconds_total\{container="main",image="[^"]+",namespace="usage",pod="busy"\}/,
    );
  });

  test.each(MEMBERS)(
    'a pod of $member that is being deleted does not run any more, long before its grace is over',
    async ({ member }) => {
      const name = `slow-${member}`;
      const slow = podSpec([shell('trap "" TERM; while :; do sleep 0.1; done')], {
        ...onNode(member),
        terminationGracePeriodSeconds: 20,
      });
      // Pods of kwok are gone at once: the finalizer keeps the host's.
      const kept = { finalizers: ['spillway.test/kept'] };
      await runPod(host, pod(name, ns, slow, member === 'played' ? kept : {}));
      const running = async (): Promise<string[]> => {
        const list = JSON.parse(await raw(host, member, '/runningpods/')) as { items: Pod[] };
        return list.items.map(({ metadata }) => metadata.name);
      };
      expect(await running()).toContain(name);
      await kubectl(host, ['delete', 'pod', name, '-n', ns, '--wait=false']);
      expect((await getPod(host, ns, name)).metadata.deletionTimestamp).toBeDefined();
      await until('it is not listed', async () => !(await running()).includes(name), { timeoutMs: 5_000 });
      expect(await readPod(host, ns, name)).toBeDefined();
      if (member === 'played') {
        await host.api.call('PATCH', `/api/v1/namespaces/${ns}/pods/${name}`, { metadata: { finalizers: null } });
      }
    },
  );
});
