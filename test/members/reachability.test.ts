import { describe, expect, it } from 'vitest';
import { ApiError, CredentialsError, TransportError } from '../../src/kube/errors.ts';
import type { TransportErrorKind } from '../../src/kube/errors.ts';
import { probeFailure } from '../../src/members/probe-failure.ts';
import { afterProbe, NOT_PROBED, unreachableSince } from '../../src/members/reachability.ts';
import type { Reachability } from '../../src/members/reachability.ts';

const EPOCH = Date.UTC(2026, 0, 1);
const thresholds = { failureThreshold: 3, successThreshold: 2 };
const failure = (reason: string, message = reason) => ({ reason, message });

/** `+` good, a letter: failed with that reason; one probe a second from time 0 on. */
function after(probes: string, state: Reachability = NOT_PROBED, from = 0): Reachability {
  return probes.split('').reduce<Reachability>(
    (current, probe, index) =>
      afterProbe(current, probe === '+' ? undefined : failure(probe, `${probe}${String(from + index)}`), thresholds, {
        wall: EPOCH + (from + index) * 1000,
        monotonic: (from + index) * 1000,
      }),
    state,
  );
}

describe('afterProbe', () => {
  it('knows nothing before the first probe', () => {
    expect(NOT_PROBED.reachable).toBeUndefined();
    expect(unreachableSince(NOT_PROBED)).toBeUndefined();
  });

  it.each([
    ['+', true],
    ['a', false],
    ['+a', true],
    ['+aa', true],
    ['+aaa', false],
    ['+aa+aa', true],
    ['+aa+aaa', false],
    ['a+', false],
    ['a++', true],
    ['a+a+', false],
    ['a+a++', true],
    ['+abc', false],
  ])('%s leads to reachable %s', (probes, reachable) => {
    expect(after(probes).reachable).toBe(reachable);
  });

  it('counts an outage from its first failed probe', () => {
    expect(unreachableSince(after('++aaa'))).toEqual({ wall: EPOCH + 2000, monotonic: 2000 });
    expect(unreachableSince(after('++aa'))).toBeUndefined();
    expect(unreachableSince(after('++aaa+aaa'))).toEqual({ wall: EPOCH + 2000, monotonic: 2000 });
    expect(unreachableSince(after('++aaa++'))).toBeUndefined();
    expect(unreachableSince(after('++aaa++aaa'))).toEqual({ wall: EPOCH + 7000, monotonic: 7000 });
  });

  it('keeps the first message of a reason, so that the status does not change with every probe', () => {
    expect(after('+aaaaa').failure).toEqual(failure('a', 'a1'));
    expect(after('+aaabb').failure).toEqual(failure('b', 'b4'));
    expect(after('+aaa+').failure).toEqual(failure('a', 'a1'));
    expect(after('+aaa++').failure).toBeUndefined();
    expect(after('+a+').failure).toBeUndefined();
  });
});

describe('probeFailure', () => {
  const where = { cluster: 'east', method: 'GET', path: '/api/v1/namespaces/kube-system' };
  const transport = (kind: TransportErrorKind) => new TransportError({ ...where, kind, detail: 'words' });
  const api = (code: number) => new ApiError({ ...where, code, status: { kind: 'Status', message: 'words' } });

  it.each([
    [transport('timeout'), 'Timeout'],
    [transport('refused'), 'Refused'],
    [transport('reset'), 'ConnectionReset'],
    [transport('dns'), 'NameNotFound'],
    [transport('tls'), 'TLSVerifyFailed'],
    [transport('proxy'), 'ProxyFailed'],
    [transport('malformed'), 'NotAKubernetesAPI'],
    [api(401), 'Unauthorized'],
    [api(403), 'Forbidden'],
    [api(429), 'TooManyRequests'],
    [api(500), 'ServerError'],
    [api(404), 'ProbeFailed'],
    [new CredentialsError('SecretNotFound', 'words'), 'SecretNotFound'],
    ['something odd', 'ProbeFailed'],
  ])('%s is %s', (error, reason) => {
    const found = probeFailure(error);
    expect(found.reason).toBe(reason);
    expect(found.message).toMatch(/(words|odd).*\. [A-Z].*\.$/);
  });
});
