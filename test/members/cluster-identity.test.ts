import { expect, test } from 'vitest';
import { ClusterIdentity } from '../../src/members/cluster-identity.ts';
import { memberConnection } from '../fixtures/member-connection.ts';

/** What happens to a connection: its member is pinned, or a cluster answers. */
type Step = { pin: string } | { saw: string };

test.each<[string, string | undefined, Step[], isPinned: boolean, isMisled: boolean]>([
  ['nothing', 'a', [], false, false],
  ['the pinned one alone', 'a', [{ saw: 'a' }, { saw: 'a' }], true, false],
  ['one that is pinned then', undefined, [{ saw: 'a' }, { pin: 'a' }], true, false],
  ['another one than is pinned then', undefined, [{ saw: 'a' }, { pin: 'b' }], false, false],
  ['another one than the pinned', 'a', [{ saw: 'b' }], false, true],
  ['another one, and the pinned one again', 'a', [{ saw: 'a' }, { saw: 'b' }, { saw: 'a' }], false, true],
  ['another one, which is pinned then', 'a', [{ saw: 'a' }, { saw: 'b' }, { pin: 'b' }], false, true],
  ['another one only, which is pinned then', 'a', [{ saw: 'b' }, { pin: 'b' }], false, true],
  ['the one that is pinned now, not the former', 'a', [{ pin: 'b' }, { saw: 'b' }], false, true],
  ['two before one was pinned', undefined, [{ saw: 'a' }, { saw: 'b' }, { pin: 'b' }], false, true],
  ['another one, when it was pinned after the first look', undefined, [{ pin: 'a' }, { saw: 'b' }], false, true],
])('a connection that has led to %s (pinned at first: %s)', (_what, pinned, steps, isPinned, isMisled) => {
  let pin = pinned;
  const identity = new ClusterIdentity(() => pin);
  for (const step of steps) {
    if ('pin' in step) pin = step.pin;
    else identity.saw(step.saw);
  }
  expect({ isPinned: identity.isPinned, isMisled: identity.isMisled }).toEqual({ isPinned, isMisled });
});

test('a connection that was told of another cluster stays untrusted when that one is pinned', () => {
  let pinned = 'pinned';
  const connection = memberConnection('http://127.0.0.1:1', { pinned: () => pinned });
  connection.toldOf('another');
  pinned = 'another';
  expect([connection.observedIdentity, connection.identityOk()]).toEqual(['another', false]);
});

test('no connection takes the word of another one for being the pinned cluster', () => {
  const connection = memberConnection('http://127.0.0.1:1');
  connection.toldOf('pinned');
  expect([connection.observedIdentity, connection.identityOk()]).toEqual([undefined, false]);
});
