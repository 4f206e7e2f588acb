import { expect, it } from 'vitest';
import { memberUnreachable } from '../../src/pods/member-unreachable.ts';

it.each([
  [undefined, 'does not answer. The pod starts there as soon as it does; nothing needs to be done.'],
  ['Timeout', 'nothing needs to be done'],
  ['ServerError', 'does not answer as it should (ServerError)'],
  ['ProxyFailed', 'condition Reachable of MemberCluster "east" says what the proxy answers'],
  ['Unauthorized', 'cannot be asked (Unauthorized), which does not pass by itself'],
])('a pod waits for a member that is not reachable because of %s', (because, words) => {
  const hold = memberUnreachable('east', because);
  expect(hold.reason).toBe('MemberUnreachable');
  expect(hold.message).toContain(words);
  expect(hold.message.includes('nothing needs to be done')).toBe(
    because === undefined || !/Proxy|Unauth/.test(because),
  );
});
