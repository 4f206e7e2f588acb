import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it.each(['docs/walks.md', 'CONTRIBUTING.md'])('%s names files that there are', (page) => {
  const files = [...readFileSync(page, 'utf8').matchAll(/`((?:src|test)\/[^`*]+\.ts)`/g)].map(([, file = '']) => file);
  expect(files.length).toBeGreaterThan(7);
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
});
