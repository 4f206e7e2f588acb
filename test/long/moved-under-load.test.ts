import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { startKubelet } from '../../hack/kubelet.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import { type Fields, isReady, newNamespace, pod, untilPod } from '../fixtures/live-pods.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import { deployment, policy, policyInUse, settled } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';
import { measured, seconds } from '../faults/lab.ts';

const can = await canRunKubelets();
if (!can.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${can.reason}`);

const HTTP = 8080;
const REPLICAS = 20;

interface Answer {
  responses?: string[];
  errors?: string[];
}

/** A Deployment with load on it leaves one member for another: real kubelets, kube-proxies and DNS in host and members. */
describe.runIf(can.ok)('a move under load', () => {
  let topology: Topology;
  let host: Cluster;
  let ns: string;

  beforeAll(async () => {
    const members = ['east', 'west'].map((name) => ({
      name,
      kubelet: { node: `${name}-1`, services: true as const },
      options: { services: true },
    }));
    topology = await startTopology({ extender: true, host: { reachable: true }, members });
    ({ host } = topology);
    await startKubelet(host, { node: 'local', services: true });
    await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
    ns = await newNamespace(host, 'moved');
  });
  afterAll(async () => {
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    await topology?.close();
    expect(errors).toEqual([]);
  });

  const container: Fields = {
    name: 'main',
    image: IMAGES.agnhost,
    // It goes on answering for a while after it was told to end, as servers do that take their load seriously.
    args: ['netexec', `--http-port=${HTTP}`, '--delay-shutdown=10'],
    readinessProbe: { httpGet: { path: '/healthz', port: HTTP }, periodSeconds: 1 },
    resources: { requests: { cpu: '1m' } },
  };

  async function caller(name: string, where: Fields): Promise<Pod> {
    await host.apply([pod(name, ns, { containers: [container], terminationGracePeriodSeconds: 1, ...where })]);
    return await untilPod(host, ns, name, 'is ready', isReady, { timeoutMs: 60_000 });
  }

  /** What a pod gets for 20 requests by the name of the Service, each with a connection and a look-up of its own. */
  async function ask(from: Pod): Promise<Answer> {
    const query = { host: 'web', port: '80', protocol: 'http', request: 'hostname', tries: '20' };
    const url = `http://${from.status?.podIP}:${HTTP}/dial?${new URLSearchParams(query).toString()}`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(60_000) });
    return (await answer.json()) as Answer;
  }

  test('no request fails, and all pods are Ready all the time, while kubectl spillway move takes them elsewhere', async (context) => {
    const eastFirst = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
    const web = deployment(
      ns,
      'web',
      REPLICAS,
      '1m',
      {},
      { containers: [container], terminationGracePeriodSeconds: 20 },
    );
    await host.apply([policy(ns, 'web', eastFirst, 'web')]);
    await policyInUse(host, ns, 'web');
    await host.apply([
      web,
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace: ns },
        spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: HTTP }] },
      },
    ]);
    const before = await settled(host, ns, 'web', { east: REPLICAS }, 180_000);
    const home = await caller('home', { nodeName: 'local' });
    const away = await caller('away', {
      nodeSelector: { 'kubernetes.io/hostname': 'west' },
      tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }],
    });
    for (const from of [home, away]) {
      await until(`${from.metadata.name} is answered`, async () => {
        const { responses = [], errors = [] } = await ask(from);
        return errors.length === 0 && responses.length === 20;
      });
    }
    const failures: string[] = [];
    const names = new Set<string>();
    let requests = 0;
    const end = new AbortController();
    const load = [home, away].map(async (from) => {
      while (!end.signal.aborted) {
        const { responses = [], errors = [] } = await ask(from);
        requests += 20;
        for (const name of responses) names.add(name);
        failures.push(...errors);
      }
    });
    const began = performance.now();
    let fewest = 0;
    try {
      fewest = await fewestReady(host, ns, 'web', async () => {
        const words = [
          'move',
          'deployment/web',
          '--from',
          'east',
          '--to',
          'west',
          '-n',
          ns,
          '--wait',
          '--timeout',
          '280',
        ];
        const { code, stdout, stderr } = await kubectlSpillway(host, words, { timeoutMs: 290_000 });
        expect(`${code} ${stderr}`, stdout).toMatch(/^0 /);
        await settled(host, ns, 'web', { west: REPLICAS });
        await until('only pods in west answer', async () => {
          names.clear();
          await ask(away);
          const old = new Set(before.map(({ metadata }) => metadata.name));
          return names.size > 0 && [...names].every((name) => !old.has(name));
        });
      });
    } finally {
      end.abort();
    }
    await Promise.all(load);
    const took = seconds(performance.now() - began);
    const figures = `${REPLICAS} pods moved in ${took}, ${requests} requests, ${failures.length} failed, ${fewest} Ready at least`;
    console.info(figures);
    measured(context, ['F70'], figures);
    expect(failures).toEqual([]);
    expect(requests).toBeGreaterThan(1_000);
    expect(fewest).toBe(REPLICAS);
  }, 400_000);
});
