import { beforeEach, describe, expect, it } from 'vitest';
import type { EventSubject } from '../../src/kube/event-correlator.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { type CopiesFacts, UndeletedCopies } from '../../src/pods/undeleted-copies.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';

const ASKED = Date.parse('2026-01-01T00:02:00Z');
const LEAVING = { deletionTimestamp: '2026-01-01T00:02:30Z', deletionGracePeriodSeconds: 30 };
const HELD = { ...LEAVING, finalizers: ['example.com/hold'] };

let now: number;
let isReachable: boolean;
let told: string[];
let nodes: Map<string, Node>;
let copies: UndeletedCopies;

beforeEach(() => {
  now = 1_000_000;
  isReachable = true;
  told = [];
  nodes = new Map();
  copies = new UndeletedCopies({
    member: { name: 'east', reachable: () => isReachable },
    memberNodes: { hasSynced: true, get: (name) => nodes.get(name) },
    events: {
      record: (subject: EventSubject, type, reason, message) => {
        told.push(`${type} ${reason} ${subject.name}: ${message}`);
      },
    },
    clock: () => ASKED + now - 1_000_000,
    monotonic: () => now,
  });
});

function look(change: Partial<CopiesFacts> = {}): number | undefined {
  const of = { hostPod: hostPod({ metadata: LEAVING }), memberPod: memberPod({ metadata: HELD }) };
  const next = copies.look({ ...of, second: undefined, frozen: undefined, sent: undefined, ...change });
  return next?.requeueAfterMs;
}

function after(seconds: number, change: Partial<CopiesFacts> = {}): number | undefined {
  now += seconds * 1000;
  return look(change);
}

const onNode = (metadata: Pod['metadata'] | object = LEAVING, nodeName = 'n1'): Pod => {
  const pod = memberPod({ metadata });
  return { ...pod, spec: { ...pod.spec, nodeName } };
};
const node = (ready: 'True' | 'False' | 'Unknown'): Node => ({
  metadata: { name: 'n1' },
  status: { conditions: [{ type: 'Ready', status: ready }] },
});

it('tells of a copy that stays a minute longer than its grace, and again every 20 minutes', () => {
  expect(look()).toBe(90_000);
  expect([after(89), told]).toEqual([1000, []]);
  expect(after(1)).toBe(1_200_000);
  expect(told).toEqual([
    'Warning MemberPodNotDeleted web-0: Cluster "east" was told to delete shop/web-0, which runs for this pod, at 2026-01-01T00:02:00Z, and has taken that, but still has it: ' +
      'finalizer example.com/hold. This pod stays until it is gone there. ' +
      'What can be done: have whoever set a finalizer there take it off, or take it off if nobody does its work any more.',
  ]);
  expect([after(600), told.length]).toEqual([600_000, 1]);
  expect([after(600), told.length]).toEqual([1_200_000, 2]);
  expect(told[1]).toBe(told[0]);
});

it('tells of one that is to end at once after a minute, whatever its grace was', () => {
  look();
  const at = hostPod({ metadata: { ...LEAVING, deletionGracePeriodSeconds: 0 } });
  expect([after(30, { hostPod: at }), told.length]).toEqual([30_000, 0]);
  expect([after(30, { hostPod: at }), told.length]).toEqual([1_200_000, 1]);
});

it('tells of one whose deletion was taken and is not shown, and not of one whose deletion nobody took', () => {
  const sent = { uid: 'member-uid', says: 'deleting', gracePeriodSeconds: 30, until: 0, vain: 3 } as const;
  const change = { memberPod: memberPod(), sent: { ...sent, accepted: 0 } };
  expect([look(change), after(600, change)]).toEqual([undefined, undefined]);
  const taken = { ...change, sent: { ...sent, accepted: 1 } };
  expect([look(taken), after(90, taken)]).toEqual([90_000, 1_200_000]);
  expect(told[0]).toContain('its API server took the deletion, and does not show it');
});

it.each<[string, Partial<CopiesFacts>]>([
  ['while nothing may be done', { frozen: 'the lease is not held' }],
  ['of a copy that is meant to be there', { hostPod: hostPod(), memberPod: memberPod() }],
  ['of one that somebody deletes in the member', { hostPod: hostPod() }],
])('tells nothing %s', (_, change) => {
  expect([look(change), after(600, change)]).toEqual([undefined, undefined]);
  expect([told, copies.list.count]).toEqual([[], 0]);
});

it('begins anew after a time in which the member did not answer', () => {
  look();
  isReachable = false;
  expect([after(600), copies.list.count]).toEqual([undefined, 0]);
  isReachable = true;
  expect([after(600), told]).toEqual([90_000, []]);
});

it('lists a copy without a host pod, and tells nobody', () => {
  const change = { hostPod: undefined };
  expect([look(change), after(90, change)]).toEqual([90_000, undefined]);
  expect(told).toEqual([]);
  const [first] = copies.list.first;
  expect(first).toEqual({ copy: 'shop/web-0', since: '2026-01-01T00:02:00Z', heldBy: 'finalizer example.com/hold' });
  copies.gone(memberPod());
  expect(copies.list).toEqual({ count: 0, first: [] });
});

it('tells of a second copy while the first one runs', () => {
  const second = memberPod({ metadata: { ...HELD, uid: 'second-uid', namespace: 'elsewhere' } });
  const change = { hostPod: hostPod(), memberPod: memberPod(), second };
  look(change);
  after(90, change);
  expect(told[0]).toContain('elsewhere/web-0');
  expect(told[0]).not.toContain('This pod stays');
});

it('names some of many', () => {
  for (let n = 0; n < 9; n++)
    look({ hostPod: undefined, memberPod: memberPod({ metadata: { ...HELD, uid: `${n}` } }) });
  now += 90_000;
  expect([copies.list.count, copies.list.first.length]).toEqual([9, 3]);
});

describe('what keeps it', () => {
  function heldBy(pod: Pod): string | undefined {
    look({ memberPod: pod });
    now += 90_000;
    return copies.list.first[0]?.heldBy;
  }

  it.each<['True' | 'False' | 'Unknown', string]>([
    ['Unknown', 'its node n1 does not answer there'],
    ['False', 'its node n1 is not ready there'],
    ['True', 'its node n1 has not ended it, though it answers'],
  ])('is a node whose Ready is %s', (status, words) => {
    nodes.set('n1', node(status));
    expect(heldBy(onNode())).toBe(words);
  });

  it('is a node that is gone', () => {
    expect(heldBy(onNode())).toBe('its node n1 is gone there');
    look({ memberPod: onNode() });
    expect(told[0]).toContain('bring the node back, or, if nothing runs on it any more');
  });

  it('is a finalizer and a node', () => {
    nodes.set('n1', node('Unknown'));
    expect(heldBy(onNode(HELD))).toBe('finalizer example.com/hold; its node n1 does not answer there');
  });

  it('is not the node where that answers and a finalizer is there', () => {
    nodes.set('n1', node('True'));
    expect(heldBy(onNode(HELD))).toBe('finalizer example.com/hold');
  });

  it('is not known where it has neither', () => {
    expect(heldBy(onNode(LEAVING, ''))).toBe('the cluster does not say what');
  });

  it('is told in few words and no other, whatever the member says', () => {
    const finalizers = ['a\u001B[31m\n', 'b'.repeat(5_000), 'c', 'd', 'e'];
    const pod = onNode({ ...HELD, finalizers }, 'n'.repeat(5_000));
    const words = heldBy(pod) ?? '';
    expect(words).toMatch(/^finalizers a\[31m, b+…, c and 2 more; its node n+… is gone there$/);
    look({ memberPod: pod });
    expect(Buffer.byteLength(told[0] ?? '')).toBeLessThan(1_024);
  });

  it('takes no time from the member that cannot be', () => {
    const times = { deletionTimestamp: 'soon', deletionGracePeriodSeconds: 30 };
    look({ hostPod: undefined, memberPod: memberPod({ metadata: times }) });
    now += 90_000;
    expect(copies.list.first[0]?.since).toBe('2026-01-01T00:02:00Z');
  });
});
