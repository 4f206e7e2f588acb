import { describe, expect, test } from 'vitest';
import { hostPath } from '../../src/api/host-path.ts';
import { hostPathProblem } from '../../src/pods/host-paths.ts';
import { boundPod, refused, translated } from '../fixtures/translation.ts';

const specWith = (path: unknown): Record<string, unknown> => ({ volumes: [{ name: 'files', hostPath: { path } }] });
const allowing = (...allowedPrefixes: string[]) => hostPath.parse({ policy: 'Allow', allowedPrefixes });

describe('paths of nodes', () => {
  test.each([
    ['/var/log', '/var/log'],
    ['/var/log', '/var/log/'],
    ['/var/log', '/var/log/pods/app.log'],
    ['/var/log', '//var/./log//pods/.'],
    ['/var/log', '/var/log/..hidden'],
    ['/var/log', '/var/log/a..b'],
    ['/', '/etc'],
    ['/', '/'],
  ])('%s allows %s', (prefix, path) => {
    expect(hostPathProblem(specWith(path), allowing('/opt/models', prefix))).toBeUndefined();
    const pod = boundPod(specWith(path));
    expect(translated(pod, { hostPath: allowing(prefix) }).spec['volumes']).toEqual(pod.spec.volumes);
  });

  test.each([
    ['/var/log', '/'],
    ['/var/log', '/var'],
    ['/var/log', '/var/logs'],
    ['/var/log', '/var/log-private/keys'],
    ['/var/log', '/VAR/LOG'],
    ['/var/log', '/etc/../var/log'],
    ['/var/log', '/var/log/../../etc'],
    ['/var/log', '/var/log/..'],
    ['/var/log', '/var/log/a\\..\\..\\..\\windows'],
    ['/', '/..'],
    ['/', 'etc'],
    ['/', 'var/log'],
    ['/', ''],
    ['/', 7],
    ['/', undefined],
  ])('%s does not allow %s', (prefix, path) => {
    expect(hostPathProblem(specWith(path), allowing(prefix))).toMatchObject({
      volume: 'files',
      path: path === 7 ? '' : (path ?? ''),
    });
  });

  test('nothing is allowed unless a policy says so', () => {
    const listed = { policy: 'Refuse' as const, allowedPrefixes: ['/var/log'] };
    for (const policy of [undefined, hostPath.parse({}), listed]) {
      expect(hostPathProblem(specWith('/var/log'), policy)?.why).toContain('refused there');
    }
  });

  test('one volume that is not allowed is enough, and is named with its path, the cluster, and what to do', () => {
    const volumes = [
      { name: 'fine', hostPath: { path: '/var/log' } },
      { name: 'keys', hostPath: { path: '/etc/kubernetes' } },
    ];
    const { reason, message } = refused(boundPod({ volumes }), { hostPath: allowing('/var/log') });
    expect(reason).toBe('HostPathNotAllowed');
    expect(message).toMatch(
      /^Volume "keys" .*"\/etc\/kubernetes".*cluster "east".*does not pass by itself.*spec\.hostPath of MemberCluster "east"/,
    );
  });

  test.each(['var/log', '/var/../etc', '/var/./log', '/var//log', '/var/log/', '..', '/..', 'C:\\logs', ''])(
    'a policy cannot list %s',
    (prefix) => expect(hostPath.safeParse({ policy: 'Allow', allowedPrefixes: [prefix] }).success).toBe(false),
  );
});
