import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { waitForNode } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { HOST_LABEL, MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { parseQuantity } from '../../src/kube/quantity.ts';
import {
  condition,
  describeWrite,
  eventsOf,
  type Fields,
  getPod,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  pod,
  podsOf,
  read,
  runPod,
  shell,
  untilPod,
  untilRunning,
  writesOf,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const ALL = [{ operator: 'Exists' }];
const VIRTUAL = { type: 'virtual-kubelet' };
/** How long a state is watched that must not change by itself, in ms. */
const QUIET_MS = 5000;

interface DaemonSetStatus {
  desiredNumberScheduled: number;
  numberReady?: number;
  numberAvailable?: number;
}

/** A virtual node as one node among others: what is done to nodes, and what comes to every node. */
describe('a virtual node among other nodes', () => {
  let topology: Topology;
  let host: Cluster;
  let east: Cluster;

  beforeAll(async () => {
    topology = await startTopology({ members: [{ name: 'east', kwok: { nodes: 2, prefix: 'east' } }] });
    host = topology.host;
    east = topology.member('east').cluster;
    await startKwok(host, { nodes: 1, prefix: 'local' });
  });

  afterAll(() => topology?.close());
  afterEach(async () => {
    await host.kubectl(['uncordon', 'east', 'local-0']);
  });

  const setPolicy = async (daemonSets: 'Ignore' | 'Run'): Promise<void> => {
    const path = '/apis/spillway.dev/v1alpha1/memberclusters/east';
    await host.api.call('PATCH', path, { spec: { daemonSets } });
  };
  const node = async (name = 'east'): Promise<Node> => {
    const found = await read<Node>(host, `/api/v1/nodes/${name}`);
    if (found === undefined) throw new Error(`no node ${name}`);
    return found;
  };
  const clear = async (ns: string): Promise<void> => {
    await kubectl(host, ['delete', 'deployments,daemonsets,pods', '--all', '-n', ns, '--timeout=50s']);
    await until(`no pod of ${ns} is left`, async () => (await podsOf(host, ns)).length === 0);
  };
  const memberPods = async (namespace: string): Promise<Pod[]> => await podsOf(east, namespace, HOST_LABEL);
  const millicores = async (): Promise<bigint> =>
    parseQuantity((await node()).status?.allocatable?.['cpu'] ?? '0').nanos / 1_000_000n;
  const requested = { resources: { requests: { cpu: '500m' } } };

  describe('DaemonSets', () => {
    const daemonSet = (name: string, namespace: string, spec: Fields, metadata: Fields = {}): Fields => ({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name, namespace },
      spec: {
        selector: { matchLabels: { app: name } },
        template: { metadata: { labels: { app: name }, ...metadata }, spec },
      },
    });
    const statusOf = async (namespace: string, name: string): Promise<DaemonSetStatus> => {
      const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`;
      return ((await host.api.call('GET', path)) as { status: DaemonSetStatus }).status;
    };
    const rolledOut = async (namespace: string, name: string): Promise<string> =>
      await kubectl(host, ['rollout', 'status', `daemonset/${name}`, '-n', namespace, '--timeout=60s'], {
        timeoutMs: 70_000,
      });
    /** The pod of a DaemonSet on the virtual node that is not on its way out. */
    const podOn = async (namespace: string, name: string, nodeName = 'east'): Promise<Pod | undefined> =>
      (await podsOf(host, namespace, `app=${name}`)).find(
        ({ spec, metadata }) => spec.nodeName === nodeName && metadata.deletionTimestamp === undefined,
      );

    test('the taint keeps those away that do not tolerate it', async () => {
      const ns = await newNamespace(host, 'plain');
      await host.apply([daemonSet('plain', ns, { containers: [shell(IDLE)] })]);
      await rolledOut(ns, 'plain');
      expect(await statusOf(ns, 'plain')).toMatchObject({ desiredNumberScheduled: 1, numberReady: 1 });
      expect(await podOn(ns, 'plain')).toBeUndefined();
    });

    test('one that tolerates everything is shown as ready, and nothing runs', async () => {
      const ns = await newNamespace(host, 'agents');
      const began = Date.now();
      const before = await millicores();
      await host.apply([
        daemonSet(
          'agent',
          ns,
          { tolerations: ALL, containers: [shell(IDLE, requested)] },
          { annotations: { rev: '1' } },
        ),
      ]);
      expect(await rolledOut(ns, 'agent')).toContain('successfully rolled out');
      expect(await statusOf(ns, 'agent')).toMatchObject({ desiredNumberScheduled: 2, numberReady: 2 });
      const found = await podOn(ns, 'agent');
      const { name } = found?.metadata ?? { name: '' };
      expect(found?.status).toMatchObject({ phase: 'Running', reason: 'DaemonSetIgnored' });
      expect(found?.status).not.toHaveProperty('containerStatuses');
      expect(await memberPods(ns)).toEqual([]);
      // People see the truth.
      expect(await kubectl(host, ['get', 'pod', name, '-n', ns, '--no-headers'])).toMatch(/0\/1\s+DaemonSetIgnored/);
      expect(await kubectl(host, ['describe', 'pod', name, '-n', ns])).toMatch(/do not run in cluster "east"/);
      const logs = await host.kubectl(['logs', name, '-n', ns]);
      expect(logs.code).not.toBe(0);
      expect(logs.stderr).toMatch(/belongs to a DaemonSet, and those do not run in cluster "east"/);
      // What the scheduler subtracts for it is offered on top. So little room is told within half a minute.
      await until('room was made for it', async () => (await millicores()) === before + 500n, { timeoutMs: 45_000 });
      // A roll-out comes to its end too.
      await host.apply([
        daemonSet(
          'agent',
          ns,
          { tolerations: ALL, containers: [shell(IDLE, requested)] },
          { annotations: { rev: '2' } },
        ),
      ]);
      expect(await rolledOut(ns, 'agent')).toContain('successfully rolled out');
      expect((await podOn(ns, 'agent'))?.metadata.annotations?.['rev']).toBe('2');
      // Two pods: one status each, and one deletion. Nothing is tried again.
      await sleep(QUIET_MS);
      const writes = writesOf(host, began).filter(({ objectRef }) => objectRef?.namespace === ns);
      expect(writes.map(({ verb, objectRef }) => `${verb} ${objectRef?.subresource ?? ''}`).sort()).toEqual([
        'delete ',
        'patch status',
        'patch status',
      ]);
      const made = host
        .auditEvents()
        .filter(
          ({ verb, objectRef, user }) =>
            verb === 'create' &&
            objectRef?.resource === 'pods' &&
            objectRef.namespace === ns &&
            user.username.endsWith(':daemon-set-controller'),
        );
      expect(made).toHaveLength(4);
      expect(await memberPods(ns)).toEqual([]);
    });

    test('with policy Run it runs, on a node of the member; and goes on when the policy changes back', async () => {
      const ns = 'agents';
      await setPolicy('Run');
      const running = await until('the copy runs', async () => {
        const found = await podOn(ns, 'agent');
        return found !== undefined && (found.status?.containerStatuses?.length ?? 0) > 0 && isReady(found)
          ? found
          : undefined;
      });
      expect(running.status?.reason).toBeUndefined();
      const [copy] = await memberPods(ns);
      expect(copy?.spec.nodeName).toMatch(/^east-/);
      expect(copy?.metadata.name).toBe(running.metadata.name);
      await setPolicy('Ignore');
      await host.apply([daemonSet('late', ns, { tolerations: ALL, containers: [shell(IDLE)] })]);
      expect(await rolledOut(ns, 'late')).toContain('successfully rolled out');
      expect((await memberPods(ns)).map(({ metadata }) => metadata.uid)).toEqual([copy?.metadata.uid]);
      expect((await statusOf(ns, 'agent')).numberReady).toBe(2);
      // Its next pod does not run there any more.
      await kubectl(host, ['delete', 'pod', running.metadata.name, '-n', ns]);
      await until('nothing runs there', async () => (await memberPods(ns)).length === 0);
      await until('the DaemonSet is complete', async () => (await statusOf(ns, 'agent')).numberReady === 2);
      // Its status may still be that of before.
      await until('the next pod is ignored', async () => {
        return (await podOn(ns, 'agent'))?.status?.reason === 'DaemonSetIgnored';
      });
    });

    test("those of the host's system never run in a member", async () => {
      await setPolicy('Run');
      const ns = 'kube-system';
      await host.apply([daemonSet('proxy', ns, { tolerations: ALL, hostNetwork: true, containers: [shell(IDLE)] })]);
      expect(await rolledOut(ns, 'proxy')).toContain('successfully rolled out');
      expect((await podOn(ns, 'proxy'))?.status?.reason).toBe('DaemonSetIgnored');
      expect(await memberPods(ns)).toEqual([]);
      await setPolicy('Ignore');
    });

    test('they go when their DaemonSet goes', async () => {
      await kubectl(host, ['delete', 'daemonset', 'agent', 'late', '-n', 'agents']);
      await kubectl(host, ['delete', 'daemonset', 'proxy', '-n', 'kube-system']);
      for (const [ns, app] of [
        ['agents', 'agent'],
        ['kube-system', 'proxy'],
      ] as const) {
        await until(`no pod of ${app} is left`, async () => (await podsOf(host, ns, `app=${app}`)).length === 0);
      }
    });
  });

  test('a pod of the system that was sent here waits, says why, and is not tried in a loop', async () => {
    const ns = 'kube-system';
    await host.apply([pod('controller', ns, { tolerations: ALL, nodeSelector: VIRTUAL, containers: [shell(IDLE)] })]);
    await untilPod(host, ns, 'controller', 'says why', ({ status }) => status?.reason === 'NamespaceNotAllowed');
    await until('an Event says so, too', async () => {
      return (await eventsOf(host, ns, 'controller')).some(({ reason }) => reason === 'NamespaceNotAllowed');
    });
    const began = Date.now();
    await sleep(QUIET_MS);
    expect(
      writesOf(host, began)
        .filter(({ objectRef }) => objectRef?.namespace === ns)
        .map(describeWrite),
    ).toEqual([]);
    expect(await memberPods(ns)).toEqual([]);
    expect(writesOf(east).filter(({ objectRef }) => objectRef?.namespace === ns)).toEqual([]);
    await kubectl(host, ['delete', 'pod', 'controller', '-n', ns, '--timeout=50s']);
  });

  test('the mirror of a static pod does not run in a member', async () => {
    const ns = await newNamespace(host, 'static');
    await host.api.call(
      'POST',
      `/api/v1/namespaces/${ns}/pods`,
      pod(
        'static-east',
        ns,
        { nodeName: 'east', tolerations: ALL, containers: [shell(IDLE)] },
        { annotations: { 'kubernetes.io/config.mirror': 'd41d8cd98f00b204e9800998ecf8427e' } },
      ),
    );
    const found = await untilPod(
      host,
      ns,
      'static-east',
      'says why',
      ({ status }) => status?.reason === 'StaticPodNotSupported',
    );
    expect(condition(found, MIRRORED_CONDITION)?.status).toBe('False');
    await until('an Event says so, too', async () => {
      return (await eventsOf(host, ns, 'static-east')).some(({ reason }) => reason === 'StaticPodNotSupported');
    });
    expect(await memberPods(ns)).toEqual([]);
    await kubectl(host, ['delete', 'pod', 'static-east', '-n', ns, '--timeout=50s']);
  });

  const onEast = (more: Fields = {}): Fields => ({
    tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }],
    terminationGracePeriodSeconds: 1,
    containers: [shell(IDLE)],
    ...more,
  });

  test('kubectl cordon keeps new pods away and lets the others be, and nobody takes it back', async () => {
    const ns = await newNamespace(host, 'cordoned');
    const spec = onEast({ nodeSelector: VIRTUAL });
    await runPod(host, pod('before', ns, spec));
    await kubectl(host, ['cordon', 'east']);
    await host.apply([pod('during', ns, spec)]);
    await untilPod(host, ns, 'during', 'finds no node', (one) => condition(one, 'PodScheduled')?.status === 'False');
    // Whatever changes on the Node meanwhile.
    const member = '/apis/spillway.dev/v1alpha1/memberclusters/east';
    await host.api.call('PATCH', member, { spec: { labels: { touched: 'yes' } } });
    await until('the Node was written', async () => (await node()).metadata.labels?.['touched'] === 'yes');
    expect((await node()).spec?.unschedulable).toBe(true);
    expect(isReady(await getPod(host, ns, 'before'))).toBe(true);
    await kubectl(host, ['uncordon', 'east']);
    await untilRunning(host, ns, 'during');
    await host.api.call('PATCH', member, { spec: { labels: { touched: null } } });
    await clear(ns);
  });

  /** A Deployment whose pods start on the virtual node and may go to the local one, and a PodDisruptionBudget. */
  async function workload(ns: string, replicas: number, minAvailable: number): Promise<Pod[]> {
    await newNamespace(host, ns);
    await kubectl(host, ['cordon', 'local-0']);
    const labels = { app: 'web' };
    await host.apply([
      {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'web', namespace: ns },
        spec: { minAvailable, selector: { matchLabels: labels } },
      },
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: ns },
        spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: onEast() } },
      },
    ]);
    await until(`${replicas} pods run`, async () => (await podsOf(host, ns)).filter(isReady).length === replicas);
    await kubectl(host, ['uncordon', 'local-0']);
    return await podsOf(host, ns);
  }

  test('kubectl drain moves pods away as fast as their budget allows, and leaves those of DaemonSets', async () => {
    const ns = 'drained';
    const before = await workload(ns, 4, 3);
    expect(before.every(({ spec }) => spec.nodeName === 'east')).toBe(true);
    await host.apply([
      {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata: { name: 'agent', namespace: ns },
        spec: {
          selector: { matchLabels: { app: 'agent' } },
          template: {
            metadata: { labels: { app: 'agent' } },
            spec: { tolerations: ALL, containers: [shell(IDLE)] },
          },
        },
      },
    ]);
    await kubectl(host, ['rollout', 'status', 'daemonset/agent', '-n', ns, '--timeout=60s'], { timeoutMs: 70_000 });
    const refused = await host.kubectl(['drain', 'east', '--timeout=30s']);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(/cannot delete DaemonSet-managed Pods/);
    let fewest = Number.POSITIVE_INFINITY;
    const done = new AbortController();
    const watching = (async () => {
      while (!done.signal.aborted) {
        fewest = Math.min(fewest, (await podsOf(host, ns, 'app=web')).filter(isReady).length);
        await sleep(20);
      }
    })();
    const drained = await host.kubectl(['drain', 'east', '--ignore-daemonsets', '--timeout=90s'], {
      timeoutMs: 100_000,
    });
    done.abort();
    await watching;
    expect([drained.code, drained.stderr]).toEqual([0, expect.stringContaining('ignoring DaemonSet-managed Pods')]);
    expect(fewest).toBeGreaterThanOrEqual(3);
    const after = await podsOf(host, ns, 'app=web');
    expect(after.filter(({ spec }) => spec.nodeName === 'east')).toEqual([]);
    expect(await memberPods(ns)).toEqual([]);
    const agents = await podsOf(host, ns, 'app=agent');
    expect(agents.filter(({ spec }) => spec.nodeName === 'east')).toHaveLength(1);
    await clear(ns);
  });

  test('kubectl drain takes nothing that a budget holds', async () => {
    const ns = 'held';
    const before = await workload(ns, 2, 2);
    const drained = await host.kubectl(
      ['drain', 'east', '--ignore-daemonsets', '--pod-selector=app=web', '--timeout=7s'],
      { timeoutMs: 40_000 },
    );
    expect(drained.code).not.toBe(0);
    expect(drained.stderr).toMatch(/Cannot evict pod as it would violate the pod's disruption budget/);
    const uids = (pods: readonly Pod[]): (string | undefined)[] => pods.map(({ metadata }) => metadata.uid);
    expect(uids(await podsOf(host, ns))).toEqual(uids(before));
    expect(await memberPods(ns)).toHaveLength(2);
    await clear(ns);
  });

  test('a deleted Node is back in a moment, with what others had put on it, and its pods have not noticed', async () => {
    const ns = await newNamespace(host, 'kept');
    await runPod(host, pod('kept', ns, onEast({ nodeSelector: VIRTUAL })));
    await kubectl(host, ['label', 'node', 'east', 'team=blue']);
    await kubectl(host, ['taint', 'node', 'east', 'team=blue:PreferNoSchedule']);
    const [above, below] = [await getPod(host, ns, 'kept'), await getPod(east, ns, 'kept')];
    const { uid } = (await node()).metadata;
    const began = Date.now();
    await kubectl(host, ['delete', 'node', 'east']);
    await until(
      'there is a new Node',
      async () => {
        const found = await read<Node>(host, '/api/v1/nodes/east');
        return found !== undefined && found.metadata.uid !== uid;
      },
      { timeoutMs: 10_000, intervalMs: 50 },
    );
    await waitForNode(host, 'east', 30_000);
    const { metadata, spec } = await node();
    expect(metadata.labels?.['team']).toBe('blue');
    expect(spec?.taints).toContainEqual({ key: 'team', value: 'blue', effect: 'PreferNoSchedule' });
    await runPod(host, pod('after', ns, onEast({ nodeSelector: VIRTUAL })));
    expect((await getPod(host, ns, 'kept')).metadata.resourceVersion).toBe(above.metadata.resourceVersion);
    expect((await getPod(east, ns, 'kept')).metadata.resourceVersion).toBe(below.metadata.resourceVersion);
    const about = writesOf(east, began).filter(({ objectRef }) => objectRef?.name === 'kept');
    expect(about.map(describeWrite)).toEqual([]);
    await kubectl(host, ['taint', 'node', 'east', 'team-']);
  });
});
