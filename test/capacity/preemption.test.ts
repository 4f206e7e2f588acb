import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HOST_LABEL, NODE_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import { fitRequestOf, type FitRequest } from '../../src/capacity/fit-request.ts';
import { withHostCount } from '../../src/capacity/host-count.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import type { Pool } from '../../src/capacity/pool.ts';
import type { Candidate } from '../../src/capacity/victims.ts';
import { parseAmounts } from '../../src/kube/amounts.ts';
import type { Pod, PodSpec } from '../../src/kube/core-v1.ts';
import { memberNode, memberPod, poolOf } from '../fixtures/member-nodes.ts';

const HOST = 'host-1';

/** Nodes of 8 cores each. */
function member(nodes: readonly string[], pool: Partial<Pool> = {}): MemberCapacity {
  const capacity = new MemberCapacity({ hostId: HOST, pools: [poolOf(pool)] });
  for (const name of nodes)
    capacity.nodeHandler.added(memberNode(name, { labels: { 'kubernetes.io/hostname': name } }));
  return capacity;
}

function asks(cpu: string, more: Partial<PodSpec> = {}): FitRequest {
  const spec = { containers: [{ name: 'c', resources: { requests: { cpu } } }], ...more };
  return fitRequestOf({ metadata: { name: 'asks', namespace: 'default' }, spec }, 'east');
}

function ours(uid: string, cpu: string, nodeName: string | undefined, spec: Partial<PodSpec> = {}): Pod {
  const pod = memberPod(`m-${uid}`, nodeName, { cpu }, { phase: 'Pending' });
  const labels = { [HOST_LABEL]: HOST, [NODE_LABEL]: 'east', [UID_LABEL]: uid, app: 'ours' };
  return { ...pod, metadata: { ...pod.metadata, labels }, spec: { ...pod.spec, ...spec } };
}

const candidate = (uid: string, priority = 0): Candidate => ({ uid, priority, since: 0, budgets: [] });

function victimsOf(
  capacity: MemberCapacity,
  request: FitRequest,
  candidates: readonly Candidate[],
): string[] | undefined {
  return capacity.victims(request, candidates)?.pods.map(({ uid }) => uid);
}

/** Its copy asks for one core, whatever it asks for in the host. */
function lowered(hostCpu: string): FitRequest {
  const hostPod = memberPod('asks', undefined, { cpu: hostCpu });
  return withHostCount(asks('1'), hostPod);
}

test('leave as many as the host counts, where that is more than the member counts, from other nodes, too', () => {
  const capacity = member(['a', 'b']);
  for (let at = 0; at < 8; at += 1) {
    capacity.podHandler.added(ours(`a${String(at)}`, '1', 'a'));
    capacity.podHandler.added(ours(`b${String(at)}`, '1', 'b'));
  }
  const all = [candidate('a0'), ...['a1', 'b0', 'b1', 'b2'].map((uid) => candidate(uid, 1))];
  expect(victimsOf(capacity, lowered('1'), all)).toEqual(['a0']);
  expect(victimsOf(capacity, lowered('3'), all)).toHaveLength(3);
  expect(victimsOf(capacity, lowered('5'), all)).toHaveLength(5);
  expect(victimsOf(capacity, lowered('6'), all)).toBeUndefined();
  // The node that it fits on is there already, but not what the host counts.
  capacity.podHandler.deleted(ours('a7', '1', 'a'));
  expect(capacity.fits(lowered('1')).fits).toBe(true);
  expect(victimsOf(capacity, lowered('3'), all)).toHaveLength(2);
  capacity.podHandler.deleted(ours('b7', '1', 'b'));
  expect(victimsOf(capacity, lowered('2'), all)).toBeUndefined();
  expect(capacity.fits(lowered('2')).fits).toBe(true);
});

test('are none more than are needed, where the host counts more, and budgets count once for all of them', () => {
  const capacity = member(['a']);
  for (const [uid, cpu] of Object.entries({ rest: '1', big: '3', small: '1', A: '1', B: '1', C: '1' }))
    capacity.podHandler.added(ours(uid, cpu, 'a'));
  const sizes = [
    { ...candidate('big'), since: 1 },
    { ...candidate('small'), since: 2 },
  ];
  expect(victimsOf(capacity, lowered('3'), sizes)).toEqual(['big']);
  const budgets = [{ key: 'web', allowed: 1 }];
  const held = [
    { ...candidate('A'), since: 1, budgets },
    { ...candidate('B'), since: 2, budgets },
    { ...candidate('C', 1), since: 3 },
  ];
  const victims = capacity.victims(lowered('2'), held);
  expect(victims?.pods.map(({ uid }) => uid)).toEqual(['C', 'A']);
  expect(victims?.violations).toBe(0);
  expect(victims).toEqual(capacity.victims(asks('2'), held));
});

test('leave one node, not some here and some there', () => {
  const capacity = member(['a', 'b']);
  for (const [uid, node, cpu] of [
    ['a1', 'a', '3'],
    ['a2', 'a', '5'],
    ['b1', 'b', '4'],
    ['b2', 'b', '4'],
  ] as const)
    capacity.podHandler.added(ours(uid, cpu, node));
  const all = ['a1', 'a2', 'b1', 'b2'].map((uid) => candidate(uid));
  const before = capacity.fits(asks('1'));
  expect(victimsOf(capacity, asks('4'), all)).toHaveLength(1);
  expect(victimsOf(capacity, asks('6'), all)).toHaveLength(2);
  expect(victimsOf(capacity, asks('9'), all)).toBeUndefined();
  expect(victimsOf(capacity, asks('4'), [candidate('a1'), candidate('b1', 7), candidate('b2', 7)])).toEqual(['b2']);
  expect(victimsOf(capacity, asks('3'), [candidate('a1'), candidate('b1', 7)])).toEqual(['a1']);
  expect(capacity.fits(asks('1'))).toEqual(before);
});

test('are none where the pod fits, or where what is in its way is not ours to evict', () => {
  const capacity = member(['a']);
  capacity.podHandler.added(memberPod('foreign', 'a', { cpu: '6' }));
  capacity.podHandler.added(ours('a1', '1', 'a'));
  expect(victimsOf(capacity, asks('1'), [candidate('a1')])).toBeUndefined();
  expect(victimsOf(capacity, asks('2'), [candidate('a1')])).toEqual(['a1']);
  expect(victimsOf(capacity, asks('3'), [candidate('a1')])).toBeUndefined();
  const going = ours('a1', '1', 'a');
  capacity.podHandler.updated({ ...going, metadata: { ...going.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(victimsOf(capacity, asks('2'), [candidate('a1')])).toBeUndefined();
  expect(victimsOf(capacity, asks('2', { nodeSelector: { disk: 'ssd' } }), [candidate('a1')])).toBeUndefined();
});

test('are also pods that the member has not been shown yet, or that wait there for their node', () => {
  const capacity = member(['a']);
  capacity.reserve('bound', asks('5'), 'binding');
  capacity.podHandler.added(ours('waits', '3', undefined));
  expect(victimsOf(capacity, asks('2'), [candidate('bound', 5), candidate('waits')])).toEqual(['waits']);
  expect(victimsOf(capacity, asks('5'), [candidate('bound', 5), candidate('waits')])).toEqual(['bound']);
});

test('leave room bit by bit, and nobody else has it meanwhile', () => {
  const capacity = member(['a', 'b']);
  for (const uid of ['a1', 'a2', 'a3', 'a4']) capacity.podHandler.added(ours(uid, '2', 'a'));
  for (const uid of ['b1', 'b2', 'b3', 'b4']) capacity.podHandler.added(ours(uid, '2', 'b'));
  capacity.reserve('core', asks('4'), 'choice', ['a1', 'a2']);
  const fits = (cpu: string): boolean => capacity.fits(asks(cpu)).fits;
  const leave = (uid: string, node: string): void => capacity.podHandler.deleted(ours(uid, '2', node));
  leave('a1', 'a');
  expect(fits('2')).toBe(false);
  // What others leave is anybody's.
  leave('b1', 'b');
  expect([fits('2'), fits('3')]).toEqual([true, false]);
  leave('a2', 'a');
  expect([fits('2'), fits('3')]).toEqual([true, false]);
  leave('a3', 'a');
  capacity.release('core');
  expect([fits('6'), fits('7')]).toEqual([true, false]);
});

test('beside others that leave for somebody else are as few as without him', () => {
  for (const pool of [{}, { caps: parseAmounts({ cpu: '8' }) }, { headroom: parseAmounts({ cpu: '0' }) }]) {
    const capacity = member(['a'], pool);
    const all = ['a1', 'a2', 'a3', 'a4'];
    for (const uid of all) capacity.podHandler.added(ours(uid, '2', 'a'));
    capacity.reserve('core', asks('4'), 'choice', ['a1', 'a2']);
    const [, , ...others] = all.map((uid) => candidate(uid));
    expect(victimsOf(capacity, asks('2'), others)).toHaveLength(1);
    expect(victimsOf(capacity, asks('4'), others)).toHaveLength(2);
    expect(victimsOf(capacity, asks('5'), others)).toBeUndefined();
    // Whether they are already on their way the host may not show yet: then they go as well, and no others in their place.
    expect(
      victimsOf(
        capacity,
        asks('4'),
        all.map((uid) => candidate(uid)),
      ),
    ).toHaveLength(4);
    capacity.podHandler.deleted(ours('a1', '2', 'a'));
    expect(victimsOf(capacity, asks('4'), others)).toHaveLength(2);
    capacity.podHandler.deleted(ours('a2', '2', 'a'));
    expect(victimsOf(capacity, asks('4'), others)).toHaveLength(2);
  }
});

test('leave once, though two pods wait for what they leave', () => {
  for (const pool of [{}, { caps: parseAmounts({ cpu: '8' }) }]) {
    const capacity = member(['a'], pool);
    for (const uid of ['a1', 'a2', 'a3', 'a4']) capacity.podHandler.added(ours(uid, '2', 'a'));
    // The second came before the first, and takes what was left for it.
    capacity.reserve('first', asks('2'), 'choice', ['a1']);
    capacity.reserve('second', asks('2', { hostNetwork: true }), 'choice', ['a1']);
    const others = ['a3', 'a4'].map((uid) => candidate(uid));
    expect(victimsOf(capacity, asks('2'), others)).toHaveLength(2);
    expect(victimsOf(capacity, asks('4'), others)).toBeUndefined();
  }
});

test('are wherever they are, where only a cap is in the way', () => {
  const capacity = member(['a', 'b'], { caps: parseAmounts({ cpu: '6' }) });
  capacity.podHandler.added(ours('a1', '2', 'a'));
  capacity.podHandler.added(ours('b1', '4', 'b'));
  expect(victimsOf(capacity, asks('2'), [candidate('a1', 5), candidate('b1')])).toEqual(['b1']);
  expect(victimsOf(capacity, asks('2'), [candidate('a1', 5)])).toEqual(['a1']);
  expect(victimsOf(capacity, asks('5'), [candidate('a1', 5)])).toBeUndefined();
  // No node alone has pods enough for that.
  const both = member(['a', 'b'], { caps: parseAmounts({ cpu: '6' }) });
  for (const node of ['a', 'b']) both.podHandler.added(ours(`${node}1`, '3', node));
  expect(victimsOf(both, asks('5'), [candidate('a1'), candidate('b1')])?.toSorted()).toEqual(['a1', 'b1']);
});

test('are on no node whose other pods keep the new one away', () => {
  const capacity = member(['a', 'b']);
  const affinity = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: { app: 'ours' } }, topologyKey: 'kubernetes.io/hostname' },
      ],
    },
  };
  capacity.podHandler.added(ours('a1', '8', 'a'));
  capacity.podHandler.added(ours('b1', '7', 'b'));
  capacity.podHandler.added(ours('b2', '1', 'b'));
  expect(victimsOf(capacity, asks('4', { affinity }), [candidate('a1', 9), candidate('b1')])).toEqual(['a1']);
});

test('make room, all of them are needed, and asking changes nothing', () => {
  const one = fc.record({
    node: fc.constantFrom('a', 'b', 'c', undefined),
    cpu: fc.integer({ min: 1, max: 5 }),
    priority: fc.nat(4),
    foreign: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(one, { maxLength: 12 }), fc.integer({ min: 1, max: 9 }), (list, cpu) => {
      const capacity = member(['a', 'b', 'c']);
      const pods = list.map(({ node, cpu: size, foreign }, index) =>
        foreign ? memberPod(`foreign-${index}`, node, { cpu: String(size) }) : ours(`u${index}`, String(size), node),
      );
      for (const pod of pods) capacity.podHandler.added(pod);
      const candidates = list.flatMap(({ foreign, priority }, index) =>
        foreign ? [] : [candidate(`u${index}`, priority)],
      );
      const request = asks(String(cpu));
      const room = capacity.slots(asks('1'), 1_000);
      const victims = victimsOf(capacity, request, candidates);
      expect(capacity.slots(asks('1'), 1_000)).toBe(room);
      if (capacity.fits(request).fits) {
        expect(victims).toBeUndefined();
        return;
      }
      const gone = (uids: readonly string[]): boolean => {
        const then = member(['a', 'b', 'c']);
        for (const pod of pods) {
          if (!uids.includes(pod.metadata.labels?.[UID_LABEL] ?? '')) then.podHandler.added(pod);
        }
        return then.fits(request).fits;
      };
      // What waits for its node is not where it is said to be, so it is not counted with.
      if (list.some(({ node }) => node === undefined)) return;
      expect(victims === undefined).toBe(!gone(candidates.map(({ uid }) => uid)));
      if (victims === undefined) return;
      expect(gone(victims)).toBe(true);
      for (const uid of victims) expect(gone(victims.filter((other) => other !== uid))).toBe(false);
    }),
  );
});
