import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { parseJson } from '../../src/kube/json.ts';
import { CadvisorReader } from '../../src/kubelet/usage/cadvisor.ts';
import { RESOURCE_FAMILIES } from '../../src/kubelet/usage/families.ts';
import { LineSplitter } from '../../src/kubelet/usage/line-splitter.ts';
import { ResourceReader } from '../../src/kubelet/usage/pod-reading.ts';
import { formatSample, parseSample } from '../../src/kubelet/usage/sample.ts';
import { golden, notFound, target, usageFixture } from '../kubelet/usage/fixture.ts';
import { fuzz } from './fuzz.ts';
import { changed, pieces, text } from './inputs.ts';

const TARGETS = [target('web'), target('api')];
const KEYS = new Set(TARGETS.map(({ memberKey }) => memberKey));

const piece = fc.oneof(
  fc.constantFrom(
    'container_cpu_usage_seconds_total',
    'pod_cpu_usage_seconds_total',
    'container_memory_working_set_bytes',
    '{',
    '}',
    ',',
    '=',
    '"',
    '\\',
    ' ',
    '1',
    '1e9',
    'NaN',
    '+Inf',
    '-1',
    '1624525412463',
    '#',
  ),
  fc.constantFrom(
    'namespace="p-shop"',
    'pod="web"',
    'container="app"',
    'pod="other"',
    'namespace="kube-system"',
    'pod=\\"web"',
  ),
  text,
);
const line = fc.array(piece, { maxLength: 14 }).map((parts) => parts.join(''));
const good = fc
  .tuple(
    fc.constantFrom(...RESOURCE_FAMILIES.map(({ name }) => name)),
    fc.constantFrom('web', 'other', 'we b'),
    fc.constantFrom('app', 'x y', '', 'A'),
    fc.oneof(fc.double().map(String), text),
  )
  .map(
    ([family, pod, container, value]) =>
      `${family}{container="${container}",namespace="p-shop",pod="${pod}"} ${value} 1795253470000`,
  );

describe('what the kubelets of a member say of usage', () => {
  fuzz('a line is about a pod of ours, or leaves no trace', fc.oneof(line, good), { share: 4_000 }, (input) => {
    const reader = new ResourceReader(RESOURCE_FAMILIES, (key) => KEYS.has(key), 0);
    reader.line(input);
    for (const [key, reading] of reader.result()) {
      expect(KEYS.has(key)).toBe(true);
      expect(reading.memoryBytes).toBeGreaterThanOrEqual(0);
      for (const { cpuSeconds } of reading.containers) expect(cpuSeconds).toBeGreaterThanOrEqual(0);
    }
    const cadvisor = new CadvisorReader(TARGETS);
    cadvisor.line(input);
    for (const [told] of cadvisor.result().values()) {
      // Neither another pod nor a line of its own can be hidden in one.
      expect(told).not.toContain('\n');
      const labels = parseSample(told ?? '')?.labels ?? [];
      expect(labels.filter(({ name }) => name === 'namespace').every(({ value }) => value === 'shop')).toBe(true);
    }
    const sample = parseSample(input);
    if (sample !== undefined) expect(parseSample(formatSample(sample))).toEqual(sample);
  });

  const lines = fc
    .array(fc.oneof(line, good), { maxLength: 4 })
    .map((all) => Buffer.from(all.join('\n')))
    .chain((body) => fc.tuple(fc.constant(body), pieces(body)));
  fuzz('lines are the same in whatever pieces they come', lines, { share: 1_000 }, ([body, parts]) => {
    const read = (bodies: readonly Buffer[]): string[] => {
      const found: string[] = [];
      const splitter = new LineSplitter((one) => found.push(one), 1_000_000);
      for (const one of bodies) splitter.push(one);
      splitter.end();
      return found;
    };
    expect(read(parts)).toEqual(read([body]));
  });

  const stats = (name: string): object => ({
    podRef: { name, namespace: 'p-shop', uid: 'member-uid' },
    startTime: '2026-01-01T00:00:00Z',
    containers: [{ name: 'app', cpu: { usageNanoCores: 5 } }],
    cpu: { time: '2026-01-01T00:01:00Z', usageNanoCores: 5, usageCoreNanoSeconds: 9 },
    memory: { time: '2026-01-01T00:01:00Z', workingSetBytes: 7, usageBytes: 8, rssBytes: 1 },
    network: { rxBytes: 1, txBytes: 2 },
  });
  const metrics = {
    kind: 'PodMetricsList',
    items: [
      {
        metadata: { name: 'web', namespace: 'p-shop' },
        timestamp: '2026-01-01T00:00:00Z',
        window: '15.5s',
        containers: [{ name: 'app', usage: { cpu: '5m', memory: '1Mi' } }],
      },
    ],
  };
  const answers = fc.record({
    summary: fc.oneof(
      changed({ node: { nodeName: 'real-1' }, pods: [stats('web'), stats('other')] }),
      fc.constant(undefined),
    ),
    metrics: changed(metrics),
    resource: fc.oneof(line, good, fc.constant(golden('kubelet-resource.txt'))),
    refused: fc.boolean(),
  });
  fuzz(
    'every form of it can be asked for, whatever a member answers',
    answers,
    { share: 1_500 },
    async ({ summary, metrics, resource, refused }) => {
      const fixture = usageFixture(TARGETS);
      const { usage, member } = fixture;
      member.script = (path) => {
        if (path.startsWith('/apis/metrics.k8s.io')) return metrics;
        if (refused) return notFound(path);
        return path.endsWith('/stats/summary') ? summary : resource;
      };
      for (const less of [true, false]) {
        const said = parseJson(await usage.summary(less)) as { pods: { podRef: object }[] };
        for (const { podRef } of said.pods)
          expect(TARGETS.some(({ hostPod }) => JSON.stringify(podRef).includes(`"${hostPod.metadata.name}"`))).toBe(
            true,
          );
      }
      for (const text of [await usage.resourceMetrics(), await usage.cadvisorMetrics()]) {
        for (const one of [...text].join('').split('\n')) {
          const sample = one === '' || one.startsWith('#') ? undefined : parseSample(one);
          if (sample !== undefined)
            expect(sample.labels.find(({ name }) => name === 'namespace')?.value ?? 'shop').toBe('shop');
        }
      }
      await fixture.stop();
    },
  );
});
