import { expect, it } from 'vitest';
import { heapBytes } from '../fixtures/heap.ts';
import { feedPods } from '../fixtures/fed-pods.ts';

const MIB = 1024 * 1024;

let count = 0;
const next = (): string => `z${(count++).toString(36)}`;
const texts = (length: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length }, () => [next(), '']));

interface Changes {
  name?: string;
  labels?: unknown;
  annotations?: unknown;
  spec?: object;
  status?: object;
}

function pod({ name = next(), labels = {}, annotations, spec, status }: Changes): object {
  return {
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-${count}`,
      resourceVersion: String(2 + count++),
      labels,
      annotations,
    },
    spec: { nodeName: 'n', containers: [{ name: 'app', image: 'busybox' }], ...spec },
    status: status ?? { phase: 'Running' },
  };
}
const OURS = { 'spillway.dev/host': 'us' };

/** Pods of which each takes memory in another place: kept whole, or of others, or nothing but that they were there. */
const HOSTILE: Record<string, () => [string, object]> = {
  'small pods of ours': () => ['ADDED', pod({ labels: { a: next(), ...OURS } })],
  'small pods of others': () => ['ADDED', pod({ labels: { a: next() } })],
  'long names': () => ['ADDED', pod({ name: next() + 'n'.repeat(240) })],
  'names of two bytes a character': () => ['ADDED', pod({ name: next() + '\u4E16'.repeat(200) })],
  'labels of others': () => ['ADDED', pod({ labels: texts(20) })],
  'requests of others': () => [
    'ADDED',
    pod({
      spec: {
        containers: [
          { name: 'a', resources: { requests: Object.fromEntries(Object.keys(texts(20)).map((n) => [n, 1])) } },
        ],
      },
    }),
  ],
  'node names of others': () => ['ADDED', pod({ spec: { nodeName: next() + 'n'.repeat(1_000) } })],
  'fields without a value': () => [
    'ADDED',
    pod({
      labels: OURS,
      spec: { containers: Array.from({ length: 50 }, () => ({ image: null, name: 'a' })) },
    }),
  ],
  'no valid pods': () => ['ADDED', pod({ name: next() + 'n'.repeat(200), labels: { ['l'.repeat(200)]: 0 } })],
  'pods that go': () => ['DELETED', pod({ name: next() + 'n'.repeat(200) })],
};

/** What is counted, of what is taken. */
async function measured(lines: readonly Buffer[]): Promise<number> {
  const fed = await feedPods(1024 * MIB);
  const [before, used] = [heapBytes(), fed.share.used];
  for (const line of lines) fed.feed(line);
  const taken = heapBytes() - before;
  const said = fed.share.used - used;
  fed.stop();
  return said / taken;
}

it.each(Object.entries(HOSTILE))(
  'what a cache takes counts: %s',
  async (_what, make) => {
    const lines: Buffer[] = [];
    for (let bytes = 0; bytes < 2 * MIB; bytes += lines.at(-1)?.length ?? 0) {
      const [type, object] = make();
      lines.push(Buffer.from(`${JSON.stringify({ type, object })}\n`));
    }
    // What the process compiles and keeps besides is on the same heap: many lines, and more than once.
    const parts = [await measured(lines), await measured(lines), await measured(lines)];
    expect(parts.toSorted((a, b) => a - b)[1]).toBeGreaterThan(0.9);
  },
  30_000,
);
