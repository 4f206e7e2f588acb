import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { startKubelet } from '../../hack/kubelet.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { type Fields, isReady, newNamespace, onNode, pod, podSpec, readPod, untilPod } from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const can = await canRunKubelets();
if (!can.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${can.reason}`);

const PORT = 8080;

/** Requests by name between pods of a host and of a member, through real kube-proxies and real DNS. */
describe.runIf(can.ok)('requests by the name of a Service', () => {
  let topology: Topology;
  let host: Cluster;

  beforeAll(async () => {
    const kubelet = { node: 'east-1', services: true };
    topology = await startTopology({
      host: { reachable: true },
      members: [{ name: 'east', kubelet, options: { services: true } }],
    });
    ({ host } = topology);
    await startKubelet(host, { node: 'local', services: true });
  });
  afterAll(async () => {
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    await topology?.close();
    expect(errors).toEqual([]);
  });

  /** A pod that answers with its name, and asks others when it is told to. */
  async function makePod(name: string, ns: string, where: string): Promise<Pod> {
    const probe = { httpGet: { path: '/healthz', port: PORT }, periodSeconds: 1 };
    const containers: Fields[] = [
      { name: 'main', image: IMAGES.agnhost, args: ['netexec', `--http-port=${PORT}`], readinessProbe: probe },
    ];
    const spec =
      where === 'local' ? { nodeName: where, containers } : podSpec(containers, { ...onNode(where), containers });
    await host.apply([pod(name, ns, spec, { labels: { app: name } })]);
    return await untilPod(host, ns, name, 'is ready', isReady, { timeoutMs: 60_000 });
  }

  /** Not the name of the pod, which a pod finds in its own /etc/hosts. */
  const serviceOf = (name: string): string => `to-${name}`;

  /** What a pod gets for ten requests, each with a connection and a look-up of its own. */
  async function ask(caller: Pod, name: string): Promise<{ responses?: string[]; errors?: string[] }> {
    const query = new URLSearchParams({
      host: name,
      port: '80',
      protocol: 'http',
      request: 'hostname',
      tries: '10',
    }).toString();
    const answer = await fetch(`http://${caller.status?.podIP}:${PORT}/dial?${query}`, {
      signal: AbortSignal.timeout(60_000),
    });
    return (await answer.json()) as { responses?: string[]; errors?: string[] };
  }

  test('a pod in the host reaches one in the member, and the other way round', async () => {
    const ns = await newNamespace(host, 'traffic');
    await host.apply(
      ['home', 'away'].map((name) => ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: serviceOf(name), namespace: ns },
        spec: { selector: { app: name }, ports: [{ port: 80, targetPort: PORT }] },
      })),
    );
    const [home, away] = await Promise.all([makePod('home', ns, 'local'), makePod('away', ns, 'east')]);
    for (const caller of [home, away]) {
      for (const name of ['home', 'away']) {
        await until(
          `${caller.metadata.name} reaches ${name}`,
          async () => {
            const answer = await ask(caller, serviceOf(name));
            if (answer.responses?.includes(name) === true) return true;
            throw new Error(JSON.stringify(answer));
          },
          { timeoutMs: 20_000 },
        );
        expect(await ask(caller, serviceOf(name))).toEqual({ responses: Array.from({ length: 10 }, () => name) });
      }
    }
    // The same name leads to addresses of each cluster's own.
    expect((await readPod(topology.member('east').cluster, ns, 'away'))?.spec.nodeName).toBe('east-1');
  });
});
