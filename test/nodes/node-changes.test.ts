import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Node, Taint } from '../../src/kube/core-v1.ts';
import { applyMergePatch } from '../fixtures/apply-merge-patch.ts';
import type { DesiredNode } from '../../src/nodes/desired-node.ts';
import { foreignTaintsLost, metadataPatch, newNode, whyNotOurs } from '../../src/nodes/node-changes.ts';
import { poolOfText } from '../../src/nodes/node-marks.ts';
import { nextReport, statusPatch } from '../../src/nodes/status-changes.ts';

const NOW = Date.parse('2026-11-21T08:00:00.500Z');
const TIMES = { heartbeatMs: 300_000, littleRoomMs: 30_000 };
const VIRTUAL: Taint = { key: 'spillway.dev/virtual-node', effect: 'NoSchedule' };
const UNREACHABLE: Taint = { key: 'spillway.dev/member-unreachable', effect: 'NoSchedule' };
const NOT_READY: Taint = { key: 'spillway.dev/member-not-ready', effect: 'NoSchedule' };

function desired(parts: Partial<DesiredNode> = {}): DesiredNode {
  return {
    name: 'east',
    member: 'east',
    providerID: 'spillway://east/east',
    labels: { 'spillway.dev/member': 'east', pool: 'blue' },
    labelsComplete: true,
    taints: [VIRTUAL],
    undecidedTaints: [],
    unschedulable: false,
    addresses: [{ type: 'InternalIP', address: '192.0.2.7' }],
    kubeletPort: 10_250,
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'fine' }],
    nodeInfo: undefined,
    capacity: { cpu: '10' },
    allocatable: { cpu: '8', gpu: '1' },
    declaredFeatures: ['A'],
    ...parts,
  };
}
/** The node as the API server would hold it. */
function made(parts: Partial<DesiredNode> = {}, former?: Node): Node {
  const node = newNode(desired(parts), former, NOW);
  return { ...node, metadata: { ...node.metadata, uid: 'u1', resourceVersion: '7' } };
}
function edited(node: Node, patch: object): Node {
  return applyMergePatch(node, patch) as Node;
}
/** Applies our patch, as the API server would, and checks that a second one is not needed. */
function settled(node: Node, wanted: DesiredNode): Node {
  const patch = metadataPatch(node, wanted);
  const result = patch === undefined ? node : edited(node, patch);
  expect(metadataPatch(result, wanted)).toBeUndefined();
  return result;
}

describe('newNode', () => {
  it('carries everything from the first moment, and nothing is left to patch', () => {
    const node = made();
    expect(node).toMatchObject({
      metadata: {
        name: 'east',
        labels: { 'spillway.dev/member': 'east', pool: 'blue' },
        annotations: {
          'spillway.dev/node-labels': 'pool,spillway.dev/member',
          'spillway.dev/node-taints': 'spillway.dev/virtual-node:NoSchedule',
        },
      },
      spec: { providerID: 'spillway://east/east', taints: [VIRTUAL] },
      status: {
        addresses: [{ type: 'InternalIP', address: '192.0.2.7' }],
        daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
        capacity: { cpu: '10' },
        allocatable: { cpu: '8', gpu: '1' },
        declaredFeatures: ['A'],
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            reason: 'KubeletReady',
            message: 'fine',
            lastHeartbeatTime: '2026-11-21T08:00:00Z',
            lastTransitionTime: '2026-11-21T08:00:00Z',
          },
        ],
      },
    });
    expect(metadataPatch(node, desired())).toBeUndefined();
    expect(statusPatch(node, desired(), NOW, TIMES)).toBeUndefined();
    expect(node.spec).not.toHaveProperty('unschedulable');
  });

  it('keeps what others had put on a node that somebody deleted', () => {
    const others = edited(made({ taints: [VIRTUAL, { key: 'old', effect: 'NoSchedule' }] }), {
      metadata: { labels: { team: 'x', pool: 'edited' } },
      spec: {
        unschedulable: true,
        taints: [
          VIRTUAL,
          { key: 'old', effect: 'NoSchedule' },
          { key: 'theirs', effect: 'NoSchedule' },
          { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
        ],
      },
    });
    const again = made({}, others);
    expect(again.metadata.labels).toEqual({ 'spillway.dev/member': 'east', pool: 'blue', team: 'x' });
    expect(again.spec).toEqual({
      providerID: 'spillway://east/east',
      unschedulable: true,
      taints: [{ key: 'theirs', effect: 'NoSchedule' }, VIRTUAL],
    });
    expect(metadataPatch(again, desired())).toBeUndefined();
  });

  it('keeps labels from the pool while the pool is not known, and drops them once it is', () => {
    const again = made({ labels: { 'spillway.dev/member': 'east' }, labelsComplete: false }, made());
    expect(again.metadata.labels).toEqual({ 'spillway.dev/member': 'east', pool: 'blue' });
    const after = settled(again, desired({ labels: { 'spillway.dev/member': 'east' } }));
    expect(after.metadata.labels).toEqual({ 'spillway.dev/member': 'east' });
    expect(made({ labels: { 'spillway.dev/member': 'east' } }, made()).metadata.labels).toEqual({
      'spillway.dev/member': 'east',
    });
  });

  it('does not inherit a cordon of our own that is not wanted any more', () => {
    const cordoned = made({ unschedulable: true });
    expect(cordoned.spec?.unschedulable).toBe(true);
    const again = made({}, cordoned);
    expect(again.spec).not.toHaveProperty('unschedulable');
    expect(again.metadata.annotations).not.toHaveProperty('spillway.dev/cordoned');
  });
});

describe('metadataPatch: labels', () => {
  it('touches its own keys only and remembers them', () => {
    const node = edited(made(), { metadata: { labels: { team: 'x', pool: 'edited' } } });
    expect(metadataPatch(node, desired())).toEqual({ metadata: { labels: { pool: 'blue' } } });
    const wanted = desired({ labels: { 'spillway.dev/member': 'east', disk: 'ssd' } });
    expect(metadataPatch(node, wanted)).toEqual({
      metadata: {
        labels: { pool: null, disk: 'ssd' },
        annotations: { 'spillway.dev/node-labels': 'disk,spillway.dev/member' },
      },
    });
    expect(settled(node, wanted).metadata.labels).toEqual({ 'spillway.dev/member': 'east', disk: 'ssd', team: 'x' });
  });

  it('removes nothing while the pool is not known', () => {
    const wanted = desired({ labels: { 'spillway.dev/member': 'east' }, labelsComplete: false });
    expect(metadataPatch(made(), wanted)).toBeUndefined();
  });

  it('takes labels named like object internals as labels', () => {
    const wanted = desired({ labels: { 'spillway.dev/member': 'east', constructor: 'x' } });
    expect(metadataPatch(made(), wanted)).toMatchObject({ metadata: { labels: { constructor: 'x', pool: null } } });
  });
});

describe('metadataPatch: taints', () => {
  it('replaces its own and leaves others, bound to what it has seen', () => {
    const node = edited(made({ taints: [VIRTUAL, { key: 'gpu', effect: 'NoSchedule' }] }), {
      spec: {
        taints: [
          { key: 'theirs', value: 'v', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
          VIRTUAL,
          { key: 'gpu', effect: 'NoSchedule' },
          { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
        ],
      },
    });
    const wanted = desired({ taints: [{ ...VIRTUAL, effect: 'PreferNoSchedule' }, UNREACHABLE] });
    expect(metadataPatch(node, wanted)).toEqual({
      metadata: {
        resourceVersion: '7',
        annotations: {
          'spillway.dev/node-taints':
            'spillway.dev/member-unreachable:NoSchedule,spillway.dev/virtual-node:PreferNoSchedule',
        },
      },
      spec: {
        taints: [
          { key: 'theirs', value: 'v', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
          { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
          { key: 'spillway.dev/virtual-node', effect: 'PreferNoSchedule' },
          UNREACHABLE,
        ],
      },
    });
    settled(node, wanted);
  });

  it('puts one taint of an unreachable member in the place of the other with one patch, and goes by what is there meanwhile', () => {
    const theirs: Taint = { key: 'theirs', effect: 'NoSchedule' };
    const unreachable = made({ taints: [VIRTUAL, UNREACHABLE] });
    const node = edited(unreachable, { spec: { taints: [VIRTUAL, UNREACHABLE, theirs] } });
    const wanted = desired({ taints: [VIRTUAL, NOT_READY] });
    const patch = metadataPatch(node, wanted);
    expect(patch?.['spec']).toEqual({ taints: [theirs, VIRTUAL, NOT_READY] });
    expect(foreignTaintsLost(node, patch ?? {})).toEqual([]);
    const after = settled(node, wanted);
    const unasked = { taints: [VIRTUAL, UNREACHABLE], undecidedTaints: [UNREACHABLE.key, NOT_READY.key] };
    expect(metadataPatch(after, desired(unasked))).toBeUndefined();
  });

  it('leaves the one by which somebody says that the node is to be emptied, and no other of our group', () => {
    const drain = { key: 'spillway.dev/drain', effect: 'NoSchedule' };
    const forged = { key: 'spillway.dev/other', effect: 'NoSchedule' };
    expect(metadataPatch(edited(made(), { spec: { taints: [VIRTUAL, drain] } }), desired())).toBeUndefined();
    const node = edited(made(), { spec: { taints: [VIRTUAL, drain, forged] } });
    expect(settled(node, desired()).spec?.taints).toEqual([drain, VIRTUAL]);
    expect(foreignTaintsLost(node, { spec: { taints: [VIRTUAL] } })).toEqual(['spillway.dev/drain:NoSchedule']);
  });

  it('does not write for another order', () => {
    const node = edited(made(), { spec: { taints: [VIRTUAL, { key: 'theirs', effect: 'NoSchedule' }] } });
    expect(metadataPatch(node, desired())).toBeUndefined();
  });

  it('leaves a taint that it cannot decide on now as it is, there or not', () => {
    const undecided = { taints: [VIRTUAL, UNREACHABLE], undecidedTaints: [UNREACHABLE.key] };
    expect(metadataPatch(made(), desired(undecided))).toBeUndefined();
    const tainted = made({ taints: [VIRTUAL, UNREACHABLE] });
    expect(metadataPatch(tainted, desired(undecided))).toBeUndefined();
    expect(made(undecided).spec?.taints).toEqual([VIRTUAL, UNREACHABLE]);
    expect(settled(tainted, desired()).spec?.taints).toEqual([VIRTUAL]);
  });

  it('ends at the wanted taints plus those of others from any start', () => {
    const keys = fc.constantFrom('a', 'b', VIRTUAL.key, UNREACHABLE.key, NOT_READY.key);
    const taint = fc.record({ key: keys, effect: fc.constantFrom('NoSchedule' as const, 'NoExecute' as const) });
    const taints = fc.uniqueArray(taint, { selector: ({ key, effect }) => `${key}:${effect}`, maxLength: 6 });
    fc.assert(
      fc.property(taints, taints, taints, (first, foreign, second) => {
        const id = ({ key, effect }: Taint): string => `${key}:${effect}`;
        const before = made({ taints: first });
        const mixed = [...(before.spec?.taints ?? [])];
        const added = foreign.filter((one) => !one.key.startsWith('spillway') && !mixed.some((t) => id(t) === id(one)));
        const node = edited(before, { spec: { taints: [...mixed, ...added] } });
        const after = settled(node, desired({ taints: second }));
        expect(new Set((after.spec?.taints ?? []).map(id))).toEqual(new Set([...second, ...added].map(id)));
      }),
    );
  });
});

describe('metadataPatch: cordon', () => {
  it('cordons when told to and takes only that back', () => {
    const cordoned = settled(made(), desired({ unschedulable: true }));
    expect(cordoned.spec?.unschedulable).toBe(true);
    expect(cordoned.metadata.annotations?.['spillway.dev/cordoned']).toBe('true');
    const open = settled(cordoned, desired());
    expect(open.spec).not.toHaveProperty('unschedulable');
    expect(open.metadata.annotations).not.toHaveProperty('spillway.dev/cordoned');
  });

  it("never undoes a user's cordon", () => {
    const byUser = edited(made(), { spec: { unschedulable: true } });
    expect(metadataPatch(byUser, desired())).toBeUndefined();
    expect(metadataPatch(byUser, desired({ unschedulable: true }))).toBeUndefined();
    expect(settled(settled(byUser, desired({ unschedulable: true })), desired()).spec?.unschedulable).toBe(true);
  });
});

describe('the pool that a Node says', () => {
  const pool = { gpu: 'true', 'example.com/zone': 'a' };
  const said = (node: Node): string | undefined => node.metadata.annotations?.['spillway.dev/pool'];

  it('is written once, follows the spec, and stays when that says nothing any more', () => {
    const node = made({ pool });
    expect(said(node)).toBe('example.com/zone=a,gpu=true');
    expect(poolOfText(said(node) ?? '')).toEqual(pool);
    expect(metadataPatch(node, desired({ pool }))).toBeUndefined();
    expect(metadataPatch(node, desired({ pool: undefined }))).toBeUndefined();
    expect(said(settled(node, desired({ pool: { gpu: 'true' } })))).toBe('gpu=true');
    expect(said(settled(node, desired({ pool: {} })))).toBeUndefined();
    expect(said(made({ pool: undefined }, node))).toBe('example.com/zone=a,gpu=true');
    // Of all nodes there is nothing to say, so that a Node of an older version is left as it is.
    expect(metadataPatch(made(), desired({ pool: {} }))).toBeUndefined();
    expect(poolOfText('')).toEqual({});
  });
});

describe('whyNotOurs', () => {
  it('knows its own by the label or by the provider ID', () => {
    expect(whyNotOurs(made(), desired())).toBeUndefined();
    expect(whyNotOurs(edited(made(), { metadata: { labels: null } }), desired())).toBeUndefined();
    expect(whyNotOurs({ metadata: { name: 'east' } }, desired())).toBe(
      'a Node named "east" exists and was not made for cluster "east"',
    );
    const other: Node = { metadata: { name: 'east', labels: { 'spillway.dev/member': 'west' } } };
    expect(whyNotOurs(other, desired())).toBe('a Node named "east" exists and stands for cluster "west"');
  });

  it('is not deceived by our label on a Node with the provider ID of another, be it a cloud or a MemberCluster', () => {
    const labelled = (providerID: string): Node => ({
      metadata: { name: 'east', labels: { 'spillway.dev/member': 'east' } },
      spec: { providerID },
    });
    expect(whyNotOurs(labelled('aws:///i-1'), desired())).toContain('was not made for cluster "east"');
    expect(whyNotOurs(labelled('spillway://west/east'), desired())).toContain('stands for cluster "west"');
    expect(whyNotOurs(labelled('spillway://east/east'), desired())).toBeUndefined();
  });
});

describe('statusPatch', () => {
  const patchOf = (node: Node, parts: Partial<DesiredNode>, now = NOW) =>
    statusPatch(node, desired(parts), now, TIMES)?.['status'];

  it('tells at once of room that matters, and seldom of the rest, but then all of it', () => {
    const node = made({ allocatable: { cpu: '100', memory: '1000Gi', gpu: '4' } });
    const at = (seconds: number, room: Record<string, string>) =>
      (patchOf(node, { allocatable: room }, NOW + seconds * 1_000) as { allocatable?: object } | undefined)
        ?.allocatable;
    const all = { cpu: '100', memory: '1000Gi', gpu: '4' };
    expect(at(5, { ...all, cpu: '99500m', memory: '1005Gi' })).toBeUndefined();
    expect(at(30, { ...all, cpu: '99500m', memory: '1005Gi' })).toEqual({ cpu: '99500m', memory: '1005Gi' });
    expect(at(2, { ...all, cpu: '99', memory: '1005Gi' })).toEqual({ cpu: '99', memory: '1005Gi' });
    expect(at(2, { ...all, memory: '1010Gi' })).toEqual({ memory: '1010Gi' });
    // Ran out, is new, is gone.
    expect(at(2, { ...all, gpu: '0' })).toEqual({ gpu: '0' });
    expect(at(2, { ...all, disk: '1' })).toEqual({ disk: '1' });
    expect(at(2, { cpu: '100', memory: '1000Gi' })).toEqual({ gpu: null });
    const full = made({ allocatable: { ...all, gpu: '0' } });
    expect(patchOf(full, { allocatable: all })).toMatchObject({ allocatable: { gpu: '4' } });
    // Something else is written anyway.
    const also = { allocatable: { ...all, cpu: '99500m' }, kubeletPort: 10_251 };
    expect(patchOf(node, also)).toMatchObject({ allocatable: { cpu: '99500m' } });
    expect(nextReport(node, desired({ allocatable: { ...all, cpu: '99500m' } }), NOW, TIMES)).toBe(
      Date.parse('2026-11-21T08:00:30Z'),
    );
  });

  it('holds what differs, and fresh heartbeats', () => {
    const later = NOW + 10_000;
    expect(patchOf(made(), { allocatable: { cpu: '7' } }, later)).toEqual({
      allocatable: { cpu: '7', gpu: null },
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'KubeletReady',
          message: 'fine',
          lastHeartbeatTime: '2026-11-21T08:00:10Z',
          lastTransitionTime: '2026-11-21T08:00:00Z',
        },
      ],
    });
  });

  it('leaves unknown amounts as they are', () => {
    expect(patchOf(made(), { allocatable: undefined, capacity: undefined })).toBeUndefined();
  });

  it('declares features anew when they change, but is not kept busy by a host that drops them', () => {
    expect(patchOf(made(), { declaredFeatures: ['A', 'B'] })).toMatchObject({ declaredFeatures: ['A', 'B'] });
    expect(patchOf(made(), { declaredFeatures: [] })).toMatchObject({ declaredFeatures: [] });
    expect(patchOf(made(), { declaredFeatures: undefined })).toBeUndefined();
    const dropped = made({ declaredFeatures: undefined });
    expect(patchOf(dropped, { declaredFeatures: ['A'] })).toBeUndefined();
    const report = patchOf(dropped, { declaredFeatures: ['A'], kubeletPort: 10_251 });
    expect(report).toMatchObject({ declaredFeatures: ['A'], daemonEndpoints: {} });
  });

  it('replaces the list of addresses and the port', () => {
    const patch = patchOf(made(), { addresses: [{ type: 'InternalIP', address: '192.0.2.8' }], kubeletPort: 10_251 });
    expect(patch).toMatchObject({
      addresses: [{ type: 'InternalIP', address: '192.0.2.8' }, { $patch: 'replace' }],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_251 } },
    });
  });

  it('says Ready again when the host had given the node up, with a new transition time', () => {
    const lost = made();
    const node: Node = {
      ...lost,
      status: {
        ...lost.status,
        conditions: [
          {
            type: 'Ready',
            status: 'Unknown',
            reason: 'NodeStatusUnknown',
            message: 'Kubelet stopped posting node status.',
            lastHeartbeatTime: '2026-11-21T07:58:00Z',
            lastTransitionTime: '2026-11-21T07:59:00Z',
          },
        ],
      },
    };
    expect(patchOf(node, {})).toMatchObject({
      conditions: [{ status: 'True', reason: 'KubeletReady', lastTransitionTime: '2026-11-21T08:00:00Z' }],
    });
  });

  it('keeps a condition that nothing new is known of', () => {
    const reachable = { type: 'spillway.dev/MemberReachable', reason: 'r', message: 'm' };
    const node = made({ conditions: [{ ...reachable, status: 'True' }] });
    const unknown = { conditions: [{ ...reachable, status: 'Unknown' as const, onlyIfAbsent: true }] };
    expect(patchOf(node, unknown)).toBeUndefined();
    expect(patchOf(node, unknown, NOW + 300_000)).toMatchObject({ conditions: [{ status: 'True' }] });
    expect(patchOf(made({ conditions: [] }), unknown)).toMatchObject({ conditions: [{ status: 'Unknown' }] });
  });

  it('reports at least every five minutes, and at once when the last time lies ahead', () => {
    const node = made();
    expect(nextReport(node, desired(), NOW, TIMES)).toBe(Date.parse('2026-11-21T08:05:00Z'));
    expect(patchOf(node, {}, NOW + 299_000)).toBeUndefined();
    expect(patchOf(node, {}, NOW + 300_000)).toMatchObject({
      conditions: [{ lastHeartbeatTime: '2026-11-21T08:05:00Z', lastTransitionTime: '2026-11-21T08:00:00Z' }],
    });
    expect(patchOf(node, {}, NOW - 60_000)).toBeDefined();
  });
});
