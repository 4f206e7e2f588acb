import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { memberStreamPath } from '../../src/kubelet/member-path.ts';
import { parseRequest } from '../../src/kubelet/routes.ts';

const POD = { namespace: 'member-ns', name: 'web-0' };

function memberPath(url: string): unknown {
  const { route } = parseRequest('POST', url);
  if (route.kind !== 'exec' && route.kind !== 'attach' && route.kind !== 'portForward') {
    throw new Error(`${url} is ${route.kind}`);
  }
  const answer = memberStreamPath(route, POD);
  return 'path' in answer ? answer.path.replace('/api/v1/namespaces/member-ns/pods/web-0', '') : answer.refused;
}

describe("the member's path for a stream", () => {
  test.each([
    [
      '/exec/ns/web-0/c?command=ls&command=-la&input=1&output=1&error=1',
      '/exec?container=c&stdin=true&stdout=true&stderr=true&command=ls&command=-la',
    ],
    [
      '/exec/ns/web-0/c?command=sh&input=1&output=1&error=1&tty=1',
      '/exec?container=c&stdin=true&stdout=true&tty=true&command=sh',
    ],
    ['/exec/ns/web-0/uid/c?output=1&command=a', '/exec?container=c&stdout=true&command=a'],
    ['/exec/ns/web-0/c?error=1&command=a', '/exec?container=c&stderr=true&command=a'],
    ['/exec/ns/web-0/c?output=true&command=a', 'you must specify at least 1 of stdin, stdout, stderr'],
    ['/exec/ns/web-0/c?error=1&tty=1', 'you must specify at least 1 of stdin, stdout, stderr'],
    ['/attach/ns/web-0/c?output=1&command=ignored', '/attach?container=c&stdout=true'],
    ['/portForward/ns/web-0', '/portforward'],
    ['/portForward/ns/web-0?port=80,443', '/portforward?ports=80&ports=443'],
    ['/portForward/ns/web-0?port=80%2C443&port=8080', '/portforward?ports=80&ports=443&ports=8080'],
    ['/portForward/ns/web-0?port=0', 'unable to parse "0" as a port'],
    ['/portForward/ns/web-0?port=65536', 'unable to parse "65536" as a port'],
    ['/portForward/ns/web-0?port=', 'unable to parse "" as a port'],
    ['/portForward/ns/web-0?port=1e2', 'unable to parse "1e2" as a port'],
  ])('%s', (url, expected) => {
    expect(memberPath(url)).toBe(expected);
  });

  test('commands pass byte for byte, whatever bytes they hold', () => {
    expect(memberPath('/exec/ns/web-0/c?output=1&command=%ff%FE+a%20b&command=&command=%26x%3Dy')).toBe(
      '/exec?container=c&stdout=true&command=%ff%FE+a%20b&command=&command=%26x%3Dy',
    );
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0'))), (commands) => {
        const query = new URLSearchParams(commands.map((command): [string, string] => ['command', command]));
        const path = String(memberPath(`/exec/ns/web-0/c?output=1&${query.toString()}`));
        const arrived = new URLSearchParams(path.slice(path.indexOf('?') + 1));
        expect(arrived.getAll('command')).toEqual(commands);
        expect(arrived.getAll('container')).toEqual(['c']);
      }),
    );
  });
});
