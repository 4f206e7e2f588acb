import { describe, expect, it } from 'vitest';
import type { Taint } from '../../src/kube/core-v1.ts';
import { acceptedOf } from '../../src/capacity/accepted-taints.ts';
import { formatAmounts } from '../../src/kube/amounts.ts';
import { whyNotEligible, whyNotInPool } from '../../src/capacity/eligible-nodes.ts';
import type { ElasticGroup } from '../../src/capacity/elastic.ts';
import { fitRequestOf } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import type { Pool } from '../../src/capacity/pool.ts';
import { FedTracker } from '../fixtures/fed-tracker.ts';
import { memberNode, memberPod, type NodeParts } from '../fixtures/member-nodes.ts';

const GPU: Taint = { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' };
const SPOT: Taint = { key: 'spot', effect: 'NoExecute' };
const SOFT: Taint = { key: 'spot', effect: 'PreferNoSchedule' };

const pool = (virtualNode: string, taints: Taint[] = [], parts: Partial<Pool> = {}): Pool => ({
  virtualNode,
  nodeSelector: {},
  taints: acceptedOf(taints),
  excluded: {},
  headroom: new Map(),
  caps: new Map(),
  ...parts,
});
const node = (...taints: Taint[]) => memberNode('n', { taints });

describe('a node of a pool that accepts taints', () => {
  it.each<[string, Taint[], NodeParts, string | undefined]>([
    ['without any taints', [GPU], {}, undefined],
    ['with the taint', [GPU], { taints: [GPU] }, undefined],
    ['with some of them', [GPU, SPOT], { taints: [SPOT] }, undefined],
    ['with all of them', [GPU, SPOT], { taints: [SPOT, GPU] }, undefined],
    ['with another one besides', [GPU], { taints: [GPU, SPOT] }, 'Tainted'],
    ['with another value', [GPU], { taints: [{ ...GPU, value: 'yes' }] }, 'Tainted'],
    ['with a value where none is accepted', [SPOT], { taints: [{ ...SPOT, value: 'yes' }] }, 'Tainted'],
    ['with an empty value where none is said', [SPOT], { taints: [{ ...SPOT, value: '' }] }, undefined],
    ['without a value where one is accepted', [GPU], { taints: [{ key: GPU.key, effect: 'NoSchedule' }] }, 'Tainted'],
    ['with a harder effect', [GPU], { taints: [{ ...GPU, effect: 'NoExecute' }] }, 'Tainted'],
    ['with a milder one', [SPOT], { taints: [{ ...SPOT, effect: 'NoSchedule' }] }, 'Tainted'],
    ['with a soft taint besides', [GPU], { taints: [GPU, SOFT] }, undefined],
    ['of a pool that accepts a soft one only', [SOFT], { taints: [SPOT] }, 'Tainted'],
    ['of a pool that accepts nothing', [], { taints: [GPU] }, 'Tainted'],
    ['that is cordoned', [GPU], { taints: [GPU], unschedulable: true }, 'Unschedulable'],
    ['that is not Ready', [GPU], { taints: [GPU], ready: 'False' }, 'NotReady'],
    [
      'whose state passes, though the pool says to accept it',
      [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }],
      { taints: [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }] },
      'Tainted',
    ],
  ])('%s', (_, accepted, parts, expected) => {
    expect(whyNotEligible(memberNode('n', parts), pool('east', accepted))).toBe(expected);
  });

  it('stays of the pool while its state passes', () => {
    const full = node(GPU, { key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' });
    expect(whyNotInPool(full, pool('east', [GPU]))).toBeUndefined();
    expect(whyNotEligible(full, pool('east', [GPU]))).toBe('Tainted');
  });
});

describe('pools that could have the same node', () => {
  const general = pool('general');
  const gpu = pool('gpu', [GPU]);
  const spot = pool('gpu-spot', [GPU, SPOT]);
  const inPools = (pools: Pool[], ...taints: Taint[]) =>
    pools.filter((one) => whyNotInPool(node(...taints), one, pools) === undefined).map((one) => one.virtualNode);

  it.each<[string, Pool[], Taint[], string[]]>([
    ['a plain node', [gpu, general, spot], [], ['general']],
    ['one with the taint', [spot, gpu, general], [GPU], ['gpu']],
    ['one with both', [general, gpu, spot], [GPU, SPOT], ['gpu-spot']],
    ['one that only the larger set covers', [general, gpu, spot], [SPOT], ['gpu-spot']],
    ['one that nobody accepts', [general, gpu, spot], [{ key: 'db', effect: 'NoSchedule' }], []],
    ['a plain node without a pool for it', [spot, gpu], [], ['gpu']],
    ['equals: the first', [pool('a', [GPU]), pool('b', [GPU])], [GPU], ['a']],
    ['equals in number: the first', [pool('a', [GPU]), pool('b', [SPOT])], [], ['a']],
    ['pools without taints, as ever', [pool('a'), pool('b')], [], ['a', 'b']],
    ['a nearer pool that selects others', [pool('a', [], { nodeSelector: { x: 'y' } }), gpu], [], ['gpu']],
  ])('%s', (_, pools, taints, expected) => {
    expect(inPools(pools, ...taints)).toEqual(expected);
  });

  it('move it as its taints change, and lose no room by that', () => {
    const t = new FedTracker('host-1', [general, gpu]);
    const cpus = () => ['general', 'gpu'].map((name) => t.offer(name)?.allocatable['cpu']);
    t.setNode(memberNode('plain'));
    t.setNode(node(GPU));
    expect(cpus()).toEqual(['8', '8']);
    t.setPod(memberPod('mine', 'n', { cpu: '3' }, { virtualNode: 'gpu' }));
    expect(cpus()).toEqual(['8', '8']);
    t.setNode(node());
    // The pod is of the one virtual node, the room that it leaves of the other.
    expect(cpus()).toEqual(['13', '3']);
    t.setNode(node(GPU));
    t.setPools([general]);
    expect(cpus()).toEqual(['8', undefined]);
    t.setPools([general, pool('gpu', [SPOT])]);
    expect(cpus()).toEqual(['8', '3']);
  });
});

describe('a member with tainted nodes', () => {
  const gpus = { cpu: '8', memory: '16Gi', pods: '110', 'nvidia.com/gpu': '4' };
  const asks = (requests: Record<string, string>, tolerant: boolean) =>
    fitRequestOf(
      {
        metadata: { name: 'p', namespace: 'shop' },
        spec: {
          containers: [{ name: 'c', resources: { requests } }],
          ...(tolerant ? { tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }] } : {}),
        },
      },
      'gpu',
    );
  const group: ElasticGroup = {
    name: 'more',
    nodeLabels: { group: 'more' },
    taints: [GPU],
    resources: { cpu: '32', 'nvidia.com/gpu': '8', pods: '50' },
    maxNodes: 2,
    leadTimeSeconds: 300,
  };

  it('takes pods that tolerate them, as far as its pool offers room', () => {
    const pools = [pool('general'), pool('gpu', [GPU])];
    const capacity = new MemberCapacity({ hostId: 'host-1', pools });
    capacity.nodeHandler.added(memberNode('plain', { allocatable: { cpu: '4', memory: '8Gi', pods: '110' } }));
    capacity.nodeHandler.added(memberNode('g', { taints: [GPU], allocatable: gpus, capacity: gpus }));
    expect(capacity.tracker.offer('gpu')?.allocatable).toEqual(gpus);
    expect(capacity.tracker.offer('general')?.allocatable).toMatchObject({ cpu: '4' });
    expect(capacity.fits(asks({ 'nvidia.com/gpu': '4' }, true))).toEqual({ fits: true, nodes: 1 });
    expect(capacity.fits(asks({ 'nvidia.com/gpu': '5' }, true))).toMatchObject({ fits: false });
    expect(capacity.fits(asks({ cpu: '8' }, false))).toMatchObject({ fits: false });
    expect(formatAmounts(capacity.largestFreeSlot() ?? new Map())).toMatchObject({ cpu: '8', 'nvidia.com/gpu': '4' });
    capacity.setSpec([pool('general')], []);
    expect(formatAmounts(capacity.largestFreeSlot() ?? new Map())).toMatchObject({ cpu: '4', 'nvidia.com/gpu': '0' });
  });

  it('offers nodes that it can get where their taints are accepted, and nowhere else', () => {
    const pools = [pool('general'), pool('gpu', [GPU])];
    const capacity = new MemberCapacity({ hostId: 'host-1', pools, elastic: [group] });
    expect(capacity.tracker.offer('gpu')?.allocatable).toMatchObject({ cpu: '64', 'nvidia.com/gpu': '16' });
    expect(capacity.tracker.offer('general')?.allocatable).toMatchObject({ cpu: '0', pods: '0' });
    expect(capacity.fits(asks({ 'nvidia.com/gpu': '8' }, true))).toEqual({
      fits: true,
      nodes: 2,
    });
    expect(capacity.fits(asks({ 'nvidia.com/gpu': '8' }, false))).toMatchObject({ fits: false });
    capacity.nodeHandler.added(
      memberNode('g', { taints: [GPU], allocatable: gpus, capacity: gpus, labels: { group: 'more' } }),
    );
    expect(capacity.tracker.offer('gpu')?.allocatable).toMatchObject({ cpu: '40', 'nvidia.com/gpu': '12' });
  });
});
