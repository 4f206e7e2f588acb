import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Say } from '../hack/progress.ts';
import { KubeClient } from '../src/kube/client.ts';
import { staticAccess } from '../src/kube/static-access.ts';
import { asReference, measured, median, type Measurement } from './measurement.ts';
import { PlainApi } from './plain-api.ts';
import { samplePod } from './sample-pod.ts';

const REQUESTS = 4_000;
const IN_FLIGHT = 16;
const ROUNDS = 5;

interface Cost {
  perSecond: number;
  cpuMicros: number;
}

/** Getting a pod through the client runtime against getting it through undici and JSON.parse alone, in turns. */
export async function compareTransports(say: Say): Promise<Measurement[]> {
  const server = fork(fileURLToPath(new URL('http-answers.js', import.meta.url)), { stdio: ['ignore', 2, 2, 'ipc'] });
  const ended = once(server, 'exit');
  try {
    const [port] = (await Promise.race([
      once(server, 'message'),
      ended.then(() => Promise.reject(new Error('the answering server ended'))),
    ])) as [number];
    const url = `http://127.0.0.1:${port}`;
    const { metadata } = samplePod(0);
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
    const client = new KubeClient({
      cluster: 'bench',
      ...staticAccess({ endpoint: { server: url } }),
      connections: IN_FLIGHT,
    });
    const plain = new PlainApi({ server: url, ca: '', cert: '', key: '' }, IN_FLIGHT);
    try {
      const costs = { client: [] as Cost[], plain: [] as Cost[] };
      // The first turn of each is thrown away.
      for (let round = 0; round <= ROUNDS; round++) {
        const turns = {
          client: await costOf(() => client.request({ path })),
          plain: await costOf(() => plain.getJson(path)),
        };
        if (round === 0) continue;
        costs.client.push(turns.client);
        costs.plain.push(turns.plain);
      }
      const typical = (all: Cost[], read: (cost: Cost) => number): number => median(all.map(read));
      const rate = (all: Cost[]): number => typical(all, ({ perSecond }) => perSecond);
      const cpu = (all: Cost[]): number => typical(all, ({ cpuMicros }) => cpuMicros);
      const results = [
        measured(
          'kube: GET throughput against undici alone',
          rate(costs.client) / rate(costs.plain),
          'ratio',
          'higher',
          0.8,
        ),
        measured('kube: GET CPU against undici alone', cpu(costs.client) / cpu(costs.plain), 'ratio', 'lower', 1.25),
        measured('kube: GET', rate(costs.client), 'requests/s', 'higher'),
        asReference(measured('kube: GET by undici alone', rate(costs.plain), 'requests/s', 'higher')),
        measured('kube: CPU of a GET', cpu(costs.client), 'us', 'lower'),
        asReference(measured('kube: CPU of a GET by undici alone', cpu(costs.plain), 'us', 'lower')),
      ];
      for (const { name, value, unit } of results.slice(0, 2)) say(`${name}: ${value} ${unit}`);
      return results;
    } finally {
      await Promise.all([client.close(), plain.close()]);
    }
  } finally {
    if (server.connected) server.disconnect();
    await ended;
  }
}

async function costOf(get: () => Promise<unknown>): Promise<Cost> {
  const began = performance.now();
  const before = process.cpuUsage();
  let left = REQUESTS;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await get();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  const { user, system } = process.cpuUsage(before);
  return { perSecond: (REQUESTS / (performance.now() - began)) * 1000, cpuMicros: (user + system) / REQUESTS };
}
