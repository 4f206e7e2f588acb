import { describe, expect, test } from 'vitest';
import { whyNotMovedUnstarted } from '../../src/descheduler/replaceable.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

function pod(more: { metadata?: object; spec?: object; status?: object } = {}): Pod {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'set', controller: true };
  return {
    metadata: { name: 'web-1-a', namespace: 'shop', uid: 'a', ownerReferences: [owner], ...more.metadata },
    spec: { containers: [], nodeName: 'east', ...more.spec },
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }], ...more.status },
  };
}

const owned = (apiVersion: string, kind: string, controller = true): Pod =>
  pod({ metadata: { ownerReferences: [{ apiVersion, kind, name: 'x', uid: 'x', controller }] } });

describe('whether another pod can take the part of one that never started', () => {
  test.each([owned('apps/v1', 'ReplicaSet'), owned('apps/v1', 'StatefulSet'), owned('v1', 'ReplicationController')])(
    'it can where the controller makes another one',
    (one) => {
      expect(whyNotMovedUnstarted(one)).toBeUndefined();
    },
  );

  test('it can where it has volumes of its own, which have no data yet', () => {
    const volumes = [{ name: 'own', ephemeral: { volumeClaimTemplate: {} } }];
    expect(whyNotMovedUnstarted(pod({ spec: { volumes } }))).toBeUndefined();
  });

  test.each([
    ['without a controller', pod({ metadata: { ownerReferences: undefined } }), 'no controller'],
    ['owned by what does not control it', owned('apps/v1', 'ReplicaSet', false), 'no controller'],
    ['of a Job', owned('batch/v1', 'Job'), 'a Job counts a pod that is deleted as one that failed'],
    ['of a DaemonSet', owned('apps/v1', 'DaemonSet'), 'a DaemonSet has one pod for each node'],
    [
      'of a kind that nobody knows',
      owned('argoproj.io/v1alpha1', 'Workflow'),
      'a argoproj.io/Workflow would make another',
    ],
    ['of a kind of that name in another group', owned('x.io/v1', 'ReplicaSet'), 'a x.io/ReplicaSet would make another'],
    [
      'of a gang',
      pod({ metadata: { labels: { 'spillway.dev/gang': 'g' }, ownerReferences: pod().metadata.ownerReferences } }),
      'gang',
    ],
    [
      'with a claim',
      pod({ spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } }),
      'claims',
    ],
    ['made with the name of its node', pod({ status: { conditions: [] } }), 'no scheduler chose its node'],
  ])('it stays: %s', (_what, one, words) => {
    expect(whyNotMovedUnstarted(one)).toContain(words);
  });
});
