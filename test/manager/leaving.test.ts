import { describe, expect, it } from 'vitest';
import { type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import { type Asked, isGivenUp } from '../../src/manager/given-up.ts';

const FORCE_LEAVE_SECONDS = 300;

function leaver(word = 'mc-east', leaves = true): MemberCluster {
  const annotations = { 'spillway.dev/force-leave': word };
  const deleted = leaves ? { deletionTimestamp: '2026-01-10T00:00:00Z' } : {};
  const raw = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', uid: 'mc-east', annotations, ...deleted },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } },
  };
  const parsed = parseMemberCluster(raw);
  if ('problems' in parsed) throw new Error(parsed.problems.join());
  return parsed.member;
}
const asked = (reachable: boolean, seconds: number, identity = 'pinned'): Asked => ({
  reachability: { reachable, against: 0, failingSince: undefined, failure: undefined },
  observedIdentity: identity,
  identityOk: () => identity === 'pinned',
  silentMs: seconds * 1000,
});

describe('the word of an administrator that a member is gone for good', () => {
  it.each<[string, boolean, Asked, MemberCluster?]>([
    ['counts in an outage of five minutes', true, asked(false, 300)],
    ['counts when another cluster has answered for so long', true, asked(true, 300, 'another')],
    ['does not count in an outage of half a minute', false, asked(false, 30)],
    ['does not count in one of nearly five minutes', false, asked(false, 299)],
    ['does not count when another cluster has answered for a moment', false, asked(true, 0, 'another')],
    ['does not count while the member answers', false, asked(true, 0)],
    ['does not count before the deletion', false, asked(false, 300), leaver('mc-east', false)],
    ['does not count for another MemberCluster of the name', false, asked(false, 300), leaver('mc-former')],
  ])('%s', (_, counts, connection, member = leaver()) => {
    expect(isGivenUp(member, connection, FORCE_LEAVE_SECONDS)).toBe(counts);
  });
});
