import { expect, test } from 'vitest';
import { MAX_OWNERS, OWNER_KINDS, ownerKind } from '../../src/kube/owner-kinds.ts';
import { controllerOf, groupKindOf, isDaemonSet } from '../../src/kube/owner-references.ts';

const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r1' };

test('the controller is the owner that says so, not any owner', () => {
  const metadata = {
    name: 'web-1-x',
    ownerReferences: [
      { ...owner, uid: 'other' },
      { ...owner, controller: true },
    ],
  };
  expect(controllerOf({ metadata })?.uid).toBe('r1');
  expect(controllerOf({ metadata: { name: 'bare', ownerReferences: [owner] } })).toBeUndefined();
  expect(controllerOf({ metadata: { name: 'bare' } })).toBeUndefined();
});

test('a kind is named with its group, whatever its version', () => {
  expect(groupKindOf(owner)).toBe('apps/ReplicaSet');
  expect(groupKindOf({ apiVersion: 'v1', kind: 'ReplicationController' })).toBe('/ReplicationController');
});

test('owners of known kinds can be read, those of others of the same name cannot', () => {
  expect(ownerKind(owner)?.plural).toBe('replicasets');
  expect(ownerKind({ apiVersion: 'v1', kind: 'ReplicationController' })?.plural).toBe('replicationcontrollers');
  expect(ownerKind({ apiVersion: 'apps/v1beta1', kind: 'ReplicaSet' })).toBeUndefined();
  expect(ownerKind({ apiVersion: 'example.com/v1', kind: 'Job' })).toBeUndefined();
  expect(OWNER_KINDS).toHaveLength(7);
  expect(MAX_OWNERS).toBeGreaterThan(2);
});

test.each([
  ['apps/v1', 'DaemonSet', true],
  ['apps/v2', 'DaemonSet', true],
  ['apps/v1', 'ReplicaSet', false],
  ['example.com/v1', 'DaemonSet', false],
  ['apps.example.com/v1', 'DaemonSet', false],
  [undefined, 'DaemonSet', false],
])('%s %s is a DaemonSet of Kubernetes: %s', (apiVersion, kind, is) => {
  expect(isDaemonSet({ apiVersion, kind })).toBe(is);
});
