import { describe, expect, it } from 'vitest';
import { HOST_LABEL, NODE_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { LimitRange, ResourceQuota } from '../../src/kube/namespace-limits.ts';
import type { Namespace, Pod, PodSpec, ResourceList } from '../../src/kube/core-v1.ts';
import { formatAmounts, parseAmounts } from '../../src/kube/amounts.ts';
import type { ElasticGroup } from '../../src/capacity/elastic.ts';
import { reasonsInWords } from '../../src/capacity/fit-answer.ts';
import { fitRequestOf, type FitRequest } from '../../src/capacity/fit-request.ts';
import { MemberCapacity, type MemberCapacityOptions } from '../../src/capacity/member-capacity.ts';
import type { Pool } from '../../src/capacity/pool.ts';
import { memberNode, memberPod, poolOf, type NodeParts } from '../fixtures/member-nodes.ts';

const HOST = 'host-1';

function member(nodes: Record<string, NodeParts>, options: Partial<MemberCapacityOptions> = {}): MemberCapacity {
  const capacity = new MemberCapacity({ hostId: HOST, pools: [poolOf()], ...options });
  for (const [name, parts] of Object.entries(nodes)) capacity.nodeHandler.added(memberNode(name, parts));
  return capacity;
}

function asks(requests: ResourceList, more: Partial<PodSpec> = {}, labels: Record<string, string> = {}): FitRequest {
  const spec = { containers: [{ name: 'c', resources: { requests } }], ...more };
  return fitRequestOf({ metadata: { name: 'asks', namespace: 'shop', labels }, spec }, 'east');
}

/** A pod of this host as the member shows it; `uid` is that of the host pod. */
function ours(uid: string, requests: ResourceList, nodeName?: string, unschedulable = false): Pod {
  const pod = memberPod(`m-${uid}`, nodeName, requests, { phase: 'Pending' });
  const conditions = [{ type: 'PodScheduled', status: 'False' as const, reason: 'Unschedulable' }];
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { [HOST_LABEL]: HOST, [NODE_LABEL]: 'east', [UID_LABEL]: uid },
    },
    status: { phase: 'Pending', ...(unschedulable ? { conditions } : {}) },
  };
}

function whyNot(capacity: MemberCapacity, request: FitRequest): string {
  const answer = capacity.fits(request);
  return answer.fits ? 'it fits' : reasonsInWords(answer.reasons);
}

describe('whether a pod fits', () => {
  it('is asked of single nodes, not of their sum', () => {
    const capacity = member({ a: {}, b: {} });
    expect(capacity.fits(asks({ cpu: '8' }))).toEqual({ fits: true, nodes: 2 });
    expect(capacity.fits(asks({ cpu: '9' }))).toEqual({
      fits: false,
      reasons: [{ text: 'insufficient cpu', nodes: 2 }],
    });
    capacity.podHandler.added(memberPod('p', 'a', { cpu: '1' }));
    capacity.podHandler.added(memberPod('q', 'b', { cpu: '1' }));
    expect(capacity.fits(asks({ cpu: '8' }))).toMatchObject({ fits: false });
    expect(formatAmounts(capacity.largestFreeSlot() ?? new Map())).toEqual({ cpu: '7', memory: '16Gi', pods: '109' });
  });

  it('knows the largest slot that is left, however often it is asked, as pods come and go', () => {
    const capacity = member({ a: {}, b: {} });
    const largest = (): string | undefined =>
      formatAmounts(capacity.largestFreeSlot(asks({ cpu: '9' })) ?? new Map())['cpu'];
    expect([largest(), largest()]).toEqual(['8', '8']);
    const pods = [memberPod('p', 'a', { cpu: '1' }), memberPod('q', 'b', { cpu: '3' })];
    for (const pod of pods) capacity.podHandler.added(pod);
    expect([largest(), largest()]).toEqual(['7', '7']);
    capacity.reserve('on-its-way', asks({ cpu: '6' }));
    expect(largest()).toBe('5');
    for (const pod of pods) capacity.podHandler.deleted(pod);
    capacity.release('on-its-way');
    expect(largest()).toBe('8');
  });

  it('says of each node what the scheduler would say first', () => {
    const capacity = member({
      cordoned: { unschedulable: true },
      tainted: { taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }] },
      down: { ready: 'Unknown' },
      leaving: { deleting: true },
      elsewhere: { labels: { disk: 'hdd' } },
      full: { labels: { disk: 'ssd' }, allocatable: { cpu: '1', memory: '1Gi', pods: '0' } },
    });
    capacity.podHandler.added(memberPod('p', 'elsewhere', { cpu: '1' }));
    expect(
      whyNot(capacity, asks({ cpu: '2' }, { nodeSelector: { disk: 'ssd' } }))
        .split(', ')
        .toSorted(),
    ).toEqual([
      '1 node: being removed',
      '1 node: cordoned',
      "1 node: does not match the pod's node selector or affinity",
      '1 node: insufficient cpu',
      '1 node: not ready',
      '1 node: too many pods',
      '1 node: untolerated taint dedicated=gpu:NoSchedule',
    ]);
    expect(whyNot(member({}), asks({}))).toBe('it has no nodes');
  });

  it('never counts virtual nodes of a member that is a host itself', () => {
    const capacity = member({ v: { labels: { [NODE_LABEL]: 'v' } } });
    expect(whyNot(capacity, asks({ cpu: '1' }))).toBe('it has no nodes');
  });

  it('counts how many fit together', () => {
    const capacity = member({ a: {}, b: {}, c: { labels: { disk: 'ssd' } } });
    capacity.podHandler.added(memberPod('p', 'a', { cpu: '3' }));
    expect(capacity.slots(asks({ cpu: '3' }), 100)).toBe(1 + 2 + 2);
    expect(capacity.slots(asks({ cpu: '3' }), 2)).toBe(2);
    expect(capacity.slots(asks({ cpu: '3' }, { nodeSelector: { disk: 'ssd' } }), 100)).toBe(2);
    const port = { containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort: 80 }] }] };
    expect(capacity.slots(asks({}, port), 100)).toBe(3);
  });

  it('counts pods that keep away from each other, stay together or spread', () => {
    const zone = (name: string) => ({ labels: { 'topology.kubernetes.io/zone': name } });
    const capacity = member({ a1: zone('a'), a2: zone('a'), b1: zone('b') });
    const labelSelector = { matchLabels: { app: 'web' } };
    const terms = (topologyKey: string) => ({
      requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector }],
    });
    const web = (more: Partial<PodSpec>) => asks({ cpu: '4' }, more, { app: 'web' });
    const slots = (more: Partial<PodSpec>) => capacity.slots(web(more), 100);
    expect(slots({})).toBe(6);
    expect(slots({ affinity: { podAntiAffinity: terms('kubernetes.io/hostname') } })).toBe(3);
    expect(slots({ affinity: { podAntiAffinity: terms('topology.kubernetes.io/zone') } })).toBe(2);
    expect(slots({ affinity: { podAffinity: terms('topology.kubernetes.io/zone') } })).toBe(4);
    const spread = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', labelSelector };
    expect(slots({ topologySpreadConstraints: [{ ...spread, whenUnsatisfiable: 'DoNotSchedule' }] })).toBe(5);
  });

  it.each([
    ['maxSkew', { maxSkew: 2 ** 31 - 1 }, 20],
    ['minDomains', { maxSkew: 1, minDomains: 2 ** 31 - 1 }, 10],
  ])('answers at once, however large the %s of a tenant is', (_what, rule, expected) => {
    const nodes = Array.from({ length: 10 }, (_, index) => [`n${String(index)}`, {}] as const);
    const capacity = member(Object.fromEntries(nodes));
    const labelSelector = { matchLabels: { app: 'web' } };
    const spread = {
      topologyKey: 'kubernetes.io/hostname',
      labelSelector,
      whenUnsatisfiable: 'DoNotSchedule' as const,
    };
    const web = asks({ cpu: '4' }, { topologySpreadConstraints: [{ ...spread, ...rule }] }, { app: 'web' });
    const began = performance.now();
    expect(capacity.slots(web, 1_000)).toBe(expected);
    expect(performance.now() - began).toBeLessThan(250);
  });
});

describe('headroom and caps', () => {
  const limited = (parts: Partial<Pool>) => member({ a: {}, b: {} }, { pools: [poolOf(parts)] });

  it('keep pods out that would fit a node', () => {
    const capacity = limited({ headroom: parseAmounts({ cpu: '10' }) });
    expect(capacity.slots(asks({ cpu: '2' }), 100)).toBe(3);
    expect(whyNot(capacity, asks({ cpu: '7' }))).toBe('headroom and caps leave 6 cpu');
    capacity.reserve('u1', asks({ cpu: '2' }));
    expect(capacity.slots(asks({ cpu: '2' }), 100)).toBe(2);
  });

  it('caps count only what is ours', () => {
    const capacity = limited({ caps: parseAmounts({ cpu: '5' }) });
    capacity.podHandler.added(memberPod('other', 'a', { cpu: '4' }));
    expect(capacity.slots(asks({ cpu: '1' }), 100)).toBe(5);
    capacity.podHandler.added(ours('u1', { cpu: '3' }, 'a'));
    expect(capacity.slots(asks({ cpu: '1' }), 100)).toBe(2);
  });
});

describe('reservations', () => {
  it('hold the room of pods that the member does not show yet', () => {
    const capacity = member({ a: {}, b: {} });
    const big = asks({ cpu: '8' });
    capacity.reserve('u1', big);
    expect(capacity.fits(big)).toEqual({ fits: true, nodes: 1 });
    capacity.reserve('u1', big);
    expect(capacity.fits(big)).toMatchObject({ nodes: 1 });
    capacity.reserve('u2', big);
    expect(whyNot(capacity, big)).toBe('2 nodes: insufficient cpu');
    capacity.release('u1');
    expect(capacity.fits(big)).toMatchObject({ nodes: 1 });
  });

  it('end when the pod is on its node, wherever that is, and do not come back', () => {
    const capacity = member({ a: {}, b: {} });
    const big = asks({ cpu: '8' });
    capacity.reserve('u1', big, 'choice');
    capacity.reserve('u1', big, 'binding');
    capacity.release('u1', 'choice');
    expect(capacity.slots(big, 9)).toBe(1);
    capacity.podHandler.added(ours('u1', { cpu: '8' }));
    expect(capacity.slots(big, 9)).toBe(1);
    capacity.podHandler.updated(ours('u1', { cpu: '8' }, 'b'));
    expect(capacity.fittingNodes(big)).toEqual(['a']);
    capacity.reserve('u1', big, 'binding');
    expect(capacity.fittingNodes(big)).toEqual(['a']);
    expect(capacity.size).toEqual({ pods: 1, reservations: 0 });
  });

  it('are made again for a pod when its copy is made the copy of another one', () => {
    const capacity = member({ a: {} });
    const [one, two] = [ours('one', { cpu: '1' }, 'a'), ours('two', { cpu: '1' }, 'a')];
    two.metadata.uid = one.metadata.uid ?? '';
    capacity.podHandler.added(one);
    capacity.podHandler.updated(two, one);
    expect(['one', 'two'].map((uid) => capacity.wasPlaced(uid))).toEqual([false, true]);
    capacity.podHandler.deleted(two);
    expect(capacity.wasPlaced('two')).toBe(false);
  });

  it('move when others take their place, and count again when there is room again', () => {
    const capacity = member({ a: {}, b: {} });
    const big = asks({ cpu: '8' });
    capacity.reserve('u1', big);
    const [free] = capacity.fittingNodes(big);
    const taken = free === 'a' ? 'b' : 'a';
    capacity.podHandler.added(memberPod('other', taken, { cpu: '8' }));
    expect(capacity.fittingNodes(big)).toEqual([]);
    capacity.podHandler.added(memberPod('another', free, { cpu: '8' }));
    expect(capacity.size.reservations).toBe(1);
    capacity.podHandler.deleted(memberPod('other', taken, { cpu: '8' }));
    expect(capacity.fittingNodes(big)).toEqual([]);
    capacity.release('u1');
    expect(capacity.fittingNodes(big)).toEqual([taken]);
  });

  it('count for quotas, ports and inter-pod constraints as well', () => {
    const capacity = member({ a: {}, b: {} });
    capacity.quotaHandler.added(quota({ pods: '3' }, { pods: '1' }));
    const port = asks({}, { containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort: 80 }] }] });
    capacity.reserve('u1', port);
    expect(capacity.slots(port, 9)).toBe(1);
    capacity.reserve('u2', asks({ cpu: '1' }));
    expect(whyNot(capacity, asks({}))).toBe('quota limit: 1 pods wanted, 0 left');
    // The member has counted it in its quota; on the way to a node it still takes room.
    capacity.podHandler.added(ours('u2', { cpu: '1' }));
    capacity.quotaHandler.updated(quota({ pods: '3' }, { pods: '2' }));
    expect(whyNot(capacity, asks({}))).toBe('quota limit: 1 pods wanted, 0 left');
    capacity.release('u1');
    expect(capacity.slots(asks({}), 9)).toBe(1);
  });
});

describe('pods that the member finds no node for', () => {
  it('hold nothing', () => {
    const capacity = member({ a: {} });
    capacity.reserve('u1', asks({ cpu: '7' }), 'binding');
    expect(whyNot(capacity, asks({ cpu: '2' }))).toBe('1 node: insufficient cpu');
    capacity.podHandler.added(ours('u1', { cpu: '7' }));
    expect(whyNot(capacity, asks({ cpu: '2' }))).toBe('1 node: insufficient cpu');
    capacity.podHandler.updated(ours('u1', { cpu: '7' }, undefined, true));
    expect(capacity.fits(asks({ cpu: '2' }))).toMatchObject({ fits: true });
    capacity.reserve('u1', asks({ cpu: '7' }), 'binding');
    expect(capacity.fits(asks({ cpu: '2' }))).toMatchObject({ fits: true });
  });

  it('take nothing of what the virtual node offers to others', () => {
    const capacity = member({ a: {} });
    const bound = parseAmounts({ cpu: '20', pods: '1' });
    capacity.podHandler.added(ours('u1', { cpu: '20' }, undefined, true));
    // The host subtracts 20 for the pod that is bound to the virtual node.
    expect(capacity.offer('east', bound)?.allocatable).toMatchObject({ cpu: '28', pods: '111' });
    capacity.podHandler.deleted(ours('u1', { cpu: '20' }, undefined, true));
    expect(capacity.offer('east', new Map())?.allocatable).toMatchObject({ cpu: '8', pods: '110' });
    capacity.podHandler.added(ours('u2', { cpu: '2' }, undefined, true));
    capacity.podHandler.updated(ours('u2', { cpu: '2' }, 'a'));
    expect(capacity.offer('east')?.allocatable).toMatchObject({ cpu: '8' });
  });

  describe('but had room for when they were sent there', () => {
    const small = { allocatable: { cpu: '1', memory: '16Gi', pods: '110' } };
    let now = 0;
    /** Two pods of 400m went to one node each, where they were not expected, and one of a whole CPU finds no node. */
    const withOneStuck = (): MemberCapacity => {
      const capacity = member({ a: small, b: small }, { clock: () => now });
      for (const [uid, cpu] of [
        ['big', '1'],
        ['s1', '400m'],
        ['s2', '400m'],
      ] as const)
        capacity.reserve(uid, asks({ cpu }), 'binding');
      capacity.podHandler.added(ours('s1', { cpu: '400m' }, 'a'));
      capacity.podHandler.added(ours('s2', { cpu: '400m' }, 'b'));
      capacity.podHandler.added(ours('big', { cpu: '1' }, undefined, true));
      return capacity;
    };
    const smallSlots = (capacity: MemberCapacity): number => capacity.slots(asks({ cpu: '100m' }), 100);

    it('let small ones pass, and get the first room that is enough for them', () => {
      const capacity = withOneStuck();
      expect(smallSlots(capacity)).toBe(6 + 6);
      capacity.podHandler.deleted(ours('s1', { cpu: '400m' }, 'a'));
      expect(smallSlots(capacity)).toBe(6);
      // What it had before said nothing new.
      capacity.podHandler.updated(ours('big', { cpu: '1' }, undefined, true));
      expect(smallSlots(capacity)).toBe(6);
      capacity.podHandler.updated(ours('big', { cpu: '1' }, 'a'));
      now += 60_000;
      expect(smallSlots(capacity)).toBe(6);
    });

    it('have it for the next try of the scheduler there, and no longer', () => {
      const capacity = withOneStuck();
      expect(smallSlots(capacity)).toBe(6 + 6);
      capacity.podHandler.deleted(ours('s1', { cpu: '400m' }, 'a'));
      expect(smallSlots(capacity)).toBe(6);
      now += 15_000;
      expect(smallSlots(capacity)).toBe(10 + 6);
      // There is room, and it is not taken: for other reasons.
      capacity.podHandler.updated(ours('big', { cpu: '1' }, undefined, true));
      expect(smallSlots(capacity)).toBe(10 + 6);
    });

    it('take nothing of what the virtual node offers meanwhile, which nobody would report when it is over', () => {
      const capacity = withOneStuck();
      capacity.podHandler.deleted(ours('s1', { cpu: '400m' }, 'a'));
      expect(smallSlots(capacity)).toBe(6);
      expect(capacity.offer('east', parseAmounts({ cpu: '1400m' }))?.allocatable).toMatchObject({ cpu: '3' });
    });

    it('have none when they are gone', () => {
      const capacity = withOneStuck();
      capacity.podHandler.deleted(ours('big', { cpu: '1' }, undefined, true));
      capacity.podHandler.deleted(ours('s1', { cpu: '400m' }, 'a'));
      expect(smallSlots(capacity)).toBe(10 + 6);
      expect(capacity.size.reservations).toBe(0);
    });
  });

  it('keep the request that the member shows, whatever the host foresaw', () => {
    const capacity = member({ a: {} });
    capacity.podHandler.added(ours('u1', { cpu: '3' }));
    capacity.reserve('u1', asks({ cpu: '1' }), 'binding');
    expect(capacity.fits(asks({ cpu: '6' }))).toMatchObject({ fits: false });
    expect(capacity.fits(asks({ cpu: '5' }))).toMatchObject({ fits: true });
  });
});

describe('nodes that a member can get', () => {
  const group: ElasticGroup = {
    name: 'pool',
    nodeLabels: { group: 'pool' },
    taints: [],
    resources: { cpu: '32', memory: '64Gi', pods: '50' },
    maxNodes: 3,
    leadTimeSeconds: 300,
  };
  let now = Date.parse('2026-01-01T00:00:10Z');
  const elastic = () => member({ a: {}, b: { labels: { group: 'pool' } } }, { elastic: [group], clock: () => now });

  it('count only where no node has room, with their lead time', () => {
    const capacity = elastic();
    expect(capacity.fits(asks({ cpu: '8' }))).toEqual({ fits: true, nodes: 2 });
    expect(capacity.fits(asks({ cpu: '20' }))).toEqual({ fits: true, nodes: 2 });
    expect(capacity.fits(asks({ cpu: '40' }))).toMatchObject({ fits: false });
    expect(capacity.slots(asks({ cpu: '8' }), 100)).toBe(2 + 2 * 4);
    expect(capacity.tracker.offer('east')).toMatchObject({
      allocatable: { cpu: '80' },
      nodes: { total: 2, eligible: 2 },
    });
    expect(capacity.tracker.facts('east')?.nodeInfo?.kubeletVersion).toBe('v1.36.3');
  });

  it('become fewer as real ones come, and more as these go', () => {
    const capacity = elastic();
    capacity.nodeHandler.added(memberNode('c', { labels: { group: 'pool' } }));
    capacity.nodeHandler.added(memberNode('d', { labels: { group: 'pool' } }));
    expect(capacity.fits(asks({ cpu: '20' }))).toMatchObject({ fits: false });
    capacity.nodeHandler.deleted(memberNode('c', { labels: { group: 'pool' } }));
    expect(capacity.fits(asks({ cpu: '20' }))).toMatchObject({ fits: true, nodes: 1 });
    capacity.setSpec([poolOf()], [{ ...group, maxNodes: 2 }]);
    expect(capacity.fits(asks({ cpu: '20' }))).toMatchObject({ fits: false });
  });

  it('are kept for pods that wait for them, for the lead time', () => {
    const capacity = elastic();
    capacity.podHandler.added(ours('u1', { cpu: '20' }, undefined, true));
    capacity.podHandler.added(ours('u2', { cpu: '20' }, undefined, true));
    expect(capacity.fits(asks({ cpu: '20' }))).toMatchObject({ fits: false });
    now = Date.parse('2026-01-01T00:05:01Z');
    expect(capacity.fits(asks({ cpu: '20' }))).toMatchObject({ fits: true, nodes: 2 });
  });
});

function quota(hard: ResourceList, used: ResourceList, spec: ResourceQuota['spec'] = {}): ResourceQuota {
  return { metadata: { name: 'limit', namespace: 'shop' }, spec, status: { hard, used } };
}

describe('the namespace in the member', () => {
  it('refuses what is over its quota, in words, and counts what fits', () => {
    const capacity = member({ a: {} });
    capacity.quotaHandler.added(quota({ 'requests.cpu': '4', 'limits.memory': '4Gi' }, { 'requests.cpu': '1500m' }));
    const limits = { memory: '1Gi' };
    const pod = (cpu: string) => asks({}, { containers: [{ name: 'c', resources: { requests: { cpu }, limits } }] });
    expect(capacity.slots(pod('1'), 9)).toBe(2);
    expect(whyNot(capacity, pod('3'))).toBe('quota limit: 3 requests.cpu wanted, 2500m left');
    expect(whyNot(capacity, asks({ cpu: '1' }))).toBe('quota limit: container c must specify limits.memory');
    capacity.quotaHandler.deleted(quota({}, {}));
    expect(whyNot(capacity, pod('3'))).toBe('it fits');
  });

  it.each([
    ['NotTerminating', true, false],
    ['Terminating', false, true],
    ['BestEffort', false, false],
    ['NotBestEffort', true, true],
    ['CrossNamespacePodAffinity', false, false],
    ['PriorityClass', false, false],
  ])('quota with scope %s', (scope, plain, withDeadline) => {
    const capacity = member({ a: {} });
    capacity.quotaHandler.added(quota({ pods: '0' }, {}, { scopes: [scope] }));
    expect(whyNot(capacity, asks({ cpu: '1' })).startsWith('quota')).toBe(plain);
    expect(whyNot(capacity, asks({ cpu: '1' }, { activeDeadlineSeconds: 60 })).startsWith('quota')).toBe(withDeadline);
  });

  it('gives pods the requests of its limit range, and refuses what is beyond it', () => {
    const capacity = member({ a: {} });
    const range: LimitRange = {
      metadata: { name: 'range', namespace: 'shop' },
      spec: {
        limits: [
          {
            type: 'Container',
            defaultRequest: { cpu: '3' },
            default: { cpu: '4' },
            max: { cpu: '6' },
            min: { cpu: '1' },
          },
          { type: 'Pod', maxLimitRequestRatio: { cpu: '2' } },
        ],
      },
    };
    expect(capacity.slots(asks({}), 1_000)).toBe(110);
    capacity.limitRangeHandler.added(range);
    expect(capacity.slots(asks({}), 1_000)).toBe(2);
    const pod = (cpu: string, limit: string) =>
      asks({}, { containers: [{ name: 'c', resources: { requests: { cpu }, limits: { cpu: limit } } }] });
    expect(whyNot(capacity, pod('500m', '1'))).toBe('limit range range: a Container must ask for at least 1 cpu');
    expect(whyNot(capacity, pod('6', '7'))).toBe('limit range range: a Container must have a limit of at most 6 cpu');
    expect(whyNot(capacity, pod('2', '5'))).toBe(
      'limit range range: the cpu limit of a Pod must be at most 2 times its request',
    );
    capacity.limitRangeHandler.deleted(range);
    expect(capacity.slots(asks({}), 1_000)).toBe(110);
  });

  it('is known by its labels, also when these change', () => {
    const capacity = member({ a: {} });
    const namespace = (labels: Record<string, string>): Namespace => ({ metadata: { name: 'shop', labels } });
    const podAntiAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: [
        {
          topologyKey: 'kubernetes.io/hostname',
          labelSelector: {},
          namespaceSelector: { matchLabels: { team: 'red' } },
        },
      ],
    };
    const other = memberPod('other', 'a', {});
    capacity.podHandler.added({ ...other, spec: { ...other.spec, affinity: { podAntiAffinity } } });
    expect(whyNot(capacity, asks({}))).toBe('it fits');
    capacity.namespaceHandler.added(namespace({ team: 'red' }));
    expect(whyNot(capacity, asks({}))).toBe('1 node: anti-affinity of pods that are there');
    capacity.namespaceHandler.updated(namespace({ team: 'blue' }));
    expect(whyNot(capacity, asks({}))).toBe('it fits');
  });
});

describe('the shapes that were asked about', () => {
  it('are told with their room, each once, in a steady order', () => {
    const capacity = member({ a: {}, b: { labels: { disk: 'ssd' } } });
    capacity.fits(asks({ cpu: '3' }, { nodeSelector: { disk: 'ssd' } }));
    capacity.fits(asks({ cpu: '10m' }));
    capacity.fits(asks({ cpu: '10m' }, {}, { app: 'other' }));
    expect(capacity.roomForShapes()).toEqual([
      { requests: { cpu: '10m' }, slots: 220 },
      { requests: { cpu: '3' }, where: 'disk=ssd', slots: 2 },
    ]);
    for (let index = 1; index <= 20; index++) capacity.fits(asks({ cpu: `${String(index)}m` }));
    expect(capacity.roomForShapes()).toHaveLength(8);
  });

  it('are worked out once, however often they are asked about in turns', () => {
    const capacity = member({ a: {} });
    let looks = 0;
    const counting = (request: FitRequest): FitRequest =>
      Object.defineProperty({ ...request }, 'where', {
        get: () => {
          looks += 1;
          return request.where;
        },
      });
    const [first, second] = [counting(asks({ cpu: '1' })), counting(asks({ cpu: '2' }))];
    for (let turn = 0; turn < 3; turn++) {
      capacity.fits(first);
      capacity.fits(second);
      expect(capacity.roomForShapes()).toHaveLength(2);
    }
    expect(looks).toBe(2);
  });

  it('are those asked about last, not those that came first', () => {
    const capacity = member({ a: {} });
    const others = Array.from({ length: 63 }, (_, index) => asks({ cpu: `${String(index + 1)}m` }));
    const again = asks({ cpu: '1' });
    for (const request of [again, ...others, again, asks({ cpu: '900m' })]) capacity.fits(request);
    expect(capacity.roomForShapes()).toContainEqual({ requests: { cpu: '1' }, slots: expect.any(Number) });
  });
});
