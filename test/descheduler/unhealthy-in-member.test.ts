import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Health } from '../../src/descheduler/health-ages.ts';
import { whyNotMovedAtWill } from '../../src/descheduler/replaceable.ts';
import {
  illGroups,
  illnessOf,
  isIllInMember,
  type PodHealth,
  unhealthyAfterMs,
} from '../../src/descheduler/unhealthy-in-member.ts';
import type { Condition, Pod } from '../../src/kube/core-v1.ts';

const AFTER_MS = 300_000;
const WELL: Health = { isWell: true, illForMs: 0 };
const NEW: Health = { isWell: false, illForMs: 0 };
const SICK: Health = { isWell: false, illForMs: AFTER_MS };

let count = 0;
function pods(
  howMany: number,
  cluster: string | undefined,
  health: Health | undefined,
  more: Partial<PodHealth> = {},
): PodHealth[] {
  return Array.from({ length: howMany }, () => {
    const name = `p${String((count += 1)).padStart(5, '0')}`;
    const pod: Pod = { metadata: { name, uid: name }, spec: { containers: [] } };
    return { pod, cluster, revision: 'a', health, isLeaving: false, ...more };
  });
}
const inShort = (all: readonly PodHealth[], missing = 0): [string, number, number, number][] =>
  illGroups(all, AFTER_MS, missing).map((one) => [one.cluster, one.pods.length, one.wellElsewhere, one.atMost]);

describe('which pods are ill, and how many may go', () => {
  test.each<[string, PodHealth[], [string, number, number, number][]]>([
    ['none while all are well', [...pods(3, 'east', WELL), ...pods(2, 'west', WELL)], []],
    ['none that is not ill for long enough', [...pods(3, 'east', NEW), ...pods(2, 'west', WELL)], []],
    ['as many as are well elsewhere', [...pods(3, 'east', SICK), ...pods(2, 'west', WELL)], [['east', 3, 2, 2]]],
    ['well on the host counts', [...pods(1, 'east', SICK), ...pods(1, 'local', WELL)], [['east', 1, 1, 1]]],
    [
      'none when all are ill: a bad image',
      [...pods(3, 'east', SICK), ...pods(2, 'west', SICK)],
      [
        ['east', 3, 0, 0],
        ['west', 2, 0, 0],
      ],
    ],
    [
      'none when those that are well are in the same member',
      [...pods(1, 'east', SICK), ...pods(5, 'east', WELL)],
      [['east', 1, 0, 0]],
    ],
    [
      'none when those elsewhere have yet to be well',
      [...pods(1, 'east', SICK), ...pods(5, 'west', NEW)],
      [['east', 1, 0, 0]],
    ],
    [
      'none when those that are well are of another revision',
      [...pods(1, 'east', SICK), ...pods(5, 'west', WELL, { revision: 'b' })],
      [['east', 1, 0, 0]],
    ],
    [
      'none without a revision',
      [...pods(1, 'east', SICK, { revision: undefined }), ...pods(5, 'west', WELL, { revision: undefined })],
      [],
    ],
    ['none on the host itself', [...pods(1, 'local', SICK), ...pods(5, 'west', WELL)], []],
    ['none of a member that is silent', [...pods(1, 'east', undefined), ...pods(5, 'west', WELL)], []],
    [
      'and those that are there vouch for none',
      [...pods(1, 'east', SICK), ...pods(5, 'west', undefined)],
      [['east', 1, 0, 0]],
    ],
    [
      'less those that went elsewhere and have yet to be well',
      [...pods(3, 'east', SICK), ...pods(2, 'west', WELL), ...pods(1, 'west', NEW)],
      [['east', 3, 2, 1]],
    ],
    [
      'less those that have no place yet',
      [...pods(3, 'east', SICK), ...pods(2, 'west', WELL), ...pods(1, undefined, NEW)],
      [['east', 3, 2, 1]],
    ],
    [
      'less those that are on their way out',
      [...pods(3, 'east', SICK), ...pods(2, 'west', WELL), ...pods(1, 'east', SICK, { isLeaving: true })],
      [['east', 3, 2, 1]],
    ],
    [
      'none while those that went elsewhere are ill there, too',
      [...pods(3, 'east', SICK), ...pods(1, 'west', WELL), ...pods(1, 'west', SICK)],
      [
        ['east', 3, 1, 0],
        ['west', 1, 0, 0],
      ],
    ],
    [
      'those that start in the same member are no matter',
      [...pods(3, 'east', SICK), ...pods(2, 'west', WELL), ...pods(4, 'east', NEW)],
      [['east', 3, 2, 2]],
    ],
    [
      'those that are ill elsewhere, too, neither',
      [...pods(3, 'east', SICK), ...pods(2, 'west', WELL), ...pods(4, 'north', SICK)],
      [
        ['east', 3, 2, 2],
        ['north', 4, 2, 2],
      ],
    ],
  ])('%s', (_, all, expected) => {
    expect(inShort(all)).toEqual(expected);
  });

  test('pods that are not there yet count as those that have no place', () => {
    expect(inShort([...pods(3, 'east', SICK), ...pods(2, 'west', WELL)], 1)).toEqual([['east', 3, 2, 1]]);
    expect(inShort([...pods(3, 'east', SICK), ...pods(2, 'west', WELL)], -4)).toEqual([['east', 3, 2, 2]]);
  });

  test('the longest ill are the first', () => {
    const longer = { isWell: false, illForMs: 2 * AFTER_MS };
    const all = [...pods(2, 'east', SICK), ...pods(1, 'east', longer), ...pods(1, 'west', WELL)];
    const [group] = illGroups(all, AFTER_MS, 0);
    expect(group?.pods.map(({ metadata }) => metadata.name)).toEqual([2, 0, 1].map((at) => all[at]?.pod.metadata.name));
  });

  test('whatever pods are like: none goes while no other of its revision is well elsewhere, and never more than are', () => {
    const one = fc.record({
      cluster: fc.constantFrom('east', 'west', 'local', undefined),
      revision: fc.constantFrom('a', 'b', undefined),
      health: fc.constantFrom(WELL, NEW, SICK, undefined),
      isLeaving: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 40 }), fc.integer({ min: -3, max: 3 }), (kinds, missing) => {
        const all = kinds.flatMap((kind) => pods(1, kind.cluster, kind.health, kind));
        const groups = illGroups(all, AFTER_MS, missing);
        for (const group of groups) {
          const [first] = group.pods;
          const like = all.filter(
            ({ pod, revision }) => revision === all.find((two) => two.pod === first)?.revision && pod !== first,
          );
          const well = like.filter(
            ({ cluster, health, isLeaving }) =>
              cluster !== undefined && cluster !== group.cluster && health === WELL && !isLeaving,
          );
          expect(group.wellElsewhere).toBe(well.length);
          expect(group.atMost).toBeLessThanOrEqual(well.length);
        }
        const ill = all.filter(
          ({ cluster, revision, health, isLeaving }) =>
            cluster !== undefined && cluster !== 'local' && revision !== undefined && health === SICK && !isLeaving,
        );
        expect(groups.flatMap((group) => group.pods).length).toBe(ill.length);
        // All that may go do, out of one cluster after the other: each time it is as if it had been looked at anew.
        const gone = new Set<Pod>();
        for (const revision of ['a', 'b']) {
          let went = 0;
          for (const group of groups.filter((one) => one.revision === revision)) {
            const now = all.map((two) => (gone.has(two.pod) ? { ...two, isLeaving: true } : two));
            const anew = illGroups(now, AFTER_MS, missing).find(
              (two) => two.revision === revision && two.cluster === group.cluster,
            );
            const count = Math.max(0, group.atMost - went);
            expect(anew?.atMost).toBe(count);
            for (const pod of group.pods.slice(0, count)) gone.add(pod);
            went += Math.min(count, group.pods.length);
          }
          const well = all.filter((two) => two.revision === revision && two.health === WELL && !two.isLeaving);
          expect(went).toBeLessThanOrEqual(well.length);
        }
      }),
    );
  });

  test('ten thousand pods are looked at once each', () => {
    let looks = 0;
    const all = [...pods(6_000, 'east', SICK), ...pods(4_000, 'west', WELL)].map((one): PodHealth => ({
      ...one,
      get health() {
        looks += 1;
        return one.health;
      },
    }));
    expect(inShort(all)).toEqual([['east', 6_000, 4_000, 4_000]]);
    expect(looks).toBeLessThanOrEqual(40_000);
  });
});

describe('a pod, as it is in the host', () => {
  const TOOK: Condition = { type: 'spillway.dev/Mirrored', status: 'True' };
  const NOT_READY: Condition = { type: 'Ready', status: 'False', reason: 'ContainersNotReady' };
  const live = (conditions: Condition[], more: object = {}): Pod => ({
    metadata: { name: 'p', uid: 'p' },
    spec: { containers: [], nodeName: 'east' },
    status: { phase: 'Running', conditions, ...more },
  });

  test.each<[string, Pod, boolean]>([
    ['is ill when it is not Ready in the member that took it', live([TOOK, NOT_READY]), true],
    ['not while it is Ready', live([TOOK, { type: 'Ready', status: 'True' }]), false],
    ['not when no member took it', live([NOT_READY]), false],
    ['not when it is not known what came of it', live([{ ...TOOK, status: 'Unknown' }, NOT_READY]), false],
    [
      'not when only its readiness gates are in the way',
      live([TOOK, NOT_READY, { type: 'ContainersReady', status: 'True' }]),
      false,
    ],
    ['not when it ended', live([TOOK, NOT_READY], { phase: 'Failed' }), false],
  ])('%s', (_, pod, isIll) => {
    expect(isIllInMember(pod)).toBe(isIll);
  });

  const waiting = (reason: string): object => ({
    containerStatuses: [{ name: 'a' }, { name: 'b', state: { waiting: { reason } } }],
  });
  test.each<[string, Pod, string]>([
    ['why a container waits', live([TOOK, NOT_READY], waiting('CrashLoopBackOff')), 'CrashLoopBackOff'],
    ['its condition', live([TOOK, NOT_READY]), 'ContainersNotReady'],
    ['else', live([TOOK]), 'not Ready'],
  ])('what it has: %s', (_, pod, words) => {
    expect(illnessOf(pod)).toBe(words);
  });

  const controlled = (apiVersion: string, kind: string): Pod => ({
    metadata: { name: 'p', ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'o', controller: true }] },
    spec: { containers: [] },
  });
  test.each<[string, Pod, RegExp | undefined]>([
    ['of a ReplicaSet', controlled('apps/v1', 'ReplicaSet'), undefined],
    ['of a StatefulSet', controlled('apps/v1', 'StatefulSet'), undefined],
    ['of a Job', controlled('batch/v1', 'Job'), /a Job counts/],
    ['alone', { metadata: { name: 'p' }, spec: { containers: [] } }, /no controller/],
    [
      'with claims',
      { ...controlled('apps/v1', 'StatefulSet'), spec: { containers: [], volumes: [{ name: 'v', ephemeral: {} }] } },
      /its data are there/,
    ],
  ])('%s', (_, pod, why) => {
    if (why === undefined) expect(whyNotMovedAtWill(pod)).toBeUndefined();
    else expect(whyNotMovedAtWill(pod)).toMatch(why);
  });
});

test.each([
  [undefined, undefined],
  [{}, undefined],
  [{ application: { decisionConditions: { tolerationSeconds: 300 } } }, 300_000],
  [{ application: { decisionConditions: { tolerationSeconds: 0 } } }, 15_000],
])('by %j they are given %s ms', (failover, ms) => {
  expect(unhealthyAfterMs(failover)).toBe(ms);
});
