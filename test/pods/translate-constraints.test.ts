import { describe, expect, it } from 'vitest';
import type { TranslateContext } from '../../src/pods/translate.ts';
import { memberUpdates } from '../../src/pods/member-updates.ts';
import { CONSTRAINT_CASES } from '../admission/constraint-cases.ts';
import { boundPod, CONTEXT, type Loose, refused, translated } from '../fixtures/translation.ts';

const KEY = 'spillway.dev/member-constraints';
const EAST: Partial<TranslateContext> = {
  nodeLabels: {
    type: 'virtual-kubelet',
    'spillway.dev/node': 'east',
    'spillway.dev/member': 'east',
    'kubernetes.io/hostname': 'east',
    'topology.kubernetes.io/zone': 'z1',
    'kubernetes.io/os': 'linux',
    team: 'a',
  },
  hostOnlyLabels: new Set(['team']),
};
const annotated = (constraints: unknown, spec: Loose = {}): ReturnType<typeof boundPod> =>
  boundPod(spec, {
    annotations: { [KEY]: typeof constraints === 'string' ? constraints : JSON.stringify(constraints) },
  });
const asked = ({ nodeSelector, affinity, tolerations }: Loose): Loose => ({ nodeSelector, affinity, tolerations });
const required = (...nodeSelectorTerms: object[]): Loose => ({
  requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
});

describe('a pod whose constraints were split', () => {
  it.each(CONSTRAINT_CASES.filter(({ split }) => split !== undefined))(
    'asks the member for what it would have asked for unsplit: $what',
    ({ spec, split }) => {
      const { constraints = {}, affinity = {}, nodeSelector } = split ?? {};
      const before = translated(boundPod(spec as Loose), EAST);
      const after = translated(
        annotated(constraints, { ...(spec as Loose), nodeSelector: nodeSelector ?? {}, affinity }),
        EAST,
      );
      expect(withoutEmptyLists(asked(after.spec))).toEqual(withoutEmptyLists(asked(before.spec)));
      expect(after.metadata['annotations']).not.toHaveProperty([KEY]);
    },
  );

  it('is not taken by a virtual node that does not have what it asked of virtual nodes', () => {
    // Labels that a MemberCluster adds are unknown where constraints are split, so no scheduler has looked at them.
    expect(translated(annotated({ nodeSelector: { team: 'a', disk: 'ssd' } }), EAST).spec['nodeSelector']).toEqual({
      disk: 'ssd',
    });
    const { reason, message } = refused(annotated({ nodeSelector: { team: 'b', disk: 'ssd' } }), EAST);
    expect(reason).toBe('NodeConstraintsMismatch');
    expect(message).toContain('label team=b');
    expect(message).toContain('"east"');
  });

  it('is not taken where none of its terms holds', () => {
    const west = { key: 'team', operator: 'In', values: ['b'] };
    const gpu = { key: 'gpu', operator: 'Exists', values: [] };
    const of = (...terms: object[]): ReturnType<typeof boundPod> => annotated({ nodeAffinity: required(...terms) });
    expect(refused(of({ matchExpressions: [west, gpu] }), EAST).reason).toBe('NodeConstraintsMismatch');
    expect(translated(of({ matchExpressions: [west] }, { matchExpressions: [gpu] }), EAST).spec['affinity']).toEqual({
      nodeAffinity: required({ matchExpressions: [gpu] }),
    });
  });
});

describe('a user says what goes down', () => {
  const own = {
    nodeSelector: { disk: 'ssd' },
    affinity: { nodeAffinity: required({ matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }) },
    tolerations: [{ key: 'a', operator: 'Exists' }],
  };
  it('in the place of what the pod asks of nodes of the host, part by part', () => {
    const before = asked(translated(boundPod(own), EAST).spec);
    expect(asked(translated(annotated({ nodeSelector: { rack: 'r1' } }, own), EAST).spec)).toEqual({
      ...before,
      nodeSelector: { rack: 'r1' },
    });
    expect(asked(translated(annotated({ nodeSelector: {} }, own), EAST).spec)['nodeSelector'] ?? {}).toEqual({});
    expect(asked(translated(annotated({ tolerations: [] }, own), EAST).spec)['tolerations'] ?? []).toEqual([]);
    const none = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: null } };
    expect(asked(translated(annotated(none, own), EAST).spec)).toEqual({ ...before, affinity: undefined });
  });

  it('and later changes of the tolerations on the host change nothing there', () => {
    const given = { tolerations: [{ key: 'b', operator: 'Exists' }] };
    const pod = annotated(given, { ...own, tolerations: [...own.tolerations, ...given.tolerations] });
    const copy = translated(pod, EAST);
    expect(copy.spec['tolerations']).toEqual(given.tolerations);
    const more = [...(pod.spec.tolerations ?? []), { key: 'c', operator: 'Exists' as const }];
    const changed = { ...pod, spec: { ...pod.spec, tolerations: more } };
    expect(memberUpdates(changed, copy as never, { ...CONTEXT, ...EAST })).toEqual([]);
  });

  it('within what the pod itself tolerates, which the policies of the host have judged', () => {
    const tolerations = [
      { key: 'a', operator: 'Exists' },
      { key: 'b', value: 'x', effect: 'NoSchedule' },
      { key: 'c', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
      { key: 'd', effect: 'NoSchedule' },
    ];
    const within = [
      { key: 'a', value: 'y' },
      { key: 'a', operator: 'Exists', effect: 'NoExecute' },
      { key: 'b', operator: 'Equal', value: 'x', effect: 'NoSchedule' },
      { key: 'c', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 },
    ];
    const copy = translated(annotated({ tolerations: within }, { tolerations }), EAST);
    expect(asked(copy.spec)['tolerations']).toEqual(within);
    const everything = [{ operator: 'Exists' }];
    expect(
      asked(translated(annotated({ tolerations: within }, { tolerations: everything }), EAST).spec)['tolerations'],
    ).toEqual(within);
    for (const beyond of [
      { operator: 'Exists' },
      { key: 'dedicated', operator: 'Exists' },
      { key: 'b', operator: 'Exists', effect: 'NoSchedule' },
      { key: 'b', value: 'x' },
      { key: 'b', value: 'z', effect: 'NoSchedule' },
      { key: 'c', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 61 },
      { key: 'c', operator: 'Exists', effect: 'NoExecute' },
      // Whatever the value, where the pod has the empty one only.
      { key: 'd', operator: 'Exists', effect: 'NoSchedule' },
    ]) {
      const { reason, message } = refused(annotated({ tolerations: [beyond] }, { tolerations }), EAST);
      expect(reason).toBe('InvalidMemberConstraints');
      expect(message).toContain('goes beyond the tolerations of the pod itself');
    }
  });

  it.each([
    ['{', 'it is not JSON'],
    ['[]', 'it is not an object'],
    ['{"affinity":{}}', 'it has "affinity"'],
    ['{"nodeSelector":{"a":1}}', 'nodeSelector is not a map of texts'],
    ['{"nodeSelector":[]}', 'nodeSelector is not a map of texts'],
    ['{"tolerations":{}}', 'tolerations is not a list of objects'],
    ['{"nodeAffinity":[]}', 'nodeAffinity is not that of a pod'],
    ['{"nodeAffinity":{"required":{}}}', 'nodeAffinity is not that of a pod'],
    ['{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}', 'nodeAffinity is not that of a pod'],
    ['{"__proto__":{"nodeSelector":{}}}', 'it has "__proto__"'],
  ])('%s is refused', (text, problem) => {
    const { reason, message } = refused(annotated(text), EAST);
    expect(reason).toBe('InvalidMemberConstraints');
    expect(message).toContain(problem);
    expect(message).toContain(KEY);
  });
});

function withoutEmptyLists(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmptyLists);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, part]) =>
      Array.isArray(part) && part.length === 0 ? [] : [[key, withoutEmptyLists(part)]],
    ),
  );
}
