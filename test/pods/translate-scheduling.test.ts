import { describe, expect, test } from 'vitest';
import type { TranslateContext } from '../../src/pods/translate.ts';
import { boundPod, type Loose, refused, translated } from '../fixtures/translation.ts';

const specOf = (spec: Loose, context: Partial<TranslateContext> = {}): Loose =>
  translated(boundPod(spec), context).spec;
const need = (key: string, operator = 'Exists', ...values: string[]): Loose => ({
  key,
  operator,
  ...(values.length === 0 ? {} : { values }),
});
const term = (...matchExpressions: Loose[]): Loose => ({ matchExpressions });
const required = (...nodeSelectorTerms: Loose[]): Loose => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
});
const affinityOf = (affinity: Loose, context: Partial<TranslateContext> = {}): unknown =>
  specOf({ affinity }, context)['affinity'];

const VIRTUAL = [
  'kubernetes.io/hostname',
  'type',
  'spillway.dev/member',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'node.kubernetes.io/exclude-from-external-load-balancers',
];

describe('nodeSelector', () => {
  test.each(VIRTUAL)('%s stays on the host', (key) => {
    expect(specOf({ nodeSelector: { [key]: 'x', disk: 'ssd' } })['nodeSelector']).toEqual({ disk: 'ssd' });
    expect(specOf({ nodeSelector: { [key]: 'x' } })).not.toHaveProperty('nodeSelector');
  });
  test('labels that the MemberCluster adds stay, all else goes down', () => {
    const nodeSelector = {
      team: 'a',
      'kubernetes.io/arch': 'arm64',
      'node.kubernetes.io/instance-type': 'm5',
      constructor: 'x',
    };
    expect(specOf({ nodeSelector }, { hostOnlyLabels: new Set(['team']) })['nodeSelector']).toEqual({
      'kubernetes.io/arch': 'arm64',
      'node.kubernetes.io/instance-type': 'm5',
      constructor: 'x',
    });
  });
  test('a pool adds its labels; a contradiction is refused', () => {
    const poolSelector = { pool: 'gpu' };
    expect(specOf({}, { poolSelector })['nodeSelector']).toEqual({ pool: 'gpu' });
    expect(specOf({ nodeSelector: { disk: 'ssd', type: 'x' } }, { poolSelector })['nodeSelector']).toEqual({
      disk: 'ssd',
      pool: 'gpu',
    });
    expect(specOf({ nodeSelector: { pool: 'gpu' } }, { poolSelector })['nodeSelector']).toEqual({ pool: 'gpu' });
    expect(refused(boundPod({ nodeSelector: { pool: 'cpu' } }), { poolSelector }).reason).toBe('NodePoolMismatch');
  });
});

describe('node affinity', () => {
  test('expressions of virtual nodes go, the others stay in their term', () => {
    const both = term(need('type', 'In', 'virtual-kubelet'), need('gpu', 'In', 'a100'));
    expect(affinityOf(required(both))).toEqual(required(term(need('gpu', 'In', 'a100'))));
  });
  test('ORed terms keep their pairing', () => {
    const a = term(need('spillway.dev/node', 'In', 'east'), need('gpu', 'In', 'a100'));
    const b = term(need('disk', 'In', 'nvme'), need('cpu', 'In', 'epyc'));
    expect(affinityOf(required(a, b))).toEqual(required(term(need('gpu', 'In', 'a100')), b));
  });
  test('a term with matchFields and matchExpressions keeps the expressions', () => {
    const both = { ...term(need('gpu')), matchFields: [need('metadata.name', 'In', 'east')] };
    expect(affinityOf(required(both))).toEqual(required(term(need('gpu'))));
  });
  test('a term for another virtual node does not open this one', () => {
    const other = term(need('kubernetes.io/hostname', 'In', 'west'));
    const field = { matchFields: [need('metadata.name', 'In', 'west')] };
    const gpu = term(need('gpu'));
    expect(affinityOf(required(other, field, gpu))).toEqual(required(gpu));
  });
  test('with the labels of the virtual node, the term that chose it is known', () => {
    const zone = term(need('topology.kubernetes.io/zone', 'In', 'z1'));
    const gpu = term(need('gpu'));
    expect(affinityOf(required(zone, gpu), { nodeLabels: { 'topology.kubernetes.io/zone': 'z2' } })).toEqual(
      required(gpu),
    );
    expect(affinityOf(required(zone, gpu), { nodeLabels: { 'topology.kubernetes.io/zone': 'z1' } })).toBeUndefined();
    expect(affinityOf(required(zone, gpu))).toBeUndefined();
  });
  test.each([
    ['In', ['z1'], true],
    ['In', ['z2'], false],
    ['NotIn', ['z1'], false],
    ['NotIn', ['z2'], true],
    ['Exists', [], true],
    ['DoesNotExist', [], false],
    ['Unheard', [], true],
  ])('operator %s %j against zone z1: %j', (operator, values, chosen) => {
    const zone = term(need('topology.kubernetes.io/zone', operator, ...values));
    const gpu = term(need('gpu'));
    const after = affinityOf(required(zone, gpu), { nodeLabels: { 'topology.kubernetes.io/zone': 'z1' } });
    expect(after).toEqual(chosen ? undefined : required(gpu));
  });
  test('Gt and Lt compare numbers', () => {
    const context = { nodeLabels: { 'spillway.dev/tier': '10' } };
    const gpu = term(need('gpu'));
    expect(affinityOf(required(term(need('spillway.dev/tier', 'Gt', '9')), gpu), context)).toBeUndefined();
    expect(affinityOf(required(term(need('spillway.dev/tier', 'Lt', '9')), gpu), context)).toEqual(required(gpu));
  });
  test.each([
    ['Gt', '9.5', '10'],
    ['Gt', '0x9', '10'],
    ['Gt', '', '10'],
    ['Gt', '1e1', '11'],
    ['Gt', '9', '10.5'],
    ['Lt', '12', '0xa'],
    ['Gt', '9223372036854775807', '9223372036854775808'],
    ['Lt', '9223372036854775806', '9223372036854775806'],
  ])('%s %j does not hold for %j: they are compared as whole numbers of 64 bits', (operator, wanted, tier) => {
    const gpu = term(need('gpu'));
    const selector = required(term(need('spillway.dev/tier', operator, wanted)), gpu);
    expect(affinityOf(selector, { nodeLabels: { 'spillway.dev/tier': tier } })).toEqual(required(gpu));
  });
  test('Gt tells apart numbers that are one and the same as floating point', () => {
    const selector = required(term(need('spillway.dev/tier', 'Gt', '9223372036854775806')), term(need('gpu')));
    expect(affinityOf(selector, { nodeLabels: { 'spillway.dev/tier': '9223372036854775807' } })).toBeUndefined();
  });
  test('nothing left of a term that chose the node: any node will do', () => {
    expect(affinityOf(required(term(need('type')), term(need('gpu'))))).toBeUndefined();
  });
  test('if no term chooses the node any more, all of them count', () => {
    const terms = [
      term(need('kubernetes.io/hostname', 'In', 'west'), need('gpu')),
      term(need('kubernetes.io/hostname', 'In', 'north'), need('disk')),
    ];
    expect(affinityOf(required(...terms))).toEqual(required(term(need('gpu')), term(need('disk'))));
  });
  test('an empty term matches no node, there as here', () => {
    expect(affinityOf(required({}, term(need('gpu'))))).toEqual(required({}, term(need('gpu'))));
    expect(affinityOf(required({}))).toEqual(required({}));
  });
  test('preferences are treated alike', () => {
    const prefer = (...list: Loose[]): Loose => ({
      nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: list },
    });
    const list = [
      { weight: 1, preference: term(need('type'), need('gpu')) },
      { weight: 2, preference: term(need('kubernetes.io/hostname', 'In', 'west'), need('disk')) },
      { weight: 3, preference: term(need('type')) },
      { weight: 4, preference: term(need('disk')) },
    ];
    expect(affinityOf(prefer(...list))).toEqual(
      prefer({ weight: 1, preference: term(need('gpu')) }, { weight: 4, preference: term(need('disk')) }),
    );
    expect(affinityOf(prefer({ weight: 3, preference: term(need('type')) }))).toBeUndefined();
  });
  test('excluded nodes are excluded from every term', () => {
    const no = (key: string): Loose => need(key, 'NotIn', 'true');
    expect(specOf({}, { excludedNodes: { spot: 'true' } })['affinity']).toEqual(required(term(no('spot'))));
    expect(
      affinityOf(required(term(need('gpu')), term(need('disk'))), { excludedNodes: { a: 'true', b: 'true' } }),
    ).toEqual(
      required(
        term(need('gpu'), no('a')),
        term(need('gpu'), no('b')),
        term(need('disk'), no('a')),
        term(need('disk'), no('b')),
      ),
    );
    expect(affinityOf(required(term(need('type'))), { excludedNodes: { a: 'true' } })).toEqual(required(term(no('a'))));
    expect(affinityOf(required({}), { excludedNodes: { a: 'true' } })).toEqual(required({}));
  });
});

describe('pod affinity', () => {
  const near = (...terms: Loose[]): Loose => ({
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms },
  });
  const byNode = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } };
  test('rules between nodes go down, rules between zones stay', () => {
    expect(affinityOf(near(byNode, { ...byNode, topologyKey: 'topology.kubernetes.io/zone' }))).toEqual(near(byNode));
    expect(affinityOf(near({ ...byNode, topologyKey: 'topology.kubernetes.io/zone' }))).toBeUndefined();
  });
  test('preferred rules and anti-affinity too', () => {
    const anti = (...list: Loose[]): Loose => ({
      podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: list },
    });
    const weighted = (podAffinityTerm: Loose): Loose => ({ weight: 5, podAffinityTerm });
    expect(affinityOf(anti(weighted(byNode), weighted({ ...byNode, topologyKey: 'rack' })))).toEqual(
      anti(weighted(byNode)),
    );
    expect(affinityOf(anti(weighted({ ...byNode, topologyKey: 'rack' })))).toBeUndefined();
  });
  test('namespaces are mapped; a term without any left stays on the host', () => {
    const memberNamespaceOf = (name: string): string | undefined => (name === 'data' ? 'team-data' : undefined);
    expect(affinityOf(near({ ...byNode, namespaces: ['shop', 'data', 'gone'] }), { memberNamespaceOf })).toEqual(
      near({ ...byNode, namespaces: ['team-shop', 'team-data'] }),
    );
    expect(affinityOf(near({ ...byNode, namespaces: ['gone'] }))).toBeUndefined();
    expect(affinityOf(near({ ...byNode, namespaces: [] }))).toEqual(near({ ...byNode, namespaces: [] }));
  });
  test('a selector of host namespaces stays on the host; all namespaces means all', () => {
    expect(affinityOf(near({ ...byNode, namespaceSelector: { matchLabels: { team: 'a' } } }))).toBeUndefined();
    expect(affinityOf(near({ ...byNode, namespaceSelector: {} }))).toEqual(near({ ...byNode, namespaceSelector: {} }));
  });
  test('label keys that the host merged are not sent to be merged again', () => {
    const labelSelector = { matchExpressions: [{ key: 'pod-template-hash', operator: 'In', values: ['1'] }] };
    expect(
      affinityOf(
        near({
          ...byNode,
          labelSelector,
          matchLabelKeys: ['pod-template-hash', 'other'],
          mismatchLabelKeys: ['tenant'],
        }),
      ),
    ).toEqual(near({ ...byNode, labelSelector, matchLabelKeys: ['other'], mismatchLabelKeys: ['tenant'] }));
    expect(affinityOf(near({ ...byNode, labelSelector, mismatchLabelKeys: ['pod-template-hash'] }))).toEqual(
      near({ ...byNode, labelSelector }),
    );
  });
});

test('topology spread: between nodes', () => {
  const spread = [
    { maxSkew: 1, topologyKey: 'kubernetes.io/hostname' },
    { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone' },
  ];
  expect(specOf({ topologySpreadConstraints: spread })['topologySpreadConstraints']).toEqual([spread[0]]);
  expect(specOf({ topologySpreadConstraints: [spread[1]] })).not.toHaveProperty('topologySpreadConstraints');
});

describe('tolerations', () => {
  const of = (...tolerations: Loose[]): unknown => specOf({ tolerations })['tolerations'];
  const unreachable = {
    key: 'node.kubernetes.io/unreachable',
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  };
  test('those of virtual nodes and the ones every host adds stay', () => {
    expect(
      of({ key: 'spillway.dev/virtual-node', operator: 'Exists' }, unreachable, {
        ...unreachable,
        key: 'node.kubernetes.io/not-ready',
      }),
    ).toBeUndefined();
  });
  test.each([
    [{ ...unreachable, tolerationSeconds: 20 }],
    [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' }],
    [{ key: 'dedicated', operator: 'Equal', value: 'x', effect: 'NoSchedule' }],
    [{ operator: 'Exists' }],
    [{ key: 'spillway.devil/x', operator: 'Exists' }],
  ])('%j goes down', (toleration) => {
    expect(of(toleration)).toEqual([toleration]);
  });
});
