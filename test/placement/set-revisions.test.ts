import { describe, expect, test } from 'vitest';
import {
  isUnseenByController,
  keptOfSet,
  revisionOfNext,
  type SetRevisions,
} from '../../src/placement/set-revisions.ts';

const updating = { currentRevision: 'old', updateRevision: 'new', currentReplicas: 2 };
const set = (spec: SetRevisions['spec'] = {}, status: SetRevisions['status'] = updating): SetRevisions => ({
  metadata: {},
  spec,
  status,
});

describe('revisionOfNext', () => {
  const rolling = (partition: number) => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } } });

  test.each<[string, SetRevisions['spec'], (string | undefined)[]]>([
    [
      'with OnDelete each comes back as the template has it',
      { updateStrategy: { type: 'OnDelete' } },
      ['new', 'new', 'new'],
    ],
    ['in a roll-out, too', rolling(0), ['new', 'new', 'new']],
    ['below the partition as it was', rolling(2), ['old', 'old', 'new']],
    ['which counts from the first ordinal', { ordinals: { start: 1 }, ...rolling(1) }, ['old', 'old', 'new']],
    [
      'without a partition the first ones as they were',
      { updateStrategy: { type: 'RollingUpdate' } },
      ['old', 'old', 'new'],
    ],
  ])('%s', (_, spec, expected) => {
    expect(['db-0', 'db-1', 'db-2'].map((name) => revisionOfNext(name, set(spec)))).toEqual(expected);
  });

  test('is not said of a set whose controller has not said it, nor of a pod without an ordinal', () => {
    expect(revisionOfNext('db-0', set({}, {}))).toBeUndefined();
    expect(revisionOfNext('db', set())).toBeUndefined();
    expect(revisionOfNext('db-0', set(rolling(1), { updateRevision: 'new' }))).toBe('new');
  });
});

describe('keptOfSet', () => {
  const container = {
    name: 'main',
    image: 'a',
    env: [{ name: 'A', value: 'long' }],
    resources: { requests: { cpu: '1' } },
  };
  const template = {
    metadata: { labels: { app: 'db' }, annotations: { 'spillway.dev/member-constraints': '{}', other: 'long' } },
    spec: { nodeSelector: { disk: 'ssd' }, containers: [container] },
  };
  const raw = (status: object): object => ({
    metadata: { name: 'db', generation: 3 },
    spec: { replicas: 2, updateStrategy: { type: 'OnDelete' }, template },
    status: { observedGeneration: 3, replicas: 2, ...status },
  });

  test('is next to nothing while all pods are of one revision', () => {
    const atRest = { currentRevision: 'new', updateRevision: 'new', currentReplicas: 2, updatedReplicas: 2 };
    expect(keptOfSet(raw(atRest))).toEqual({
      metadata: { generation: 3 },
      spec: {},
      status: { observedGeneration: 3, updateRevision: 'new' },
    });
  });

  test.each([
    ['in a roll-out', { ...updating, updatedReplicas: 1 }],
    ['and on the way back to a former revision', { currentRevision: 'new', updateRevision: 'new', updatedReplicas: 1 }],
  ])('has of the template what placement looks at %s', (_, status) => {
    expect(keptOfSet(raw(status)).spec).toEqual({
      updateStrategy: { type: 'OnDelete' },
      template: {
        metadata: { labels: { app: 'db' }, annotations: { 'spillway.dev/member-constraints': '{}' } },
        spec: {
          nodeSelector: { disk: 'ssd' },
          containers: [{ name: 'main', image: 'a', resources: { requests: { cpu: '1' } } }],
        },
      },
    });
  });
});

test('a controller has not seen a set whose generation it has not told of', () => {
  const of = (generation: number, status: object): boolean =>
    isUnseenByController({ metadata: { generation }, status });
  expect([of(2, { observedGeneration: 1 }), of(2, { observedGeneration: 2 }), of(2, {})]).toEqual([true, false, false]);
});
