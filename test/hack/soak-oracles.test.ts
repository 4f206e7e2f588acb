import { describe, expect, it } from 'vitest';
import { providerIdOf } from '../../src/api/provider-id.ts';
import { localCluster } from '../../src/api/cluster.ts';
import type { WorkloadPlacement } from '../../src/api/workload-placement.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { compilePolicy, type CompiledPolicy } from '../../src/placement/policy-selection.ts';
import { policy } from '../placement/policies.ts';
import { triesOf, wronglyAnswered } from '../soak/cheats.ts';
import { pathOf, workload } from '../soak/workloads.ts';
import type { History, Life } from '../soak/history.ts';
import { divisions, escapes, evictions, waiting, whole } from '../soak/oracles.ts';
import { placedIn, type State } from '../soak/state.ts';

/** What the oracles of the soak (test/soak) say of states that break what is promised; east has a node of 8 CPUs. */

const real = (name: string): Node => ({
  metadata: { name },
  spec: {},
  status: { allocatable: { cpu: '8', pods: '110' } },
});
const virtual: Node = {
  metadata: { name: 'east', labels: { 'spillway.dev/member': 'east' } },
  spec: {
    providerID: providerIdOf('east', 'east'),
    taints: [{ key: 'spillway.dev/virtual-node', effect: 'NoSchedule' }],
  },
};

const compiled = (namespace: string, spec: object): CompiledPolicy => {
  const found = compilePolicy(policy('p', spec, namespace));
  if ('placement' in found) return found;
  throw new Error(JSON.stringify(found));
};

interface Parts {
  pods?: readonly Pod[];
  owners?: readonly TypedObject[];
  policies?: readonly CompiledPolicy[];
  placements?: readonly WorkloadPlacement[];
  /** Real nodes of the host. */
  nodes?: readonly Node[];
}

function state(more: Parts): State {
  const owners = new Map((more.owners ?? []).map((one) => [one.metadata.uid ?? '', one]));
  const nodes = new Map([virtual, ...(more.nodes ?? [])].map((node) => [node.metadata.name, node]));
  const pods = more.pods ?? [];
  return {
    pods,
    nodes,
    inMembers: new Map([['east', { nodes: [real('n')], pods: [] }]]),
    clusters: [localCluster(), { ...localCluster(), name: 'east' }],
    policies: more.policies ?? [],
    placements: new Map((more.placements ?? []).map((one) => [one.spec.workload.uid, one])),
    owners,
    labelsOf: new Map(),
    placed: placedIn({ pods, owners, nodes }),
  };
}

const owned = (kind: string, more: { spec?: object; namespace?: string } = {}): TypedObject => {
  const metadata = { name: 'web', namespace: more.namespace ?? 'static', uid: 'u' };
  return { apiVersion: 'apps/v1', kind, metadata, ...(more.spec === undefined ? {} : { spec: more.spec }) };
};
const pod = (name: string, kind: string, more: Partial<Pod> = {}): Pod => ({
  metadata: {
    name,
    namespace: 'static',
    uid: name,
    ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'web', uid: 'u', controller: true }],
  },
  spec: { containers: [{ name: 'main', resources: { requests: { cpu: '1' } } }], nodeName: 'east' },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  ...more,
});

/** What a watch would have shown of these pods. */
function historyOf(...pods: Pod[]): History {
  const lives = pods.map(({ metadata: { uid = '', name, namespace = '', ownerReferences }, spec }): [string, Life] => [
    uid,
    {
      namespace,
      name,
      owner: ownerReferences?.find(({ controller }) => controller === true)?.uid,
      priority: (spec as { priority?: number }).priority ?? 0,
      createdAt: 0,
      node: spec.nodeName,
      boundAt: spec.nodeName === undefined ? undefined : 0,
      disrupted: undefined,
      gone: false,
    },
  ]);
  return { lives: new Map(lives) } as unknown as History;
}

describe('pods that are not there', () => {
  it('are told of, also where there is none at all', () => {
    const of = owned('ReplicaSet', { spec: { replicas: 2 } });
    expect(whole(state({ owners: [of] }))).toEqual({ wrong: ['ReplicaSet static/web has 0 pods of 2'], looked: 1 });
    const leaving = pod('b', 'ReplicaSet');
    leaving.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    const pods = [pod('a', 'ReplicaSet'), leaving];
    expect(whole(state({ owners: [of], pods })).wrong).toEqual(['ReplicaSet static/web has 1 pods of 2']);
    expect(whole(state({ owners: [of], pods: [...pods, pod('c', 'ReplicaSet')] })).wrong).toEqual([]);
  });

  it('are told of a ReplicationController as well', () => {
    const of = { ...owned('ReplicationController', { spec: { replicas: 2 } }), apiVersion: 'v1' };
    expect(whole(state({ owners: [of] })).wrong).toEqual(['ReplicationController static/web has 0 pods of 2']);
  });

  it('are none that are made in turn, while the last one is not Ready', () => {
    const of = (podManagementPolicy: string): TypedObject =>
      owned('StatefulSet', { spec: { replicas: 3, podManagementPolicy } });
    const waits = pod('web-1', 'StatefulSet', { status: { phase: 'Pending' } });
    const pods = [pod('web-0', 'StatefulSet'), waits];
    expect(whole(state({ owners: [of('OrderedReady')], pods })).wrong).toEqual([]);
    expect(whole(state({ owners: [of('Parallel')], pods })).wrong).toHaveLength(1);
    expect(whole(state({ owners: [of('OrderedReady')], pods: pods.slice(0, 1) })).wrong).toHaveLength(1);
  });

  it('are not looked for where a quota holds them back', () => {
    const of = owned('Deployment', { spec: { replicas: 2 ** 31 - 1 }, namespace: 'cheat' });
    expect(whole(state({ owners: [of] }))).toEqual({ wrong: [], looked: 0 });
  });
});

describe('a pod without a node', () => {
  const TOLERATES = { tolerations: [{ operator: 'Exists' as const }] };
  const waits = (more: Partial<Pod> = {}, spec: object = {}): Pod => {
    const { metadata, spec: of } = pod('a', 'ReplicaSet');
    const { nodeName: _, ...rest } = of;
    return { metadata, spec: { ...rest, ...spec }, status: { phase: 'Pending' }, ...more };
  };
  const EAST = compiled('static', {
    resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }],
    placement: { clusterAffinity: { clusterNames: ['east'] } },
  });

  it('waits without a reason where one of the nodes that it may go to has room for it', () => {
    const wrong = (one: Pod, more: Parts = {}): string[] => waiting(state({ pods: [one], ...more })).wrong;
    expect(wrong(waits(), { nodes: [real('local-1')] })).toEqual(['static/a waits though 8 such pods fit on the host']);
    expect(wrong(waits())).toEqual([]);
    expect(wrong(waits({}, TOLERATES), { policies: [EAST] })).toEqual([
      expect.stringMatching(/^static\/a waits though it may go to east \(/),
    ]);
    const containers = [{ name: 'main', resources: { requests: { cpu: '9' } } }];
    expect(wrong(waits({}, { ...TOLERATES, containers }), { policies: [EAST] })).toEqual([]);
    // No virtual node takes it.
    expect(wrong(waits(), { policies: [EAST] })).toEqual([]);
  });

  it('is looked at, as is one that has a node and does not run', () => {
    const one = pod('a', 'ReplicaSet', { status: { phase: 'Pending' } });
    expect(waiting(state({ pods: [one] })).wrong).toEqual([expect.stringMatching(/^static\/a is Pending on east: /)]);
    expect(waiting(state({ pods: [waits()] })).looked).toBe(1);
  });
});

describe('a division', () => {
  const none = new Set<string>();
  const WEIGHTS = [
    { targetCluster: { clusterNames: ['local'] }, weight: 1 },
    { targetCluster: { clusterNames: ['east'] }, weight: 1 },
  ];
  const SETS = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet' }];
  const ruled = (placement: object): CompiledPolicy => compiled('static', { resourceSelectors: SETS, placement });
  const STATIC = ruled({ replicaScheduling: { weightPreference: { staticWeightList: WEIGHTS } } });
  const told = (targets: Record<string, number>): WorkloadPlacement => {
    const clusters = Object.entries(targets).map(([name, target]) => ({ name, target }));
    return { spec: { workload: { uid: 'u' } }, status: { clusters } } as unknown as WorkloadPlacement;
  };
  const onNodes = (...names: string[]): Pod[] =>
    names.map((nodeName, index) => {
      const one = pod(`p${index}`, 'ReplicaSet');
      return { ...one, spec: { ...one.spec, nodeName, tolerations: [{ operator: 'Exists' as const }] } };
    });
  const judged = (
    rules: CompiledPolicy,
    pods: Pod[],
    targets: Record<string, number>,
    disturbed: ReadonlyMap<string, string> = new Map(),
  ): string[] => {
    const owners = [owned('ReplicaSet', { spec: { replicas: pods.length } })];
    const parts = { pods, owners, policies: [rules], placements: [told(targets)], nodes: [real('local-1')] };
    return divisions(state(parts), disturbed, none, none).wrong;
  };

  it('by fixed weights is broken by pods that are elsewhere, and by a WorkloadPlacement that says so', () => {
    const even = { east: 1, local: 1 };
    expect(judged(STATIC, onNodes('east', 'local-1'), even)).toEqual([]);
    expect(judged(STATIC, onNodes('east', 'east'), even)).toEqual([
      expect.stringContaining('ReplicaSet static/web of 2, 0 waiting: east 2, not east 1, local 1'),
    ]);
    expect(judged(STATIC, onNodes('east', 'local-1'), { east: 2 })).toEqual([
      'ReplicaSet static/web of 2: its WorkloadPlacement says east 2, not east 1, local 1',
    ]);
    // Only the plan is compared of those that were disturbed.
    expect(judged(STATIC, onNodes('east', 'east'), even, new Map([['u', 'its policy was edited']]))).toEqual([]);
  });

  it('in tiers is broken by more pods than one may have, and by those where none lets them be', () => {
    const tiers = ruled({
      clusterAffinity: { clusterNames: ['east'], max: '50%', overflowAffinities: [{ clusterNames: ['local'] }] },
    });
    expect(judged(tiers, onNodes('east', 'local-1'), {})).toEqual([]);
    expect(judged(tiers, onNodes('east', 'east'), {})).toEqual([
      'ReplicaSet static/web of 2: 2 in tier 0, which may have 1',
    ]);
    const home = ruled({ clusterAffinity: { clusterNames: ['local'] } });
    expect(judged(home, onNodes('east', 'local-1'), {})).toEqual([
      'ReplicaSet static/web of 2: 1 in east, which its policy does not name',
    ]);
  });

  it('by room is broken by pods that are not where it was to have them, or where the nodes had no more room', () => {
    const byRoom = ruled({ replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } });
    expect(judged(byRoom, onNodes('east', 'local-1'), { east: 1, local: 1 })).toEqual([]);
    expect(judged(byRoom, onNodes('east', 'local-1'), { east: 2 })).toEqual([
      'ReplicaSet static/web of 2: east 1, local 1, and it was to be east 2',
    ]);
    expect(judged(byRoom, onNodes('east', 'east'), { east: 2 })).toEqual([
      expect.stringContaining('east 2, and by the room of the nodes '),
    ]);
  });
});

describe('an eviction', () => {
  const AT = 1_000_000;
  const live = (name: string, more: Partial<Life> = {}): [string, Life] => {
    const { lives } = historyOf(pod(name, 'ReplicaSet'));
    const life = lives.get(name);
    if (life === undefined) throw new Error('it has a life');
    return [name, { ...life, ...more }];
  };
  const evicted = { disrupted: { reason: 'EvictionByEvictionAPI', at: AT }, gone: true };
  const wrong = (lives: [string, Life][], preemptions: [string, string[]][] = [], pods: Pod[] = []): string[] => {
    const sets = new Map(preemptions.map(([uid, victims]) => [uid, new Set(victims)]));
    const known = { lives: new Map(lives) } as unknown as History;
    return evictions(state({ pods }), known, sets, { since: 0, backAt: undefined }).wrong;
  };
  const made = (...victims: string[]): [string, string[]][] => [['high', victims]];

  it('for a more important pod is in vain where that has no node, is no more important, or never was', () => {
    const low = live('low', { priority: 1, gone: true });
    expect(wrong([live('high', { priority: 2 }), low], made('low'))).toEqual([]);
    expect(wrong([live('high', { priority: 2, node: undefined }), low], made('low'))).toEqual([
      '1 pods were evicted for static/high, which waits all the same',
    ]);
    expect(wrong([live('high', { priority: 1 }), low], made('low'))).toEqual([
      'static/low was evicted for high, which is no more important',
    ]);
    expect(wrong([low], made('low'))).toEqual(['pods were evicted for high, which never was']);
  });

  it('is counted apart where others made way behind a virtual node', () => {
    const behindOf = (node: string): number => {
      const lives = new Map([live('high', { priority: 2, node }), live('low', { priority: 1, gone: true })]);
      const sets = new Map(made('low').map(([uid, victims]) => [uid, new Set(victims)]));
      const known = { lives } as unknown as History;
      return evictions(state({ nodes: [real('local-1')] }), known, sets, { since: 0, backAt: undefined }).behind;
    };
    expect([behindOf('east'), behindOf('local-1')]).toEqual([1, 0]);
  });

  it('that moves a pod is in vain where the next one waits, or comes back there', () => {
    const old = live('old', { ...evicted, boundAt: 0 });
    const next = { createdAt: AT + 1_000, boundAt: AT + 2_000 };
    expect(wrong([old, live('next', { ...next, node: 'local-1' })])).toEqual([]);
    expect(wrong([old, live('next', next)])).toEqual(['static/old was moved out of east, and next came there']);
    const open = pod('next', 'ReplicaSet');
    delete open.spec.nodeName;
    expect(wrong([old, live('next', { ...next, node: undefined, boundAt: undefined })], [], [open])).toEqual([
      'static/old was moved out of east, and another one waits',
    ]);
  });
});

describe('a gang', () => {
  const ofGang = (name: string, nodeName: string | undefined): Pod => {
    const { metadata, status } = pod(name, 'ReplicaSet');
    const labels = { 'spillway.dev/gang': 'ring' };
    const spec = { ...pod(name, 'ReplicaSet').spec, tolerations: [{ operator: 'Exists' as const }] };
    delete spec.nodeName;
    return {
      metadata: { ...metadata, labels, annotations: { 'spillway.dev/gang-size': '2' } },
      spec:
        nodeName === undefined ? { ...spec, schedulingGates: [{ name: 'spillway.dev/gang' }] } : { ...spec, nodeName },
      ...(nodeName === undefined ? {} : { status }),
    };
  };
  const wrong = (...pods: Pod[]): string[] => waiting(state({ pods })).wrong;

  it('that is nowhere waits without a reason where there is room for all of it', () => {
    expect(wrong(ofGang('a', undefined), ofGang('b', undefined))).toEqual([
      expect.stringContaining('waits at the gate though east has room'),
      expect.stringContaining('waits at the gate though east has room'),
    ]);
  });

  it('of which one is in a member waits without a reason where the others have room there', () => {
    expect(wrong(ofGang('a', 'east'), ofGang('b', undefined))).toEqual([
      'static/b waits at the gate though others of its gang are in east, with room for 8',
    ]);
    const full = ofGang('b', undefined);
    const [container] = full.spec.containers;
    full.spec = { ...full.spec, containers: [{ ...container, name: 'main', resources: { requests: { cpu: '9' } } }] };
    expect(wrong(ofGang('a', 'east'), full)).toEqual([]);
  });
});

describe('a pod that has to stay on the host', () => {
  const OWNERS = [owned('DaemonSet', { namespace: 'cheat' })];
  const ofOwner = (owner: { apiVersion?: string; kind: string; uid?: string }): Pod => {
    const ownerReferences = [{ apiVersion: 'apps/v1', name: 'web', uid: 'u', controller: true, ...owner }];
    const { spec } = pod('a', 'DaemonSet');
    return { metadata: { name: 'a', namespace: 'cheat', uid: 'a', ownerReferences }, spec };
  };
  const RESIDENCY = compiled('cheat', {
    resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }],
    placement: { clusterAffinity: { clusterNames: ['local'] } },
  });
  const wrong = (one: Pod): string[] => {
    const there = state({ pods: [one], owners: OWNERS, policies: [RESIDENCY] });
    const none = new Set<string>();
    const divided = divisions(there, new Map(), none, none);
    return [...escapes(there, historyOf(one)).wrong, ...divided.wrong];
  };

  it('escaped when it is in a member, also where it names a DaemonSet that is none, or not there', () => {
    for (const owner of [
      { kind: 'ReplicaSet', uid: 'made-up' },
      { kind: 'DaemonSet', uid: 'made-up' },
      { kind: 'DaemonSet', apiVersion: 'example.com/v1', uid: 'made-up' },
    ])
      expect(wrong(ofOwner(owner))).toEqual([
        'cheat/a went to east',
        expect.stringContaining('in east, which its policy does not name'),
      ]);
    expect(wrong(ofOwner({ kind: 'DaemonSet' }))).toEqual([]);
  });
});

describe('what a tenant tries', () => {
  it('is answered wrongly when it is let in, refused, or refused for another reason than it should be', () => {
    const one = { what: 'the place of a gang', refusedWith: 'only Spillway writes this' };
    const other = { what: 'constraints', refusedWith: undefined };
    const answered = (error: string | undefined, of: typeof one | typeof other = one): string[] =>
      wronglyAnswered([{ one: of, error }]);
    expect(answered(undefined)).toEqual(['a pod with the place of a gang was let in']);
    expect(answered('HTTP 500')).toEqual(['a pod with the place of a gang was refused with other words: HTTP 500']);
    expect(answered('HTTP 403', other)).toEqual(['a pod with constraints was refused: HTTP 403']);
    expect([...answered('x: only Spillway writes this'), ...answered(undefined, other)]).toEqual([]);
  });

  it('is to be refused in part, and in part let in', () => {
    const refused = triesOf().filter(({ refusedWith }) => refusedWith !== undefined);
    expect([triesOf().length, refused.length]).toEqual([9, 3]);
  });
});

describe('a workload of the soak', () => {
  it.each([
    ['ReplicationController', '/api/v1/namespaces/limits/replicationcontrollers/one', { selector: { app: 'one' } }],
    ['Deployment', '/apis/apps/v1/namespaces/limits/deployments/one', { selector: { matchLabels: { app: 'one' } } }],
    [
      'CronJob',
      '/apis/batch/v1/namespaces/limits/cronjobs/one',
      { jobTemplate: { spec: { template: expect.anything() } } },
    ],
  ] as const)('of kind %s is as the API server wants it', (kind, path, spec) => {
    const made = { kind, namespace: 'limits', name: 'one' };
    expect(pathOf(made)).toBe(path);
    expect(workload(made, { cpu: '1' }, {})).toMatchObject({ kind, spec });
  });
});
