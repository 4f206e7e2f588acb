import { expect, test } from 'vitest';
import { asOwned, releasedFrom, releasedText } from '../../src/api/released.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

const MARK = { hash: '7d4b9c', replicaSet: 'web-7d4b9c', uid: 'set', at: '2026-01-01T00:00:00Z', ready: 3 };
const owner = (uid: string) => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name: 'web-7d4b9c',
  uid,
  controller: true,
});
const pod = (mark: string | undefined, more: object = {}): Pod => ({
  metadata: {
    name: 'web-7d4b9c-x',
    labels: { app: 'web' },
    ...(mark === undefined ? {} : { annotations: { 'spillway.dev/released': mark } }),
    ...more,
  },
  spec: { containers: [] },
});

test('what is written is read, and begins with the hash, which admission policies compare', () => {
  expect(releasedText({ ...MARK, ready: 3 })).toBe(
    '{"hash":"7d4b9c","replicaSet":"web-7d4b9c","uid":"set","at":"2026-01-01T00:00:00Z","ready":3}',
  );
  expect(releasedFrom(pod(releasedText(MARK)))).toEqual(MARK);
  expect(releasedFrom(pod(releasedText({ ...MARK, lost: true })))).toEqual({ ...MARK, lost: true });
  // The ReplicaSet takes its time to let go of it.
  expect(releasedFrom(pod(releasedText(MARK), { ownerReferences: [owner('set')] }))).toEqual(MARK);
});

test.each([
  ['no mark', pod(undefined)],
  ['no JSON', pod('{')],
  ['something else', pod('[]')],
  ['a hash that is no label', pod(JSON.stringify({ ...MARK, hash: 'a b' }))],
  ['a time that is none', pod(JSON.stringify({ ...MARK, at: 'yesterday' }))],
  ['a count that is none', pod(JSON.stringify({ ...MARK, ready: -1 }))],
  ['too much', pod(JSON.stringify({ ...MARK, replicaSet: 'x'.repeat(2_000) }))],
  ['the label', pod(releasedText(MARK), { labels: { 'pod-template-hash': '7d4b9c' } })],
  ['another controller', pod(releasedText(MARK), { ownerReferences: [owner('other')] })],
])('a pod with %s is not released', (_, one) => {
  expect(releasedFrom(one)).toBeUndefined();
  expect(asOwned(one)).toBe(one);
});

test('a released pod is, for its rules and its copy, what it was before', () => {
  const before = pod(undefined, {
    labels: { app: 'web', 'pod-template-hash': '7d4b9c' },
    ownerReferences: [owner('set')],
  });
  const { annotations, ...metadata } = asOwned(pod(releasedText(MARK))).metadata;
  expect(metadata).toEqual(before.metadata);
  expect(Object.keys(annotations ?? {})).toEqual(['spillway.dev/released']);
});
