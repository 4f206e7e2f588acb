import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { isTakenLabel } from '../../src/api/state-preservation.ts';
import { MOST_PRESERVED } from '../../src/api/workload-placement.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import {
  foundState,
  handedOn,
  type Heir,
  heirOf,
  type Preserved,
  stateLabels,
  stateRules,
  withState,
} from '../../src/placement/preserved-state.ts';

const rule = (aliasLabelName: string, jsonPath: string) => ({ aliasLabelName, jsonPath });
const heirBy = (by: Heir['by'], ...ruledOut: string[]): Heir => ({ by, ruledOut: new Set(ruledOut) });
const POINT = rule('example.com/point', '{.containerStatuses[0].lastState.terminated.message}');
const ended = (message: unknown): object => ({ containerStatuses: [{ lastState: { terminated: { message } } }] });

function podOf(kind: string | undefined, name = 'web-0', more: object = {}): Pod {
  const owner = { apiVersion: 'apps/v1', kind: kind ?? '', name: 'web', uid: 'set', controller: true };
  const ownerReferences = kind === undefined ? [] : [owner];
  return { metadata: { name, namespace: 'shop', uid: 'new', ownerReferences, ...more }, spec: { containers: [] } };
}

describe('the pod that comes in the place of another one is known', () => {
  const workload = (kind: string, spec: object = {}): TypedObject =>
    ({ apiVersion: 'apps/v1', kind, metadata: { name: 'web' }, spec }) as TypedObject;

  it.each<[what: string, pod: Pod, of: TypedObject, replicas: number | undefined, heir: string | undefined]>([
    ['of a StatefulSet', podOf('StatefulSet'), workload('StatefulSet'), 3, 'sameName'],
    ['of a StatefulSet with one', podOf('StatefulSet'), workload('StatefulSet'), 1, 'sameName'],
    ['of a Deployment with one', podOf('ReplicaSet'), workload('Deployment'), 1, 'onlyOne'],
    ['not of one with two', podOf('ReplicaSet'), workload('Deployment'), 2, undefined],
    ['not of one with none', podOf('ReplicaSet'), workload('Deployment'), 0, undefined],
    ['not where nobody knows how many', podOf('Gang'), workload('Gang'), undefined, undefined],
    ['of a Job with one', podOf('Job'), workload('Job', { parallelism: 1, completions: 1 }), 1, 'onlyOne'],
    ['of a Job that does not say how many', podOf('Job'), workload('Job', { parallelism: 1 }), 1, 'onlyOne'],
    ['not of one with several, one by one', podOf('Job'), workload('Job', { completions: 5 }), 1, undefined],
    ['not without a controller', podOf(undefined), workload('Pod'), 1, undefined],
  ])('%s', (_what, pod, of, replicas, heir) => {
    expect(heirOf(pod, of, replicas)?.by).toBe(heir);
  });
});

test('labels that the selector of a workload rules out are known', () => {
  const matchExpressions = [
    { key: 'a', operator: 'DoesNotExist' },
    { key: 'b', operator: 'NotIn', values: ['canary'] },
    { key: 'app', operator: 'In', values: ['web'] },
    { key: 'tier', operator: 'Exists' },
  ];
  const workload = (kind: string): TypedObject =>
    ({
      apiVersion: 'apps/v1',
      kind,
      metadata: { name: 'web' },
      spec: { selector: { matchExpressions } },
    }) as TypedObject;
  expect(heirOf(podOf('StatefulSet'), workload('StatefulSet'), 3)).toEqual(heirBy('sameName', 'a', 'b'));
  expect(heirOf(podOf('ReplicaSet'), workload('Deployment'), 1)).toEqual(heirBy('onlyOne', 'a', 'b'));
});

describe('a label by which others know pods', () => {
  const guard = readFileSync('manifests/scheduler/pod-guard.yaml', 'utf8');
  const [, prefix = 'none'] = /!k\.matches\('([^']+)'\)/u.exec(guard) ?? [];
  const [, names = ''] = /!\(k in \[([^\]]+)\]\)/u.exec(guard) ?? [];
  const isGuarded = (key: string): boolean => new RegExp(prefix, 'u').test(key) || names.includes(`'${key}'`);

  it.each<[string, boolean]>([
    ['apps.kubernetes.io/pod-index', true],
    ['sigs.k8s.io/x', true],
    ['kueue.x-k8s.io/queue-name', true],
    ['scheduling.x-k8s.io/pod-group', true],
    ['x-k8s.io/y', true],
    ['pod-group.scheduling.sigs.k8s.io', true],
    ['spillway.dev/gang', true],
    ['job-name', true],
    ['example.com/point', false],
    ['ax-k8s.io/point', false],
    ['point', false],
  ])('is given by no policy, nor let through by the guard of pods: %s %s', (key, isTaken) => {
    expect([isTakenLabel(key), isGuarded(key)]).toEqual([isTaken, isTaken]);
  });
});

describe('what a rule finds', () => {
  const heir = heirBy('sameName');

  it.each<[what: string, status: unknown, labels: object, why: string | undefined]>([
    ['a text', ended('cp-42'), { [POINT.aliasLabelName]: 'cp-42' }, undefined],
    ['one with a line break at its end', ended('cp-42\n'), { [POINT.aliasLabelName]: 'cp-42' }, undefined],
    ['a number', ended(42), { [POINT.aliasLabelName]: '42' }, undefined],
    ['63 characters', ended('x'.repeat(63)), { [POINT.aliasLabelName]: 'x'.repeat(63) }, undefined],
    ['64 characters', ended('x'.repeat(64)), {}, 'the value has 64 characters, and one of a label has at most 63'],
    ['two words', ended('not this'), {}, 'the value is none that a label may have'],
    ['a path', ended('/var/lib'), {}, 'the value is none that a label may have'],
    ['an object', ended({ a: 'b' }), {}, 'it finds no single value, but an object or a list'],
    ['a list', ended(['a']), {}, 'it finds no single value, but an object or a list'],
    ['nothing', ended(undefined), {}, undefined],
    ['nothing but a line break', ended('\n'), {}, undefined],
    ['an empty text', ended(''), {}, undefined],
    ['no status', undefined, {}, undefined],
  ])('%s', (_what, status, labels, why) => {
    const found = foundState([POINT], status, heir);
    expect(found.labels).toEqual(labels);
    expect(found.problems).toEqual(why === undefined ? [] : [{ rule: POINT, why: expect.stringContaining(why) }]);
  });

  test('is nothing to hand on where there are several', () => {
    const rules = [rule('a', '{.conditions[*].type}'), rule('b', '{.podIP}')];
    const { labels, problems } = foundState(
      rules,
      { conditions: [{ type: 'A' }, { type: 'B' }], podIP: '10.0.0.7' },
      heir,
    );
    expect(labels).toEqual({ b: '10.0.0.7' });
    expect(problems).toEqual([{ rule: rules[0], why: 'it finds 2 values' }]);
  });

  test('is not handed on under a label by which its controller would let go of the next pod', () => {
    const { labels, problems } = foundState([POINT], ended('cp-42'), heirBy('sameName', POINT.aliasLabelName));
    expect(labels).toEqual({});
    expect(problems).toEqual([{ rule: POINT, why: expect.stringContaining('rules that label out') }]);
  });
});

test('the labels of a policy are those of both of its lists', () => {
  const failover = {
    application: { decisionConditions: { tolerationSeconds: 300 }, statePreservation: { rules: [rule('a', '{.a}')] } },
    cluster: {
      purgeMode: 'Directly' as const,
      gracePeriodSeconds: 600,
      onTimeout: 'GiveBack' as const,
      statePreservation: { rules: [rule('b', '{.b}')] },
    },
  };
  expect([...stateLabels(failover)]).toEqual(['a', 'b']);
  expect(stateRules(failover, 'application')).toEqual([rule('a', '{.a}')]);
  expect([...stateLabels(undefined)]).toEqual([]);
});

describe('what is written down before a pod goes', () => {
  const time = '2026-01-01T00:00:00Z';
  const entry = (pod: string, labels: Record<string, string>, uid = 'old'): Preserved[number] => ({
    pod,
    uid,
    time,
    labels,
  });
  const kept = new Set(['a', 'b']);
  const named = { heir: heirBy('sameName'), kept } as const;
  const only = { heir: heirBy('onlyOne'), kept } as const;
  const going = { pod: 'web-0', uid: 'now', time };
  const none = { labels: {}, problems: [] };

  it.each<[string, Preserved, object, typeof named | typeof only, Preserved | undefined]>([
    ['what it shows', [], { a: '1' }, named, [entry('web-0', { a: '1' }, 'now')]],
    ['nothing where that stands there', [entry('web-0', { a: '1' }, 'now')], { a: '1' }, named, undefined],
    [
      'what it shows by now',
      [entry('web-0', { a: '0' }, 'now')],
      { a: '1' },
      named,
      [entry('web-0', { a: '1' }, 'now')],
    ],
    ['nothing where it shows nothing', [], {}, named, undefined],
    ['anew', [entry('web-0', { a: '0' })], { a: '1' }, named, [entry('web-0', { a: '1' }, 'now')]],
    [
      'with what others left',
      [entry('web-1', { a: '0' })],
      { a: '1' },
      named,
      [entry('web-0', { a: '1' }, 'now'), entry('web-1', { a: '0' })],
    ],
    [
      'with what it was left itself and does not show',
      [entry('web-0', { a: '0', b: '0' })],
      { a: '1' },
      named,
      [entry('web-0', { a: '1', b: '0' }, 'now')],
    ],
    [
      'without labels that no rule names any more',
      [entry('web-0', { c: '0', b: '0' })],
      {},
      named,
      [entry('web-0', { b: '0' }, 'now')],
    ],
    [
      'no more where no rule names any of them',
      [entry('web-0', { c: '0' }), entry('web-1', { a: '0' })],
      {},
      named,
      [entry('web-1', { a: '0' })],
    ],
    [
      'of the only one alone',
      [entry('web-x', { a: '0', b: '0' })],
      { a: '1' },
      only,
      [entry('web-0', { a: '1', b: '0' }, 'now')],
    ],
  ])('%s', (_what, before, labels, how, after) => {
    expect(withState(before, going, { ...none, labels: labels as Record<string, string> }, how)).toEqual(after);
  });

  test('is not what was left before where it shows something that no label can be', () => {
    const problems = [{ rule: rule('a', '{.a}'), why: 'too long' }];
    expect(withState([entry('web-0', { a: '0' })], going, { labels: {}, problems }, named)).toEqual([]);
  });

  test('is bounded', () => {
    const before = Array.from({ length: MOST_PRESERVED }, (_, index) => entry(`web-${String(index + 1)}`, { a: '0' }));
    const after = withState(before, going, { ...none, labels: { a: '1' } }, named) ?? [];
    expect(after).toHaveLength(MOST_PRESERVED);
    expect(after[0]?.pod).toBe('web-0');
    expect(after.at(-1)?.pod).toBe(`web-${String(MOST_PRESERVED - 1)}`);
  });
});

describe('what a pod is given', () => {
  const preserved: Preserved = [
    { pod: 'web-0', uid: 'old', time: '2026-01-01T00:00:00Z', labels: { a: '1', b: '2', constructor: '3' } },
    { pod: 'web-1', uid: 'other', time: '2026-01-01T00:00:00Z', labels: { a: '9' } },
  ];
  const [named, only] = [heirBy('sameName'), heirBy('onlyOne')];
  const kept = new Set(['a', 'b', 'constructor']);
  const labelled = (labels: object): Pod => podOf('StatefulSet', 'web-0', { labels });

  it.each<[string, Pod, Heir, ReadonlySet<string>, object, string[]]>([
    ['all', podOf('StatefulSet'), named, kept, { a: '1', b: '2', constructor: '3' }, []],
    ['what today’s rules name', podOf('StatefulSet'), named, new Set(['b']), { b: '2' }, []],
    ['nothing of others', podOf('StatefulSet', 'web-2'), named, kept, {}, []],
    ['what the only one left', podOf('ReplicaSet', 'web-x'), only, kept, { a: '1', b: '2', constructor: '3' }, []],
    ['nothing of its own', podOf('StatefulSet', 'web-0', { uid: 'old' }), named, kept, {}, []],
    ['what it has not', labelled({ a: '1' }), named, new Set(['a', 'b']), { b: '2' }, []],
    ['nothing that is another’s', labelled({ a: 'own' }), named, new Set(['a', 'b']), { b: '2' }, ['a']],
    ['nothing that must not be', podOf('StatefulSet'), heirBy('sameName', 'a'), new Set(['a', 'b']), { b: '2' }, ['a']],
  ])('%s', (_what, pod, heir, labels, given, taken) => {
    expect(handedOn(pod, preserved, { heir, kept: labels })).toEqual({ labels: given, taken });
  });
});
