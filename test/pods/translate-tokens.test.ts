import { describe, expect, test } from 'vitest';
import { memberUpdates } from '../../src/pods/member-updates.ts';
import { isTokenSecretName, tokenSecretName, tokenSourcesOf, wantsCa } from '../../src/pods/translate-tokens.ts';
import { findReferences } from '../../src/pods/references.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { boundPod, CONTEXT, frozen, type Loose, refused, translated } from '../fixtures/translation.ts';

const INJECTED = {
  name: 'kube-api-access-x7x2z',
  projected: {
    defaultMode: 420,
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
    ],
  },
};
const VAULT = {
  name: 'vault',
  projected: {
    sources: [
      { serviceAccountToken: { audience: 'vault', expirationSeconds: 600, path: 'vault' } },
      { serviceAccountToken: { path: 'default' } },
      { configMap: { name: 'kube-root-ca.crt', optional: true } },
      { secret: { name: 'mine' } },
    ],
  },
};
const PLAIN = { name: 'plain', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } };
const MOUNT = { name: INJECTED.name, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true };
const SECRET = 'spillway-tokens-0c7d2c5e-8a4b-4f0e-9c52-2f2a8f3f9c11';

const asking = (): Pod =>
  frozen(
    boundPod({
      serviceAccountName: 'builder',
      serviceAccount: 'builder',
      containers: [{ name: 'app', volumeMounts: [MOUNT] }],
      volumes: [INJECTED, VAULT, PLAIN],
    }),
  );

describe('tokens that a pod asks for', () => {
  test('each kind once, with a key of its own', () => {
    const { spec } = asking();
    expect(tokenSourcesOf({ ...spec })).toEqual([
      { key: 'token-0', audience: '', expirationSeconds: 3607 },
      { key: 'token-1', audience: 'vault', expirationSeconds: 600 },
      { key: 'token-2', audience: '', expirationSeconds: 3600 },
    ]);
    expect(tokenSourcesOf({ volumes: [VAULT, VAULT] }).length).toBe(2);
    expect([wantsCa({ ...spec }), wantsCa({ volumes: [PLAIN] }), wantsCa({})]).toEqual([true, false, false]);
    expect(tokenSourcesOf({ volumes: [{ name: 'x', projected: { sources: 'no list' } }, 7] })).toEqual([]);
  });

  test('are in one Secret of the member, which no host has', () => {
    expect(tokenSecretName(asking().metadata.uid ?? '')).toBe(SECRET);
    expect([SECRET, 'spillway-tokens-of-mine'].map(isTokenSecretName)).toEqual([true, false]);
    const { spec, metadata } = translated(asking(), { serviceAccountMode: 'Host' });
    const names = findReferences({ spec, metadata } as unknown as Pod).map(({ name }) => name);
    expect(names).toEqual(['mine']);
  });
});

describe('mode Host', () => {
  test('tokens and their CA come from the Secret; the rest stays', () => {
    const { spec, metadata } = translated(asking(), { serviceAccountMode: 'Host' });
    expect(spec['volumes']).toEqual([
      {
        name: INJECTED.name,
        projected: {
          defaultMode: 420,
          sources: [
            { secret: { name: SECRET, items: [{ key: 'token-0', path: 'token' }] } },
            { secret: { name: SECRET, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            {
              downwardAPI: {
                items: [
                  { path: 'namespace', fieldRef: { fieldPath: "metadata.annotations['spillway.dev/host-namespace']" } },
                ],
              },
            },
          ],
        },
      },
      {
        name: 'vault',
        projected: {
          sources: [
            { secret: { name: SECRET, items: [{ key: 'token-1', path: 'vault' }] } },
            { secret: { name: SECRET, items: [{ key: 'token-2', path: 'default' }] } },
            { secret: { name: SECRET, items: [{ key: 'ca.crt', path: 'ca.crt' }], optional: true } },
            { secret: { name: 'mine' } },
          ],
        },
      },
      PLAIN,
    ]);
    expect((spec['containers'] as Loose[])[0]?.['volumeMounts']).toEqual([MOUNT]);
    expect(spec).not.toHaveProperty('serviceAccountName');
    expect(spec['automountServiceAccountToken']).toBe(false);
    expect(metadata['annotations']).toMatchObject({ 'spillway.dev/service-account-mode': 'Host' });
  });

  test('a pod that asks for no token gets none', () => {
    const { spec } = translated(boundPod({ volumes: [PLAIN] }), { serviceAccountMode: 'Host' });
    expect(spec['volumes']).toEqual([PLAIN]);
  });
});

describe('mode Member', () => {
  test('the account of the same name, with a token where the host mounted one', () => {
    const { spec, metadata } = translated(asking(), { serviceAccountMode: 'Member' });
    expect(spec).toMatchObject({ serviceAccountName: 'builder', automountServiceAccountToken: true });
    expect(spec['volumes']).toEqual([VAULT, PLAIN]);
    expect((spec['containers'] as Loose[])[0]).not.toHaveProperty('volumeMounts');
    expect(metadata['annotations']).toMatchObject({ 'spillway.dev/service-account-mode': 'Member' });
  });

  test('and none where the host mounted none', () => {
    const { spec } = translated(boundPod({ serviceAccountName: 'builder' }), { serviceAccountMode: 'Member' });
    expect(spec).toMatchObject({ serviceAccountName: 'builder', automountServiceAccountToken: false });
  });
});

describe('every mode', () => {
  test.each(['None', 'Member', 'Host'] as const)('%s: certificates are refused, tokens only in None', (mode) => {
    const volumes = [{ name: 'c', projected: { sources: [{ podCertificate: { signerName: 'x' } }] } }];
    expect(refused(boundPod({ volumes }), { serviceAccountMode: mode }).reason).toBe('PodCertificateNotAvailable');
    if (mode === 'None') {
      expect(refused(asking(), { serviceAccountMode: mode })).toMatchObject({
        reason: 'ServiceAccountTokenNotAvailable',
        message: expect.stringContaining('its service account mode is None') as string,
      });
    }
  });

  test.each([
    ['Host', [MOUNT]],
    ['None', undefined],
  ] as const)('%s: a debug container mounts what the pod was made with', (mode, mounts) => {
    const volumes = [INJECTED];
    const { spec, metadata } = translated(boundPod({ volumes }), { serviceAccountMode: mode });
    const memberPod = { spec, metadata: { ...metadata, uid: 'm' } } as unknown as Pod;
    const hostPod = boundPod({ volumes, ephemeralContainers: [{ name: 'debug', volumeMounts: [MOUNT] }] });
    // Whatever the mode would be now.
    const [first] = memberUpdates(hostPod, memberPod, { ...CONTEXT, serviceAccountMode: 'None' });
    const [debug] = (first?.patch['spec'] as { ephemeralContainers?: Loose[] } | undefined)?.ephemeralContainers ?? [];
    expect(debug).toBeDefined();
    expect(debug?.['volumeMounts']).toEqual(mounts);
  });
});
