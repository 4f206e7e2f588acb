import { describe, expect, it } from 'vitest';
import { memberClusterSchema, type MemberCluster } from '../../src/api/member-cluster.ts';
import { formatAmounts } from '../../src/kube/amounts.ts';
import { CapacityTracker } from '../../src/capacity/capacity-tracker.ts';
import { poolFacts } from '../../src/capacity/pool-facts.ts';
import { poolsOf } from '../../src/capacity/pool.ts';
import { memberNode } from '../fixtures/member-nodes.ts';

describe('poolFacts', () => {
  it('copies labels on which all nodes agree, except those that speak of one node or of Kubernetes itself', () => {
    const labels = {
      'node.kubernetes.io/instance-type': 'm5.large',
      'topology.kubernetes.io/region': 'eu',
      'failure-domain.beta.kubernetes.io/region': 'eu',
      'beta.kubernetes.io/arch': 'amd64',
      'node-role.kubernetes.io/worker': '',
      'node-restriction.kubernetes.io/team': 'x',
      'kops.k8s.io/instancegroup': 'nodes',
      'example.com/disk': 'ssd',
      'spillway.dev/x': 'y',
      type: 'virtual-kubelet',
      pool: 'blue',
    };
    const facts = poolFacts([
      memberNode('n1', { labels: { ...labels, 'topology.kubernetes.io/zone': 'a', rack: '1', only: 'here' } }),
      memberNode('n2', { labels: { ...labels, 'topology.kubernetes.io/zone': 'b', rack: '2' } }),
    ]);
    expect(facts.labels).toEqual({
      'beta.kubernetes.io/arch': 'amd64',
      'example.com/disk': 'ssd',
      'failure-domain.beta.kubernetes.io/region': 'eu',
      'node.kubernetes.io/instance-type': 'm5.large',
      pool: 'blue',
    });
    expect(facts).toMatchObject({ os: 'linux', arch: 'amd64', region: 'eu', zone: undefined });
  });

  it('does not copy the name of the only node', () => {
    const facts = poolFacts([memberNode('n1', { labels: { 'example.com/instance': 'n1', pool: 'blue' } })]);
    expect(facts.labels).toEqual({ pool: 'blue' });
  });

  it('shows versions as most nodes have them, and no identifiers of machines', () => {
    const facts = poolFacts([
      memberNode('n1', { nodeInfo: { kubeletVersion: 'v1.36.3' } }),
      memberNode('n2', { nodeInfo: { kubeletVersion: 'v1.35.1', kernelVersion: '5' } }),
      memberNode('n3', { nodeInfo: { kubeletVersion: 'v1.36.3', kernelVersion: '6' } }),
    ]);
    expect(facts.nodeInfo).toEqual({
      machineID: '',
      systemUUID: '',
      bootID: '',
      kernelVersion: '5',
      osImage: 'Debian',
      containerRuntimeVersion: 'containerd://1.6.20',
      kubeletVersion: 'v1.36.3',
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: 'amd64',
    });
  });

  it('takes the architecture of most nodes', () => {
    const arm = { labels: { 'kubernetes.io/arch': 'arm64' } };
    expect(poolFacts([memberNode('a', arm), memberNode('b'), memberNode('c', arm)]).arch).toBe('arm64');
  });

  it('knows nothing without nodes', () => {
    expect(poolFacts([])).toEqual({
      os: undefined,
      arch: undefined,
      region: undefined,
      zone: undefined,
      labels: {},
      nodeInfo: undefined,
      declaredFeatures: [],
    });
  });

  it('does not change when nodes fail or are cordoned, but leaves out nodes that are not for us', () => {
    const t = new CapacityTracker({
      pools: [
        { virtualNode: 'east', nodeSelector: {}, taints: [], excluded: {}, headroom: new Map(), caps: new Map() },
      ],
    });
    t.setNode(memberNode('n1', { labels: { pool: 'blue' } }));
    t.setNode(memberNode('n2', { labels: { pool: 'green' } }));
    t.setNode(
      memberNode('cp', {
        labels: { role: 'control' },
        taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
      }),
    );
    expect(t.facts('east')?.labels).toEqual({});
    const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' as const };
    t.setNode(memberNode('n2', { labels: { pool: 'green' }, ready: 'False', taints: [notReady] }));
    expect(t.facts('east')?.labels).toEqual({});
    t.setNode(memberNode('n2', { labels: { pool: 'blue' }, ready: 'False', taints: [notReady] }));
    expect(t.facts('east')?.labels).toEqual({ pool: 'blue' });
    t.setNode(memberNode('n1', { labels: { pool: 'blue' }, declaredFeatures: ['A', 'B'] }));
    expect(t.facts('east')?.declaredFeatures).toEqual([]);
    t.setNode(memberNode('n2', { labels: { pool: 'blue' }, declaredFeatures: ['B'] }));
    expect(t.facts('east')?.declaredFeatures).toEqual(['B']);
  });
});

describe('poolsOf', () => {
  it('makes one pool for a member, or one for each virtual node it lists', () => {
    const member = (spec: object): MemberCluster => ({
      metadata: { name: 'east' },
      ...memberClusterSchema.parse({
        spec: { credentials: { secretRef: { namespace: 'a', name: 'b' } }, ...spec },
      }),
    });
    expect(poolsOf(member({}))).toEqual([
      { virtualNode: 'east', nodeSelector: {}, taints: [], excluded: {}, headroom: new Map(), caps: new Map() },
    ]);
    const [gpu, rest] = poolsOf(
      member({
        virtualNodes: [{ name: 'gpu', nodeSelector: { kind: 'gpu' } }, { name: 'rest' }],
        capacity: { excludeNodes: { matchLabels: { out: 'x' } }, headroom: { cpu: 2 }, caps: { memory: '1Gi' } },
      }),
    );
    expect(gpu).toMatchObject({ virtualNode: 'east-gpu', nodeSelector: { kind: 'gpu' }, excluded: { out: 'x' } });
    expect(rest).toMatchObject({ virtualNode: 'east-rest', nodeSelector: {} });
    expect(formatAmounts(rest?.headroom ?? new Map())).toEqual({ cpu: '2' });
    expect(formatAmounts(rest?.caps ?? new Map())).toEqual({ memory: '1Gi' });
    const dedicated = { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' };
    const soft = { key: 'spot', effect: 'PreferNoSchedule' };
    const [tainted, plain] = poolsOf(
      member({ virtualNodes: [{ name: 'gpu', taints: [dedicated, soft] }, { name: 'rest' }] }),
    );
    expect([tainted?.taints, plain?.taints]).toEqual([[dedicated], []]);
  });
});
