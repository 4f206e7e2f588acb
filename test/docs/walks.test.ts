import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it.each(['docs/walks.md', 'CONTRIBUTING.md'])('%s names files that there are', (page) => {
  const files = [...readFileSync(page, 'utf8').matchAll(/`((?:src|test)\/[^`*]+\.ts)`/g)].map(([, file = '']) => file);
  expect(files.length).toBeGreaterThan(7);
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
});

it('the walks name files that do something, not those that only have types', () => {
  const files = [...readFileSync('docs/walks.md', 'utf8').matchAll(/`(src\/[^`*]+\.ts)`/g)].map(([, file = '']) => file);
  const doesNothing = (file: string): boolean =>
    !/^(export )?(async )?(function|class|const) /m.test(readFileSync(file, 'utf8'));
  expect(files.filter(doesNothing)).toEqual([]);
});

it('the walks name the file that lists the strategies', () => {
  const [, file = ''] = /all are listed in `([^`]+)`/.exec(readFileSync('docs/walks.md', 'utf8')) ?? [];
  expect(readFileSync(file, 'utf8')).toMatch(/^export const STRATEGIES\b/m);
});
