import { expect, test } from 'vitest';
import type { Condition, Pod } from '../../src/kube/core-v1.ts';
import { heldBack, intentOf } from '../../src/pods/creation-intent.ts';
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

test('a hold does not take back that a creation was begun, unless it is settled that nothing came of it', () => {
  const intent = { member: 'east', namespace: 'shop', name: 'a', since: '7' };
  const pod = held('Creating', 'The pod is being created.');
  pod.status = {
    conditions: [{ type: 'spillway.dev/Mirrored', reason: 'Creating', ...heldBack('Creating.', intent) }],
  };
  const hold = { reason: 'MemberUnreachable', message: 'no answer' };
  const shown = holdPatch(pod, hold, NOW) as { status: { message: string; conditions: Condition[] } };
  const after: Pod = { ...pod, status: { conditions: shown.status.conditions } };
  expect([shown.status.message, shown.status.conditions[0]?.status]).toEqual(['no answer', 'Unknown']);
  expect(intentOf(after)).toEqual(intent);
  expect(holdPatch(after, hold, NOW)).toBeUndefined();
  const settled = holdPatch(after, hold, NOW, true) as { status: { conditions: Condition[] } };
  expect(settled.status.conditions[0]).toMatchObject({ status: 'False', message: 'no answer' });
});

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
