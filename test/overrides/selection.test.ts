import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import { type OverrideSubject, selectPolicies } from '../../src/overrides/selection.ts';
import { boundPod } from '../fixtures/translation.ts';
import { policy, webPod } from './rendered-pod.ts';

const cluster = (name: string, ...resourceSelectors: object[]) =>
  policy('ClusterOverridePolicy', name, { resourceSelectors });
const namespaced = (name: string, ...resourceSelectors: object[]) =>
  policy('OverridePolicy', name, { resourceSelectors });

const POD = { apiVersion: 'v1', kind: 'Pod' };
const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment' };
const labels = (matchLabels: object) => ({ labelSelector: { matchLabels } });

const subject: OverrideSubject = {
  namespace: 'shop',
  identities: [
    { ...POD, name: 'web-5d4f8-x2x2x', labels: { app: 'web' } },
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f8', labels: { app: 'web' } },
    { ...DEPLOYMENT, name: 'web', labels: { app: 'web', team: 'a' } },
  ],
};

function selected(policies: OverridePolicy[], from = subject): string[] {
  const result = selectPolicies(from, policies);
  if ('unknown' in result) return [`unknown: ${result.unknown.kind} ${result.unknown.name}`];
  return result.selected.map(({ policy, rank }) => `${policy.metadata.name} ${rank}`);
}

describe('selectPolicies', () => {
  it.each([
    ['no selectors', [], 1],
    ['the kind of the pod', [POD], 1],
    ['the kind of an owner', [DEPLOYMENT], 1],
    ['the labels of an owner', [{ ...DEPLOYMENT, ...labels({ team: 'a' }) }], 2],
    ['an empty label selector', [{ ...DEPLOYMENT, labelSelector: {} }], 2],
    ['the name of an owner', [{ ...DEPLOYMENT, name: 'web' }], 3],
    ['the name, whatever the labels', [{ ...DEPLOYMENT, name: 'web', ...labels({ team: 'other' }) }], 3],
    ['the closest of several', [POD, { ...DEPLOYMENT, ...labels({ team: 'a' }) }, { ...POD, name: 'other' }], 2],
    ['its namespace', [{ ...POD, namespace: 'shop' }], 1],
    ['another kind', [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }], 0],
    ['another version of the kind', [{ apiVersion: 'apps/v1beta1', kind: 'Deployment' }], 0],
    ['another name', [{ ...DEPLOYMENT, name: 'other', ...labels({ team: 'a' }) }], 0],
    ['other labels', [{ ...DEPLOYMENT, ...labels({ team: 'b' }) }], 0],
    ['labels of the owner asked of the pod', [{ ...POD, ...labels({ team: 'a' }) }], 0],
    ['another namespace', [{ ...POD, namespace: 'other' }], 0],
  ])('matches by %s', (_what, selectors, rank) => {
    expect(selected([cluster('p', ...selectors)])).toEqual(rank === 0 ? [] : [`p ${rank}`]);
  });

  it('goes from cluster policies to those of the namespace, from wide to close, and by name', () => {
    const all = [
      namespaced('b', { ...DEPLOYMENT, name: 'web' }),
      namespaced('a', { ...DEPLOYMENT, name: 'web' }),
      namespaced('z'),
      cluster('n', { ...DEPLOYMENT, name: 'web' }),
      cluster('l', { ...DEPLOYMENT, ...labels({ team: 'a' }) }),
      cluster('K'),
      cluster('k'),
      policy('OverridePolicy', 'elsewhere', {}, 'other'),
    ];
    const order = ['K 1', 'k 1', 'l 2', 'n 3', 'z 1', 'a 3', 'b 3'];
    expect(selected(all)).toEqual(order);
    expect(selected(all.toReversed())).toEqual(order);
  });

  it('says which labels it has to know', () => {
    const [pod, replicaSet, deployment] = subject.identities;
    const unread = {
      ...subject,
      identities: [pod, replicaSet, { ...deployment, labels: undefined }],
    } as OverrideSubject;
    const byLabel = { ...DEPLOYMENT, ...labels({ team: 'a' }) };
    expect(selected([cluster('p', byLabel)], unread)).toEqual(['unknown: Deployment web']);
    // Labels cannot make it match more or less closely than by name, and an empty selector asks nothing of them.
    expect(selected([cluster('p', byLabel, { ...DEPLOYMENT, name: 'web' })], unread)).toEqual(['p 3']);
    expect(selected([cluster('p', { ...DEPLOYMENT, labelSelector: {} })], unread)).toEqual(['p 2']);
    expect(selected([cluster('p', { ...DEPLOYMENT, name: 'other', ...labels({ team: 'a' }) })], unread)).toEqual([]);
  });
});

describe('identitiesOfPod', () => {
  const kinds = (pod: Parameters<typeof identitiesOfPod>[0]) =>
    identitiesOfPod(pod).map(({ kind, name }) => `${kind} ${name}`);

  it('knows the Deployment behind a ReplicaSet', () => {
    expect(identitiesOfPod(webPod())).toEqual([
      { apiVersion: 'v1', kind: 'Pod', name: 'web-5d4f8-x2x2x', labels: { app: 'web', 'pod-template-hash': '5d4f8' } },
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f8', labels: undefined },
      { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', labels: undefined },
    ]);
  });

  it.each([
    ['a bare pod', {}, ['Pod p']],
    [
      'an owner that does not control it',
      { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }] },
      ['Pod p'],
    ],
    [
      'a ReplicaSet by hand',
      { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs-1', uid: 'u', controller: true }] },
      ['Pod p', 'ReplicaSet rs-1'],
    ],
    [
      'a ReplicaSet whose name says something else',
      {
        labels: { 'pod-template-hash': 'abc' },
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs-1', uid: 'u', controller: true }],
      },
      ['Pod p', 'ReplicaSet rs-1'],
    ],
    [
      'a StatefulSet',
      { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u', controller: true }] },
      ['Pod p', 'StatefulSet db'],
    ],
  ])('of %s', (_what, metadata, expected) => {
    expect(kinds(boundPod({}, { name: 'p', ...metadata }))).toEqual(expected);
  });
});
