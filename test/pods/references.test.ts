import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { findReferences } from '../../src/pods/references.ts';
import { boundPod, madePod } from '../fixtures/translation.ts';

const found = (pod: Pod): string[] =>
  findReferences(pod)
    .map(({ kind, name, optional }) => `${kind}/${name}${optional ? '?' : ''}`)
    .sort();

test('a pod as a Deployment makes it', () => {
  // kube-root-ca.crt of the injected volume is not among them.
  expect(found(madePod('deployment'))).toEqual([
    'ConfigMap/flags?',
    'ConfigMap/web-config',
    'ConfigMap/web-env',
    'Secret/db',
    'Secret/registry?',
    'Secret/tls?',
  ]);
  expect(found(madePod('job'))).toEqual([]);
});

test.each([
  ['configMap', { configMap: { name: 'x' } }, 'ConfigMap/x'],
  ['configMap, optional', { configMap: { name: 'x', optional: true } }, 'ConfigMap/x?'],
  ['secret', { secret: { secretName: 'x' } }, 'Secret/x'],
  ['secret, optional', { secret: { secretName: 'x', optional: true } }, 'Secret/x?'],
  ['projected configMap', { projected: { sources: [{ configMap: { name: 'x' } }] } }, 'ConfigMap/x'],
  ['projected secret', { projected: { sources: [{ secret: { name: 'x', optional: true } }] } }, 'Secret/x?'],
  ['azureFile', { azureFile: { secretName: 'x', shareName: 's' } }, 'Secret/x'],
  ['cephfs', { cephfs: { secretRef: { name: 'x' } } }, 'Secret/x'],
  ['cinder', { cinder: { secretRef: { name: 'x' } } }, 'Secret/x'],
  ['csi', { csi: { driver: 'd', nodePublishSecretRef: { name: 'x' } } }, 'Secret/x'],
  ['flexVolume', { flexVolume: { secretRef: { name: 'x' } } }, 'Secret/x'],
  ['iscsi', { iscsi: { secretRef: { name: 'x' } } }, 'Secret/x'],
  ['rbd', { rbd: { secretRef: { name: 'x' } } }, 'Secret/x'],
  ['scaleIO', { scaleIO: { secretRef: { name: 'x' } } }, 'Secret/x'],
  ['storageos', { storageos: { secretRef: { name: 'x' } } }, 'Secret/x'],
])('volume: %s', (_, source, expected) => {
  expect(found(boundPod({ volumes: [{ name: 'v', ...source }] }))).toEqual([expected]);
});

test.each(['containers', 'initContainers', 'ephemeralContainers'])('environment of %s', (list) => {
  const env = [
    { name: 'A', valueFrom: { configMapKeyRef: { name: 'a', key: 'k' } } },
    { name: 'B', valueFrom: { secretKeyRef: { name: 'b', key: 'k', optional: true } } },
  ];
  const envFrom = [{ configMapRef: { name: 'c', optional: true } }, { prefix: 'P_', secretRef: { name: 'd' } }];
  expect(found(boundPod({ [list]: [{ name: 'x', env, envFrom }] }))).toEqual([
    'ConfigMap/a',
    'ConfigMap/c?',
    'Secret/b?',
    'Secret/d',
  ]);
});

test('pull secrets are optional: a kubelet tries without a missing one', () => {
  expect(found(boundPod({ imagePullSecrets: [{ name: 'r' }, { name: '' }, {}] }))).toEqual(['Secret/r?']);
});

test('each once; one mandatory mention makes it mandatory', () => {
  const volumes = [
    { name: 'a', configMap: { name: 'x', optional: true } },
    { name: 'b', configMap: { name: 'x' } },
    { name: 'c', configMap: { name: 'x', optional: true } },
    { name: 'd', secret: { secretName: 'x', optional: true } },
  ];
  expect(found(boundPod({ volumes }))).toEqual(['ConfigMap/x', 'Secret/x?']);
});

test("ConfigMaps that every cluster publishes are the member's own", () => {
  const volumes = [
    {
      name: 'v',
      projected: {
        sources: [{ configMap: { name: 'kube-root-ca.crt' } }, { configMap: { name: 'openshift-service-ca.crt' } }],
      },
    },
  ];
  expect(found(boundPod({ volumes }))).toEqual([]);
  expect(found(boundPod({ volumes: [{ name: 'v', secret: { secretName: 'kube-root-ca.crt' } }] }))).toEqual([
    'Secret/kube-root-ca.crt',
  ]);
});

test('any JSON is read without failing', () => {
  const fields = fc.constantFrom('volumes', 'containers', 'initContainers', 'ephemeralContainers', 'imagePullSecrets');
  fc.assert(
    fc.property(fc.dictionary(fields, fc.jsonValue() as fc.Arbitrary<unknown>), (spec) => {
      for (const { name } of findReferences(boundPod(spec))) expect(name).not.toBe('');
    }),
  );
});
