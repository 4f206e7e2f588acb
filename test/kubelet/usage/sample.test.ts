import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { RESOURCE_FAMILIES } from '../../../src/kubelet/usage/families.ts';
import { ResourceReader } from '../../../src/kubelet/usage/pod-reading.ts';
import { LineSplitter } from '../../../src/kubelet/usage/line-splitter.ts';
import { resourceMetricsPath } from '../../../src/kubelet/usage/resource-metrics-path.ts';
import { familyOf, formatSample, parseSample, podKeyOf } from '../../../src/kubelet/usage/sample.ts';

describe('a line of metrics', () => {
  it('has parts that come out as they went in', () => {
    const line = String.raw`f{container="app",id="/a\"b\\",namespace="ns",pod="p"} 1.7952534011234567e+09 1795253468507`;
    const sample = parseSample(line);
    expect(sample).toEqual({
      family: 'f',
      labels: [
        { name: 'container', value: 'app' },
        { name: 'id', value: String.raw`/a\"b\\` },
        { name: 'namespace', value: 'ns' },
        { name: 'pod', value: 'p' },
      ],
      value: '1.7952534011234567e+09',
      timestamp: '1795253468507',
    });
    expect(sample && formatSample(sample)).toBe(line);
    expect(podKeyOf(line)).toBe('ns/p');
    expect(familyOf(line)).toBe('f');
  });

  test.each(['f 1', 'f{} 1', 'f{a="b",} 1 5', 'f{ a="b", c="d" } +Inf'])('%j can be written otherwise', (line) => {
    expect(parseSample(line)).toBeDefined();
  });

  test.each([
    '',
    '# HELP f x',
    'f',
    'f{pod="p",namespace="n"}',
    'f{pod="p',
    'f{pod="p\\"} 1',
    'f{pod=p} 1',
    'f{pod} 1',
    'f 1 2 3',
    'f 1 x',
    'f 1 999999999999999999',
  ])('%j is none', (line) => {
    expect(parseSample(line)).toBeUndefined();
  });

  it('is about a pod only by its own labels', () => {
    expect(podKeyOf(String.raw`f{id="\",namespace=\"n\",pod=\"p\"",namespace="m",pod="q"} 1`)).toBe('m/q');
    expect(podKeyOf(String.raw`f{id="\",namespace=\"n\",pod=\"p\""} 1`)).toBeUndefined();
    expect(podKeyOf('f{namespace="n",pod=""} 1')).toBeUndefined();
    expect(podKeyOf('f{namespace="n"} 1')).toBeUndefined();
    expect(podKeyOf('node_cpu_usage_seconds_total 5')).toBeUndefined();
  });

  test('any text at all is read without an error', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('f', '{', '}', '=', '"', ',', '\\', ' ', '1', '#', 'pod') }),
        (text) => {
          parseSample(text);
          podKeyOf(text);
          familyOf(text);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe('cutting bytes into lines', () => {
  const cut = (pieces: readonly Buffer[], max?: number): string[] => {
    const lines: string[] = [];
    const splitter = new LineSplitter((line) => lines.push(line), max);
    for (const piece of pieces) splitter.push(piece);
    splitter.end();
    return lines;
  };

  test('gives the same lines however the bytes arrive', () => {
    const text = 'one\n\nzwölf €\nlast without end';
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 30 })), (cuts) => {
        const bytes = Buffer.from(text);
        const at = [...new Set([0, ...cuts.filter((one) => one < bytes.length), bytes.length])].sort((a, b) => a - b);
        expect(cut(at.map((start, index) => bytes.subarray(start, at[index + 1])))).toEqual(text.split('\n'));
      }),
    );
  });

  it('gives up on a line without end', () => {
    expect(() => cut([Buffer.from('x'.repeat(50)), Buffer.from('x'.repeat(51))], 100)).toThrow('longer than 100');
  });
});

describe('the path that a node serves its metrics at', () => {
  const path = (value: string): string => resourceMetricsPath({ 'metrics.k8s.io/resource-metrics-path': value });

  it('is the usual one, or the one its annotation names', () => {
    expect(resourceMetricsPath(undefined)).toBe('/metrics/resource');
    expect(path('/metrics/nodes/kwok-0/metrics/resource')).toBe('/metrics/nodes/kwok-0/metrics/resource');
  });

  test.each(['', '/', 'x', '/../../../namespaces/x/secrets', '/a/./b', '/a//b', '/a?b=c', '/a%2f..', '/a b', '/…'])(
    'is not %j, which could lead elsewhere',
    (value) => {
      expect(path(value)).toBe('/metrics/resource');
    },
  );
});

test('what is almost a number of any length is found to be none at once', () => {
  const reader = new ResourceReader(RESOURCE_FAMILIES, () => true, 0);
  const began = performance.now();
  for (const end of ['x', '.x', 'e', '']) {
    reader.line(`pod_cpu_usage_seconds_total{namespace="a",pod="b"} ${'1'.repeat(60_000)}${end}`);
  }
  expect(performance.now() - began).toBeLessThan(500);
  expect(reader.result().get('a/b')?.containers).toHaveLength(1);
});
