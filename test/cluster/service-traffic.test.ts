import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { startKubelet } from '../../hack/kubelet.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { EndpointSlice } from '../../src/kube/discovery-v1.ts';
import { type Fields, isReady, kubectl, newNamespace, onNode, pod, podSpec, untilPod } from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const can = await canRunKubelets();
if (!can.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${can.reason}`);

const HTTP = 8080;
const UDP = 8081;
/** Pods by name, and where each runs. */
const PLACES = { home: 'local', inner: 'east', outer: 'west' } as const;
type Name = keyof typeof PLACES;
const NAMES = Object.keys(PLACES) as Name[];

interface Answer {
  responses?: string[];
  errors?: string[];
}

/** Requests by name between pods of a host and of two members, through real kube-proxies and real DNS. */
describe.runIf(can.ok)('requests by the name of a Service', () => {
  let topology: Topology;
  let host: Cluster;
  let ns: string;
  let pods: Record<Name, Pod>;

  beforeAll(async () => {
    const members = ['east', 'west'].map((name) => ({
      name,
      kubelet: { node: `${name}-1`, services: 'clusterset' as const },
      options: { services: true, exchange: true },
    }));
    topology = await startTopology({ host: { reachable: true }, members });
    ({ host } = topology);
    await startKubelet(host, { node: 'local', services: 'clusterset' });
    ns = await newNamespace(host, 'traffic');
    await host.apply(services());
    const [home, inner, outer] = await Promise.all([makePod('home'), makePod('inner'), makePod('outer')]);
    pods = { home, inner, outer };
  });
  afterAll(async () => {
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    await topology?.close();
    expect(errors).toEqual([]);
  });

  /** Not the name of the pod, which a pod finds in its own /etc/hosts. */
  const serviceOf = (name: Name): string => `to-${name}`;

  function services(): Fields[] {
    const ports = [
      { name: 'web', port: 80, targetPort: 'http' },
      { name: 'datagrams', port: 81, protocol: 'UDP', targetPort: UDP },
    ];
    const service = (name: string, spec: Fields): Fields => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: ns },
      spec,
    });
    const selector = { group: 'all' };
    return [
      ...NAMES.map((name) => service(serviceOf(name), { selector: { app: name }, ports })),
      service('any', { selector, ports }),
      service('sticky', { selector, ports, sessionAffinity: 'ClientIP' }),
      service('peers', { selector, ports: [{ port: HTTP }], clusterIP: 'None' }),
      service('alias', { type: 'ExternalName', externalName: `${serviceOf('home')}.${ns}.svc.cluster.local` }),
    ];
  }

  /** The container of a pod that answers with its name, and asks others when it is told to. */
  function answering(...more: string[]): Fields {
    return {
      name: 'main',
      image: IMAGES.agnhost,
      args: ['netexec', `--http-port=${HTTP}`, ...more],
      readinessProbe: { httpGet: { path: '/healthz', port: HTTP }, periodSeconds: 1 },
    };
  }

  /** Over the nodes that its pods may go to. */
  function evenly(matchLabels: Fields): Fields[] {
    const how = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' };
    return [{ ...how, labelSelector: { matchLabels } }];
  }

  async function makePod(name: Name): Promise<Pod> {
    const where = PLACES[name];
    const containers = [{ ...answering(`--udp-port=${UDP}`), ports: [{ name: 'http', containerPort: HTTP }] }];
    // As pods of a StatefulSet have it.
    const more = { hostname: name, subdomain: 'peers' };
    const spec =
      where === 'local'
        ? { nodeName: where, containers, ...more }
        : podSpec(containers, { ...onNode(where), containers, ...more });
    await host.apply([pod(name, ns, spec, { labels: { app: name, group: 'all' } })]);
    return await untilPod(host, ns, name, 'is ready', isReady, { timeoutMs: 60_000 });
  }

  /** What the pod gets for so many requests, each with a connection and a look-up of its own. */
  async function ask(caller: Name, to: string, { port = 80, protocol = 'http', tries = 10 } = {}): Promise<Answer> {
    const query = { host: to, port: String(port), protocol, request: 'hostname', tries: String(tries) };
    const url = `http://${pods[caller].status?.podIP}:${HTTP}/dial?${new URLSearchParams(query).toString()}`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(60_000) });
    return (await answer.json()) as Answer;
  }

  /** Proxies and DNS learn of a pod a moment after it is ready; from then on no request fails. */
  async function reaches(
    caller: Name,
    to: string,
    name: string,
    more: { port?: number; protocol?: string } = {},
  ): Promise<void> {
    await until(`${caller} reaches ${to}`, async () => {
      const answer = await ask(caller, to, { ...more, tries: 1 });
      if (answer.responses?.[0] === name) return true;
      throw new Error(JSON.stringify(answer));
    });
    expect(await ask(caller, to, more)).toEqual({ responses: Array.from({ length: 10 }, () => name) });
  }

  const directions = NAMES.flatMap((caller) => NAMES.map((name) => [caller, name] as const));

  test.each(directions)(
    'from %s to %s: by cluster IP, over TCP and UDP, and by the name of the pod',
    async (caller, name) => {
      await reaches(caller, serviceOf(name), name);
      await reaches(caller, serviceOf(name), name, { port: 81, protocol: 'udp' });
      await reaches(caller, `${name}.peers`, name, { port: HTTP });
    },
  );

  test.each(NAMES)(
    'from %s all pods of a Service answer, one if it is sticky, and an alias leads to what it names',
    async (caller) => {
      await until(`${caller} reaches all`, async () => {
        const { responses = [], errors = [] } = await ask(caller, 'any', { tries: 30 });
        return errors.length === 0 && new Set(responses).size === NAMES.length;
      });
      const { responses = [], errors } = await ask(caller, 'sticky', { tries: 20 });
      expect([new Set(responses).size, errors]).toEqual([1, undefined]);
      await reaches(caller, `alias.${ns}`, 'home');
    },
  );

  test('from everywhere each pod of a StatefulSet over both members answers by its name', async () => {
    const labels = { app: 'numbered' };
    await host.apply([
      {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name: 'numbered', namespace: ns },
        spec: {
          replicas: 2,
          serviceName: 'numbers',
          podManagementPolicy: 'Parallel',
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: podSpec([answering()], { topologySpreadConstraints: evenly(labels) }),
          },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'numbers', namespace: ns },
        spec: { selector: labels, ports: [{ port: HTTP }], clusterIP: 'None' },
      },
    ]);
    const members = new Set<string | undefined>();
    for (const name of ['numbered-0', 'numbered-1']) {
      const made = await untilPod(host, ns, name, 'is ready', isReady, { timeoutMs: 60_000 });
      members.add(made.spec.nodeName);
    }
    expect(members).toEqual(new Set(['east', 'west']));
    for (const caller of NAMES) {
      for (const name of ['numbered-0', 'numbered-1']) await reaches(caller, `${name}.numbers`, name, { port: HTTP });
    }
  }, 120_000);

  test('what a cluster exports answers in all clusters by the name that it has in all', async () => {
    const east = topology.member('east').cluster;
    const containers: Fields[] = [
      { name: 'main', image: IMAGES.agnhost, args: ['netexec', `--http-port=${HTTP}`, `--udp-port=${UDP}`] },
    ];
    const labels = { app: 'native' };
    await east.apply([
      pod('native', ns, { nodeName: 'east-1', containers }, { labels }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'native', namespace: ns },
        spec: {
          selector: labels,
          ports: [
            { name: 'web', port: 80, targetPort: HTTP },
            { name: 'datagrams', port: 81, protocol: 'UDP', targetPort: UDP },
          ],
        },
      },
    ]);
    const exported = (name: string): Fields => ({
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceExport',
      metadata: { name, namespace: ns },
    });
    await east.apply([exported('native')]);
    await host.apply([exported(serviceOf('home')), exported('peers')]);
    const domain = `${ns}.svc.clusterset.local`;
    for (const caller of NAMES) {
      await reaches(caller, `native.${domain}`, 'native');
      await reaches(caller, `native.${domain}`, 'native', { port: 81, protocol: 'udp' });
      await reaches(caller, `${serviceOf('home')}.${domain}`, 'home');
      await reaches(caller, `outer.local.peers.${domain}`, 'outer', { port: HTTP });
    }
  }, 120_000);

  test('no request fails while a Deployment over both members is rolled', async () => {
    // It goes on answering for a while after it was told to end, as servers do that take their load seriously.
    const containers = [answering('--delay-shutdown=10')];
    const labels = { app: 'rolled' };
    await host.apply([
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'rolled', namespace: ns },
        spec: {
          replicas: 4,
          selector: { matchLabels: labels },
          strategy: { rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } },
          template: {
            metadata: { labels },
            spec: podSpec(containers, {
              terminationGracePeriodSeconds: 20,
              topologySpreadConstraints: evenly(labels),
            }),
          },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'rolled', namespace: ns },
        spec: { selector: labels, ports: [{ port: 80, targetPort: HTTP }] },
      },
    ]);
    const rolledOut = async (): Promise<void> => {
      const words = ['rollout', 'status', '-n', ns, 'deployment/rolled', '--timeout=120s'];
      await kubectl(host, words, { timeoutMs: 130_000 });
    };
    await rolledOut();
    const names = new Set<string>();
    const failures: string[] = [];
    const load = async (caller: Name): Promise<void> => {
      const { responses = [], errors = [] } = await ask(caller, 'rolled', { tries: 20 });
      for (const name of responses) names.add(name);
      failures.push(...errors);
    };
    await until('the Service leads to pods of both members', async () => {
      await load('home');
      failures.length = 0;
      return names.size === 4;
    });
    const end = new AbortController();
    const callers = NAMES.map(async (caller) => {
      while (!end.signal.aborted) await load(caller);
    });
    try {
      await kubectl(host, ['rollout', 'restart', '-n', ns, 'deployment/rolled']);
      await rolledOut();
      await until('only new pods answer', async () => {
        names.clear();
        await load('home');
        const { items } = (await host.api.call('GET', `/api/v1/namespaces/${ns}/pods?labelSelector=app%3Drolled`)) as {
          items: Pod[];
        };
        return items.length === 4;
      });
    } finally {
      end.abort();
    }
    await Promise.all(callers);
    expect(failures).toEqual([]);
  }, 300_000);

  test('requests to a member that is cut off stop failing when it counts as lost, and it is told what went meanwhile', async () => {
    const { cluster, kubelet } = topology.member('west');
    const unreadyAfter = 10;
    await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/west', {
      spec: { probe: { podsUnreadyAfterSeconds: unreadyAfter } },
    });
    const labels = { app: 'passing' };
    const containers: Fields[] = [{ name: 'main', image: IMAGES.agnhost, args: ['pause'] }];
    await host.apply([
      pod('passing', ns, { nodeName: 'local', containers, terminationGracePeriodSeconds: 1 }, { labels }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'passing', namespace: ns },
        spec: { selector: labels, ports: [{ port: 80 }] },
      },
    ]);
    const slices = `/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dpassing`;
    const leads = async (): Promise<boolean> => {
      const { items } = (await cluster.api.call('GET', slices)) as { items: EndpointSlice[] };
      return items.some(({ endpoints = [] }) => endpoints.length > 0);
    };
    await until('west knows the pod that is to go', leads);
    const asked: { at: number; failed: boolean }[] = [];
    const end = new AbortController();
    const load = (['home', 'inner'] as const).map(async (caller) => {
      while (!end.signal.aborted) {
        const at = performance.now();
        const { errors = [] } = await ask(caller, 'any', { tries: 1 });
        asked.push({ at, failed: errors.length > 0 });
      }
    });
    const failed = (): number[] => asked.filter((one) => one.failed).map(({ at }) => at);
    const server = cluster.component('kube-apiserver');
    const cut = performance.now();
    let lost = Infinity;
    try {
      server.signal('SIGSTOP');
      await kubelet?.machine.setLink('down');
      await untilPod(host, ns, 'outer', 'is not ready', (one) => !isReady(one), { timeoutMs: 60_000 });
      lost = performance.now();
      await host.api.call('DELETE', `/api/v1/namespaces/${ns}/pods/passing?gracePeriodSeconds=0`);
      await until('no request has failed for a while', () => performance.now() - Math.max(lost, ...failed()) > 8_000);
    } finally {
      server.signal('SIGCONT');
      await kubelet?.machine.setLink('up');
      end.abort();
    }
    await Promise.all(load);
    expect(failed().length).toBeGreaterThan(0);
    expect(Math.max(...failed()) - lost).toBeLessThan(5_000);
    // The probe has to fail twice, for up to 2 s each, before that time begins.
    expect(lost - cut).toBeLessThan((unreadyAfter + 30) * 1_000);
    await until('west knows that the pod is gone', async () => !(await leads()));
    await until('all are reached again from everywhere', async () => {
      for (const caller of NAMES) {
        const { responses = [], errors = [] } = await ask(caller, 'any', { tries: 30 });
        if (errors.length > 0 || new Set(responses).size < NAMES.length) return false;
      }
      return true;
    });
  }, 240_000);
});
