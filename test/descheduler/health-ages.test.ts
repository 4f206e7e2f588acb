import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HealthAges, STEADY_MS } from '../../src/descheduler/health-ages.ts';

let now = 0;
const ages = (): HealthAges => new HealthAges(() => now);
const LOOK_MS = 5_000;

/** What is known of one pod after it was seen so, every 5 s: R for Ready, - for not, ? while nobody knows. */
function seen(story: string, restMs = 0): { isWell: boolean; illForMs: number } {
  now = 1_000_000;
  const one = ages();
  for (const [index, sign] of story.split('').entries()) {
    if (index > 0) now += LOOK_MS;
    one.observe('w', [{ uid: 'p', isReady: sign === '?' ? undefined : sign === 'R' }]);
  }
  now += restMs;
  return one.of('w', 'p');
}

describe('how long a pod has been well or ill', () => {
  test.each<[string, string, number, { isWell: boolean; illForMs: number }]>([
    ['never seen', '', 0, { isWell: false, illForMs: 0 }],
    ['not Ready since it was first seen', '---', 0, { isWell: false, illForMs: 10_000 }],
    ['Ready, but not for long yet', 'RRR', 0, { isWell: false, illForMs: 0 }],
    ['Ready for a minute', 'R', STEADY_MS, { isWell: true, illForMs: 0 }],
    ['Ready for just less', 'R', STEADY_MS - 1, { isWell: false, illForMs: 0 }],
    ['Ready in between', '--R--R--', 0, { isWell: false, illForMs: 35_000 }],
    ['Ready again, but not for long', '--RR', 0, { isWell: false, illForMs: 0 }],
    ['well again', '--R', STEADY_MS, { isWell: true, illForMs: 0 }],
    ['ill once more after it was well', `--${'R'.repeat(14)}--`, 0, { isWell: false, illForMs: 5_000 }],
    ['of a member that was silent for a moment', '-----?-', 0, { isWell: false, illForMs: 0 }],
    ['of a member that is silent', 'RRRRR?', STEADY_MS, { isWell: false, illForMs: 0 }],
  ])('%s', (_, story, restMs, expected) => {
    expect(seen(story, restMs)).toEqual(expected);
  });

  test('what is not told of any more is forgotten', () => {
    now = 0;
    const one = ages();
    one.observe('w', [{ uid: 'p', isReady: false }]);
    now = 9_000;
    one.observe('w', []);
    one.observe('w', [{ uid: 'p', isReady: false }]);
    expect(one.of('w', 'p').illForMs).toBe(0);
    now = 18_000;
    one.forget('w');
    expect(one.of('w', 'p').illForMs).toBe(0);
  });

  test('whatever was seen: ill is what is not Ready, since it was for a minute on end, well what has been, and never both', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('R', '-'), { minLength: 1, maxLength: 60 }), (signs) => {
        const story = signs.join('');
        const { isWell, illForMs } = seen(story);
        const ready = /R*$/.exec(story)?.[0].length ?? 0;
        expect(isWell).toBe((ready - 1) * LOOK_MS >= STEADY_MS);
        const runs = story.matchAll(/R+/g);
        const steady = [...runs].filter(({ 0: run }) => (run.length - 1) * LOOK_MS >= STEADY_MS - LOOK_MS);
        const last = steady.findLast(({ 0: run, index }) => index + run.length < story.length);
        const since = story.indexOf('-', last === undefined ? 0 : last.index + last[0].length);
        const ill = ready > 0 || since < 0 ? 0 : (story.length - 1 - since) * LOOK_MS;
        expect(illForMs).toBe(ill);
      }),
    );
  });
});
