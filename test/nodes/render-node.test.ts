import type { Taint } from '../../src/kube/core-v1.ts';
import { describe, expect, it } from 'vitest';
import { poolFacts } from '../../src/capacity/pool-facts.ts';
import { renderNode, type NodeFacts } from '../../src/nodes/render-node.ts';
import { memberNode } from '../fixtures/member-nodes.ts';

const facts = (parts: Partial<NodeFacts> = {}): NodeFacts => ({
  name: 'east-gpu',
  member: 'east',
  spec: { zones: [], labels: {}, taints: [], taintMode: 'NoSchedule', unschedulable: false },
  pool: poolFacts([memberNode('n1', { labels: { pool: 'blue', 'topology.kubernetes.io/zone': 'a' } })]),
  offer: { capacity: { cpu: '10' }, allocatable: { cpu: '8' } },
  memberVersion: 'v1.36.3',
  address: '192.0.2.7',
  kubeletPort: 10_250,
  reachable: true,
  ...parts,
});
const spec = (parts: Partial<NodeFacts['spec']>): NodeFacts['spec'] => ({ ...facts().spec, ...parts });

describe('renderNode', () => {
  it('makes a node of the labels that its pool shares and of our own', () => {
    expect(renderNode(facts())).toMatchObject({
      name: 'east-gpu',
      providerID: 'spillway://east/east-gpu',
      labelsComplete: true,
      labels: {
        'kubernetes.io/hostname': 'east-gpu',
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'topology.kubernetes.io/zone': 'a',
        'node.kubernetes.io/exclude-from-external-load-balancers': 'true',
        'spillway.dev/node': 'east-gpu',
        'spillway.dev/member': 'east',
        type: 'virtual-kubelet',
        pool: 'blue',
      },
      taints: [{ key: 'spillway.dev/virtual-node', effect: 'NoSchedule' }],
      unschedulable: false,
      addresses: [{ type: 'InternalIP', address: '192.0.2.7' }],
      kubeletPort: 10_250,
      capacity: { cpu: '10' },
      allocatable: { cpu: '8' },
      nodeInfo: { kubeletVersion: 'v1.36.3', machineID: '' },
    });
  });

  it('is Ready and reports no pressure, with the network there', () => {
    const conditions = renderNode(facts()).conditions.map(({ type, status }) => [type, status]);
    expect(conditions).toEqual([
      ['Ready', 'True'],
      ['MemoryPressure', 'False'],
      ['DiskPressure', 'False'],
      ['PIDPressure', 'False'],
      ['NetworkUnavailable', 'False'],
      ['spillway.dev/MemberReachable', 'True'],
    ]);
  });

  it('takes region and zone from the MemberCluster first, a zone only when there is one', () => {
    const labels = (parts: Partial<NodeFacts['spec']>) => renderNode(facts({ spec: spec(parts) })).labels;
    expect(labels({ region: 'eu', zones: ['z1'] })).toMatchObject({
      'topology.kubernetes.io/region': 'eu',
      'topology.kubernetes.io/zone': 'z1',
    });
    expect(labels({ zones: ['z1', 'z2'] })['topology.kubernetes.io/zone']).toBe('a');
    const twoZones = poolFacts([
      memberNode('n1', { labels: { 'topology.kubernetes.io/zone': 'a' } }),
      memberNode('n2', { labels: { 'topology.kubernetes.io/zone': 'b' } }),
    ]);
    expect(renderNode(facts({ pool: twoZones })).labels).not.toHaveProperty('topology.kubernetes.io/zone');
  });

  it('adds the labels and taints that the administrator wants, but keeps its marks', () => {
    const node = renderNode(
      facts({
        spec: spec({
          labels: { pool: 'red', team: 'x', 'kubernetes.io/hostname': 'fake', 'spillway.dev/member': 'fake' },
          taints: [{ key: 'gpu', value: 'yes', effect: 'PreferNoSchedule' }],
        }),
      }),
    );
    expect(node.labels).toMatchObject({
      pool: 'red',
      team: 'x',
      'kubernetes.io/hostname': 'east-gpu',
      'spillway.dev/member': 'east',
    });
    expect(node.taints).toEqual([
      { key: 'spillway.dev/virtual-node', effect: 'NoSchedule' },
      { key: 'gpu', value: 'yes', effect: 'PreferNoSchedule' },
    ]);
  });

  it('shows taints of effect NoExecute as NoSchedule: Kubernetes must not evict all pods at once', () => {
    const taint = (key: string, effect: Taint['effect']): Taint => ({ key, effect });
    const taints = [taint('a', 'NoExecute'), taint('b', 'NoSchedule'), taint('b', 'NoExecute')];
    expect(renderNode(facts({ spec: spec({ taintMode: 'None', taints }) })).taints).toEqual([
      taint('a', 'NoSchedule'),
      taint('b', 'NoSchedule'),
    ]);
  });

  it.each([
    ['PreferNoSchedule' as const, [{ key: 'spillway.dev/virtual-node', effect: 'PreferNoSchedule' }]],
    ['None' as const, []],
  ])('taints by mode %s', (taintMode, taints) => {
    expect(renderNode(facts({ spec: spec({ taintMode }) })).taints).toEqual(taints);
  });

  it('shows a member that does not answer by a taint and a condition, never by Ready', () => {
    const failure = { reason: 'Refused', message: 'connection refused' };
    const node = renderNode(facts({ reachable: false, failure, unreadyInMs: -1 }));
    expect(node.changesInMs).toBeUndefined();
    expect(node.taints).toContainEqual({ key: 'spillway.dev/member-unreachable', effect: 'NoSchedule' });
    expect(node.undecidedTaints).toEqual([]);
    expect(node.conditions.find(({ type }) => type === 'Ready')?.status).toBe('True');
    expect(node.conditions.at(-1)).toEqual({
      type: 'spillway.dev/MemberReachable',
      status: 'False',
      reason: 'ProbeFailed',
      message:
        'cluster "east" does not answer: connection refused. It takes no new pods until it does; running ones stay',
    });
  });

  it.each([
    ['Timeout', 'member-unreachable'],
    ['Refused', 'member-unreachable'],
    ['ConnectionReset', 'member-unreachable'],
    ['NameNotFound', 'member-unreachable'],
    ['ProxyFailed', 'member-unreachable'],
    ['TLSVerifyFailed', 'member-unreachable'],
    ['NotAKubernetesAPI', 'member-unreachable'],
    ['Unauthorized', 'member-unreachable'],
    ['Forbidden', 'member-unreachable'],
    ['ServerError', 'member-not-ready'],
    ['TooManyRequests', 'member-not-ready'],
    ['ProbeFailed', 'member-not-ready'],
    ['WatchStale', 'member-not-ready'],
    ['CredentialPluginFailed', 'member-not-ready'],
  ])('has one taint for a member that fails with %s: %s', (reason, key) => {
    const { taints } = renderNode(
      facts({ spec: spec({ taintMode: 'None' }), reachable: false, failure: { reason, message: 'x' } }),
    );
    expect(taints).toEqual([{ key: `spillway.dev/${key}`, effect: 'NoSchedule' }]);
  });

  it('has no such taint for a failure that does not count yet', () => {
    const failure = { reason: 'ServerError', message: 'x' };
    expect(renderNode(facts({ spec: spec({ taintMode: 'None' }), failure })).taints).toEqual([]);
  });

  describe('of a member with which it is to fail', () => {
    const failing = (parts: Partial<NodeFacts>) => {
      const node = renderNode(facts({ failsWithMember: true, ...parts }));
      return { ready: node.conditions.find(({ type }) => type === 'Ready'), changesInMs: node.changesInMs };
    };
    const lost = { reachable: false, failure: { reason: 'Timeout', message: 'No answer within 5 s' } };

    it('is Ready while that is reachable', () => {
      expect(failing({})).toMatchObject({ ready: { status: 'True', reason: 'KubeletReady' }, changesInMs: undefined });
    });

    it.each([
      ['Timeout', 'Unknown', 'MemberUnreachable', 'cluster "east" does not answer (Timeout; see'],
      ['Unauthorized', 'Unknown', 'MemberUnreachable', 'cluster "east" does not answer (Unauthorized; see'],
      ['ServerError', 'False', 'MemberNotReady', 'cluster "east" cannot serve, or cannot be asked (ServerError; see'],
      ['CredentialPluginFailed', 'False', 'MemberNotReady', 'cluster "east" cannot serve, or cannot be asked'],
    ])('is not, once it was out of reach for long enough, for %s: %s', (reason, status, unready, words) => {
      const { ready, changesInMs } = failing({ reachable: false, failure: { reason, message: 'x' }, unreadyInMs: -1 });
      expect(ready).toMatchObject({ status, reason: unready });
      expect(ready?.message).toContain(words);
      expect(ready?.message).toMatch(/spec\.probe\.nodesReady of MemberCluster "east"/);
      expect(ready?.onlyIfAbsent).toBeUndefined();
      expect(changesInMs).toBeUndefined();
    });

    it('stays what it is until then, and says when that will be', () => {
      expect(failing({ ...lost, unreadyInMs: 1_500 })).toMatchObject({
        ready: { status: 'True', onlyIfAbsent: true },
        changesInMs: 1_500,
      });
    });

    it('stays what it is before the first probe: a former process may have found it lost', () => {
      expect(failing({ reachable: undefined }).ready).toMatchObject({ status: 'True', onlyIfAbsent: true });
    });

    it('does not say that running pods stay', () => {
      const { conditions } = renderNode(facts({ ...lost, failsWithMember: true, unreadyInMs: 0 }));
      expect(conditions.at(-1)?.message).toMatch(/takes no new pods until it does$/);
    });
  });

  it('says nothing about a member that was not asked yet', () => {
    const node = renderNode(facts({ reachable: undefined, pool: undefined, offer: undefined }));
    expect(node.undecidedTaints).toEqual(['spillway.dev/member-unreachable', 'spillway.dev/member-not-ready']);
    expect(node.conditions.at(-1)).toMatchObject({ status: 'Unknown', onlyIfAbsent: true });
    expect(node).toMatchObject({
      labelsComplete: false,
      nodeInfo: undefined,
      capacity: undefined,
      allocatable: undefined,
    });
  });

  it('shows the version of the API server for a pool without nodes', () => {
    expect(renderNode(facts({ pool: poolFacts([]) })).nodeInfo).toMatchObject({
      kubeletVersion: 'v1.36.3',
      operatingSystem: 'linux',
    });
  });

  it('declares what all nodes behind it can do; what streams can do is up to the API server they end at', () => {
    const features = (memberVersion: string | undefined, ...nodes: string[][]) => {
      const pool = poolFacts(nodes.map((declaredFeatures, index) => memberNode(`n${index}`, { declaredFeatures })));
      return renderNode(facts({ memberVersion, pool })).declaredFeatures;
    };
    expect(features('v1.36.3', ['A', 'C', 'Z'], ['Z', 'A'])).toEqual(['A', 'ExtendWebSocketsToKubelet', 'Z']);
    expect(features('v1.36.3')).toEqual(['ExtendWebSocketsToKubelet']);
    expect(features('v1.31.0-eks-1', [], ['A'])).toEqual(['ExtendWebSocketsToKubelet']);
    expect(features('2.0')).toEqual(['ExtendWebSocketsToKubelet']);
    expect(features('v1.30.9', ['ExtendWebSocketsToKubelet'])).toEqual([]);
    expect(features('of my own', ['A'])).toEqual(['A']);
    expect(features(undefined, ['A'])).toBeUndefined();
    expect(renderNode(facts({ pool: undefined })).declaredFeatures).toBeUndefined();
  });
});
