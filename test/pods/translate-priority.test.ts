import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type PodPriority, podPriority } from '../../src/api/pod-priority.ts';
import { translateScheduling } from '../../src/pods/translate.ts';
import { renderPod } from '../../src/pods/render-pod.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import { boundPod, CONTEXT, frozen, type Loose, madePod, translated } from '../fixtures/translation.ts';
import { EAST, policy, webPod } from '../overrides/rendered-pod.ts';

const NONE = podPriority.parse({});
const MAPPED: PodPriority = {
  classes: [
    { host: 'critical', member: 'burst-high' },
    { host: 'system-cluster-critical', member: 'system-cluster-critical' },
  ],
};
const WITH_DEFAULT: PodPriority = { ...MAPPED, default: 'burst-low' };
/** As the host's admission leaves it. */
const ranked = (priorityClassName: string | undefined): Loose => ({
  ...(priorityClassName === undefined ? {} : { priorityClassName }),
  priority: 1_000_000,
  preemptionPolicy: 'PreemptLowerPriority',
});
const RANKS = ['priorityClassName', 'priority', 'preemptionPolicy'];

describe('the PriorityClass of a copy', () => {
  test.each<[string, PodPriority | undefined, string | undefined, string | undefined]>([
    ['no mapping', undefined, 'critical', undefined],
    ['no mapping', NONE, 'critical', undefined],
    ['no mapping', NONE, undefined, undefined],
    ['a mapping', MAPPED, 'critical', 'burst-high'],
    ['a mapping', MAPPED, 'system-cluster-critical', 'system-cluster-critical'],
    ['a mapping', MAPPED, 'burst-high', undefined],
    ['a mapping', MAPPED, '', undefined],
    ['a mapping', MAPPED, undefined, undefined],
    ['a default', WITH_DEFAULT, 'critical', 'burst-high'],
    ['a default', WITH_DEFAULT, 'other', 'burst-low'],
    ['a default', WITH_DEFAULT, '', 'burst-low'],
    ['a default', WITH_DEFAULT, undefined, 'burst-low'],
    ['a default alone', { classes: [], default: 'burst-low' }, 'critical', 'burst-low'],
  ])('with %s (%j) of class %s: %s', (_what, mapping, hostClass, expected) => {
    const pod = frozen(boundPod(ranked(hostClass)));
    const context = mapping === undefined ? {} : { podPriority: frozen(mapping) };
    const { spec } = translated(pod, context);
    const only = expected === undefined ? {} : { priorityClassName: expected };
    expect(Object.fromEntries(RANKS.filter((field) => field in spec).map((field) => [field, spec[field]]))).toEqual(
      only,
    );
    // What room is asked for is the same pod.
    const asked = translateScheduling(pod, { ...CONTEXT, ...context });
    expect(asked).toMatchObject({ kind: 'pod' });
    expect('pod' in asked ? asked.pod.spec.priorityClassName : '').toBe(expected);
  });

  test('is all that differs from a copy without a mapping', () => {
    for (const kind of ['deployment', 'statefulSet', 'job'] as const) {
      const plain = translated(madePod(kind));
      const { spec, metadata } = translated(madePod(kind), { podPriority: WITH_DEFAULT });
      const { priorityClassName, ...rest } = spec;
      expect(priorityClassName).toBe(kind === 'job' ? 'system-cluster-critical' : 'burst-low');
      expect(rest).toEqual(plain.spec);
      expect(metadata).toEqual(plain.metadata);
    }
  });

  test('names and ranks of the host never reach the member', () => {
    const name = fc.constantFrom('critical', 'gold', 'toString', '__proto__', 'constructor', '', 'burst-high');
    const mapping = fc.record(
      {
        classes: fc.uniqueArray(fc.record({ host: name, member: fc.constantFrom('in-member-1', 'in-member-2') }), {
          selector: ({ host }) => host,
        }),
        default: fc.constant('in-member-3'),
      },
      { requiredKeys: ['classes'] },
    );
    const wild = fc.oneof(name, fc.constant(null), fc.integer(), fc.constant({}));
    fc.assert(
      fc.property(
        mapping,
        wild,
        fc.integer(),
        fc.constantFrom('Never', 'PreemptLowerPriority'),
        (given, own, priority, how) => {
          const pod = frozen(boundPod({ priorityClassName: own, priority, preemptionPolicy: how }));
          const { spec } = translated(pod, { podPriority: given });
          const mapped = given.classes.find(({ host }) => host === own)?.member ?? given.default;
          expect(spec['priorityClassName']).toBe(mapped);
          expect('priorityClassName' in spec).toBe(mapped !== undefined);
          expect(spec).not.toHaveProperty('priority');
          expect(spec).not.toHaveProperty('preemptionPolicy');
        },
      ),
    );
  });

  test('can be another by a ClusterOverridePolicy, which comes after the mapping', () => {
    const by = (kind: 'ClusterOverridePolicy' | 'OverridePolicy', patch: object) =>
      renderPod(
        webPod(ranked('critical')),
        { ...CONTEXT, podPriority: MAPPED },
        {
          policies: [policy(kind, 'p', { overrideRules: [{ overriders: { plaintext: [patch] } }] })],
          owners: identitiesOfPod(webPod()),
          member: EAST,
          pool: {},
        },
      );
    const set = { path: '/spec/priorityClassName', operator: 'replace', value: 'burst-mid' };
    const remove = { path: '/spec/priorityClassName', operator: 'remove' };
    expect(by('ClusterOverridePolicy', set)).toMatchObject({ pod: { spec: { priorityClassName: 'burst-mid' } } });
    expect(by('ClusterOverridePolicy', remove)).not.toHaveProperty('pod.spec.priorityClassName');
    for (const patch of [set, remove]) {
      expect(by('OverridePolicy', patch)).toMatchObject({ hold: { reason: 'OverrideRefused' } });
    }
  });
});
