import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { STAYS } from '../../src/cli/why/moves-step.ts';

/** Of each strategy what is said of a pod that it would move, and that stays. */
const HELD = /heldReason: '([A-Za-z]+)'|\['\w+', '(PodNot\w+)'\]/g;

it('kubectl spillway why tells whatever keeps a pod where it is, of every strategy', () => {
  const room = 'src/descheduler';
  const code = readdirSync(room).map((file) => readFileSync(join(room, file), 'utf8'));
  const reasons = code.flatMap((text) => [...text.matchAll(HELD)].map(([, held, displaced]) => held ?? displaced));
  expect(reasons.length).toBeGreaterThan(12);
  expect(reasons.filter((reason) => !STAYS.includes(reason ?? ''))).toEqual([]);
});
