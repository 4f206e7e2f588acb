import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRequest } from '../../src/kubelet/routes.ts';

function kindOf(method: string, url: string): string {
  return parseRequest(method, url).route.kind;
}

describe('what a kubelet path means', () => {
  test.each([
    ['GET', '/pods', 'pods'],
    ['GET', '/pods/', 'pods'],
    ['GET', '/runningpods/', 'runningpods'],
    ['GET', '/runningpods', 'runningpods'],
    ['GET', '/healthz', 'healthz'],
    ['GET', '/healthz/ping', 'healthz'],
    ['GET', '/healthz?verbose', 'healthz'],
    ['GET', '/metrics', 'metrics'],
    ['GET', '/metrics/resource', 'metrics/resource'],
    ['GET', '/metrics/resource/', 'metrics/resource'],
    ['GET', '/metrics/cadvisor', 'metrics/cadvisor'],
    ['GET', '/stats/summary', 'stats/summary'],
    ['GET', '/stats/summary/?only_cpu_and_memory=true', 'stats/summary'],
    ['GET', '/metrics/probes', 'notFound'],
    ['GET', '/metrics/resource/more', 'notFound'],
    ['GET', '/stats', 'notFound'],
    ['GET', '/stats/container', 'notFound'],
    ['POST', '/stats/summary', 'methodNotAllowed'],
    ['POST', '/metrics/resource', 'methodNotAllowed'],
    ['GET', '/containerLogs/ns/pod/c', 'containerLogs'],
    ['GET', '/containerLogs/ns/a.b-c.d/c?follow=true', 'containerLogs'],
    ['POST', '/exec/ns/pod/c?command=ls&output=1', 'exec'],
    ['GET', '/exec/ns/pod/c?command=ls&output=1', 'exec'],
    ['POST', '/exec/ns/pod/0b1c2d3e-0000-4000-8000-0123456789ab/c', 'exec'],
    ['POST', '/attach/ns/pod/c', 'attach'],
    ['POST', '/attach/ns/pod/uid/c', 'attach'],
    ['POST', '/portForward/ns/pod', 'portForward'],
    ['GET', '/portForward/ns/pod/uid?port=80', 'portForward'],
    // One decode is right; what it gives must be a plain name.
    ['GET', '/containerLogs/ns/%70od/c', 'containerLogs'],
    ['GET', '/', 'notFound'],
    ['GET', '/configz', 'notFound'],
    ['GET', '/logs/', 'notFound'],
    ['GET', '/debug/pprof/heap', 'notFound'],
    ['POST', '/run/ns/pod/c?cmd=id', 'notFound'],
    ['POST', '/checkpoint/ns/pod/c', 'notFound'],
    ['GET', '/healthz/syncloop', 'notFound'],
    ['GET', '/Pods', 'notFound'],
    ['GET', '/containerLogs/ns/pod', 'notFound'],
    ['GET', '/containerLogs/ns/pod/c/more', 'notFound'],
    ['POST', '/exec/ns/pod', 'notFound'],
    ['POST', '/exec/ns/pod/uid/c/more', 'notFound'],
    ['POST', '/portForward/ns', 'notFound'],
    ['POST', '/portForward/ns/pod/uid/more', 'notFound'],
    ['GET', '/__proto__', 'notFound'],
    ['GET', '/constructor/x', 'notFound'],
    ['POST', '/pods', 'methodNotAllowed'],
    ['HEAD', '/healthz', 'methodNotAllowed'],
    ['POST', '/containerLogs/ns/pod/c', 'methodNotAllowed'],
    ['PUT', '/exec/ns/pod/c', 'methodNotAllowed'],
    ['DELETE', '/portForward/ns/pod', 'methodNotAllowed'],
  ])('%s %s is %s', (method, url, kind) => {
    expect(kindOf(method, url)).toBe(kind);
  });

  test.each([
    '',
    'pods',
    '*',
    'https://other/pods',
    '//pods',
    '/pods//',
    '/./pods',
    '/../pods',
    '/pods/..',
    '/containerLogs/ns/../c',
    '/containerLogs/ns/%2e%2e/c',
    '/containerLogs/ns/%2E/c',
    '/containerLogs/ns/a%2fb/c',
    '/containerLogs/ns/a%2Fb/c',
    '/containerLogs/ns/a%5cb/c',
    '/containerLogs/ns/a%00/c',
    '/containerLogs/ns/a%0d%0aX:1/c',
    '/containerLogs/ns/a%252fb/c',
    '/containerLogs/ns/%/c',
    '/containerLogs/ns/%zz/c',
    '/containerLogs/ns/%ff/c',
    '/containerLogs/ns/a b/c',
    '/containerLogs/ns/a#b/c',
    '/containerLogs/ns/a;b/c',
    '/containerLogs/NS/pod/c',
    '/containerLogs/a.b/pod/c',
    '/containerLogs/__proto__/pod/c',
    '/containerLogs/ns/-pod/c',
    '/containerLogs/ns/pod./c',
    '/containerLogs/ns/pod/C',
    '/containerLogs/ns/pod/__proto__',
    `/containerLogs/ns/${'a'.repeat(254)}/c`,
    `/containerLogs/${'a'.repeat(64)}/pod/c`,
    '/exec/ns/pod/u_d/c',
    `/exec/ns/pod/${'a'.repeat(65)}/c`,
    '/exec/ns/pod/c?command=%00',
    '/exec/ns/pod/c?command=%0',
    '/exec/ns/pod/c?command=a;b',
    '/exec/ns/pod/c?command=a#b',
    '/exec/ns/pod/c?%ff=1',
  ])('%j is refused as malformed', (url) => {
    expect(kindOf('GET', url)).toBe('badRequest');
  });

  test('names come out as they are, with the UID only where the path has one', () => {
    const { route } = parseRequest('POST', '/exec/ns/pod.x/some-uid/c-1?command=a');
    expect(route).toMatchObject({
      kind: 'exec',
      pod: { namespace: 'ns', name: 'pod.x', uid: 'some-uid' },
      container: 'c-1',
    });
    const short = parseRequest('POST', '/exec/ns/pod.x/c-1?command=a');
    expect(short.route).toMatchObject({ pod: { namespace: 'ns', name: 'pod.x' }, container: 'c-1' });
    expect(short.route).not.toHaveProperty('pod.uid');
  });

  test('the root that decides the rights is the decoded first segment', () => {
    expect(parseRequest('GET', '/%65xec/ns/pod/c').root).toBe('exec');
    expect(parseRequest('GET', '/stats/summary').root).toBe('stats');
    expect(parseRequest('GET', '/%2e%2e/exec').root).toBe('');
  });
});

const HOSTILE = [
  '..',
  '.',
  '%2e',
  '%2e%2e',
  '%2f',
  '/',
  '//',
  '%5c',
  '\\',
  '%00',
  '\0',
  '%0d%0a',
  '\r\n',
  '__proto__',
  'constructor',
  '%25',
  '%',
  '%c0%af',
  '%ff',
  '?',
  '#',
  ';',
  '@',
  ':',
  '&',
  '=',
  'exec',
  'attach',
  'portForward',
  'containerLogs',
  'pods',
  'ns',
  'pod',
  'c',
  'é',
  '%e2%80%ae',
];

describe('any input at all', () => {
  const url = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(fc.constantFrom(...HOSTILE)).map((parts) => `/${parts.join('')}`),
    fc.array(fc.constantFrom(...HOSTILE)).map((parts) => `/${parts.join('/')}`),
    fc.array(fc.constantFrom(...HOSTILE)).map((parts) => `/exec/ns/pod/c?command=${parts.join('')}`),
  );
  const method = fc.oneof(fc.constantFrom('GET', 'POST', 'HEAD', 'PUT'), fc.string());

  test('gives a route or a reason, and every name in a route is a plain DNS name', () => {
    fc.assert(
      fc.property(method, url, (method, url) => {
        const { route, root } = parseRequest(method, url);
        expect(root).toMatch(/^[A-Za-z0-9._~-]*$/);
        if ('pod' in route) {
          expect(route.pod.namespace).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
          expect(route.pod.name).toMatch(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/);
          expect(route.pod.name).not.toContain('..');
          expect(route.pod.uid ?? 'u').toMatch(/^[A-Za-z0-9-]+$/);
        }
        if ('container' in route) {
          expect(route.container).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
        }
        if (route.kind === 'exec') {
          for (const raw of route.query.rawValues('command')) {
            expect(raw).toMatch(/^[!-~]*$/);
            expect(raw).not.toMatch(/[&#; ]|%00/);
          }
        }
      }),
      { numRuns: 5000 },
    );
  });
});
