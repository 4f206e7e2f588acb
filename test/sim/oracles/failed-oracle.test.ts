import { describe, expect, it } from 'vitest';
import { HOST_LABEL, MIRRORED_CONDITION, UID_LABEL } from '../../../src/api/marks.ts';
import type { SimObject } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { FailedOracle } from './failed-oracle.ts';

const BY = 'a#2';

function hostPod(status: object, metadata: object = {}): SimObject {
  return { metadata: { name: 'web', uid: 'web-uid', resourceVersion: '1', ...metadata }, status };
}

const FAILED = hostPod({ phase: 'Failed', reason: 'MemberPodLost' });

/** A request for the copy. */
function creation(status: number, query = ''): Call {
  const path = '/api/v1/namespaces/shop/pods';
  const labels = { [HOST_LABEL]: 'host', [UID_LABEL]: 'web-uid' };
  const body = JSON.stringify({ metadata: { name: 'web', labels } });
  return { owner: { name: BY }, path, query, status, outgoing: { method: 'POST', path, body } } as unknown as Call;
}

function judged(
  prepare: (oracle: FailedOracle) => void,
  o: { object?: SimObject; previous?: SimObject; hadCopy?: boolean } = {},
): string[] {
  const { object = FAILED, previous = hostPod({ phase: 'Pending' }), hadCopy = false } = o;
  const found: string[] = [];
  const oracle = new FailedOracle((name, what) => found.push(`${name}: ${what}`));
  prepare(oracle);
  oracle.failed(object, previous, BY, hadCopy);
  return found;
}

const NOTHING = (): void => undefined;
const BLAMED = ['I10: a#2 lets host pod web fail (MemberPodLost), which had no copy, nor can it have had one'];

describe('the oracle of pods that fail', () => {
  it('blames who lets a pod fail that never had a copy', () => {
    expect(judged(NOTHING)).toEqual(BLAMED);
  });

  it.each([403, 422, 429])('blames who takes a refusal (%s) for an end', (status) => {
    const refused = creation(status);
    expect(
      judged((oracle) => {
        oracle.sent(refused);
        oracle.received(refused);
      }),
    ).toEqual(BLAMED);
  });

  it('blames who takes a rehearsal for a creation', () => {
    expect(judged((oracle) => oracle.sent(creation(0, 'dryRun=All')))).toEqual(BLAMED);
  });

  it.each([201, 408, 500, 504])('blames nobody for a creation that may have been carried out (%s)', (status) => {
    const sent = creation(status);
    expect(
      judged((oracle) => {
        oracle.sent(sent);
        oracle.received(sent);
      }),
    ).toEqual([]);
  });

  it('blames nobody for a creation without an answer, beside others that were refused', () => {
    const refused = creation(429);
    expect(
      judged((oracle) => {
        oracle.sent(creation(0));
        oracle.sent(refused);
        oracle.received(refused);
      }),
    ).toEqual([]);
  });

  it('blames nobody for a pod that says that its copy is about to be made, but for one that says that nothing came of it', () => {
    const saying = (status: string): SimObject => hostPod({ conditions: [{ type: MIRRORED_CONDITION, status }] });
    expect(judged(NOTHING, { previous: saying('Unknown') })).toEqual([]);
    expect(judged(NOTHING, { previous: saying('False') })).toEqual(BLAMED);
  });

  it('blames nobody for a pod whose copy was there, nor for one that is being deleted', () => {
    expect(judged(NOTHING, { hadCopy: true })).toEqual([]);
    const deleted = hostPod({ phase: 'Failed' }, { deletionTimestamp: '2026-01-05T00:00:00Z' });
    expect(judged(NOTHING, { object: deleted })).toEqual([]);
  });
});
