import { describe, expect, it } from 'vitest';
import { clusterSummaries, nodeNamesOf } from '../../src/cli/cluster-summary.ts';
import { clusterColumns } from '../../src/cli/clusters.ts';
import { isHeld, overview, type OverviewFacts } from '../../src/cli/overview.ts';
import { overviewText } from '../../src/cli/overview-text.ts';
import { table } from '../../src/cli/table.ts';
import type { Condition, Event, Node, Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { hostPod } from '../fixtures/pods.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const at = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1000).toISOString();
const condition = (type: string, status: Condition['status'], reason = type, message = ''): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: at(60),
});

function member(name: string, spec: object = {}, status: object = {}): KubeObject {
  const object = {
    metadata: { name, creationTimestamp: at(3600) },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...spec },
    status,
  };
  return object;
}

function node(name: string, of: string, ready: Condition['status'] = 'True'): Node {
  return {
    metadata: { name, labels: { 'spillway.dev/member': of } },
    spec: { providerID: `spillway://${of}/${name}` },
    status: { conditions: [condition('Ready', ready)] },
  };
}

function podOn(nodeName: string, name: string, cpu: string, more: Partial<Pod['status']> = {}): Pod {
  return hostPod({
    metadata: { name, creationTimestamp: at(100) },
    spec: { nodeName, containers: [{ name: 'main', resources: { requests: { cpu, memory: '1Gi' } } }] },
    status: { phase: 'Running', ...more },
  });
}

const WELL = [
  condition('Ready', 'True', 'Ready'),
  condition('Reachable', 'True'),
  condition('CredentialsValid', 'True'),
];
const EAST = member(
  'east',
  { region: 'eu' },
  {
    conditions: WELL,
    version: 'v1.36.2',
    allocatable: { cpu: '16', memory: '64Gi' },
    pods: { running: 2, pending: 0, total: 2 },
  },
);
const WEST = member(
  'west',
  { virtualNodes: [{ name: 'a' }, { name: 'b' }], unschedulable: true },
  {
    conditions: [
      condition('Ready', 'False', 'Timeout', 'No answer within 5 s.'),
      condition('Reachable', 'False', 'Timeout', 'No answer within 5 s.'),
      condition('DeletionsAllowed', 'False', 'DeletionBreakerOpen', '12 pods are kept in the member.'),
    ],
  },
);
const NODES = [node('east', 'east'), node('west-a', 'west'), node('west-b', 'west', 'False')];
const PODS = [
  podOn('east', 'one', '1500m'),
  podOn('east', 'two', '2', { phase: 'Succeeded' }),
  podOn('west-a', 'three', '1', {
    phase: 'Pending',
    conditions: [condition('spillway.dev/Mirrored', 'False', 'MemberUnreachable', 'Member west does not answer.')],
  }),
];

describe('the table of clusters', () => {
  it('shows what each has free, and why one is not ready', () => {
    const summaries = clusterSummaries({ members: [WEST, EAST], nodes: NODES, pods: PODS });
    expect(table(summaries, clusterColumns(NOW))).toBe(
      [
        'NAME   READY                      REACHABLE   CREDENTIALS   NODES   PODS   CPU-FREE   MEMORY-FREE   VERSION   AGE   WHY',
        'east   True                       True        True          1/1     2      14.5/16    63Gi/64Gi     v1.36.2   60m   <none>',
        'west   False,SchedulingDisabled   False       Unknown       1/2     0      0/0        0/0           <none>    60m   Timeout: No answer within 5 s.',
        '',
      ].join('\n'),
    );
  });

  it('shows ? for what the viewer may not know', () => {
    const [east] = clusterSummaries({ members: [EAST], nodes: undefined, pods: undefined });
    expect(east).toMatchObject({ nodes: null, free: null, offered: { cpu: 16, memory: 64 * 2 ** 30 } });
    expect(table(east === undefined ? [] : [east], clusterColumns(NOW))).toMatch(/ \? +2 +\?\/16 +\?\/64Gi /);
  });

  it('says when nobody has looked at a member, and when its spec cannot be read', () => {
    const broken: KubeObject & { spec: object } = { metadata: { name: 'odd' }, spec: { credentials: 7 } };
    const [fresh, odd] = clusterSummaries({ members: [member('fresh'), broken], nodes: [], pods: [] });
    expect(fresh).toMatchObject({ ready: 'Unknown', reason: 'NoManager' });
    expect(odd).toMatchObject({ reason: 'InvalidSpec', message: expect.stringContaining('spec.credentials') });
  });

  describe('names taints', () => {
    const tainted = (name: string, of: string, ...taints: object[]): Node => {
      const plain = node(name, of);
      return { ...plain, spec: { ...plain.spec, taints } } as Node;
    };
    const why = (members: KubeObject[], nodes: Node[]): unknown => {
      const [first] = clusterSummaries({ members, nodes, pods: [] });
      const column = clusterColumns(NOW).find(({ name }) => name === 'WHY');
      return first === undefined ? 'no member' : column?.text(first);
    };
    const DRAIN = { key: 'spillway.dev/drain', effect: 'NoSchedule' };

    it('of people and policies, and which nodes are to be emptied', () => {
      const status = {
        conditions: WELL,
        taints: [{ key: 'example.com/degraded', effect: 'NoExecute', policy: 'degraded', timeAdded: at(9) }],
      };
      const one = member('east', { taints: [{ key: 'slow', value: 'yes', effect: 'NoExecute' }] }, status);
      const nodes = [
        tainted(
          'east',
          'east',
          DRAIN,
          { key: 'spillway.dev/virtual-node', effect: 'NoSchedule' },
          { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
          { key: 'slow', value: 'yes', effect: 'NoSchedule' },
          { key: 'theirs', effect: 'NoSchedule' },
          { key: 'mild', effect: 'PreferNoSchedule' },
        ),
      ];
      expect(why([one], nodes)).toBe(
        'drained: taint spillway.dev/drain on node east; tainted slow=yes:NoExecute, example.com/degraded:NoExecute, theirs:NoSchedule',
      );
      expect(clusterSummaries({ members: [one], nodes: undefined, pods: [] })[0]).toMatchObject({ drained: null });
    });

    it('but not those of pools, which are for pods that ask for them', () => {
      const gpu = { key: 'nvidia.com/gpu', effect: 'NoSchedule' };
      const pools = member(
        'west',
        { virtualNodes: [{ name: 'a', taints: [gpu] }, { name: 'b' }] },
        { conditions: WELL },
      );
      expect(why([pools], [tainted('west-a', 'west', gpu), tainted('west-b', 'west')])).toBeUndefined();
    });

    it('beside what is wrong', () => {
      expect(why([WEST], [tainted('west-a', 'west', DRAIN), tainted('west-b', 'west', DRAIN)])).toBe(
        'drained: taint spillway.dev/drain on nodes west-a, west-b; Timeout: No answer within 5 s.',
      );
    });
  });

  it('counts pods on virtual nodes that the spec does not name any more', () => {
    expect(nodeNamesOf(WEST, [...NODES, node('west-old', 'west')])).toEqual(['west-a', 'west-b', 'west-old']);
    expect(nodeNamesOf(EAST, undefined)).toEqual(['east']);
  });
});

const lease = (name: string, holder: string, renewedAgo: number) => ({
  metadata: { name, namespace: 'spillway-system' },
  spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime: at(renewedAgo) },
});
const policy = (name: string, ...conditions: Condition[]) => ({
  resource: 'placementpolicies',
  object: { metadata: { name, namespace: 'shop' }, status: { conditions } } as KubeObject,
});
const FACTS: OverviewFacts = {
  fleet: { members: [EAST, WEST], nodes: NODES, pods: PODS },
  leases: [
    lease('spillway-member-east', 'host-a_1', 3),
    lease('spillway-member-west', 'host-a_1', 1),
    lease('spillway-scheduler', 'host-b_2', 2),
    lease('spillway-descheduler', 'host-a_17_9', 2),
    lease('spillway-member-north', 'host-c_3', 4000),
    lease('somebody-elses', 'other', 1),
  ],
  migrations: [],
  rebalancers: [],
  stays: [],
  unbound: [hostPod({ spec: { schedulingGates: [{ name: 'spillway.dev/gang' }] } }), hostPod()],
  policies: [
    policy('good', condition('Accepted', 'True')),
    policy(
      'odd',
      condition('Accepted', 'True'),
      condition('Consistent', 'False', 'Contradictory', 'there is no member moon'),
    ),
  ],
};

describe('the overview', () => {
  it('is one screen', () => {
    expect(overviewText(overview(FACTS, NOW), NOW)).toBe(`Managers
  NAME     RENEWED   MEMBERS     ALSO
  host-a   1s ago    east,west   descheduler
  host-b   2s ago    <none>      scheduler

Clusters
${table(clusterSummaries(FACTS.fleet), clusterColumns(NOW)).replaceAll(/^(?=.)/gm, '  ')}
Pods
  in members: 1 running, 1 pending, 1 of these held back
  HELD   REASON              FOR EXAMPLE   MESSAGE
  1      MemberUnreachable   shop/three    Member west does not answer.
  2 pods of this cluster wait for a node, 1 of them behind scheduling gates: kubectl spillway why POD

Deletions
  held back in west: 12 pods are kept in the member.

Moves
  no pod is on its way out of a member

Policies
  2, 1 of them not in effect as written
  POLICY                       REASON          MESSAGE
  placementpolicies/shop/odd   Contradictory   there is no member moon
`);
  });

  it('says of which lost members no pods are moved, and how to go on', () => {
    const conditions = [
      condition('MovesAllowed', 'False', 'MovesPaused', 'No member answers. To go on: kubectl patch'),
    ];
    const fleet = { ...FACTS.fleet, members: [member('east'), member('west', {}, { conditions })] };
    expect(overviewText(overview({ ...FACTS, fleet }, NOW), NOW)).toContain(`Moves
  paused for west: No member answers. To go on: kubectl patch
  no pod is on its way out of a member
`);
  });

  it.each([
    ['', 'all moves are stopped (annotation spillway.dev/moves-stopped of Lease spillway-descheduler)'],
    ['INC-7', 'all moves are stopped (annotation spillway.dev/moves-stopped of Lease spillway-descheduler: INC-7)'],
  ])('says that somebody has stopped all moves (%j), be it that no manager runs', (said, words) => {
    const stopped = lease('spillway-descheduler', '', 9_000);
    const leases = [
      { ...stopped, metadata: { ...stopped.metadata, annotations: { 'spillway.dev/moves-stopped': said } } },
    ];
    const found = overview({ ...FACTS, leases }, NOW);
    expect(found.movesStopped).toBe(said);
    expect(overviewText(found, NOW)).toContain(`Moves
  ${words}; to let them go on: kubectl spillway resume-moves
  no pod is on its way out of a member
`);
    expect(overview(FACTS, NOW).movesStopped).toBeNull();
  });

  it('says that policies have no effect where nobody answers schedulers', () => {
    const found = overview({ ...FACTS, leases: [lease('spillway-member-east', 'host-a_1', 3)] }, NOW);
    expect(found.policies?.withoutEffect.map(({ reason }) => reason)).toEqual(['NoScheduler', 'NoScheduler']);
    // Who may not see Leases is not told that there are none.
    const blind = overview({ ...FACTS, leases: undefined }, NOW);
    expect(blind.policies?.withoutEffect).toHaveLength(1);
    expect(overviewText(blind, NOW)).toContain('Managers\n  ? (you may not know)');
  });

  it('says when no manager runs, and counts what is on its way out', () => {
    const evicted = podOn('east', 'four', '1', { conditions: [condition('DisruptionTarget', 'True')] });
    evicted.metadata.deletionTimestamp = at(1);
    const found = overview({ ...FACTS, leases: [], fleet: { ...FACTS.fleet, pods: [evicted] } }, NOW);
    expect(found.pods?.leaving).toEqual([{ cluster: 'east', pods: 1 }]);
    expect(overviewText(found, NOW)).toMatch(/none is running: .*[\s\S]*1 pod on the way out of east/);
  });

  it('counts pods that were released from their ReplicaSets, and are there still', () => {
    const mark = { hash: 'h', replicaSet: 'web-h', uid: 'set', at: '2026-03-01T11:59:00Z', ready: 1 };
    const released = (nodeName: string, name: string, more: object = {}): Pod => {
      const pod = podOn(nodeName, name, '1');
      const annotations = { 'spillway.dev/released': JSON.stringify({ ...mark, ...more }) };
      return { ...pod, metadata: { ...pod.metadata, labels: {}, ownerReferences: [], annotations } };
    };
    const going = released('east', 'going');
    going.metadata.deletionTimestamp = at(1);
    const ended: Pod = { ...released('east', 'ended'), status: { phase: 'Succeeded' } };
    const pods = [released('east', 'a'), released('east', 'b'), released('west-a', 'c', { lost: true }), going, ended];
    expect(overviewText(overview({ ...FACTS, fleet: { ...FACTS.fleet, pods } }, NOW), NOW)).toContain(`Moves
  2 pods released in east, until others are Ready in their place
  1 pod released in west, until that answers again
`);
  });

  it('says of released pods that stay what is against their end, and since when', () => {
    const mark = JSON.stringify({ hash: 'h', replicaSet: 'web-h', uid: 'set', at: at(7_200), ready: 1 });
    const released = (name: string): Pod => {
      const pod = podOn('east', name, '1');
      const metadata = { ...pod.metadata, uid: name, labels: {}, ownerReferences: [] };
      return { ...pod, metadata: { ...metadata, annotations: { 'spillway.dev/released': mark } } };
    };
    const told = (name: string, first: number, last: number): Event => ({
      metadata: { name: `${name}.1` },
      involvedObject: { kind: 'Pod', name, uid: name },
      reason: 'ReleasedPodStays',
      message:
        'another pod is Ready in its place, but it cannot be ended: its disruption budget\nallows no eviction now',
      firstTimestamp: at(first),
      lastTimestamp: at(last),
    });
    const pods = ['going', 'kept', 'older', 'let'].map(released);
    const stays = [told('kept', 2_520, 60), told('older', 5_400, 600), told('let', 5_400, 1_600), told('gone', 60, 60)];
    const found = overview({ ...FACTS, fleet: { ...FACTS.fleet, pods }, stays }, NOW);
    const words =
      'another pod is Ready in its place, but it cannot be ended: its disruption budget allows no eviction now';
    expect(overviewText(found, NOW)).toContain(`Moves
  2 pods released in east, until others are Ready in their place
  pod shop/older stays in east, for 90m now: ${words}
  pod shop/kept stays in east, for 42m now: ${words}
`);
    const blind = overview({ ...FACTS, fleet: { ...FACTS.fleet, pods }, stays: undefined }, NOW);
    expect(overviewText(blind, NOW)).toContain('  4 pods released in east, until others are Ready in their place\n\n');
  });

  it('has a line for each order to move that is not over, and counts what is beyond twenty', () => {
    const workload = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
    const migrations = Array.from({ length: 22 }, (_, index) => ({
      metadata: { name: `m${String(10 + index)}`, namespace: 'shop' },
      spec: { workloads: [workload], from: 'east', to: 'west' },
    }));
    const rebalancers = [
      { metadata: { name: 'now' }, spec: { workloads: [{ ...workload, namespace: 'shop' }] } } as KubeObject,
    ];
    const text = overviewText(overview({ ...FACTS, migrations, rebalancers }, NOW), NOW);
    expect(text).toContain(`Moves
  no pod is on its way out of a member
  migration shop/m10: east to west, no manager has looked at it yet
`);
    expect(text).toContain(`  migration shop/m29: east to west, no manager has looked at it yet
  and 2 more migrations
  rebalancer now: 0 of 1 workload done
`);
    const blind = overview({ ...FACTS, migrations: undefined, rebalancers: undefined }, NOW);
    expect(overviewText(blind, NOW)).toContain(`
  migrations: ? (you may not know)
  rebalancers: ? (you may not know)
`);
  });

  it('takes a Lease that was not renewed for three times its duration as nobody’s', () => {
    expect(isHeld(lease('x', 'a', 44), NOW)).toBe(true);
    expect(isHeld(lease('x', 'a', 46), NOW)).toBe(false);
    expect(isHeld(lease('x', '', 1), NOW)).toBe(false);
  });
});
