import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { waitReady } from '../../hack/spillway.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Event } from '../../src/kube/core-v1.ts';
import {
  type Fields,
  getPod,
  IDLE,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podSpec,
  runPod,
  serviceAccountIn,
  shell,
  untilGone,
  untilPod,
  writesOf,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/** How soon users see what is wrong, in ms, counted from when the member itself can show it: on a busy machine it is not a moment. */
const SHOWN_MS = 15_000;

/** What members say about pods, seen with plain kubectl on the host. */
describe.runIf(kubelets.ok)('Events of members', () => {
  const ns = 'told';
  /** The member has it under another name. */
  const below = `h-${ns}`;
  let topology: Topology;
  let host: Cluster;
  /** A real kubelet, all namespaces ours. */
  let east: Cluster;
  /** kwok; lends one namespace and lets us see nothing else. */
  let lender: Cluster;

  beforeAll(async () => {
    topology = await startTopology({
      members: [
        {
          name: 'east',
          kubelet: 'east-1',
          options: { spec: { namespaces: { mapping: 'Prefixed', prefix: 'h-', podSecurity: 'privileged' } } },
        },
        { name: 'lender', kwok: { nodes: 1 }, options: { rights: 'namespaced', lend: ['default', 'lent'] } },
      ],
    });
    host = topology.host;
    east = topology.member('east').cluster;
    lender = topology.member('lender').cluster;
    await Promise.all([newNamespace(host, ns), newNamespace(host, 'lent'), serviceAccountIn(lender, 'lent')]);
  });

  afterAll(() => topology?.close());

  async function eventsAbout(cluster: Cluster, namespace: string, name: string): Promise<Event[]> {
    const selector = encodeURIComponent(`involvedObject.name=${name},involvedObject.kind=Pod`);
    const path = `/api/v1/namespaces/${namespace}/events?fieldSelector=${selector}`;
    return ((await cluster.api.call('GET', path)) as { items: Event[] }).items;
  }

  /** Those of the host that come from a member. */
  async function told(namespace: string, name: string): Promise<Event[]> {
    const all = await eventsAbout(host, namespace, name);
    return all.filter(({ source }) => /^(east|lender)\//.test(source?.component ?? ''));
  }

  /** Waits until the member says something, then until the host says it. @returns the host's Event. */
  async function untilTold(name: string, reason: string, words: RegExp): Promise<Event> {
    const isIt = (event: Event): boolean => event.reason === reason && words.test(event.message ?? '');
    await until(
      `the member says ${reason} about ${name}`,
      async () => (await eventsAbout(east, below, name)).some(isIt),
      { timeoutMs: 60_000, intervalMs: 100 },
    );
    const event = await until(`the host says ${reason} about ${name}`, async () => (await told(ns, name)).find(isIt), {
      timeoutMs: SHOWN_MS,
      intervalMs: 50,
    });
    expect(event.involvedObject.uid).toBe((await getPod(host, ns, name)).metadata.uid);
    expect(await kubectl(host, ['describe', 'pod', name, '-n', ns])).toMatch(words);
    return event;
  }

  test('an image that cannot be pulled', async () => {
    await host.apply([pod('pull', ns, podSpec([shell(IDLE, { image: '127.0.0.1:9/absent:1' })], onNode('east')))]);
    const failed = await untilTold('pull', 'Failed', /Failed to pull image "127\.0\.0\.1:9\/absent:1"/);
    expect(failed).toMatchObject({
      type: 'Warning',
      involvedObject: { fieldPath: 'spec.containers{main}' },
      source: { component: 'east/kubelet', host: 'east-1' },
      reportingComponent: 'spillway',
    });
    await untilTold('pull', 'BackOff', /Back-off pulling image/);
  });

  test('a volume that cannot be mounted', async () => {
    const volumes = [{ name: 'data', csi: { driver: 'absent.csi.example.com' } }];
    const container = shell(IDLE, { volumeMounts: [{ name: 'data', mountPath: '/data' }] });
    await host.apply([pod('mount', ns, podSpec([container], { ...onNode('east'), volumes }))]);
    await untilTold('mount', 'FailedMount', /absent\.csi\.example\.com/);
  });

  test('no node for it; the cluster is named, because the host has a scheduler too', async () => {
    const port = { ports: [{ containerPort: 8080, hostPort: 18_081 }] };
    await east.apply([pod('owner', 'default', { terminationGracePeriodSeconds: 0, containers: [shell(IDLE, port)] })]);
    await untilPod(east, 'default', 'owner', 'runs', ({ status }) => status?.phase === 'Running');
    await host.apply([pod('unschedulable', ns, podSpec([shell(IDLE, port)], onNode('east')))]);
    const event = await untilTold('unschedulable', 'FailedScheduling', /0\/1 nodes are available/);
    expect(event.message).toMatch(/^Cluster "east": 0\/1 nodes/);
    expect(event.source?.component).toBe('east/default-scheduler');
  });

  test('a container that fails its probe, and one that crashes', async () => {
    const probe = { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 };
    await host.apply([
      pod('probed', ns, podSpec([shell(IDLE, { livenessProbe: probe })], onNode('east'))),
      pod('crashing', ns, podSpec([shell('exit 3')], onNode('east'))),
    ]);
    await untilTold('probed', 'Unhealthy', /Liveness probe failed/);
    await untilTold('probed', 'Killing', /failed liveness probe, will be restarted/);
    await untilTold('crashing', 'BackOff', /Back-off restarting failed container/);
  });

  test('about pods with names as long as a kubelet bears, in a namespace whose mapped name is cut', async () => {
    // A kubelet makes a folder of namespace, name and UID, which may have 255 characters in all.
    const [long, name] = [`n${'o'.repeat(61)}s`, `${'p.'.repeat(75)}p`];
    await newNamespace(host, long);
    const script = `echo "this is $(hostname)"; ${IDLE}`;
    const probe = { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 100 };
    await host.apply([
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `c.${name}`, namespace: long },
        data: { GREETING: 'hi' },
      },
      pod(
        name,
        long,
        podSpec([shell(script, { readinessProbe: probe, envFrom: [{ configMapRef: { name: `c.${name}` } }] })], {
          ...onNode('east'),
          hostname: 'long',
        }),
      ),
    ]);
    const event = await until(
      'its failing probe is told',
      async () => (await told(long, name)).find(({ reason }) => reason === 'Unhealthy'),
      { timeoutMs: 60_000 },
    );
    expect(event.message).toMatch(/Readiness probe failed/);
    const { uid } = (await getPod(host, long, name)).metadata;
    const all = (await east.api.call(
      'GET',
      `/api/v1/pods?labelSelector=${encodeURIComponent(`spillway.dev/uid=${uid}`)}`,
    )) as {
      items: { metadata: { name: string; namespace: string } }[];
    };
    const [{ metadata: copy } = { metadata: { name: '', namespace: '' } }] = all.items;
    expect(copy.name).toBe(name);
    expect(copy.namespace).toMatch(/^h-no+-[0-9a-f]{16}$/);
    expect(copy.namespace).toHaveLength(63);
    expect(await kubectl(host, ['logs', name, '-n', long])).toBe('this is long\n');
    expect(await kubectl(host, ['exec', name, '-n', long, '--', 'sh', '-c', 'echo $GREETING'])).toBe('hi\n');
    await kubectl(host, ['delete', 'pod', name, '-n', long, '--timeout=60s']);
    await untilGone(east, copy.namespace, name);
  });

  test('of a healthy pod there are none, from its creation to its deletion', async () => {
    await runPod(host, pod('healthy', ns, podSpec([shell(IDLE)], onNode('east'))));
    await kubectl(host, ['delete', 'pod', 'healthy', '-n', ns]);
    await untilGone(east, below, 'healthy');
    await until('the member has said all it has to say', async () =>
      (await eventsAbout(east, below, 'healthy')).some(({ reason }) => reason === 'Killing'),
    );
    // What comes later was said later: a warning about another pod is passed on behind it.
    await host.apply([pod('later', ns, podSpec([shell(IDLE, { image: '127.0.0.1:9/later:1' })], onNode('east')))]);
    await untilTold('later', 'Failed', /later:1/);
    expect(await told(ns, 'healthy')).toEqual([]);
    const ours = (await eventsAbout(host, ns, 'healthy')).filter(
      ({ reportingComponent }) => reportingComponent === 'spillway',
    );
    expect(ours).toEqual([]);
  });

  /** An Event in the member, as some component there might write it. */
  async function say(cluster: Cluster, namespace: string, name: string, more: Fields): Promise<void> {
    const { uid } = (await getPod(cluster, namespace, name)).metadata;
    const now = new Date().toISOString();
    await cluster.api.call('POST', `/api/v1/namespaces/${namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
      type: 'Warning',
      source: { component: 'watchdog' },
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      ...more,
    });
  }

  test('where only lent namespaces may be seen, from those', async () => {
    await runPod(host, pod('lodger', 'lent', podSpec([shell(IDLE)], onNode('lender'))));
    const began = Date.now();
    await say(lender, 'lent', 'lodger', { reason: 'Leak', message: 'water on the floor' });
    const event = await until(
      'the host says it',
      async () => (await told('lent', 'lodger')).find(({ reason }) => reason === 'Leak'),
      { timeoutMs: SHOWN_MS, intervalMs: 50 },
    );
    expect(event.message).toBe('Cluster "lender": water on the floor');
    expect(Date.now() - began).toBeLessThan(SHOWN_MS);
  });

  test('of other pods appear nowhere', async () => {
    await lender.apply([pod('stranger', 'lent', { containers: [shell(IDLE)] })]);
    await east.apply([pod('stranger', 'default', { containers: [shell(IDLE)] })]);
    await say(lender, 'lent', 'stranger', { reason: 'Leak', message: 'the-secret-of-the-stranger' });
    await say(east, 'default', 'stranger', { reason: 'Leak', message: 'the-secret-of-the-stranger' });
    await say(lender, 'lent', 'lodger', { reason: 'Marker', message: 'after that' });
    await until('the host says what came after', async () =>
      (await told('lent', 'lodger')).some(({ reason }) => reason === 'Marker'),
    );
    const log = readFileSync(join(host.dir, 'spillway.log'), 'utf8');
    expect(log).not.toContain('the-secret-of-the-stranger');
    const all = (await host.api.call('GET', '/api/v1/events')) as { items: Event[] };
    expect(all.items.filter(({ message }) => message?.includes('the-secret-of-the-stranger'))).toEqual([]);
  });

  test('repetitions are one Event, and a loud pod has its share and no more', async () => {
    const began = Date.now();
    await runPod(host, pod('loud', 'lent', podSpec([shell(IDLE)], onNode('lender'))));
    const path = '/api/v1/namespaces/lent/events';
    await say(lender, 'lent', 'loud', { metadata: { name: 'again', namespace: 'lent' }, reason: 'Again' });
    const writes = (name: RegExp): number =>
      writesOf(host, began).filter(
        ({ objectRef }) => objectRef?.resource === 'events' && name.test(objectRef.name ?? ''),
      ).length;
    for (let count = 2; count <= 30; count += 1) await lender.api.call('PATCH', `${path}/again`, { count });
    const again = await until(
      'the host counts as the member does',
      async () => (await told('lent', 'loud')).find(({ reason, count }) => reason === 'Again' && count === 30),
      { timeoutMs: 30_000 },
    );
    expect(writes(new RegExp(`^${again.metadata.name}$`))).toBeLessThanOrEqual(3);
    for (let nth = 0; nth < 40; nth += 1) {
      await say(lender, 'lent', 'loud', { reason: `Loud${nth}`, message: `for the ${nth}th time` });
    }
    const left = async (): Promise<number> => {
      const text = await (await fetch(`${topology.spillway.url}/metrics`)).text();
      const series = 'spillway_member_events_total{member="lender",outcome="rate-limited"} ';
      return Number(text.split(series)[1]?.split('\n')[0] ?? 0);
    };
    await until('the rest is left out', async () => (await left()) >= 20);
    const shown = await told('lent', 'loud');
    expect(shown.length).toBeGreaterThanOrEqual(10);
    expect(shown.length).toBeLessThanOrEqual(16);
  });

  test('are written once, also when the program is killed and starts again', async () => {
    const before = await told('lent', 'lodger');
    expect(new Set(before.map(({ reason }) => reason))).toEqual(new Set(['Leak', 'Marker']));
    expect(before).toHaveLength(2);
    const { process: manager } = topology.spillway;
    await manager.stop('SIGKILL');
    await say(lender, 'lent', 'lodger', { reason: 'Meanwhile', message: 'while nobody looked' });
    const began = Date.now();
    manager.restart();
    await waitReady(topology.spillway);
    await until(
      'what was said in the meantime is told',
      async () => (await told('lent', 'lodger')).some(({ reason }) => reason === 'Meanwhile'),
      { timeoutMs: 60_000 },
    );
    const after = await told('lent', 'lodger');
    expect(after.filter(({ reason }) => reason !== 'Meanwhile')).toEqual(before);
    // What a loud pod was not allowed before may be said of it now.
    const names = new Set(after.map(({ metadata }) => metadata.name));
    const writes = writesOf(host, began).filter(
      ({ objectRef }) => objectRef?.resource === 'events' && names.has(objectRef.name ?? ''),
    );
    expect(writes).toHaveLength(1);
  });
});
