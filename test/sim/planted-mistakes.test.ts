import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MISTAKES } from './planted-mistakes.ts';
import { ALL_THEMES } from './themes.ts';

const src = resolve(import.meta.dirname, '../../src');

describe('mistakes to plant', () => {
  it.each(MISTAKES)('$name has its places in the program, each once', ({ edits, theme }) => {
    for (const { file, from } of edits) {
      const found = readFileSync(resolve(src, file), 'utf8').split(from).length - 1;
      expect({ file, from, found }).toEqual({ file, from, found: 1 });
    }
    if (theme !== undefined) expect(Object.keys(ALL_THEMES)).toContain(theme);
  });
});
