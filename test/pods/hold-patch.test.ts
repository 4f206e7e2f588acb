import { expect, test } from 'vitest';
import type { Condition, Pod } from '../../src/api/wire.ts';
import { holdPatch } from '../../src/pods/hold-patch.ts';

const SINCE = '2026-01-01T00:00:00Z';
const NOW = '2026-01-01T00:10:00.123Z';

/** A pod that is held back already. */
function held(reason: string, message: string): Pod {
  const condition: Condition = {
    type: 'spillway.dev/Mirrored',
    status: 'False',
    reason,
    message,
    lastTransitionTime: SINCE,
  };
  return {
    metadata: { name: 'a', namespace: 'shop', uid: 'uid' },
    spec: { containers: [] },
    status: { phase: 'Pending', conditions: [condition] },
  };
}

const timeOf = (pod: Pod, reason: string, message: string): unknown => {
  const patch = holdPatch(pod, { reason, message }, NOW) as { status: { conditions: object[] } } | undefined;
  return patch?.status.conditions[0];
};

test('the time of a hold is since when it is for its reason', () => {
  const pod = held('MemberQuotaExceeded', 'used: 10');
  expect(holdPatch(pod, { reason: 'MemberQuotaExceeded', message: 'used: 10' }, NOW)).toBeUndefined();
  expect(timeOf(pod, 'MemberQuotaExceeded', 'used: 11')).toMatchObject({ lastTransitionTime: SINCE });
  // An outage before is none of the member's refusals.
  const unavailable = held('MemberUnavailable', 'no answer');
  const now = { lastTransitionTime: '2026-01-01T00:10:00Z' };
  expect(timeOf(unavailable, 'MemberQuotaExceeded', 'used: 10')).toMatchObject(now);
});
