import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { stringify } from 'yaml';
import { createAuthority, issueClient } from '../../hack/pki.ts';
import { CredentialsError } from '../../src/kube/errors.ts';
import { memberAccess } from '../../src/kube/member-access.ts';
import { fuzz } from './fuzz.ts';
import { changed, text } from './inputs.ts';

const TOKEN = 'tok-secret-en';
const authority = await createAuthority('east');
const client = await issueClient(authority, 'host');
const base64 = (pem: string): string => Buffer.from(pem).toString('base64');
const kubeconfig = (user: object): object => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [
    {
      name: 'c',
      cluster: { server: 'https://east.example:6443', 'certificate-authority-data': base64(authority.cert) },
    },
  ],
  users: [{ name: 'u', user }],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'x',
});
const SAMPLES = [
  kubeconfig({ token: TOKEN }),
  kubeconfig({ 'client-certificate-data': base64(client.cert), 'client-key-data': base64(client.key) }),
  kubeconfig({ token: TOKEN, exec: { command: 'sh', apiVersion: 'client.authentication.k8s.io/v1' } }),
];

const yaml = changed(...SAMPLES).map((document) => JSON.stringify(document));
const edited = fc
  .tuple(fc.constantFrom(...SAMPLES.map((one) => stringify(one))), fc.nat(), text)
  .map(([whole, at, piece]) => {
    const place = at % whole.length;
    return whole.slice(0, place) + piece + whole.slice(place);
  });
const bombs = fc.constantFrom(
  `a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n${'d: [*c, *c]\n'.repeat(500)}`,
  '&a [*a]',
  '<<: *x',
  '['.repeat(50_000),
  '{'.repeat(20_000),
  '- '.repeat(5_000),
  '? '.repeat(5_000),
  `clusters: [{name: c, cluster: {server: "https://x${'/'.repeat(60_000)}y"}}]\ncontexts: [{name: x, context: {cluster: c}}]`,
  '%YAML 1.1\n---\n...\n---\n',
  '!!js/function "x"',
  '\u0000',
);

describe('kubeconfigs of others', () => {
  fuzz(
    'give access to a server or an error without a secret in it',
    fc.oneof({ weight: 5, arbitrary: yaml }, { weight: 3, arbitrary: edited }, { weight: 1, arbitrary: bombs }, text),
    { share: 1_500 },
    (input) => {
      try {
        const { endpoint } = memberAccess(input);
        expect(endpoint.server).toMatch(/^https:\/\/[^@?#]+$/);
        expect(endpoint.ca).toContain('BEGIN CERTIFICATE');
      } catch (error) {
        if (!(error instanceof CredentialsError)) throw error;
        expect(error.message).not.toContain(TOKEN);
        expect(error.reason).toMatch(/^[A-Z][A-Za-z]+$/);
      }
    },
  );
});
