import { describe, expect, it } from 'vitest';
import { createAuthority, issueClient, kubeconfigYaml } from '../../hack/pki.ts';
import type { Secret } from '../../src/kube/core-v1.ts';
import { CredentialsError } from '../../src/kube/errors.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { readCredentials } from '../../src/members/credentials-watch.ts';
import { RotatingAccess } from '../../src/members/rotating-access.ts';

const reference = { namespace: 'fleet', name: 'east', key: 'kubeconfig' };
const secret = (kubeconfig: string): Secret => ({
  metadata: { namespace: 'fleet', name: 'east' },
  data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
});
const refusal = (given: Secret | undefined) => {
  const state = readCredentials(reference, given);
  return 'refusal' in state
    ? { reason: state.refusal.reason, gone: state.gone, message: state.refusal.message }
    : 'accepted';
};

describe('readCredentials', () => {
  it('takes a self-contained kubeconfig', async () => {
    const ca = await createAuthority('test');
    const client = await issueClient(ca, 'spillway');
    const text = kubeconfigYaml({ server: 'https://10.0.0.1:6443', ca: ca.cert, user: 'spillway', client });
    const state = readCredentials(reference, secret(text));
    expect('access' in state && state.access.endpoint.server).toBe('https://10.0.0.1:6443');
  });

  it('puts the token that is renewed in the place of the one in the kubeconfig', async () => {
    const ca = await createAuthority('test');
    const text = JSON.stringify({
      clusters: [
        {
          name: 'c',
          cluster: {
            server: 'https://10.0.0.1:6443',
            'certificate-authority-data': Buffer.from(ca.cert).toString('base64'),
          },
        },
      ],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    });
    const given = secret(text);
    expect(refusal(given)).toMatchObject({ reason: 'NoCredentials' });
    const token = (value: string): Secret => ({
      ...given,
      data: { ...given.data, token: Buffer.from(value).toString('base64') },
    });
    const state = readCredentials(reference, token('one'));
    expect('access' in state && (await state.access.credentials.headers())).toEqual({ authorization: 'Bearer one' });
    expect(state).toMatchObject({ token: undefined });
    const claims = { sub: 'system:serviceaccount:spillway-access:spillway-host', iat: 1, exp: 2 };
    const ends = token(`e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`);
    expect(readCredentials(reference, ends)).toMatchObject({ token: { issuedAt: 1000, expiresAt: 2000 } });
    expect(refusal(token('o n e'))).toMatchObject({ reason: 'InvalidToken' });
  });

  it('tells a Secret that is not there from one that is wrong', () => {
    expect(refusal(undefined)).toMatchObject({ reason: 'SecretNotFound', gone: true });
    expect(refusal({ metadata: { name: 'east' } })).toMatchObject({ reason: 'SecretKeyMissing', gone: true });
    expect(refusal(secret(''))).toMatchObject({ reason: 'SecretKeyMissing', gone: true });
    expect(refusal(secret('no: kubeconfig'))).toMatchObject({ reason: 'InvalidKubeconfig', gone: false });
  });

  it('names the Secret and never quotes it', () => {
    const answer = refusal(secret('token: canary-0123456789\n  bad yaml: ['));
    expect(answer).toMatchObject({ message: expect.stringContaining('Secret fleet/east, key kubeconfig') });
    expect(JSON.stringify(answer)).not.toContain('canary');
  });
});

describe('RotatingAccess', () => {
  const access = (token: string, server = 'https://a:6443', ca = 'ca-1') =>
    staticAccess({ endpoint: { server, ca }, token });

  it('hands new credentials and a new CA to whoever asks next', async () => {
    const rotating = RotatingAccess.of(access('one'));
    const { endpoint } = rotating;
    expect(await rotating.headers()).toEqual({ authorization: 'Bearer one' });
    expect(rotating.use(access('two', 'https://a:6443', 'ca-2'))).toBe(true);
    expect(await rotating.headers()).toEqual({ authorization: 'Bearer two' });
    expect(endpoint.ca).toBe('ca-2');
  });

  it('does not move to another address or name', async () => {
    const rotating = RotatingAccess.of(access('one'));
    expect(rotating.use(access('two', 'https://b:6443'))).toBe(false);
    const renamed = staticAccess({ endpoint: { server: 'https://a:6443', serverName: 'x' }, token: 'two' });
    expect(rotating.use(renamed)).toBe(false);
    expect(await rotating.headers()).toEqual({ authorization: 'Bearer one' });
  });

  it('fails with the reason while there are none, and works again after', async () => {
    const rotating = RotatingAccess.of(access('one'));
    rotating.withdraw(new CredentialsError('SecretNotFound', 'gone'));
    await expect(rotating.headers()).rejects.toThrow('gone');
    expect(() => rotating.tls()).toThrow('gone');
    expect(() => rotating.fingerprint()).toThrow('gone');
    expect(rotating.use(access('two'))).toBe(true);
    expect(await rotating.headers()).toEqual({ authorization: 'Bearer two' });
  });

  it('without any credentials has no address to connect to', async () => {
    const rotating = RotatingAccess.without(new CredentialsError('SecretNotFound', 'gone'));
    expect(rotating.endpoint.server).toBe('https://member.invalid');
    expect(rotating.use(access('one'))).toBe(false);
    await expect(rotating.headers()).rejects.toThrow('gone');
  });
});
