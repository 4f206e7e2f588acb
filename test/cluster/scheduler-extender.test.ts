import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { startSecondScheduler } from '../../hack/second-scheduler.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/api/wire.ts';
import { condition, eventsOf, type Fields, kubectl, newNamespace, pod, podsOf } from '../fixtures/live-pods.ts';
import {
  burstNamespace,
  burstSpec,
  costsKeep,
  deployment,
  LOCAL_PREFIX,
  scale,
  schedulingMessage,
  settled,
  whereAre,
  policy,
} from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Ordinary Deployments of the host; kube-scheduler asks Spillway where their pods may run. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: [
      { name: 'east', kwok: { nodes: 4, cpu: '8' }, options: { spec: { region: 'eu' } } },
      { name: 'west', kwok: { nodes: 4, cpu: '8' }, options: { spec: { region: 'us' } } },
    ],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 2, cpu: '10', prefix: LOCAL_PREFIX });
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

/** Of the host's nodes, and of both members. */
const ALL_CORES = 20 + 2 * 32;

/** Every test has the room of all clusters for itself. */
afterEach(async () => {
  for (const kind of ['deployment', 'pod']) await kubectl(host, ['delete', kind, '--all', '-A', '--wait=false']);
  await until('no pods are left', async () => {
    const { items } = (await host.api.call('GET', '/api/v1/pods')) as { items: unknown[] };
    return items.length === 0;
  });
});

describe('a namespace that may burst', () => {
  test('fills the host first, then members; without the label pods stay', async () => {
    await burstNamespace(host, 'burst');
    await host.apply([deployment('burst', 'web', 24, '1')]);
    const pods = await until('all pods are bound', async () => {
      const found = await podsOf(host, 'burst', 'app=web');
      return found.length === 24 && whereAre(found)['waiting'] === undefined ? found : undefined;
    });
    const { local, ...members } = whereAre(pods);
    expect(local).toBe(20);
    expect(Object.values(members).reduce((all, one) => all + one, 0)).toBe(4);
    await newNamespace(host, 'stay');
    await host.apply([deployment('stay', 'web', 1, '1', {}, { tolerations: [{ operator: 'Exists' }] })]);
    expect(await schedulingMessage(host, 'stay', 'web')).toMatch(/Insufficient cpu/);
    await kubectl(host, ['label', 'namespace', 'stay', 'spillway.dev/burst=enabled']);
    await until('the pod is bound once the namespace is labelled', async () => {
      const counts = whereAre(await podsOf(host, 'stay', 'app=web'));
      return counts['waiting'] === undefined;
    });
  });
});

/** As the API server noted it, in whole seconds. */
function secondsToBind(one: Pod): number {
  const bound = condition(one, 'PodScheduled')?.lastTransitionTime ?? '';
  return (Date.parse(bound) - Date.parse(one.metadata.creationTimestamp ?? '')) / 1000;
}

/** Pods with a deletion cost of ours. */
async function costed(namespace: string): Promise<number> {
  const pods = await podsOf(host, namespace);
  return pods.filter(({ metadata }) => metadata.annotations?.['spillway.dev/deletion-cost'] !== undefined).length;
}

describe('scale-in', () => {
  test('of 20 local and 10 burst pods exactly the burst pods go, and only they were written to', async () => {
    await burstNamespace(host, 'shrink');
    await host.apply([deployment('shrink', 'web', 30, '1')]);
    const pods = await until('30 pods are ready', async () => {
      const found = await podsOf(host, 'shrink', 'app=web');
      const ready = found.every(({ status }) => status?.phase === 'Running');
      return found.length === 30 && ready && whereAre(found)['local'] === 20 ? found : undefined;
    });
    const local = pods
      .filter(({ spec }) => spec.nodeName?.startsWith(LOCAL_PREFIX))
      .map(({ metadata }) => metadata.uid);
    await until('the costs are there', async () => (await costed('shrink')) === 10);
    await scale(host, 'shrink', 'web', 20);
    const left = await settled(host, 'shrink', 'web', { local: 20 });
    expect(new Set(left.map(({ metadata }) => metadata.uid))).toEqual(new Set(local));
    const writes = host
      .auditEvents()
      .filter(({ verb, objectRef }) => verb === 'patch' && objectRef?.resource === 'pods')
      .filter(({ objectRef }) => objectRef?.namespace === 'shrink' && objectRef.subresource === undefined);
    expect(writes).toHaveLength(10);
  });
});

describe('a division by room', () => {
  test('knows the room on the nodes of the host as it knows that of members', async () => {
    await newNamespace(host, 'room');
    const weightPreference = { dynamicWeight: 'AvailableReplicas' };
    // Of pods with 2 cores 6 fit on the host, beside what is there, and 16 in each member.
    await host.apply([
      policy('room', 'by-room', { replicaScheduling: { weightPreference } }, 'web'),
      deployment('room', 'large', 2, '4', {}, { tolerations: [] }),
    ]);
    await settled(host, 'room', 'large', { local: 2 });
    await host.apply([deployment('room', 'web', 19, '2')]);
    await settled(host, 'room', 'web', { local: 3, east: 8, west: 8 });
  });
});

/** The recipe of a virtual node with thousands of cores on paper, none of them where a big pod could use it. */
describe('pods that fit nowhere', () => {
  test('stay unbound, hold nothing, and are told why; small ones do not wait behind them', async () => {
    await burstNamespace(host, 'big');
    await host.apply([deployment('big', 'huge', 30, '16')]);
    const message = await schedulingMessage(host, 'big', 'huge');
    expect(message).toMatch(/1 member east: .*no node has 16 cpu free \(largest free slot 8 cpu\)/);
    expect(message).toMatch(/1 member west: .*no node has 16 cpu free \(largest free slot 8 cpu\)/);
    // As many as there are cores, in the host and in the members: whatever a big one held would be missing.
    await host.apply([deployment('big', 'small', ALL_CORES, '1')]);
    const small = await until(
      'every small pod is bound',
      async () => {
        const found = await podsOf(host, 'big', 'app=small');
        return found.length === ALL_CORES && whereAre(found)['waiting'] === undefined ? found : undefined;
      },
      { timeoutMs: 90_000 },
    );
    console.info(`of ${ALL_CORES} small pods the slowest was bound after ${Math.max(...small.map(secondsToBind))} s`);
    // Each was bound when the scheduler looked at it first. How long that took is up to the machine.
    expect(await refusedBefore('big', small)).toEqual([]);
    const huge = await podsOf(host, 'big', 'app=huge');
    expect(whereAre(huge)).toEqual({ waiting: 30 });
    const events = await eventsOf(host, 'big', huge[0]?.metadata.name ?? '');
    expect(events.find(({ reason }) => reason === 'FailedScheduling')?.message).toContain('member east: ');
  });
});

/** Names of pods for which the scheduler found no node at least once. */
async function refusedBefore(namespace: string, pods: readonly Pod[]): Promise<string[]> {
  const failed = encodeURIComponent('reason=FailedScheduling');
  const list = (await host.api.call('GET', `/api/v1/namespaces/${namespace}/events?fieldSelector=${failed}`)) as {
    items: { involvedObject: { name?: string } }[];
  };
  const names = new Set(pods.map(({ metadata }) => metadata.name));
  return list.items.map(({ involvedObject }) => involvedObject.name ?? '').filter((name) => names.has(name));
}

describe('pods that ask for a virtual node', () => {
  test('go there without any rules, and stay on the host when they do not ask', async () => {
    await newNamespace(host, 'asking');
    await host.apply([
      pod('there', 'asking', burstSpec('1', { nodeSelector: { 'kubernetes.io/hostname': 'west' } })),
      pod('anywhere', 'asking', burstSpec('1', { tolerations: [{ operator: 'Exists' }] })),
    ]);
    await until('both are bound', async () => {
      const found = await podsOf(host, 'asking');
      return found.length === 2 && found.every(({ spec }) => spec.nodeName !== undefined);
    });
    expect(whereAre(await podsOf(host, 'asking'))).toEqual({ west: 1, local: 1 });
  });
});

describe('annotations of Federation v1', () => {
  test('divide an ordinary Deployment, without any policy and without a label', async () => {
    await newNamespace(host, 'federation');
    const preferences = { rebalance: true, clusters: { local: { weight: 1, maxReplicas: 2 }, '*': { weight: 2 } } };
    const web = deployment('federation', 'web', 10, '100m');
    const annotations = { 'federation.kubernetes.io/deployment-preferences': JSON.stringify(preferences) };
    await host.apply([{ ...web, metadata: { ...(web['metadata'] as Fields), annotations } }]);
    await settled(host, 'federation', 'web', { local: 2, east: 4, west: 4 });
    await scale(host, 'federation', 'web', 14);
    await settled(host, 'federation', 'web', { local: 2, east: 6, west: 6 });
    await costsKeep(host, 'federation', { local: 1, east: 2, west: 2 });
    await scale(host, 'federation', 'web', 5);
    await settled(host, 'federation', 'web', { local: 1, east: 2, west: 2 });
  });
});

describe('scores from outside', () => {
  test('choose the member; small changes move nothing; what has ended counts no more', async () => {
    await newNamespace(host, 'scores');
    const signals = [{ name: 'carbon', weight: 100 }];
    const placement = {
      clusterAffinity: { exclude: ['local'] },
      scoreWeights: { locality: 0, freeRoom: 0, price: 0, images: 0, signals },
      hysteresis: 20,
    };
    await host.apply([policy('scores', 'green', placement)]);
    // Stretched to 0 to 100: 45 against 50.
    await say({ east: -10, west: 0 });
    await untilPlaced('one', 'west');
    await host.apply([deployment('scores', 'web', 1, '100m')]);
    await settled(host, 'scores', 'web', { west: 1 });
    // 15 points better, which is less than the hysteresis: new workloads follow, this one stays.
    await say({ east: 30, west: 0 });
    await untilPlaced('two', 'east');
    await scale(host, 'scores', 'web', 2);
    await settled(host, 'scores', 'web', { west: 2 });
    await say({ east: 60, west: 0 });
    await untilPlaced('three', 'east');
    await scale(host, 'scores', 'web', 3);
    await settled(host, 'scores', 'web', { west: 2, east: 1 });
    await say({ east: 60, west: 10 }, new Date(Date.now() - 1_000).toISOString());
    await untilPlaced('four', 'west');
  });

  /** What a program outside would write; that of east ends at a time. */
  async function say(values: Record<string, number>, eastEnds?: string): Promise<void> {
    await host.apply(
      Object.entries(values).map(([clusterName, value]) => ({
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'PlacementScore',
        metadata: { name: clusterName },
        spec: {
          clusterName,
          scores: [{ name: 'carbon', value }],
          ...(clusterName === 'east' && eastEnds !== undefined ? { validUntil: eastEnds } : {}),
        },
      })),
    );
  }

  /** A write takes a moment to be seen, so pods without a past are made until one goes there. */
  async function untilPlaced(name: string, member: string): Promise<void> {
    let tries = 0;
    await until(`a pod goes to ${member}`, async () => {
      tries += 1;
      const app = `${name}-${String(tries)}`;
      await host.apply([deployment('scores', app, 1, '100m')]);
      const [one] = await until(`${app} is bound`, async () => {
        const found = await podsOf(host, 'scores', `app=${app}`);
        return found.length === 1 && whereAre(found)['waiting'] === undefined ? found : undefined;
      });
      return one?.spec.nodeName === member;
    });
  }
});

/** By which the scheduler knows that it has to ask. */
const MARK = 'spillway.dev/extender';

describe("the cluster's own scheduler, while Spillway does not answer", () => {
  test('goes on for all pods but those that carry the mark; these wait, and fit where they are bound', async () => {
    await burstNamespace(host, 'silent');
    // The virtual nodes have 32 cores each, their largest node 8.
    const huge = burstSpec('16', { nodeSelector: { type: 'virtual-kubelet' } });
    const { process: manager } = topology.spillway;
    manager.signal('SIGSTOP');
    try {
      // Without the mark it goes by the sum that the virtual node shows, as docs/guides/scheduling.md says.
      await host.apply([pod('by-sum', 'silent', huge)]);
      await untilBound('by-sum', (nodeName) => ['east', 'west'].includes(nodeName));
      await host.apply(readFileSync(new URL('../../manifests/scheduler/extender-pods.yaml', import.meta.url), 'utf8'));
      await until('pods get the mark', async () => (await dryRun(pod('probe', 'silent', huge))).includes(MARK));
      await host.apply([
        pod('huge', 'silent', huge),
        pod('small', 'silent', burstSpec('1', { nodeSelector: { type: 'virtual-kubelet' } })),
        pod('plain', 'silent', burstSpec('1', { tolerations: [] })),
      ]);
      await untilBound('plain', (nodeName) => nodeName.startsWith(LOCAL_PREFIX));
      for (const name of ['huge', 'small']) {
        const told = await until(`${name} was looked at`, async () => {
          const events = await eventsOf(host, 'silent', name);
          return events.find(({ reason }) => reason === 'FailedScheduling')?.message;
        });
        expect(told).toMatch(/127\.0\.0\.1.*confirm/);
      }
      const waiting = (await podsOf(host, 'silent')).filter(({ spec }) => spec.nodeName === undefined);
      expect(waiting.map(({ metadata }) => metadata.name).toSorted()).toEqual(['huge', 'small']);
    } finally {
      manager.signal('SIGCONT');
    }
    const member = await untilBound('small', (nodeName) => ['east', 'west'].includes(nodeName));
    const copy = await until('it is in the member', async () => {
      const found = await podsOf(topology.member(member).cluster, 'silent');
      return found.find(({ metadata }) => metadata.name === 'small');
    });
    expect(copy.spec.containers[0]?.resources).toEqual({ requests: { cpu: '1' } });
    await until('the large one is told why it waits', async () => {
      const events = await eventsOf(host, 'silent', 'huge');
      return events.some(({ message }) => message.includes('no node has 16 cpu free'));
    });
    await until('the one that went by the sum is told so', async () => {
      const found = (await podsOf(host, 'silent')).find(({ metadata }) => metadata.name === 'by-sum');
      return found !== undefined && condition(found, 'spillway.dev/MemberScheduled')?.status === 'False';
    });
    await kubectl(host, ['delete', 'mutatingadmissionpolicybinding', 'spillway-extender-pods']);
  });

  async function dryRun(one: Fields): Promise<string> {
    const { stdout } = await host.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], {
      input: JSON.stringify(one),
    });
    return stdout;
  }

  async function untilBound(name: string, isRight: (nodeName: string) => boolean): Promise<string> {
    return await until(`${name} is bound`, async () => {
      const found = (await podsOf(host, 'silent')).find(({ metadata }) => metadata.name === name);
      const nodeName = found?.spec.nodeName;
      if (nodeName !== undefined && !isRight(nodeName)) throw new Error(`it is on ${nodeName}`);
      return nodeName;
    });
  }
});

describe('a second scheduler, as it is shipped', () => {
  test('binds the pods that carry its name; while Spillway does not answer they wait', async () => {
    const { extenderPort } = topology;
    if (extenderPort === undefined) throw new Error('no extender');
    const second = await startSecondScheduler(host, { extenderPort });
    await burstNamespace(host, 'second');
    const spec = { schedulerName: 'spillway-scheduler', nodeSelector: { type: 'virtual-kubelet' } };
    await host.apply([deployment('second', 'web', 2, '1', {}, spec)]);
    const pods = await until('both pods are bound', async () => {
      const found = await podsOf(host, 'second', 'app=web');
      return found.length === 2 && whereAre(found)['waiting'] === undefined ? found : undefined;
    });
    const events = await eventsOf(host, 'second', pods[0]?.metadata.name ?? '');
    expect(events.find(({ reason }) => reason === 'Scheduled')?.source).toBe('spillway-scheduler');
    // kube-scheduler does not go on without it: the pods are all Spillway's business.
    topology.spillway.process.signal('SIGSTOP');
    try {
      await scale(host, 'second', 'web', 3);
      const failed = await until('the scheduler says that it could not ask', async () => {
        const all = await podsOf(host, 'second', 'app=web');
        const late = all.find(({ spec: { nodeName } }) => nodeName === undefined);
        const told = late === undefined ? [] : await eventsOf(host, 'second', late.metadata.name);
        return told.find(({ reason }) => reason === 'FailedScheduling');
      });
      expect(failed.message).toMatch(/127\.0\.0\.1/);
    } finally {
      topology.spillway.process.signal('SIGCONT');
    }
    await until('the third pod is bound', async () => {
      const found = await podsOf(host, 'second', 'app=web');
      return found.length === 3 && whereAre(found)['waiting'] === undefined;
    });
    await second.stop();
  });
});
