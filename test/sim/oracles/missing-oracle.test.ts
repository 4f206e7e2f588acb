import { describe, expect, it } from 'vitest';
import { HOST_LABEL, NODE_LABEL, UID_LABEL } from '../../../src/api/marks.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { MissingOracle } from './missing-oracle.ts';

const NODE = 'west-x';

function copies(count: number, metadata: object = {}): SimObject[] {
  return Array.from({ length: count }, (_, index) => {
    const labels = { [HOST_LABEL]: 'host', [NODE_LABEL]: NODE, [UID_LABEL]: `of-${index}` };
    return { metadata: { name: `web-${index}`, uid: `copy-${index}`, resourceVersion: '1', labels, ...metadata } };
  });
}

/** As the program, or somebody, writes whether deletions are allowed in `west`. */
function written(allowed: 'True' | 'False' | undefined, by = 'a#1'): Change {
  const conditions = allowed === undefined ? [] : [{ type: 'DeletionsAllowed', status: allowed }];
  const object = { metadata: { name: 'west', uid: 'west', resourceVersion: '1' }, status: { conditions } };
  return { object, by, at: 0 } as unknown as Change;
}

/** What is found when deletions of pods whose host pods are gone are held back, and then are not. */
function found(then: Change, pods = copies(6), prepare: (oracle: MissingOracle) => void = () => undefined): string[] {
  const told: string[] = [];
  const oracle = new MissingOracle((name, what) => told.push(`${name}: ${what}`));
  oracle.memberCluster(written('False'), () => true, copies(6));
  prepare(oracle);
  oracle.memberCluster(then, () => true, pods);
  return told;
}

describe('the oracle of deletions that are held back', () => {
  it('blames who holds none back any more while as many pods are missing as before', () => {
    expect(found(written('True'))).toEqual([
      'I2: a#1 holds no deletions back in west any more, although 6 pods of west-x are missing in the host',
    ]);
  });

  it('blames nobody once few are missing, or all are on their way out', () => {
    expect(found(written('True'), copies(5))).toEqual([]);
    expect(found(written('True'), copies(6, { deletionTimestamp: '2026-01-05T00:00:00Z' }))).toEqual([]);
  });

  it('blames nobody who does not say that they are allowed, nor for what administrators say', () => {
    expect(found(written(undefined))).toEqual([]);
    expect(found(written('True', 'admin'))).toEqual([]);
    expect(found(written('True'), copies(6), (oracle) => (oracle.confirmed = true))).toEqual([]);
  });
});
