import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isShownIn, type Mistake } from './mistakes/mistake.ts';
import { MISTAKES } from './planted-mistakes.ts';
import { ALL_THEMES } from './themes.ts';

const here = import.meta.dirname;
const src = resolve(here, '../../src');

/** The names of all rules that something in the simulator reports. */
const RULES = new Set(
  readdirSync(here, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .flatMap((path) => [
      ...readFileSync(resolve(here, path), 'utf8').matchAll(/(?:violated|report)\(\s*'([\w-]+)'|oracle: '([\w-]+)'/gi),
    ])
    .map(([, reported, put]) => reported ?? put),
);

function named({ rule: { source } }: Mistake): (string | undefined)[] {
  return [...source.matchAll(/(?:^\^\(?|\|)([\w-]+)(?=[:|)])/g)].map(([, name]) => name);
}

describe('mistakes to plant', () => {
  it.each(MISTAKES)('$name has its places in the program, each once, and rules of the simulator', (mistake) => {
    const { edits, theme } = mistake;
    for (const { file, from } of edits) {
      const found = readFileSync(resolve(src, file), 'utf8').split(from).length - 1;
      expect({ file, from, found }).toEqual({ file, from, found: 1 });
    }
    if (theme !== undefined) expect(Object.keys(ALL_THEMES)).toContain(theme);
    const rules = named(mistake);
    expect(rules.length).toBeGreaterThan(0);
    expect(rules.filter((rule) => rule === undefined || !RULES.has(rule))).toEqual([]);
  });

  it('are shown by a history that breaks the rule they are about, and by no other', () => {
    const crowded = 'seed 285, step 67: convergence: it is said that ReplicaSet crowd39 has 2 pods, it has 1';
    const more = `${crowded}\n  make sim SEED=285\n`;
    expect(MISTAKES.filter((mistake) => isShownIn(more, mistake)).map(({ name }) => name)).toEqual([]);
    expect(isShownIn(more, { rule: /^convergence: it is said / })).toBe(true);
    expect(isShownIn(more, { rule: /^said: / })).toBe(false);
    expect(isShownIn('300 histories of 200 steps, 0 broke a rule', { rule: /./ })).toBe(false);
  });
});
