import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { parseAmounts } from '../../src/kube/amounts.ts';
import { poolFacts } from '../../src/capacity/pool-facts.ts';
import { whyNotInPool } from '../../src/capacity/eligible-nodes.ts';
import type { Pool } from '../../src/capacity/pool.ts';
import { FedTracker, offerFromScratch } from '../fixtures/fed-tracker.ts';
import { memberNode, memberPod, poolOf } from '../fixtures/member-nodes.ts';

const HOST = 'host-1';
const tracker = (...pools: Pool[]) => new FedTracker(HOST, pools.length === 0 ? [poolOf()] : pools);
const cpu = (t: FedTracker) => t.offer('east')?.allocatable['cpu'];

describe('CapacityTracker', () => {
  it('offers what nodes have left beside others, and what our own pods hold', () => {
    const t = tracker();
    t.setNode(memberNode('n1'));
    t.setNode(memberNode('n2'));
    expect(t.offer('east')).toEqual({
      capacity: { cpu: '20', memory: '40Gi', pods: '220' },
      allocatable: { cpu: '16', memory: '32Gi', pods: '220' },
      nodes: { total: 2, eligible: 2 },
    });
    t.setPod(memberPod('other', 'n1', { cpu: '3', memory: '1Gi' }));
    t.setPod(memberPod('mine', 'n1', { cpu: '2', memory: '1Gi' }, { virtualNode: 'east' }));
    expect(t.offer('east')?.allocatable).toEqual({ cpu: '13', memory: '31Gi', pods: '219' });
    t.deletePod(memberPod('other', 'n1', {}));
    expect(t.offer('east')?.allocatable).toEqual({ cpu: '16', memory: '32Gi', pods: '220' });
  });

  it('counts pods of other hosts and other virtual nodes as others', () => {
    const t = tracker();
    t.setNode(memberNode('n1'));
    t.setPod(memberPod('a', 'n1', { cpu: '1' }, { virtualNode: 'east', host: 'another-host' }));
    t.setPod(memberPod('b', 'n1', { cpu: '1' }, { virtualNode: 'west' }));
    expect(cpu(t)).toBe('6');
  });

  it('lets an overcommitted node take nothing from the others', () => {
    const t = tracker();
    t.setNode(memberNode('n1'));
    t.setNode(memberNode('n2'));
    t.setPod(memberPod('huge', 'n1', { cpu: '50' }));
    expect(cpu(t)).toBe('8');
  });

  it('lets finished and unbound pods hold nothing', () => {
    const t = tracker();
    t.setNode(memberNode('n1'));
    t.setPod(memberPod('waiting', undefined, { cpu: '4' }, { phase: 'Pending' }));
    t.setPod(memberPod('job', 'n1', { cpu: '4' }));
    expect(cpu(t)).toBe('4');
    t.setPod(memberPod('job', 'n1', { cpu: '4' }, { phase: 'Succeeded' }));
    expect(cpu(t)).toBe('8');
    t.setPod(memberPod('job2', 'n1', { cpu: '4' }, { phase: 'Failed' }));
    expect(cpu(t)).toBe('8');
    expect(t.offer('east')?.allocatable['pods']).toBe('110');
  });

  it('keeps the room of the other nodes when a node with our pods is cordoned', () => {
    const t = tracker();
    t.setNode(memberNode('n1'));
    t.setNode(memberNode('n2'));
    t.setPod(memberPod('mine', 'n1', { cpu: '6' }, { virtualNode: 'east' }));
    t.setNode(memberNode('n1', { unschedulable: true }));
    // n2 is empty: the host, which subtracts the 6 itself, must see 8 free.
    expect(cpu(t)).toBe('14');
    expect(t.offer('east')?.nodes).toEqual({ total: 2, eligible: 1 });
  });

  it.each([
    ['not Ready', memberNode('n2', { ready: 'False' })],
    ['of unknown state', memberNode('n2', { ready: 'Unknown' })],
    ['cordoned', memberNode('n2', { unschedulable: true })],
    ['tainted NoSchedule', memberNode('n2', { taints: [{ key: 'x', effect: 'NoSchedule' }] })],
    ['tainted NoExecute', memberNode('n2', { taints: [{ key: 'x', effect: 'NoExecute' }] })],
    ['going away', memberNode('n2', { deleting: true })],
    ['excluded', memberNode('n2', { labels: { keep: 'out', also: 'this' } })],
    ['a virtual node itself', memberNode('n2', { labels: { 'spillway.dev/node': 'far' } })],
  ])('leaves out a node that is %s', (_, node) => {
    const t = tracker(poolOf({ excluded: { keep: 'out', also: 'this' } }));
    t.setNode(memberNode('n1', { labels: { keep: 'out' } }));
    t.setNode(node);
    expect(cpu(t)).toBe('8');
    expect(t.offer('east')?.nodes.eligible).toBe(1);
  });

  it('counts a node that is only tainted PreferNoSchedule', () => {
    const t = tracker();
    t.setNode(memberNode('n1', { taints: [{ key: 'x', effect: 'PreferNoSchedule' }] }));
    expect(cpu(t)).toBe('8');
  });

  it('divides nodes into pools by label, and follows new pools', () => {
    const gpu = poolOf({ virtualNode: 'east-gpu', nodeSelector: { kind: 'gpu' } });
    const t = tracker(poolOf({ nodeSelector: { kind: 'plain' } }), gpu);
    t.setNode(memberNode('n1', { labels: { kind: 'plain' } }));
    const gpus = { cpu: '8', memory: '16Gi', pods: '110', 'nvidia.com/gpu': '4' };
    t.setNode(memberNode('n2', { labels: { kind: 'gpu' }, allocatable: gpus, capacity: gpus }));
    t.setPod(memberPod('train', 'n2', { 'nvidia.com/gpu': '4', cpu: '1' }));
    expect(t.offer('east')?.allocatable).toEqual({ cpu: '8', memory: '16Gi', pods: '110' });
    expect(t.offer('east-gpu')?.allocatable).toEqual({ cpu: '7', memory: '16Gi', pods: '109', 'nvidia.com/gpu': '0' });
    expect(t.offer('west')).toBeUndefined();
    t.setPools([poolOf()]);
    expect(t.offer('east-gpu')).toBeUndefined();
    expect(t.offer('east')?.allocatable['cpu']).toBe('15');
  });

  it('keeps headroom and caps, and never goes below nothing', () => {
    const headroom = parseAmounts({ cpu: '3', memory: '100Gi' });
    const caps = parseAmounts({ cpu: '10', 'example.com/licence': '5' });
    const t = tracker(poolOf({ headroom, caps }));
    t.setNode(memberNode('n1', { allocatable: { cpu: '8', memory: '16Gi', pods: '110', 'example.com/licence': '9' } }));
    expect(t.offer('east')).toEqual({
      allocatable: { cpu: '5', memory: '0', pods: '110', 'example.com/licence': '5' },
      capacity: { cpu: '10', memory: '20Gi', pods: '110', 'example.com/licence': '5' },
      nodes: { total: 1, eligible: 1 },
    });
    t.setNode(memberNode('n2'));
    expect(t.offer('east')).toMatchObject({ allocatable: { cpu: '10' }, capacity: { cpu: '10' } });
  });

  it('always names cpu, memory and pods', () => {
    expect(tracker().offer('east')).toEqual({
      allocatable: { cpu: '0', memory: '0', pods: '0' },
      capacity: { cpu: '0', memory: '0', pods: '0' },
      nodes: { total: 0, eligible: 0 },
    });
  });

  it('tells of what changes an answer, and of nothing else', () => {
    let calls = 0;
    const t = new FedTracker(HOST, [poolOf()], () => (calls += 1));
    t.setNode(memberNode('n1'));
    t.setPod(memberPod('a', 'n1', { cpu: '1' }));
    t.setPod(memberPod('b', 'n1', { cpu: '1' }));
    expect(calls).toBe(3);
    // A heartbeat and a status that change no amount are no change.
    const again = memberNode('n1');
    again.status?.conditions?.push({ type: 'MemoryPressure', status: 'False', lastHeartbeatTime: 'now' });
    t.setNode(again);
    t.setPod({ ...memberPod('a', 'n1', { cpu: '1' }), status: { phase: 'Running', podIP: '10.0.0.1' } });
    t.setPod(memberPod('unbound', undefined, { cpu: '1' }));
    t.deletePod(memberPod('unknown', 'n1', {}));
    t.deleteNode('unknown');
    expect(calls).toBe(3);
    t.deletePod(memberPod('a', 'n1', {}));
    t.setPools([poolOf({ virtualNode: 'other' })]);
    expect(calls).toBe(5);
  });
});

describe('capacity does not drift', () => {
  const big = { allocatable: { cpu: '100', memory: '100Gi', pods: '110' } };

  it('counts a node that registers NotReady and turns Ready once', () => {
    const t = tracker();
    t.setNode(memberNode('n1', big));
    t.setNode(memberNode('n2', big));
    for (let flip = 0; flip < 3; flip += 1) {
      t.setNode(memberNode('n3', { ...big, ready: 'False' }));
      expect(cpu(t)).toBe('200');
      t.setNode(memberNode('n3', big));
      expect(cpu(t)).toBe('300');
    }
  });

  it('takes a node off once that is cordoned, turns NotReady and is deleted', () => {
    const t = tracker();
    for (const name of ['n1', 'n2', 'n3']) t.setNode(memberNode(name, big));
    t.setNode(memberNode('n1', { ...big, unschedulable: true }));
    expect(cpu(t)).toBe('200');
    t.setNode(memberNode('n1', { ...big, unschedulable: true, ready: 'Unknown' }));
    expect(cpu(t)).toBe('200');
    t.deleteNode('n1');
    t.deleteNode('n1');
    expect(cpu(t)).toBe('200');
    t.deleteNode('n2');
    t.deleteNode('n3');
    expect(cpu(t)).toBe('0');
  });

  it('arrives at the same after a restart, our own pods running', () => {
    const nodes = [memberNode('n1', big), memberNode('n2', big)];
    const pods = [
      memberPod('other', 'n1', { cpu: '30' }),
      memberPod('mine', 'n2', { cpu: '40' }, { virtualNode: 'east' }),
    ];
    const before = tracker();
    nodes.forEach((node) => before.setNode(node));
    pods.forEach((pod) => before.setPod(pod));
    const after = tracker();
    pods.toReversed().forEach((pod) => after.setPod(pod));
    nodes.toReversed().forEach((node) => after.setNode(node));
    expect(after.offer('east')).toEqual(before.offer('east'));
    expect(cpu(after)).toBe('170');
  });

  it('equals a computation from scratch after any events, in any order', () => {
    const nodeNames = fc.constantFrom('n1', 'n2', 'n3', 'n4');
    const quantity = fc.constantFrom('0', '1', '250m', '3', '10');
    const list = fc.record(
      {
        cpu: quantity,
        memory: fc.constantFrom('1Gi', '512Mi', '3e9', '0'),
        // The API takes whole numbers only.
        'nvidia.com/gpu': fc.constantFrom('0', '1', '3', '10'),
      },
      { requiredKeys: [] },
    );
    const node = fc
      .record({
        name: nodeNames,
        ready: fc.constantFrom('True' as const, 'False' as const, 'Unknown' as const),
        unschedulable: fc.boolean(),
        allocatable: list,
        labels: fc.dictionary(fc.constantFrom('kind', 'out', 'zone'), fc.constantFrom('a', 'b')),
        taints: fc.array(
          fc.record({
            key: fc.constant('t'),
            effect: fc.constantFrom('NoSchedule' as const, 'PreferNoSchedule' as const),
          }),
          { maxLength: 1 },
        ),
      })
      .map(({ name, ...parts }) => memberNode(name, { ...parts, capacity: parts.allocatable }));
    const pod = fc
      .record({
        name: fc.constantFrom('p1', 'p2', 'p3', 'p4', 'p5', 'p6'),
        generation: fc.constantFrom('1', '2'),
        node: fc.option(nodeNames, { nil: undefined }),
        requests: list,
        virtualNode: fc.constantFrom(undefined, 'all', 'some', 'elsewhere'),
        phase: fc.constantFrom('Pending' as const, 'Running' as const, 'Succeeded' as const),
      })
      .map(({ name, generation, node: at, requests, virtualNode, phase }) =>
        memberPod(name, at, requests, {
          phase,
          uid: `${name}-${generation}`,
          ...(virtualNode === undefined ? {} : { virtualNode }),
        }),
      );
    const event = fc.oneof(
      fc.record({ kind: fc.constant('node' as const), node }),
      fc.record({ kind: fc.constant('pod' as const), pod }),
      fc.record({ kind: fc.constant('deleteNode' as const), name: nodeNames }),
      fc.record({ kind: fc.constant('deletePod' as const), pod }),
      fc.record({ kind: fc.constant('ask' as const) }),
    );
    const pools = [
      poolOf({ virtualNode: 'all', headroom: parseAmounts({ cpu: '2' }) }),
      poolOf({
        virtualNode: 'some',
        nodeSelector: { kind: 'a' },
        excluded: { out: 'a' },
        caps: parseAmounts({ cpu: '7' }),
      }),
      poolOf({ virtualNode: 'tainted', taints: [{ key: 't', effect: 'NoSchedule' }] }),
      poolOf({
        virtualNode: 'both',
        nodeSelector: { zone: 'a' },
        taints: [{ key: 't', value: '', effect: 'NoSchedule' }],
      }),
    ];
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const t = tracker(...pools);
        const nodes = new Map<string, Node>();
        const pods = new Map<string, Pod>();
        const check = (): void => {
          for (const one of pools) {
            expect(t.offer(one.virtualNode)).toEqual(offerFromScratch(nodes.values(), pods.values(), one, HOST, pools));
            const inPool = [...nodes.values()].filter((n) => whyNotInPool(n, one, pools) === undefined);
            expect(t.facts(one.virtualNode)).toEqual(poolFacts(inPool));
          }
        };
        for (const e of events) {
          switch (e.kind) {
            case 'node':
              t.setNode(e.node);
              nodes.set(e.node.metadata.name, e.node);
              break;
            case 'pod':
              t.setPod(e.pod);
              pods.set(e.pod.metadata.uid ?? '', e.pod);
              break;
            case 'deleteNode':
              t.deleteNode(e.name);
              nodes.delete(e.name);
              break;
            case 'deletePod':
              t.deletePod(e.pod);
              pods.delete(e.pod.metadata.uid ?? '');
              break;
            case 'ask':
              check();
              break;
          }
        }
        check();
        for (const one of pools) {
          for (const quantityText of Object.values(t.offer(one.virtualNode)?.allocatable ?? {})) {
            expect(quantityText.startsWith('-')).toBe(false);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
