import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  broken,
  forbidden,
  golden,
  notFound,
  target,
  textOf,
  usageFixture,
  type UsageFixture,
  valueOf,
} from './fixture.ts';

const RESOURCE = '/api/v1/nodes/real-1/proxy/metrics/resource';
const CADVISOR = '/api/v1/nodes/real-1/proxy/metrics/cadvisor';
const SUMMARY = '/api/v1/nodes/real-1/proxy/stats/summary';
const METRICS_API = '/apis/metrics.k8s.io/v1beta1/pods';
const WEB_0 = 'container_cpu_usage_seconds_total{container="app",pod="web-0",namespace="shop"}';

const fixtures: UsageFixture[] = [];
function start(...targets: ReturnType<typeof target>[]): UsageFixture {
  const fixture = usageFixture(targets);
  fixtures.push(fixture);
  return fixture;
}
afterEach(async () => {
  vi.useRealTimers();
  for (const fixture of fixtures.splice(0)) await fixture.stop();
});

/** One container's line of /metrics/resource. */
const cpuLine = (pod: string, cpu: number | string, at?: number, namespace = 'p-shop'): string =>
  `container_cpu_usage_seconds_total{container="app",namespace="${namespace}",pod="${pod}"} ${cpu}${at === undefined ? '' : ` ${at}`}\n`;

async function resource({ usage }: UsageFixture): Promise<string> {
  return textOf(await usage.resourceMetrics());
}

describe('/metrics/resource', () => {
  for (const gzip of [false, true]) {
    it(`is that of the kubelets, our pods only, under host names${gzip ? ' (compressed on the way)' : ''}`, async () => {
      const fixture = start(target('web-0'), target('web-1'), target('not-started'));
      fixture.member.gzip = gzip;
      fixture.member.script = (path) => (path === RESOURCE ? golden('kubelet-resource.txt') : notFound(path));
      expect(await resource(fixture)).toBe(golden('virtual-node-resource.txt'));
    });
  }

  it('asks each node once for several scrapers, and again after five seconds', async () => {
    const fixture = start(target('web-0'), target('web-1', 'real-2'));
    fixture.member.script = () => cpuLine('web-0', 1, 1000) + cpuLine('web-1', 2, 1000);
    const texts = await Promise.all([resource(fixture), resource(fixture), resource(fixture)]);
    expect(new Set(texts).size).toBe(1);
    fixture.world.now += 4999;
    await resource(fixture);
    expect(fixture.member.asked).toHaveLength(2);
    fixture.world.now += 1;
    await resource(fixture);
    expect(fixture.member.asked).toHaveLength(4);
  });

  it.each([1_800_000, -1_800_000])(
    'asks after five seconds also when the wall clock was set back by %d ms',
    async (ms) => {
      const fixture = start(target('web-0'));
      fixture.member.script = () => cpuLine('web-0', 1, 1000);
      await resource(fixture);
      fixture.world.setBackMs = ms;
      await resource(fixture);
      expect(fixture.member.asked).toHaveLength(1);
      fixture.world.now += 5000;
      await resource(fixture);
      expect(fixture.member.asked).toHaveLength(2);
    },
  );

  it('shows a new pod within a second', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = () => cpuLine('web-0', 1, 1000) + cpuLine('web-1', 2, 1000);
    await resource(fixture);
    fixture.world.targets = [target('web-0'), target('web-1')];
    fixture.world.now += 1000;
    expect(await resource(fixture)).toContain('pod="web-1"');
  });

  it('does not show the counters of a pod that is gone as those of its successor', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = () => cpuLine('web-0', 100, 1000);
    await resource(fixture);
    const successor = target('web-0');
    fixture.world.targets = [
      { ...successor, hostPod: { ...successor.hostPod, metadata: { ...successor.hostPod.metadata, uid: 'next' } } },
    ];
    expect(await resource(fixture)).not.toContain('web-0');
  });

  it('stamps what the member leaves to the scraper with the time of the reading', async () => {
    const fixture = start(target('web-0'));
    const startedAt = 'container_start_time_seconds{container="app",namespace="p-shop",pod="web-0"} 12\n';
    fixture.member.script = () => cpuLine('web-0', 1) + startedAt;
    const read = fixture.world.now;
    await resource(fixture);
    fixture.world.now += 3000;
    const text = await resource(fixture);
    expect(text).toContain(`${WEB_0} 1 ${read}\n`);
    expect(text).toContain('container_start_time_seconds{container="app",pod="web-0",namespace="shop"} 12\n');
  });

  it('goes where the annotation of a node says', async () => {
    const fixture = start(target('web-0', 'kwok-0'));
    fixture.world.annotations.set('kwok-0', { 'metrics.k8s.io/resource-metrics-path': '/metrics/nodes/kwok-0/x' });
    fixture.member.script = () => cpuLine('web-0', 1, 1000);
    await resource(fixture);
    expect(fixture.member.asked).toEqual(['/api/v1/nodes/kwok-0/proxy/metrics/nodes/kwok-0/x']);
  });

  it('says the last words of a kubelet that falls silent, and that there was an error', async () => {
    const fixture = start(target('web-0'), target('web-1', 'real-2'));
    fixture.member.script = (path) => (path.includes('real-2') ? cpuLine('web-1', 2, 1000) : cpuLine('web-0', 1, 1000));
    expect(valueOf(await resource(fixture), 'resource_scrape_error')).toBe(0);
    fixture.member.script = (path) => (path.includes('real-2') ? cpuLine('web-1', 3, 2000) : broken(path));
    fixture.world.now += 60_000;
    const text = await resource(fixture);
    expect(valueOf(text, 'resource_scrape_error')).toBe(1);
    expect(text).toContain(`${WEB_0} 1 1000\n`);
    expect(text).toContain('pod="web-1",namespace="shop"} 3 2000');
    expect(valueOf(text, 'node_cpu_usage_seconds_total')).toBe(4);
    fixture.world.now += 61_000;
    const later = await resource(fixture);
    expect(later).not.toContain('pod="web-0"');
    expect(valueOf(later, 'node_cpu_usage_seconds_total')).toBe(4);
  });

  it('does not wait for a kubelet that hangs, and keeps what the others said', async () => {
    vi.useFakeTimers();
    const fixture = start(target('web-0'), target('web-1', 'real-2'));
    fixture.member.script = (path) =>
      path.includes('real-2') ? new Promise(() => undefined) : cpuLine('web-0', 1, 1000);
    const answer = resource(fixture);
    await vi.advanceTimersByTimeAsync(8000);
    const text = await answer;
    expect(text).toContain(`${WEB_0} 1 1000\n`);
    expect(valueOf(text, 'resource_scrape_error')).toBe(1);
  });

  it('tells nothing but an error when nothing can be had', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = (path) => broken(path);
    const text = await resource(fixture);
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([
      'resource_scrape_error 1',
    ]);
  });

  it('asks nothing of a member that is out of reach', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = () => cpuLine('web-0', 1, 1000);
    await resource(fixture);
    fixture.world.unavailable = 'it does not answer';
    fixture.world.now += 10_000;
    const text = await resource(fixture);
    expect(fixture.member.asked).toHaveLength(1);
    expect(text).toContain(`${WEB_0} 1 1000\n`);
    expect(valueOf(text, 'resource_scrape_error')).toBe(1);
  });

  it('of a node without pods is well and not zero', async () => {
    const text = await resource(start());
    expect(valueOf(text, 'resource_scrape_error')).toBe(0);
    expect(valueOf(text, 'node_cpu_usage_seconds_total')).toBeGreaterThan(0);
    expect(valueOf(text, 'node_memory_working_set_bytes')).toBeGreaterThan(0);
  });

  it('believes no figure that is none', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = () =>
      [
        cpuLine('web-0', 'NaN', 1000),
        cpuLine('web-0', '0x10', 1000),
        cpuLine('web-0', '"1"', 1000),
        'container_cpu_usage_seconds_total{container="a\\"b",namespace="p-shop",pod="web-0"} 1 1000\n',
        'secret_total{container="app",namespace="p-shop",pod="web-0"} 1 1000\n',
        'no line at all {{{ \n',
      ].join('');
    expect(await resource(fixture)).not.toMatch(/web-0|secret/);
  });
});

describe('without the right to nodes/proxy', () => {
  const metrics = (cpu: string, timestamp: string) => ({
    kind: 'PodMetricsList',
    items: [
      {
        metadata: { namespace: 'p-shop', name: 'web-0' },
        timestamp,
        window: '10s',
        containers: [{ name: 'app', usage: { cpu, memory: '12Ki' } }],
      },
      { metadata: { namespace: 'p-shop', name: 'not-ours' }, timestamp, window: '10s', containers: [] },
    ],
  });
  const at = (seconds: number): string => `2026-11-21T08:00:${String(seconds).padStart(2, '0')}Z`;
  const ms = (seconds: number): number => Date.parse(at(seconds));

  it('rates of metrics.k8s.io become counters with the times of the member', async () => {
    const running = { phase: 'Running', containerStatuses: [{ state: { running: { startedAt: at(0) } } }] } as const;
    const fixture = start(
      target('web-0', 'real-1', {
        ...running,
        containerStatuses: [
          { name: 'app', image: 'i', imageID: '', ready: true, restartCount: 0, ...running.containerStatuses[0] },
        ],
      }),
    );
    let list = metrics('500m', at(10));
    fixture.member.script = (path) => (path === METRICS_API ? list : forbidden(path));
    const first = await resource(fixture);
    expect(first).toContain(`${WEB_0} 5 ${ms(10)}\n`);
    expect(first).toContain(
      `container_start_time_seconds{container="app",pod="web-0",namespace="shop"} ${ms(0) / 1000}\n`,
    );
    expect(first).toContain(
      `container_memory_working_set_bytes{container="app",pod="web-0",namespace="shop"} 12288 ${ms(10)}\n`,
    );
    expect(first).not.toContain('not-ours');
    expect(valueOf(first, 'resource_scrape_error')).toBe(0);
    list = metrics('1', at(25));
    fixture.world.now += 15_000;
    expect(await resource(fixture)).toContain(`${WEB_0} 20 ${ms(25)}\n`);
    list = metrics('250m', at(25));
    fixture.world.now += 15_000;
    const same = await resource(fixture);
    expect(same).toContain(`${WEB_0} 20 ${ms(25)}\n`);
    expect(valueOf(same, 'node_cpu_usage_seconds_total')).toBe(20);
    expect(fixture.member.asked.filter((path) => path === RESOURCE)).toHaveLength(1);
  });

  it('the right is tried again after a minute; a step from rates to counters is never shown', async () => {
    const fixture = start(target('web-0'));
    let allowed = false;
    fixture.member.script = (path) => {
      if (path === METRICS_API) return metrics('1', at(10));
      return allowed ? cpuLine('web-0', 9000, ms(20)) : forbidden(path);
    };
    await resource(fixture);
    allowed = true;
    fixture.world.now += 59_999;
    expect(await resource(fixture)).toContain(`${WEB_0} 10 ${ms(10)}\n`);
    fixture.world.now += 1;
    // For a scraper that looks once a minute the pod is gone for once, and then begins anew.
    const between = await resource(fixture);
    expect(between).not.toContain('web-0');
    expect(valueOf(between, 'resource_scrape_error')).toBe(0);
    fixture.world.now += 69_999;
    expect(await resource(fixture)).not.toContain('web-0');
    fixture.world.now += 1;
    const after = await resource(fixture);
    expect(after).toContain(`${WEB_0} 9000 ${ms(20)}\n`);
    expect(valueOf(after, 'node_cpu_usage_seconds_total')).toBe(10);
  });

  it('counters go on from what the kubelet said last', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = () => cpuLine('web-0', 1000, ms(5));
    await resource(fixture);
    let list = metrics('500m', at(3));
    fixture.member.script = (path) => (path === METRICS_API ? list : forbidden(path));
    fixture.world.now += 5000;
    // What metrics.k8s.io measured last is older than that.
    expect(await resource(fixture)).toContain(`${WEB_0} 1000 ${ms(5)}\n`);
    list = metrics('500m', at(15));
    fixture.world.now += 5000;
    const text = await resource(fixture);
    expect(text).toContain(`${WEB_0} 1005 ${ms(15)}\n`);
    expect(valueOf(text, 'node_cpu_usage_seconds_total')).toBe(1005);
  });

  it('a container whose name is none is left out, and the others are told', async () => {
    const fixture = start(target('web-0'));
    const { items, ...list } = metrics('1', at(10));
    const containers = [{ name: { toString: [] }, usage: { cpu: '5m' } }, ...(items[0]?.containers ?? [])];
    const odd = { ...list, items: [{ ...items[0], containers }] };
    fixture.member.script = (path) => (path === METRICS_API ? odd : forbidden(path));
    expect(await resource(fixture)).toContain(`${WEB_0} 10 ${ms(10)}\n`);
    await fixture.usage.summary(false);
  });

  it('metrics are read namespace by namespace where only that is allowed', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = (path) =>
      path === '/apis/metrics.k8s.io/v1beta1/namespaces/p-shop/pods' ? metrics('1', at(10)) : forbidden(path);
    expect(await resource(fixture)).toContain(`${WEB_0} 10 ${ms(10)}\n`);
  });

  it.each([403, 404, 503])(
    'a member that answers %i to metrics.k8s.io too is an error, and asked once a minute',
    async (code) => {
      const fixture = start(target('web-0'));
      const { ApiError } = await import('../../../src/kube/errors.ts');
      fixture.member.script = (path) =>
        path === RESOURCE
          ? forbidden(path)
          : new ApiError({ cluster: 'east', method: 'GET', path, code, status: { kind: 'Status', code } });
      const text = await resource(fixture);
      expect(valueOf(text, 'resource_scrape_error')).toBe(1);
      expect(text).not.toContain('node_cpu');
      const asked = fixture.member.asked.length;
      fixture.world.now += 30_000;
      await resource(fixture);
      expect(fixture.member.asked).toHaveLength(asked);
    },
  );

  it('one kubelet that refuses does not speak for the others', async () => {
    const fixture = start(target('web-0'), target('web-1', 'real-2'));
    fixture.member.script = (path) => {
      if (path === METRICS_API) return metrics('1', at(10));
      return path === RESOURCE ? forbidden(path, '') : cpuLine('web-1', 7, 1000);
    };
    const text = await resource(fixture);
    expect(text).toContain(`${WEB_0} 10 ${ms(10)}\n`);
    expect(text).toContain('pod="web-1",namespace="shop"} 7 1000\n');
  });
});

describe('/metrics/cadvisor', () => {
  it('is the useful part of that of the kubelets, our pods only, under host names', async () => {
    const { usage, member } = start(target('web-0'), target('web-1'));
    member.script = (path) => (path === CADVISOR ? golden('kubelet-cadvisor.txt') : notFound(path));
    expect(textOf(await usage.cadvisorMetrics())).toBe(golden('virtual-node-cadvisor.txt'));
  });

  it('is made of the resource metrics where a node has no better', async () => {
    const status = { name: 'app', image: 'web:1', imageID: '', ready: true, restartCount: 0 };
    const { usage, member } = start(target('web-0', 'real-1', { phase: 'Running', containerStatuses: [status] }));
    member.script = (path) => (path === RESOURCE ? golden('kubelet-resource.txt') : notFound(path));
    const text = textOf(await usage.cadvisorMetrics());
    expect(text).toContain(
      'container_cpu_usage_seconds_total{container="app",image="web:1",namespace="shop",pod="web-0"} 4.710869 1795253468507\n',
    );
    expect(text.match(/^# TYPE container_cpu_usage_seconds_total/gm)).toHaveLength(1);
    expect(valueOf(text, 'container_scrape_error')).toBe(0);
  });

  it('shows an error', async () => {
    const { usage, member } = start(target('web-0'));
    member.script = (path) => broken(path);
    expect(valueOf(textOf(await usage.cadvisorMetrics()), 'container_scrape_error')).toBe(1);
  });
});

interface Summary {
  node: {
    nodeName: string;
    cpu: Record<string, number>;
    memory: Record<string, number>;
    network: Record<string, number>;
  };
  pods: { podRef: object; containers: { name: string; cpu: Record<string, unknown> }[] }[];
}

describe('/stats/summary', () => {
  const time = '2026-11-21T08:00:10Z';
  const pod = (name: string, nanoseconds: string): string => `{
    "podRef": {"name": "${name}", "namespace": "p-shop", "uid": "member-${name}"}, "startTime": "2026-11-21T08:00:00Z",
    "containers": [{"name": "app", "cpu": {"time": "${time}", "usageNanoCores": 7, "usageCoreNanoSeconds": ${nanoseconds}}}],
    "cpu": {"time": "${time}", "usageNanoCores": 1000, "usageCoreNanoSeconds": ${nanoseconds}},
    "memory": {"time": "${time}", "workingSetBytes": 2000, "rssBytes": 300, "usageBytes": 2500},
    "network": {"time": "${time}", "name": "eth0", "rxBytes": 10, "txBytes": 20},
    "volume": [{"name": "data", "usedBytes": 5}]
  }`;

  it('has our pods as the kubelets have them, under host names, and their sum', async () => {
    const { usage, member } = start(target('web-0'), target('web-1'));
    const pods = [pod('web-0', '9007199254740993'), pod('web-1', '2000000000'), pod('stranger', '1')].join(',');
    member.script = (path) =>
      path === SUMMARY ? `{"node": {"nodeName": "real-1"}, "pods": [${pods}]}` : notFound(path);
    const text = await usage.summary(false);
    // Beyond 2^53 as exact as it came.
    expect(text).toContain('"usageCoreNanoSeconds":9007199254740993');
    const { node, pods: shown } = JSON.parse(text) as Summary;
    expect(shown.map(({ podRef }) => podRef)).toEqual([
      { name: 'web-0', namespace: 'shop', uid: 'host-web-0' },
      { name: 'web-1', namespace: 'shop', uid: 'host-web-1' },
    ]);
    expect(shown[1]).toMatchObject({ startTime: '2026-11-21T08:00:00Z', volume: [{ name: 'data', usedBytes: 5 }] });
    expect(node).toMatchObject({
      nodeName: 'east',
      cpu: { time: '2026-11-21T08:00:10.000Z', usageNanoCores: 2000, usageCoreNanoSeconds: Number('9007201254740993') },
      memory: { workingSetBytes: 4000, rssBytes: 600, usageBytes: 5000 },
      network: { rxBytes: 20, txBytes: 40 },
    });
  });

  it('hands on that only CPU and memory are wanted', async () => {
    const { usage, member } = start(target('web-0'));
    const queries: object[] = [];
    member.script = (_, query) => {
      queries.push(query);
      return `{"pods": [${pod('web-0', '1')}]}`;
    };
    await usage.summary(true);
    await usage.summary(false);
    expect(queries).toEqual([{ only_cpu_and_memory: 'true' }, {}]);
  });

  it('is made of the resource metrics where a node has no better', async () => {
    const fixture = start(target('web-0'));
    let cpu = 2;
    fixture.member.script = (path) =>
      path === RESOURCE ? cpuLine('web-0', cpu, 1_795_253_460_000 + cpu * 1000) : notFound(path);
    await fixture.usage.summary(false);
    cpu = 6;
    fixture.world.now += 5000;
    const { node, pods } = JSON.parse(await fixture.usage.summary(false)) as Summary;
    expect(pods).toMatchObject([
      {
        podRef: { name: 'web-0', namespace: 'shop', uid: 'host-web-0' },
        containers: [{ name: 'app', cpu: { usageNanoCores: 1e9, usageCoreNanoSeconds: 6e9 } }],
        cpu: { usageNanoCores: 1e9, usageCoreNanoSeconds: 6e9 },
      },
    ]);
    expect(node.cpu).toMatchObject({ usageCoreNanoSeconds: 6e9, usageNanoCores: 1e9 });
  });

  it.each(['[]', '{}', '{"pods": [1]}', '{"pods": [{"podRef": null}]}', 'nonsense', '<html>'])(
    'has no pods when a kubelet answers %s',
    async (answer) => {
      const { usage, member } = start(target('web-0'));
      member.script = () => answer;
      expect(JSON.parse(await usage.summary(false))).toMatchObject({ node: { nodeName: 'east' }, pods: [] });
    },
  );
});

describe('what others see of it', () => {
  it('nothing of other pods is logged, and a trouble is told once', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = () => golden('kubelet-resource.txt');
    await resource(fixture);
    fixture.member.script = (path) => broken(path);
    for (let round = 0; round < 3; round += 1) {
      fixture.world.now += 5000;
      await resource(fixture);
    }
    expect(fixture.lines.join('')).not.toContain('coredns');
    expect(fixture.lines.filter((line) => line.includes('cannot be read'))).toHaveLength(1);
  });

  it('reads are counted', async () => {
    const fixture = start(target('web-0'));
    fixture.member.script = (path) => (path === METRICS_API ? { items: [] } : forbidden(path));
    await resource(fixture);
    const text = await fixture.registry.metrics();
    expect(text).toContain('spillway_usage_reads_total{member="east",source="resource",result="refused"} 1');
    expect(text).toContain('spillway_usage_reads_total{member="east",source="metrics-api",result="ok"} 1');
  });
});
