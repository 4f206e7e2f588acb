import { expect, test } from 'vitest';
import { refusalHeaders, requestHeaders, switchingHeaders } from '../../src/kubelet/upgrade-headers.ts';

const OWN = { Host: 'member:6443', Authorization: 'Bearer ours' };

test('only what the protocol switch needs goes on; our credentials take the place of the caller’s', () => {
  const raw = [
    ['Host', 'node:10250'],
    ['User-Agent', 'kube-apiserver'],
    ['Authorization', 'Bearer theirs'],
    ['Cookie', 'session=1'],
    ['X-Remote-User', 'admin'],
    ['X-Remote-Group', 'system:masters'],
    ['X-Remote-Extra-Scopes', 'all'],
    ['Impersonate-User', 'admin'],
    ['X-Forwarded-For', '10.0.0.1'],
    ['Connection', 'Upgrade'],
    ['Upgrade', 'SPDY/3.1'],
    ['X-Stream-Protocol-Version', 'v5.channel.k8s.io'],
    ['x-stream-protocol-version', 'v4.channel.k8s.io'],
    ['Content-Length', '0'],
    ['Transfer-Encoding', 'chunked'],
  ].flat();
  expect(requestHeaders(raw, 'POST', OWN)).toEqual(
    [
      ['Host', 'member:6443'],
      ['Authorization', 'Bearer ours'],
      ['Connection', 'Upgrade'],
      ['Upgrade', 'SPDY/3.1'],
      ['X-Stream-Protocol-Version', 'v5.channel.k8s.io'],
      ['x-stream-protocol-version', 'v4.channel.k8s.io'],
      ['Content-Length', '0'],
    ].flat(),
  );
});

test('what the caller names in Connection stays on his hop, and can never take our own headers away', () => {
  const raw = [
    ['Connection', 'Upgrade, X-Stream-Protocol-Version, Authorization, Host'],
    ['Upgrade', 'SPDY/3.1'],
    ['X-Stream-Protocol-Version', 'v4.channel.k8s.io'],
  ].flat();
  expect(requestHeaders(raw, 'POST', OWN)).toEqual(
    ['Host', 'member:6443', 'Authorization', 'Bearer ours', 'Connection', 'Upgrade', 'Upgrade', 'SPDY/3.1'].concat([
      'Content-Length',
      '0',
    ]),
  );
});

test('a bearer token dressed as a WebSocket subprotocol is not passed on', () => {
  const raw = (protocols: string): string[] => ['Upgrade', 'websocket', 'Sec-WebSocket-Protocol', protocols];
  const token = 'base64url.bearer.authorization.k8s.io.c2VjcmV0';
  expect(requestHeaders(raw(`${token}, v4.channel.k8s.io`), 'GET', OWN)).toContain('v4.channel.k8s.io');
  expect(requestHeaders(raw(`v4.channel.k8s.io,${token}`), 'GET', OWN).join('\n')).not.toContain('bearer');
  expect(requestHeaders(raw(token), 'GET', OWN)).not.toContain('Sec-WebSocket-Protocol');
});

test('a WebSocket GET has no body and says nothing about one', () => {
  expect(requestHeaders(['Upgrade', 'websocket'], 'GET', OWN)).not.toContain('Content-Length');
});

test('the switch and a refusal bring back protocol headers only', () => {
  const raw = ['Connection', 'Upgrade', 'Upgrade', 'SPDY/3.1', 'X-Stream-Protocol-Version', 'v4.channel.k8s.io'];
  expect(switchingHeaders([...raw, 'Set-Cookie', 'a=b', 'Location', 'https://other', 'Audit-Id', '1'])).toEqual(raw);
  expect(
    refusalHeaders(['Retry-After', '1', 'Location', 'x', 'X-Accepted-Stream-Protocol-Versions', 'v4', 'Warning', 'w']),
  ).toEqual([
    ['Retry-After', '1'],
    ['X-Accepted-Stream-Protocol-Versions', 'v4'],
  ]);
});
