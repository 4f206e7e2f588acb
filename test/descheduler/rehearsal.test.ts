import { expect, test } from 'vitest';
import { whyRehearsed } from '../../src/descheduler/rehearsal.ts';
import type { Strategy } from '../../src/descheduler/strategies.ts';

const BY_POLICY = 'its policy says failover.dryRun: true';

test.each<[Strategy, boolean, string | undefined]>([
  ['MemberLost', false, BY_POLICY],
  ['OutOfService', false, BY_POLICY],
  ['RefusedInMember', false, BY_POLICY],
  ['Repatriate', false, BY_POLICY],
  ['Migrate', false, undefined],
  ['Rebalance', false, undefined],
  ['GangTimedOut', false, undefined],
  ['Migrate', true, 'descheduler.dryRun is set'],
  ['Rebalance', true, 'descheduler.dryRun is set'],
  ['GangTimedOut', true, undefined],
])('%s, in a dry run of all (%s): %s', (strategy, all, why) => {
  expect(whyRehearsed(strategy, { dryRun: true }, all)).toBe(why);
  expect(whyRehearsed(strategy, { dryRun: false }, false)).toBeUndefined();
  expect(whyRehearsed(strategy, undefined, false)).toBeUndefined();
});
