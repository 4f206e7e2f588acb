import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { poolFacts } from '../../src/capacity/pool-facts.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { EventRecorder } from '../../src/kube/event-recorder.ts';
import type { Lease } from '../../src/kube/lease.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { NodeKeeper } from '../../src/nodes/node-keeper.ts';
import { NodeStanding } from '../../src/nodes/node-standing.ts';
import { ReportPace } from '../../src/nodes/report-pace.ts';
import { providerIdOf } from '../../src/api/provider-id.ts';
import { renderNode, type NodeFacts } from '../../src/nodes/render-node.ts';
import { memberNode } from '../fixtures/member-nodes.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const identity = 'system:serviceaccount:spillway-system:spillway-manager';

let workspace: Workspace;
let host: Cluster;
/** With the rights of the manager. */
let client: KubeClient;
const clients: KubeClient[] = [];
let events: EventRecorder;
const stop = new AbortController();
const running: Promise<void>[] = [];

/** Facts of a virtual node that a test may change. */
function facts(name: string, parts: Partial<NodeFacts> = {}): NodeFacts {
  const node = memberNode('n1', { labels: { pool: 'blue', 'topology.kubernetes.io/zone': 'a' } });
  const resources = { cpu: '10', memory: '20Gi', pods: '110', 'example.com/gpu': '2' };
  return {
    name,
    member: name,
    spec: {
      region: 'eu',
      zones: [],
      labels: { tier: 'burst' },
      taints: [],
      taintMode: 'NoSchedule',
      unschedulable: false,
    },
    pool: poolFacts([node]),
    offer: { capacity: resources, allocatable: resources },
    memberVersion: 'v1.36.3',
    address: '192.0.2.7',
    kubeletPort: 10_250,
    reachable: true,
    ...parts,
  };
}

async function clientOf(user: string, groups: string[] = []): Promise<KubeClient> {
  const { server, ca } = host.adminAccess;
  const certificate = await host.issueClient(user, groups);
  const made = new KubeClient({ cluster: 'host', ...staticAccess({ endpoint: { server, ca }, ...certificate }) });
  clients.push(made);
  return made;
}

async function keep(current: () => NodeFacts): Promise<NodeKeeper> {
  const { name } = current();
  const keeper = new NodeKeeper({
    host: await clientOf(`system:node:${name}`, ['system:nodes']),
    manager: client,
    name,
    standing: new NodeStanding({ name, member: name, providerID: providerIdOf(name, name) }),
    desired: () => renderNode(current()),
    pace: new ReportPace(),
    events,
    logger: pino({ level: 'silent' }),
  });
  running.push(keeper.run(stop.signal));
  return keeper;
}

const nodeOf = async (name: string): Promise<Node> => (await host.api.call('GET', `/api/v1/nodes/${name}`)) as Node;
const leaseOf = async (name: string): Promise<Lease> => (await host.api.call('GET', `${LEASES}/${name}`)) as Lease;
const condition = (node: Node, type: string) => node.status?.conditions?.find((one) => one.type === type);
const taintKeys = (node: Node): string[] => (node.spec?.taints ?? []).map(({ key }) => key);
const ready = (name: string): Promise<Node> =>
  until(`node ${name} is Ready and without the taints of a new node`, async () => {
    const node = await nodeOf(name);
    return condition(node, 'Ready')?.status === 'True' && !taintKeys(node).includes('node.kubernetes.io/not-ready')
      ? node
      : undefined;
  });

beforeAll(async () => {
  workspace = Workspace.create();
  host = await startCluster(workspace, { name: 'host', audit: true });
  await host.apply(readFileSync(new URL('../../manifests/rbac.yaml', import.meta.url), 'utf8'));
  // Exactly the rights that the program gets from its manifests.
  client = await clientOf(identity);
  events = new EventRecorder({ client, component: 'spillway' });
  running.push(events.run(stop.signal));
});

afterAll(async () => {
  stop.abort();
  await Promise.all(running);
  await Promise.all(clients.map((one) => one.close()));
  await workspace.close();
});

describe('a virtual node on a real API server', () => {
  it('is a Ready node with the labels, taint, address and version it should have', async () => {
    await keep(() => facts('east'));
    const node = await ready('east');
    // Controllers add labels of their own, such as beta.kubernetes.io/os.
    expect(node.metadata.labels).toMatchObject({
      'kubernetes.io/hostname': 'east',
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'node.kubernetes.io/exclude-from-external-load-balancers': 'true',
      'spillway.dev/member': 'east',
      'spillway.dev/node': 'east',
      'topology.kubernetes.io/region': 'eu',
      'topology.kubernetes.io/zone': 'a',
      pool: 'blue',
      tier: 'burst',
      type: 'virtual-kubelet',
    });
    expect(node.spec?.providerID).toBe('spillway://east/east');
    expect(node.spec?.taints).toEqual([{ key: 'spillway.dev/virtual-node', effect: 'NoSchedule' }]);
    expect(condition(node, 'NetworkUnavailable')?.status).toBe('False');
    expect(node.status?.allocatable).toEqual({ cpu: '10', memory: '20Gi', pods: '110', 'example.com/gpu': '2' });
    expect(node.status?.declaredFeatures).toEqual(['ExtendWebSocketsToKubelet']);
    const { stdout } = await host.kubectl(['get', 'node', 'east', '-o', 'wide', '--no-headers']);
    expect(stdout).toMatch(/^east\s+Ready\s+<none>\s+\S+\s+v1\.36\.3\s+192\.0\.2\.7\s/);
    const described = await host.kubectl(['describe', 'node', 'east']);
    expect(described.stdout).toContain('spillway.dev/MemberReachable');
  });

  it('renews its lease every ten seconds and otherwise writes nothing', async () => {
    const first = await until('the lease is there', () => leaseOf('east'));
    expect(first.metadata.ownerReferences).toMatchObject([{ kind: 'Node', uid: (await nodeOf('east')).metadata.uid }]);
    expect(first.spec).toMatchObject({ holderIdentity: 'east', leaseDurationSeconds: 40 });
    const intervals: number[] = [];
    let last = first.spec?.renewTime;
    while (intervals.length < 3) {
      const { spec } = await until('the lease is renewed', async () => {
        const now = await leaseOf('east');
        return now.spec?.renewTime !== last && now;
      });
      intervals.push(Date.parse(spec?.renewTime ?? '') - Date.parse(last ?? ''));
      last = spec?.renewTime;
    }
    // A busy machine is late now and then.
    const [, median] = intervals.toSorted((one, other) => one - other);
    expect(median).toBeGreaterThan(8_000);
    expect(median).toBeLessThan(16_000);
    const writes = host
      .auditEvents()
      .filter(
        ({ user, verb }) =>
          [identity, 'system:node:east'].includes(user.username) && !['get', 'list', 'watch'].includes(verb),
      )
      .map(({ verb, objectRef }) => `${verb} ${objectRef?.resource} ${objectRef?.subresource ?? ''}`.trim());
    expect(writes.filter((write) => !write.endsWith('leases'))).toEqual(['create nodes']);
  });

  it('leaves labels, taints, annotations and cordons of others alone', async () => {
    let current = facts('west');
    const keeper = await keep(() => current);
    await ready('west');
    expect((await host.kubectl(['label', 'node', 'west', 'team=x', 'pool=edited', '--overwrite'])).code).toBe(0);
    expect((await host.kubectl(['taint', 'node', 'west', 'theirs=v:NoSchedule'])).code).toBe(0);
    expect((await host.kubectl(['annotate', 'node', 'west', 'note=hello'])).code).toBe(0);
    expect((await host.kubectl(['cordon', 'west'])).code).toBe(0);
    current = facts('west', {
      reachable: false,
      failure: { reason: 'Refused', message: 'connection refused' },
      spec: { ...current.spec, labels: {} },
      offer: { capacity: { cpu: '10', pods: '110' }, allocatable: { cpu: '3', pods: '110' } },
    });
    keeper.trigger();
    const unreachable = await until('the taint of an unreachable member', async () => {
      const node = await nodeOf('west');
      return (
        taintKeys(node).includes('spillway.dev/member-unreachable') && condition(node, 'Ready') !== undefined && node
      );
    });
    expect(condition(unreachable, 'Ready')?.status).toBe('True');
    current = { ...current, reachable: true };
    keeper.trigger();
    const after = await until('the taint is gone and all is reported', async () => {
      const node = await nodeOf('west');
      const { allocatable = {} } = node.status ?? {};
      return (
        !taintKeys(node).includes('spillway.dev/member-unreachable') &&
        condition(node, 'spillway.dev/MemberReachable')?.status === 'True' &&
        allocatable['cpu'] === '3' &&
        node
      );
    });
    expect(after.status?.allocatable).toEqual({ cpu: '3', pods: '110' });
    expect(after.metadata.labels).toMatchObject({ team: 'x', pool: 'blue' });
    expect(after.metadata.labels).not.toHaveProperty('tier');
    expect(after.metadata.annotations).toMatchObject({ note: 'hello' });
    expect(after.spec?.unschedulable).toBe(true);
    expect(taintKeys(after)).toEqual(
      expect.arrayContaining(['theirs', 'node.kubernetes.io/unschedulable', 'spillway.dev/virtual-node']),
    );
  });

  it('is back within ten seconds with the same labels when somebody deletes it, its pods untouched', async () => {
    await host.api.call('POST', '/api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'bound' },
      spec: {
        nodeName: 'east',
        tolerations: [{ operator: 'Exists' }],
        containers: [{ name: 'c', image: 'pause' }],
      },
    });
    const pod = async (): Promise<Pod> => (await host.api.call('GET', '/api/v1/namespaces/default/pods/bound')) as Pod;
    const uid = (await pod()).metadata.uid;
    expect((await host.kubectl(['label', 'node', 'east', 'team=x', 'tier=edited', '--overwrite'])).code).toBe(0);
    const before = await until('the keeper has seen the change', async () => {
      const node = await nodeOf('east');
      return node.metadata.labels?.['tier'] === 'burst' && node;
    });
    const began = Date.now();
    expect((await host.kubectl(['delete', 'node', 'east', '--wait=false'])).code).toBe(0);
    const back = await until('the node is back', async () => {
      const node = await nodeOf('east');
      return node.metadata.uid !== before.metadata.uid && node;
    });
    expect(Date.now() - began).toBeLessThan(10_000);
    expect(back.metadata.labels).toEqual(before.metadata.labels);
    expect(back.metadata.labels).toMatchObject({ team: 'x' });
    await ready('east');
    await until('the lease belongs to the new node', async () => {
      const lease = await leaseOf('east');
      return lease.metadata.ownerReferences?.[0]?.uid === back.metadata.uid;
    });
    expect((await pod()).metadata.uid).toBe(uid);
    expect((await pod()).metadata.deletionTimestamp).toBeUndefined();
  });

  it('touches nothing of a node of the same name that is somebody else’s, and says so', async () => {
    await host.apply([{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'real', labels: { rack: '7' } } }]);
    const before = await nodeOf('real');
    const keeper = await keep(() => facts('real'));
    await until('it is refused', () => keeper.problem !== undefined);
    expect(keeper.problem).toContain('a Node named "real" exists');
    await until('an event says so', async () => {
      const { stdout } = await host.kubectl(['events', '--for', 'node/real', '-n', 'default']);
      return stdout.includes('NodeNameTaken');
    });
    const after = await nodeOf('real');
    expect(after.metadata.labels).toEqual(before.metadata.labels);
    expect(after.metadata.annotations ?? {}).not.toHaveProperty('spillway.dev/node-labels');
    expect(after.spec?.providerID).toBeUndefined();
    await expect(leaseOf('real')).rejects.toThrow('404');
  });
});
