import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { type AppliedRule, applyOverrides, applyRules } from '../../src/overrides/apply-overrides.ts';
import {
  hashOfRules,
  MAX_RECORD_BYTES,
  policiesInRecord,
  readPodRecord,
  readSetKeys,
  writeCopyRecord,
  writePodRecord,
} from '../../src/overrides/override-record.ts';
import { planRules, type PlannedRule } from '../../src/overrides/planned-rules.ts';
import { podWithOverrides, rulesForRunningPod } from '../../src/overrides/running-pod.ts';
import { memberUpdates } from '../../src/pods/member-updates.ts';
import { CONTEXT } from '../fixtures/translation.ts';
import { contextOf, EAST, policy, rendered, webPod } from './rendered-pod.ts';

const label = (value: string) => ({ overriders: { labelsOverrider: [{ operator: 'add', value: { seen: value } }] } });
const tag = (value: string) => ({ overriders: { imageOverrider: [{ component: 'Tag', operator: 'replace', value }] } });
const cluster = (name: string, applyTo: string, ...overrideRules: object[]) =>
  policy('ClusterOverridePolicy', name, { applyTo, overrideRules });
const namespaced = (name: string, applyTo: string, ...overrideRules: object[]) =>
  policy('OverridePolicy', name, { applyTo, overrideRules });

function applied(...policies: OverridePolicy[]): AppliedRule[] {
  const outcome = applyOverrides(rendered(), policies, contextOf());
  if (!('object' in outcome)) throw new Error('not applied');
  return outcome.applied;
}
function planned(...policies: OverridePolicy[]): PlannedRule[] {
  const plan = planRules(contextOf().subject, policies, EAST);
  if (!('rules' in plan)) throw new Error('no plan');
  return plan.rules;
}
function recorded(...policies: OverridePolicy[]): readonly PlannedRule[] {
  const record = readPodRecord(writePodRecord(applied(...policies)) as string);
  if (typeof record === 'string') throw new Error(record);
  return record.rules;
}

describe('the record on a pod', () => {
  it('reads back as the rules that were applied, with values in the place of variables', () => {
    const rules = applied(
      cluster('a', 'RunningPods', label('${member.region}')),
      namespaced('b', 'NewPods', tag('v2'), label('x')),
    );
    const text = writePodRecord(rules) as string;
    const record = readPodRecord(text);
    expect(record).toEqual({
      hash: hashOfRules(rules),
      rules: rules.map(({ changes, ...rule }) => (expect(changes).toHaveLength(1), rule)),
    });
    expect(JSON.parse(text)).toMatchObject({
      rules: [
        {
          policy: 'ClusterOverridePolicy a',
          rule: 0,
          changes: ['labelsOverrider'],
          overriders: { labelsOverrider: [{ value: { seen: 'eu-1' } }] },
        },
        { policy: 'OverridePolicy shop/b', rule: 0, changes: ['imageOverrider'] },
        { policy: 'OverridePolicy shop/b', rule: 1, changes: ['labelsOverrider'] },
      ],
    });
  });

  it('also has rules that changed nothing: they may change what the pod becomes', () => {
    const nothing = { overriders: { labelsOverrider: [{ operator: 'replace', value: { tier: 'x' } }] } };
    expect(recorded(cluster('a', 'NewPods', nothing))).toHaveLength(1);
    expect(writePodRecord([])).toBeUndefined();
  });

  it('has a length that an annotation may have', () => {
    const long = {
      overriders: { annotationsOverrider: [{ operator: 'add', value: { long: 'x'.repeat(MAX_RECORD_BYTES) } }] },
    };
    expect(writePodRecord(applied(cluster('a', 'NewPods', long)))).toEqual({ bytes: expect.any(Number) });
  });

  it.each([
    ['{', 'unreadable'],
    ['[]', 'unreadable'],
    ['{"v":2,"hash":"x","rules":[]}', 'unreadable'],
    ['{"v":1,"hash":"x","rules":[]}', 'unreadable'],
    ['{"v":1,"hash":"x","rules":[{"policy":"p"}]}', 'unreadable'],
    ['{"v":1,"hash":"x","rules":[{"policy":"p","rule":0,"rank":9,"overriders":{}}]}', 'unreadable'],
    [
      '{"v":1,"hash":"x","rules":[{"policy":"p","rule":0,"rank":1,"overriders":{"plaintext":[{"path":{"length":{"toString":1}}}]}}]}',
      'unreadable',
    ],
    [undefined, 'none'],
  ])('%s is %s', (text, expected) => {
    expect(readPodRecord(text)).toBe(expected);
  });

  it('is unreadable when somebody changed it', () => {
    const text = writePodRecord(applied(cluster('a', 'NewPods', label('x')))) as string;
    expect(readPodRecord(text.replace('"seen":"x"', '"seen":"y"'))).toBe('unreadable');
  });
});

describe('hashOfRules', () => {
  it('depends on policy, place and values, and on nothing else', () => {
    const base = planned(cluster('a', 'NewPods', label('x')));
    const hash = hashOfRules(base);
    expect(hashOfRules(planned(cluster('a', 'RunningPods', label('x'))))).toBe(hash);
    expect(hashOfRules(base.map((rule) => ({ ...rule, overriders: structuredClone(rule.overriders) })))).toBe(hash);
    expect(hash).toMatch(/^[-_A-Za-z0-9]{16}$/);
    const others = [
      planned(cluster('b', 'NewPods', label('x'))),
      planned(cluster('a', 'NewPods', label('y'))),
      planned(cluster('a', 'NewPods', { overriders: {} }, label('x'))),
      [],
    ];
    expect(new Set([hash, ...others.map(hashOfRules)]).size).toBe(5);
  });
});

describe('the record on a copy', () => {
  it('names the rules that changed it, without values', () => {
    const nothing = { overriders: { imageOverrider: [{ component: 'Tag', operator: 'replace', value: 'v2' }] } };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: {} };
    const hunter = { overriders: { plaintext: [{ path: '/data/password', operator: 'add', value: 'aHVudGVyMg==' }] } };
    const context = {
      subject: {
        namespace: 'shop',
        identities: [{ apiVersion: 'v1', kind: 'Secret', name: 's', labels: {} }] as const,
      },
      member: EAST,
    };
    const outcome = applyOverrides(secret, [cluster('a', 'NewPods', nothing, hunter)], context);
    if (!('object' in outcome)) throw new Error('not applied');
    const keys = { labels: ['a'], annotations: ['b/c'] };
    const text = writeCopyRecord(outcome.applied, keys) ?? '';
    expect(JSON.parse(text)).toEqual({
      v: 1,
      hash: hashOfRules(outcome.applied.slice(1)),
      rules: [{ policy: 'ClusterOverridePolicy a', rule: 1, changes: ['plaintext'] }],
      keys,
    });
    expect(text).not.toContain('aHVudGVyMg');
    const untouched = applyOverrides(secret, [cluster('a', 'NewPods', nothing)], context);
    expect('object' in untouched && writeCopyRecord(untouched.applied, keys)).toBeUndefined();
    expect(readSetKeys(text)).toEqual(keys);
    for (const other of [undefined, '{', '[]', '{"keys":7}', '{"keys":{"labels":7}}']) {
      expect(readSetKeys(other)).toEqual({ labels: [], annotations: [] });
    }
    expect(policiesInRecord(text)).toEqual(['ClusterOverridePolicy a']);
  });
});

describe('rulesForRunningPod', () => {
  const values = (rules: readonly PlannedRule[]) =>
    rules.map(({ policy, overriders }) => `${policy.split(' ')[1]}=${overriders.labelsOverrider?.[0]?.value['seen']}`);

  const rulesFor = (before: readonly PlannedRule[], ...policies: OverridePolicy[]) =>
    rulesForRunningPod(before, planned(...policies.filter(({ spec }) => spec.applyTo === 'RunningPods')), policies);

  it('keeps what policies for new pods were, and takes what policies for running pods are', () => {
    const before = recorded(
      cluster('edited', 'NewPods', label('1')),
      cluster('follows', 'RunningPods', label('1')),
      cluster('gone', 'NewPods', label('1')),
      cluster('gone-following', 'RunningPods', label('1')),
      cluster('turned', 'NewPods', label('1')),
      cluster('turned-back', 'RunningPods', label('1')),
    );
    const now = [
      cluster('edited', 'NewPods', label('2')),
      cluster('follows', 'RunningPods', label('2'), label('3')),
      cluster('new', 'NewPods', label('2')),
      cluster('new-following', 'RunningPods', label('2')),
      cluster('turned', 'RunningPods', label('2')),
      cluster('turned-back', 'NewPods', label('2')),
      namespaced('a', 'RunningPods', label('2')),
    ];
    expect(values(rulesFor(before, ...now))).toEqual([
      'edited=1',
      'follows=2',
      'follows=3',
      'gone=1',
      'new-following=2',
      'turned=2',
      'turned-back=1',
      'shop/a=2',
    ]);
  });

  it('is what was recorded when no policy is for running pods', () => {
    const before = recorded(cluster('b', 'NewPods', label('1')), namespaced('a', 'NewPods', label('1')));
    expect(rulesFor(before, cluster('b', 'NewPods', label('2')))).toEqual(before);
  });

  it('lets go of a policy that turned to new pods, whatever becomes of it afterwards', () => {
    const before = recorded(cluster('a', 'RunningPods', label('1')));
    const elsewhere = policy('ClusterOverridePolicy', 'a', {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', name: 'another' }],
      overrideRules: [label('2')],
    });
    const [kept] = rulesFor(before, elsewhere);
    expect(kept).toEqual({ ...before[0], applyTo: 'NewPods' });
    expect(rulesFor(kept === undefined ? [] : [kept])).toEqual([kept]);
    // One for running pods that chooses others now is gone for this one.
    expect(rulesFor(before, { ...elsewhere, spec: { ...elsewhere.spec, applyTo: 'RunningPods' } })).toEqual([]);
  });
});

describe('a pod that runs', () => {
  const rules = recorded(
    cluster('a', 'NewPods', tag('v9'), label('x'), {
      overriders: {
        resourcesOverrider: [{ operator: 'add', containerName: 'app', requests: { cpu: '2' } }],
        initContainersOverrider: [{ operator: 'add', value: [{ name: 'wait', image: 'w' }] }],
        tolerationsOverrider: [{ operator: 'add', value: [{ key: 'spot' }] }],
      },
    }),
  );
  const renderedFor = (hostPod: Pod): Pod => {
    const outcome = applyRules(rendered(hostPod), rules, contextOf(hostPod));
    if ('refused' in outcome) throw new Error(outcome.refused.message);
    return outcome.object;
  };
  const effective = (hostPod: Pod) => podWithOverrides(hostPod, renderedFor(hostPod));

  it('is the host pod with what can change taken from the rendered one', () => {
    const hostPod = webPod();
    const pod = effective(hostPod);
    expect(pod.metadata.labels).toEqual({ app: 'web', 'pod-template-hash': '5d4f8', seen: 'x' });
    expect(pod.metadata).toMatchObject({
      name: hostPod.metadata.name,
      uid: hostPod.metadata.uid,
      annotations: { note: 'kept' },
    });
    expect(pod.spec.containers.map(({ image }) => image)).toEqual(['registry.example/web:v9', 'side:v9']);
    expect(pod.spec.containers[0]?.resources).toEqual({ requests: { cpu: '2' }, limits: { memory: '1Gi' } });
    expect(pod.spec.containers[0]?.env).toBe(hostPod.spec.containers[0]?.env);
    expect(pod.spec.initContainers).toBe(hostPod.spec.initContainers);
    expect(pod.spec.tolerations).toContainEqual({ key: 'spot' });
    expect(pod.spec.nodeName).toBe('east');
  });

  it('gets the changes of its host pod with the overrides on them, and nothing that did not change', () => {
    const hostPod = webPod();
    const { object: memberPod } = applyRules(rendered(effective(hostPod)), rules, contextOf(hostPod)) as {
      object: Pod;
    };
    expect(memberUpdates(effective(hostPod), memberPod, CONTEXT)).toEqual([]);
    const relabelled = webPod({}, { extra: 'label', seen: 'host' });
    expect(memberUpdates(effective(relabelled), memberPod, CONTEXT)).toEqual([
      expect.objectContaining({
        kind: 'patch',
        patch: { metadata: expect.objectContaining({ labels: { extra: 'label' } }) },
      }),
    ]);
  });
});
