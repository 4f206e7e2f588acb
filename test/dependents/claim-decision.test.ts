import { describe, expect, it } from 'vitest';
import { SELECTED_NODE_ANNOTATION } from '../../src/api/storage.ts';
import { type ClaimFacts, decideClaim, claimState } from '../../src/dependents/claim-decision.ts';
import { readMemberVolume } from '../../src/api/member-volume.ts';
import { decideReclaim } from '../../src/dependents/reclaim.ts';
import { copyOfClaim, HOME, hostClaim, storageClass, volumeFor } from '../fixtures/claims.ts';

const selected = (node: string): object => ({ annotations: { [SELECTED_NODE_ANNOTATION]: node } });
const BOUND = hostClaim({ volumeName: 'pvc-host-claim' });
const bound = (more: Partial<ClaimFacts> = {}, claimUid?: string): ClaimFacts => ({
  claim: BOUND,
  storageClass: storageClass(),
  volume: readMemberVolume(volumeFor(BOUND, claimUid === undefined ? {} : { claimUid })),
  home: HOME,
  copy: undefined,
  knowledge: { known: true },
  answer: undefined,
  place: 't-shop',
  wanted: true,
  plan: () => 'none',
  ...more,
});
const unbound = (claim = hostClaim(), more: Partial<ClaimFacts> = {}): ClaimFacts => ({
  ...bound(),
  claim,
  volume: undefined,
  wanted: false,
  ...more,
});
const reasonOf = (facts: ClaimFacts): string | undefined => {
  const state = claimState(facts);
  return state.is === 'refused' ? state.refusal.reason : undefined;
};

describe('a claim without a volume', () => {
  it.each<[string, ClaimFacts, string]>([
    ['waits for a pod', unbound(), 'nothing'],
    ['is bound where its first pod goes', unbound(hostClaim({}, selected('east-gpu'))), 'bind'],
    ['is not bound for a pod that goes elsewhere', unbound(hostClaim({}, selected('west'))), 'nothing'],
    ['is bound for a pod that was bound past the scheduler', unbound(hostClaim(), { wanted: true }), 'bind'],
    [
      'is not bound while it is being deleted',
      unbound(hostClaim({}, { ...selected('east'), deletionTimestamp: 'x' })),
      'nothing',
    ],
    [
      'is bound at once where its class says',
      unbound(hostClaim(), {
        storageClass: storageClass({ volumeBindingMode: 'Immediate', parameters: { member: 'east' } }),
      }),
      'bind',
    ],
    [
      'is not bound where its class does not say',
      unbound(hostClaim(), {
        storageClass: storageClass({ volumeBindingMode: 'Immediate', parameters: { member: 'west' } }),
      }),
      'nothing',
    ],
    [
      'that has a volume of others is left alone',
      unbound(hostClaim({ volumeName: 'nfs' }, selected('east'))),
      'nothing',
    ],
    ['of an unmapped class is refused', unbound(hostClaim({ storageClassName: 'gold' }, selected('east'))), 'refuse'],
    [
      'of a class of others is refused',
      unbound(hostClaim({}, selected('east')), { storageClass: storageClass({ provisioner: 'ebs.csi.aws.com' }) }),
      'refuse',
    ],
    [
      'of a class that does not exist is refused',
      unbound(hostClaim({}, selected('east')), { storageClass: undefined }),
      'refuse',
    ],
    ['with a selector is refused', unbound(hostClaim({ selector: {} }, selected('east'))), 'refuse'],
    ['with a source is refused', unbound(hostClaim({ dataSource: {} }, selected('east'))), 'refuse'],
  ])('%s', (_, facts, expected) => {
    expect(decideClaim(facts).do).toBe(expected);
  });
});

describe('a claim that is bound here', () => {
  it('is made in the member for the first pod, not before', () => {
    expect(decideClaim(bound()).do).toBe('create');
    expect(decideClaim(bound({ wanted: false })).do).toBe('nothing');
    expect(claimState(bound())).toEqual({ is: 'pending' });
  });

  it('is ready when the volume says which claim it is', () => {
    const copy = copyOfClaim(BOUND);
    expect(decideClaim(bound({ copy })).do).toBe('note');
    expect(claimState(bound({ copy }))).toEqual({ is: 'pending' });
    expect(claimState(bound({ copy }, 'member-claim'))).toEqual({ is: 'ready' });
  });

  it('is never made a second time', () => {
    for (const copy of [undefined, copyOfClaim(BOUND, { uid: 'another' })]) {
      const facts = bound({ copy, answer: 'gone' }, 'member-claim');
      expect(decideClaim(facts).do).toBe('nothing');
      expect(claimState(facts)).toEqual({ is: 'lost', replaced: copy !== undefined });
    }
    expect(claimState(bound({ copy: copyOfClaim(BOUND, { leaving: true }) }, 'member-claim'))).toEqual({
      is: 'leaving',
    });
  });

  it('is lost by the word of the member alone', () => {
    for (const copy of [undefined, copyOfClaim(BOUND, { uid: 'another' })]) {
      expect(decideClaim(bound({ copy }, 'member-claim')).do).toBe('ask');
      expect(decideClaim(bound({ copy, wanted: false }, 'member-claim')).do).toBe('nothing');
      expect(claimState(bound({ copy }, 'member-claim'))).toEqual({ is: 'unknown', problem: undefined });
    }
    const knowledge = { known: false, problem: 'forbidden' } as const;
    for (const facts of [bound({ knowledge }, 'member-claim'), bound({ knowledge, answer: 'gone' }, 'member-claim')]) {
      expect(decideClaim(facts).do).toBe('wait');
      expect(claimState(facts)).toEqual({ is: 'unknown', problem: 'forbidden' });
    }
    // One that was brought back as it was, by a backup of the whole member.
    const back = bound({ copy: copyOfClaim(BOUND), answer: 'gone' }, 'member-claim');
    expect(claimState(back)).toEqual({ is: 'ready' });
  });

  it('does not take over the data of a former claim', () => {
    const facts = bound({ copy: copyOfClaim(BOUND, { hostUid: 'former' }) });
    expect(decideClaim(facts).do).toBe('nothing');
    expect(claimState(facts)).toEqual({ is: 'former' });
  });

  it('passes a new size on, in whatever units', () => {
    const claim = hostClaim({ volumeName: 'pvc-host-claim', resources: { requests: { storage: '2Gi' } } });
    const copy = copyOfClaim(BOUND);
    expect(decideClaim(bound({ claim, copy }, 'member-claim'))).toMatchObject({ do: 'resize', storage: '2Gi' });
    const same = hostClaim({ volumeName: 'pvc-host-claim', resources: { requests: { storage: '1024Mi' } } });
    expect(decideClaim(bound({ claim: same, copy }, 'member-claim')).do).toBe('report');
  });

  it('shows what the member says, once', () => {
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' as const, message: 'wait\u001b[2J\nfor it' }];
    const copy = copyOfClaim(BOUND, { status: { phase: 'Bound', capacity: { storage: '3Gi' }, conditions } });
    copy.claim.spec = { ...copy.claim.spec, volumeName: 'disk-7' };
    const action = decideClaim(bound({ copy }, 'member-claim'));
    const annotations = { 'spillway.dev/member': 'east', 'spillway.dev/member-volume': 'disk-7' };
    const shown = [{ ...conditions[0], message: 'wait[2J for it' }];
    expect(action).toEqual({
      do: 'report',
      report: {
        claim: { metadata: { annotations } },
        volume: { name: 'pvc-host-claim', patch: { spec: { capacity: { storage: '3Gi' } } } },
        status: { status: { capacity: { storage: '3Gi' }, conditions: shown } },
      },
    });
    const facts = bound({ copy }, 'member-claim');
    const claim = {
      ...BOUND,
      metadata: { ...BOUND.metadata, annotations },
      status: { capacity: { storage: '3Gi' }, conditions: shown as typeof conditions },
    };
    const object = volumeFor(BOUND, { claimUid: 'member-claim' });
    const volume = readMemberVolume({ ...object, spec: { ...object.spec, capacity: { storage: '3Gi' } } });
    expect(decideClaim({ ...facts, claim, volume }).do).toBe('nothing');
  });

  it('cannot be used where its data are not', () => {
    expect(reasonOf(bound({ home: { ...HOME, member: 'west' } }))).toBe('ClaimElsewhere');
    expect(reasonOf(bound({ home: { ...HOME, identity: 'new' } }))).toBe('ClaimElsewhere');
    expect(reasonOf(bound({ claim: hostClaim({ volumeName: 'nfs' }), volume: undefined }))).toBe('ClaimElsewhere');
    expect(decideClaim(bound({ home: { ...HOME, identity: 'new' } })).do).toBe('nothing');
  });

  it('is not for pods that go to another namespace of the member', () => {
    for (const facts of [
      bound({ place: 'x-shop' }),
      bound({ place: 'x-shop', copy: copyOfClaim(BOUND) }, 'member-claim'),
    ])
      expect(reasonOf(facts)).toBe('ClaimElsewhere');
    expect(decideClaim(bound({ place: 'x-shop' })).do).toBe('nothing');
    // That there is none is told by others.
    expect(reasonOf(bound({ place: undefined }))).toBeUndefined();
    // One that is there already is looked after all the same.
    expect(decideClaim(bound({ place: 'x-shop', copy: copyOfClaim(BOUND) })).do).toBe('note');
  });

  it('of a class that is mapped no more can be used if it is there already, and is not made', () => {
    const home = { ...HOME, storage: { classes: [] } };
    expect(claimState(bound({ home, copy: copyOfClaim(BOUND) }, 'member-claim'))).toEqual({ is: 'ready' });
    expect(decideClaim(bound({ home })).do).toBe('nothing');
    expect(reasonOf(bound({ home }))).toBe('ClaimClassNotMapped');
  });
});

describe('a volume whose claim is gone', () => {
  const volume = (phase = 'Released', policy = 'Delete') =>
    readMemberVolume(volumeFor(BOUND, { claimUid: 'member-claim', phase, policy }));
  const decide = (
    one = volume(),
    uid?: string,
    copy = copyOfClaim(BOUND) as ReturnType<typeof copyOfClaim> | undefined,
  ) => {
    if (one === undefined) throw new Error('not ours');
    return decideReclaim(one, HOME, uid, copy).do;
  };

  it('takes the data along, then goes itself', () => {
    expect(decide()).toBe('data');
    expect(decide(volume(), 'later')).toBe('data');
    expect(decide(volume(), undefined, copyOfClaim(BOUND, { leaving: true }))).toBe('nothing');
    expect(decide(volume(), undefined, copyOfClaim(BOUND, { hostUid: 'later' }))).toBe('volume');
    const none = volume();
    if (none === undefined) throw new Error('not ours');
    expect(decideReclaim(none, HOME, undefined, undefined).do).toBe('volume');
  });

  it('stays with its data for every other reason', () => {
    expect(decide(volume('Bound'))).toBe('nothing');
    expect(decide(volume('Released', 'Retain'))).toBe('nothing');
    expect(decide(volume(), BOUND.metadata.uid)).toBe('nothing');
    const one = volume();
    if (one === undefined) throw new Error('not ours');
    expect(decideReclaim(one, { member: 'west', identity: 'x' }, undefined, undefined).do).toBe('nothing');
    expect(decideReclaim(one, { ...HOME, identity: 'new' }, undefined, undefined).do).toBe('nothing');
  });
});
