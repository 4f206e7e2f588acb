import { describe, expect, it } from 'vitest';
import type { WorkloadMigration } from '../../../src/api/workload-migration.ts';
import { MOST_MOMENTS, remember, type History } from '../../../src/cli/ui/history.ts';
import type { PageFacts } from '../../../src/cli/ui/page-facts.ts';
import { closeUp, lookAt } from '../../../src/cli/ui/page-state.ts';
import { plainText } from '../../../src/cli/ui/plain-text.ts';
import type { PlaceView, SafetyView } from '../../../src/cli/ui/view.ts';
import { fleetWorld } from '../../fixtures/fleet-world.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const AT = '2026-03-01T11:55:00Z';
const NOTHING_SEEN: History = new Map();

function facts(changes: Partial<PageFacts> = {}): PageFacts {
  const { policies, ...world } = fleetWorld(NOW);
  return {
    context: 'production',
    namespace: '',
    ...world,
    policies: policies.map((object) => ({ resource: 'placementpolicies', object })),
    missing: [],
    ...changes,
  };
}

const stateOf = (changes: Partial<PageFacts> = {}) => lookAt(facts(changes), NOTHING_SEEN, NOW).state;
const placeOf = (name: string, changes: Partial<PageFacts> = {}): PlaceView | undefined =>
  stateOf(changes).places.find((one) => one.name === name);
const guardOf = (id: string, changes: Partial<PageFacts> = {}): SafetyView | undefined =>
  stateOf(changes).safety.find((one) => one.id === id);

describe('places', () => {
  it('are this cluster, then its members by name', () => {
    expect(stateOf().places.map(({ name }) => name)).toEqual(['local', 'basement', 'frankfurt', 'oregon', 'singapore']);
  });

  it.each<[string, Partial<PlaceView>]>([
    ['local', { isLocal: true, state: 'ready', cpu: { asked: 19, offered: 24 }, nodes: { ready: 3, wanted: 3 } }],
    ['frankfurt', { state: 'ready', region: 'eu-central', provider: 'hetzner', cpu: { asked: 45, offered: 64 } }],
    ['frankfurt', { pods: { running: 24, starting: 3, held: 0, leaving: 0 } }],
    ['oregon', { pods: { running: 7, starting: 2, held: 2, leaving: 0 } }],
    ['singapore', { state: 'cordoned', pods: { running: 3, starting: 0, held: 0, leaving: 2 } }],
    ['basement', { state: 'notReady', why: 'Timeout: no answer within 5 s, the last of 3 probes' }],
  ])('%s', (name, words) => {
    expect(placeOf(name)).toMatchObject(words);
  });

  it.each<[string, string, Partial<PageFacts>, Partial<PlaceView>]>([
    ['no pods', 'oregon', { pods: undefined }, { pods: null, cpu: null, memory: null, state: 'ready' }],
    ['no nodes', 'local', { nodes: undefined }, { pods: null, cpu: null, nodes: null, state: 'unknown' }],
    // A member names its nodes, so pods there are known by the MemberCluster alone.
    [
      'no nodes',
      'oregon',
      { nodes: undefined },
      { pods: { running: 7, starting: 2, held: 2, leaving: 0 }, nodes: null },
    ],
    // Pods of one namespace do not say how full a place is.
    [
      'one namespace',
      'oregon',
      { namespace: 'shop' },
      { cpu: null, pods: { running: 7, starting: 2, held: 2, leaving: 0 } },
    ],
  ])('with %s known, %s', (_what, name, changes, words) => {
    expect(placeOf(name, changes)).toMatchObject(words);
  });

  it('are this cluster alone where members are not known', () => {
    expect(stateOf({ members: undefined }).places.map(({ name }) => name)).toEqual(['local']);
  });

  it('counts nodes of this cluster that are not ready as no room', () => {
    const nodes = fleetWorld(NOW).nodes.map((node) =>
      node.metadata.name === 'node-1' ? { ...node, status: { ...node.status, conditions: [] } } : node,
    );
    expect(placeOf('local', { nodes })).toMatchObject({
      state: 'ready',
      why: '1 of 3 nodes are not ready',
      cpu: { offered: 16 },
    });
  });

  it('takes a real node for what it is, though a MemberCluster would like its name', () => {
    const nodes = fleetWorld(NOW).nodes.map((node) =>
      node.metadata.name === 'oregon'
        ? { ...node, metadata: { name: 'oregon' }, spec: { providerID: 'cloud://x' } }
        : node,
    );
    expect(placeOf('oregon', { nodes })?.pods).toEqual({ running: 0, starting: 0, held: 0, leaving: 0 });
    expect(placeOf('local', { nodes })?.pods).toMatchObject({ running: 26 });
  });
});

describe('guards', () => {
  it.each<[string, number, SafetyView['tone'], RegExp?]>([
    ['members', 1, 'alarm', /^basement Timeout: no answer/],
    ['deletions', 1, 'alarm', /^basement 14 of 20 pods vanished .* confirms/],
    ['paused', 0, 'good'],
    ['stopped', 0, 'good'],
    ['lost', 0, 'good'],
    ['held', 2, 'notice', /^2 pods: MandatorySecretNotFound Secret reports-db does not exist/],
    ['refused', 1, 'notice', /^shop\/Deployment\/search in oregon MemberQuotaExceeded: exceeded quota/],
    ['waiting', 4, 'notice', /^shop\/web-\S+ 0\/7 nodes are available/],
    ['policies', 1, 'notice', /^placementpolicies\/shop\/spread Contradictory: .* member moon/],
    ['leaving', 0, 'good'],
  ])('%s', (id, count, tone, words) => {
    const guard = guardOf(id);
    expect(guard).toMatchObject({ count, tone, unnamed: 0 });
    const [first] = guard?.items ?? [];
    if (words === undefined) expect(first).toBeUndefined();
    else expect(`${first?.what ?? ''} ${first?.says ?? ''}`).toMatch(words);
  });

  it.each<[string, Partial<PageFacts>]>([
    ['members', { members: undefined }],
    ['deletions', { members: undefined }],
    ['paused', { members: undefined }],
    ['stopped', { leases: undefined }],
    ['lost', { pods: undefined }],
    ['held', { pods: undefined }],
    ['waiting', { pods: undefined }],
    ['policies', { policies: undefined }],
    ['refused', { placements: undefined }],
  ])('%s are not known without the right', (id, changes) => {
    expect(guardOf(id, changes)).toMatchObject({ count: null, tone: 'good', items: [] });
  });

  it('say of members whose pods are not moved, as most are lost, what their condition says', () => {
    const message = 'No member answers. It goes on by itself. To go on: kubectl patch membercluster basement';
    const said = { type: 'MovesAllowed', status: 'False', reason: 'MovesPaused', message, lastTransitionTime: AT };
    const members = fleetWorld(NOW).members.map((raw) => {
      const { status = {} } = raw as { status?: { conditions?: object[] } };
      const conditions = [...(status.conditions ?? []), said];
      return raw.metadata.name === 'basement' ? { ...raw, status: { ...status, conditions } } : raw;
    });
    expect(guardOf('paused', { members })).toMatchObject({
      count: 1,
      tone: 'alarm',
      items: [{ what: 'basement', says: message }],
    });
    expect(placeOf('basement', { members })).toMatchObject({ state: 'notReady', movesPaused: message });
    for (const name of ['local', 'oregon']) expect(placeOf(name, { members })?.movesPaused).toBe('');
  });

  it('say that somebody has stopped all moves', () => {
    const annotations = { 'spillway.dev/moves-stopped': 'INC-7' };
    const stopped = { metadata: { name: 'spillway-descheduler', namespace: 'spillway-system', annotations } };
    expect(guardOf('stopped', { leases: [...(fleetWorld(NOW).leases ?? []), stopped] })).toMatchObject({
      count: 1,
      tone: 'alarm',
      items: [{ what: 'all members', says: expect.stringContaining('spillway-descheduler: INC-7)') }],
    });
  });

  it('names twenty of many and counts the rest', () => {
    const [pod] = fleetWorld(NOW).pods;
    if (pod === undefined) throw new Error('no pod');
    const status = { phase: 'Failed' as const, reason: 'MemberPodLost', message: 'gone' };
    const pods = Array.from({ length: 30 }, (_, at) => ({
      ...pod,
      metadata: { ...pod.metadata, name: `p${at}` },
      status,
    }));
    expect(guardOf('lost', { pods })).toMatchObject({ count: 30, unnamed: 10, tone: 'notice' });
    expect(guardOf('lost', { pods })?.items).toHaveLength(20);
  });
});

describe('moves', () => {
  it('are pods that are evicted, released pods, and workloads that are rebalanced', () => {
    const [pod] = fleetWorld(NOW).pods;
    if (pod === undefined) throw new Error('no pod');
    const released = {
      hash: '6d84fc69cd',
      replicaSet: 'web-6d84fc69cd',
      uid: 'web',
      at: '2026-03-01T11:59:00Z',
      ready: 3,
    };
    const metadata = {
      ...pod.metadata,
      name: 'web-released',
      labels: {},
      annotations: { 'spillway.dev/released': JSON.stringify(released) },
      ownerReferences: [],
    };
    const waiting = { ...released, lost: true, at: '2026-03-01T11:00:00Z' };
    const lost = { ...metadata, name: 'web-lost', annotations: { 'spillway.dev/released': JSON.stringify(waiting) } };
    const pods = [...fleetWorld(NOW).pods, { ...pod, metadata }, { ...pod, metadata: lost }];
    const { underWay, lately } = stateOf({ pods });
    expect(underWay.map(({ state, from, pods: count }) => [state, from, count])).toEqual([
      ['leaving', 'singapore', 1],
      ['leaving', 'singapore', 1],
      ['rebalancing', '', 0],
      ['replacing', 'local', 1],
      ['migrating', 'basement', 4],
      ['replacing', 'local', 1],
    ]);
    expect(underWay[5]?.says).toMatch(/^It waits for its member, which was lost: onHeal /);
    expect(underWay[4]).toMatchObject({
      what: 'shop/Deployment/nightly',
      says: 'WorkloadMigration empty-basement moves it to member frankfurt: 2 of 6 have left.',
    });
    expect(underWay[2]).toMatchObject({ what: 'shop/Deployment/search', isPod: false });
    expect(lately).toEqual([
      expect.objectContaining({ state: 'moved', what: 'shop/Deployment/web', from: 'basement', pods: 9 }),
    ]);
  });

  it('are over when the WorkloadMigration is, or is stopped, and none of a dry run or of what stays', () => {
    const [migration] = fleetWorld(NOW).migrations as WorkloadMigration[];
    if (migration === undefined) throw new Error('no migration');
    const { spec, status } = migration;
    const [moved] = status?.workloads ?? [];
    const left = moved === undefined ? [] : [{ ...moved, reason: 'LeftBehind' as const }];
    for (const changes of [
      { status: { ...status, finishTime: '2026-03-01T11:59:00Z' } },
      { status: { ...status, workloads: left } },
      { spec: { ...spec, dryRun: true } },
      { spec: { ...spec, suspend: true } },
    ]) {
      const migrations = [{ ...migration, ...changes }];
      expect(stateOf({ migrations }).underWay.map(({ state }) => state)).not.toContain('migrating');
    }
  });

  it('are over when the WorkloadRebalancer is', () => {
    const rebalancers = fleetWorld(NOW).rebalancers.map((one) => ({
      ...one,
      status: { finishTime: '2026-03-01T11:59:00Z' },
    }));
    expect(stateOf({ rebalancers }).underWay.map(({ state }) => state)).not.toContain('rebalancing');
  });
});

describe('workloads', () => {
  it('are those with pods in members, the largest first, and where their pods are', () => {
    const { workloads } = stateOf();
    expect(workloads?.map(({ name }) => name)).toEqual(['web', 'search', 'nightly', 'reports']);
    expect(workloads?.[0]).toMatchObject({
      key: 'shop/Deployment/web',
      policy: 'PlacementPolicy web',
      places: [
        { cluster: 'local', pods: 11 },
        { cluster: 'frankfurt', pods: 21 },
        { cluster: 'oregon', pods: 7 },
      ],
      waiting: 2,
    });
  });

  it('are not known to who may list neither pods nor WorkloadPlacements', () => {
    expect(stateOf({ pods: undefined, placements: undefined }).workloads).toBeNull();
    expect(stateOf({ placements: undefined }).workloads).toHaveLength(4);
  });

  it('have a history: a moment for each change, and for nothing else', () => {
    const before = lookAt(facts(), NOTHING_SEEN, NOW);
    const once = remember(NOTHING_SEEN, before.workloads, '2026-03-01T12:00:00Z');
    const twice = remember(once, before.workloads, '2026-03-01T12:00:02Z');
    expect(twice.get('shop/Deployment/nightly')).toHaveLength(1);
    // It comes home, and is remembered as long as it has pods.
    const pods = facts().pods?.map((pod) =>
      pod.metadata.name.startsWith('nightly') ? { ...pod, spec: { ...pod.spec, nodeName: 'node-1' } } : pod,
    );
    const home = lookAt(facts({ pods }), twice, NOW + 4_000);
    const then = remember(twice, home.workloads, '2026-03-01T12:00:04Z');
    expect(closeUp(home, then, 'shop/Deployment/nightly')?.history).toEqual([
      { at: '2026-03-01T12:00:00Z', places: [{ cluster: 'basement', pods: 4 }], waiting: 0 },
      { at: '2026-03-01T12:00:04Z', places: [{ cluster: 'local', pods: 4 }], waiting: 0 },
    ]);
    const gone = lookAt(facts({ pods: [] }), then, NOW + 6_000);
    expect(remember(then, gone.workloads, '2026-03-01T12:00:06Z').has('shop/Deployment/nightly')).toBe(false);
  });

  it('forget what is long ago', () => {
    let history = NOTHING_SEEN;
    const [first] = lookAt(facts(), NOTHING_SEEN, NOW).workloads;
    if (first === undefined) throw new Error('no workload');
    for (let waiting = 0; waiting < MOST_MOMENTS + 5; waiting += 1) {
      history = remember(history, [{ ...first, view: { ...first.view, waiting } }], 'now');
    }
    const moments = history.get(first.view.key) ?? [];
    expect(moments).toHaveLength(MOST_MOMENTS);
    expect(moments.at(-1)?.waiting).toBe(MOST_MOMENTS + 4);
  });

  it('close up, with the wanted places, the last decision and each pod', () => {
    const found = closeUp(lookAt(facts(), NOTHING_SEEN, NOW), NOTHING_SEEN, 'shop/Deployment/web');
    expect(found).toMatchObject({
      targets: [
        { cluster: 'local', pods: 11 },
        { cluster: 'frankfurt', pods: 22 },
        { cluster: 'oregon', pods: 8 },
      ],
      decision: { says: expect.stringContaining('seat 22 of 22') },
      morePods: 0,
    });
    expect(found?.pods).toHaveLength(41);
    expect(found?.pods[0]).toMatchObject({ place: '', node: '' });
    expect(closeUp(lookAt(facts(), NOTHING_SEEN, NOW), NOTHING_SEEN, 'shop/Deployment/none')).toBeUndefined();
  });
});

it('tells news of members, the newest first', () => {
  expect(stateOf().news?.map(({ reason }) => reason)).toEqual(['DeletionBreakerOpen', 'MemberNotReady', 'MemberReady']);
  expect(stateOf({ events: undefined }).news).toBeNull();
});

it('lets no control characters and no long texts through', () => {
  const hostile = { a: ['\u001b[2J\u202ered', { b: 'x'.repeat(10_000) }], n: 1, none: null };
  expect(plainText(hostile)).toEqual({ a: ['[2Jred', { b: expect.stringMatching(/^x{1997}…$/) }], n: 1, none: null });
});
