import { describe, expect, it } from 'vitest';
import { HOST_LABEL, HOST_UID_ANNOTATION } from '../../../src/api/marks.ts';
import type { Change, SimCluster } from '../sim-cluster.ts';
import { World } from '../world.ts';
import { DataOracle } from './data-oracle.ts';

const UID = 'host-claim';
const COPY = {
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'db', uid: 'copy', labels: { [HOST_LABEL]: 'host' }, annotations: { [HOST_UID_ANNOTATION]: UID } },
};

interface Stage {
  readonly found: string[];
  readonly claim: (type: 'ADDED' | 'DELETED') => void;
  readonly volume: (phase: string, policy?: string) => void;
  /** Somebody deletes the claim in the member. */
  readonly deletes: (by?: string) => void;
}

function staged(): Stage {
  const world = new World(1, { ca: '', hasRules: false, hasResidence: false });
  const found: string[] = [];
  const oracle = new DataOracle(world, (_oracle, what) => found.push(what));
  const west = world.members.get('west');
  const happens = (cluster: SimCluster | undefined, object: object, type: string, by: string): void =>
    oracle.changed({ cluster, object, type, by } as unknown as Change);
  const metadata = { name: 'db', uid: UID };
  return {
    found,
    claim: (type) => happens(world.host, { kind: 'PersistentVolumeClaim', metadata }, type, 'user'),
    volume: (phase, policy = 'Delete') => {
      const spec = { claimRef: { uid: UID }, persistentVolumeReclaimPolicy: policy };
      const volume = { kind: 'PersistentVolume', metadata: { name: 'pv', uid: 'pv' }, spec, status: { phase } };
      happens(world.host, volume, 'MODIFIED', 'volumes');
    },
    deletes: (by = 'a#1') => happens(west, COPY, 'DELETED', by),
  };
}

describe('the oracle of data', () => {
  it('blames nobody for data that go with their claim', () => {
    const { found, claim, volume, deletes } = staged();
    claim('ADDED');
    volume('Bound');
    claim('DELETED');
    volume('Released');
    deletes();
    expect(found).toEqual([]);
  });

  it('blames who deletes data of a claim that is there', () => {
    const { found, claim, volume, deletes } = staged();
    claim('ADDED');
    volume('Released');
    deletes();
    expect(found).toEqual(['a#1 deletes the data of claim db in west, which the host has']);
  });

  it('blames who deletes data that are to be kept, or of which nothing is known', () => {
    const { found, volume, deletes } = staged();
    deletes();
    volume('Released', 'Retain');
    deletes();
    volume('Bound');
    deletes();
    expect(found.map((what) => what.replace(/.*, whose /, ''))).toEqual([
      'policy is undefined',
      'policy is Retain',
      'volume is Bound',
    ]);
  });

  it('blames nobody for what the owner of the member deletes', () => {
    const { found, deletes } = staged();
    deletes('owner');
    expect(found).toEqual([]);
  });
});
