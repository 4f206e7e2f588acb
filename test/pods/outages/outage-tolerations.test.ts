import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isOutageToleration,
  missingOutageTolerations,
  type OutageRule,
  restoredOutageTolerations,
  withdrawnOutageTolerations,
} from '../../../src/api/outage-tolerations.ts';
import type { Toleration } from '../../../src/kube/core-v1.ts';
import { tolerates } from '../../../src/kube/taints.ts';
import { memberTolerations } from '../../../src/pods/translate-scheduling.ts';

const KEYS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
const DEFAULTS: Toleration[] = KEYS.map((key) => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}));
const ours = (key: string, seconds?: number): Toleration => ({
  key,
  operator: 'Equal',
  effect: 'NoExecute',
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
});
const FOREVER = { toleration: 'Forever', admissionSeconds: 300 } as const;
const [notReady = '', unreachable = ''] = KEYS;

/** For how long Kubernetes' taint manager leaves the pod alone (GetMatchingTolerations, getMinTolerationTime), in s. */
function staysFor(tolerations: readonly Toleration[]): number {
  return Math.min(
    ...KEYS.map((key) => {
      const first = tolerations.find((one) => tolerates(one, { key, effect: 'NoExecute' }));
      return first === undefined ? 0 : (first.tolerationSeconds ?? Infinity);
    }),
  );
}

describe('what a pod on a virtual node lacks', () => {
  it.each<[string, Toleration[], OutageRule['toleration'], Toleration[]]>([
    ['what admission gives counts as nothing', DEFAULTS, 'Forever', KEYS.map((key) => ours(key))],
    ['for so long as the owner of the host says', DEFAULTS, 3600, KEYS.map((key) => ours(key, 3600))],
    ['nothing where it is switched off', DEFAULTS, 'Keep', []],
    ['both where admission gives none', [], 'Forever', KEYS.map((key) => ours(key))],
    ['nothing that it has', [...KEYS.map((key) => ours(key)), ...DEFAULTS], 'Forever', []],
    ['nothing that it was given when something else was wanted', KEYS.map((key) => ours(key, 60)), 'Forever', []],
    ['nothing beside seconds of its own', DEFAULTS.map((one) => ({ ...one, tolerationSeconds: 60 })), 'Forever', []],
    ['nothing if it tolerates everything', [{ operator: 'Exists' }], 'Forever', []],
    ['nothing if it tolerates everything for a while', [{ operator: 'Exists', tolerationSeconds: 5 }], 'Forever', []],
    ['one of two', [{ key: unreachable, operator: 'Exists' }, ...DEFAULTS], 'Forever', [ours(notReady)]],
    [
      'both beside one of another effect',
      [{ key: unreachable, operator: 'Exists', effect: 'NoSchedule' }],
      'Forever',
      KEYS.map((key) => ours(key)),
    ],
  ])('%s', (_what, present, toleration, missing) => {
    expect(missingOutageTolerations(present, { toleration, admissionSeconds: 300 })).toEqual(missing);
  });

  it('counts what the admission of this host gives', () => {
    const given = DEFAULTS.map((one) => ({ ...one, tolerationSeconds: 20 }));
    expect(missingOutageTolerations(given, { ...FOREVER, admissionSeconds: 20 })).toHaveLength(2);
    expect(missingOutageTolerations(DEFAULTS, { ...FOREVER, admissionSeconds: 20 })).toEqual([]);
  });

  const toleration = fc.record(
    {
      key: fc.constantFrom('', 'a', ...KEYS),
      operator: fc.constantFrom('Exists', 'Equal'),
      value: fc.constantFrom('', 'x'),
      effect: fc.constantFrom('', 'NoExecute', 'NoSchedule'),
      tolerationSeconds: fc.constantFrom(0, 5, 300),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<Toleration>;

  const withdrawnFrom = (seconds?: number): Toleration[] => [
    ...KEYS.map((key) => ours(key, 300)),
    ...KEYS.map((key) => ours(key, seconds)),
  ];
  it.each<[string, Toleration[], OutageRule['toleration'], Toleration[]]>([
    ['what was withdrawn', withdrawnFrom(), 'Forever', KEYS.map((key) => ours(key))],
    [
      'what was withdrawn, to the seconds that it had',
      withdrawnFrom(600),
      'Forever',
      KEYS.map((key) => ours(key, 600)),
    ],
    ['what was withdrawn where others are given nothing', withdrawnFrom(), 'Keep', KEYS.map((key) => ours(key))],
    ['no answer of its own with the same seconds', KEYS.map((key) => ours(key, 300)), 'Forever', []],
    ['and what was never given', DEFAULTS, 'Forever', KEYS.map((key) => ours(key))],
    ['nothing that was given when something else was wanted', KEYS.map((key) => ours(key, 60)), 'Forever', []],
  ])('restores %s', (_what, present, toleration, missing) => {
    expect(restoredOutageTolerations(present, { toleration, admissionSeconds: 300 })).toEqual(missing);
  });

  it('once withdrawn, a pod stays as long as it would have without, and it can be given again, any number of times', () => {
    const own = fc.array(toleration, { maxLength: 4 }).filter((list) => !list.some(isOutageToleration));
    fc.assert(
      fc.property(own, fc.constantFrom('Forever' as const, 600), (present, wanted) => {
        const rule = { toleration: wanted, admissionSeconds: 300 };
        const given = [...missingOutageTolerations(present, rule), ...present];
        const withdrawn = [...withdrawnOutageTolerations(given, rule), ...given];
        expect(withdrawnOutageTolerations(withdrawn, rule)).toEqual([]);
        // A pod that tolerated nothing, for want of that admission, has its seconds from then on.
        const lacked = KEYS.filter((key) => !present.some((one) => tolerates(one, { key, effect: 'NoExecute' })));
        const without = [...present, ...lacked.map((key) => ours(key, 300))];
        expect(staysFor(withdrawn)).toBe(given.length === present.length ? staysFor(present) : staysFor(without));
        const again = [...restoredOutageTolerations(withdrawn, rule), ...withdrawn];
        expect(staysFor(again)).toBe(staysFor(given));
        expect(restoredOutageTolerations(again, rule)).toEqual([]);
        expect(memberTolerations(again) ?? []).toEqual(memberTolerations(present) ?? []);
      }),
    );
  });

  it('once given, nothing is lacking any more, pods never stay for less time than before, and none of it goes down', () => {
    fc.assert(
      fc.property(fc.array(toleration, { maxLength: 6 }), (present) => {
        const missing = missingOutageTolerations(present, FOREVER);
        const after = [...missing, ...present];
        expect(missingOutageTolerations(after, FOREVER)).toEqual([]);
        expect(staysFor(after)).toBeGreaterThanOrEqual(staysFor(present));
        if (present.length === 0) expect(staysFor(after)).toBe(Infinity);
        expect(missing.every(isOutageToleration)).toBe(true);
        // So a copy that was made before the write and one that was made after it are the same, and nothing is sent.
        expect(memberTolerations(after) ?? []).toEqual(memberTolerations(present) ?? []);
      }),
    );
  });
});
