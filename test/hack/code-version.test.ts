import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { codeVersion, commitOfCode } from '../../hack/code-version.ts';
import { programVersion } from '../../src/version.ts';

let folder: string;
const git = (...args: string[]): string =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=a', '-c', 'user.email=a@b.example', ...args], {
    encoding: 'utf8',
  });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'code-version-'));
  mkdirSync(join(folder, 'src'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('names the commit, says what was not committed, and goes without where there is no history', () => {
  expect(commitOfCode(folder)).toBeUndefined();
  writeFileSync(join(folder, 'src/a.ts'), 'one');
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'one');
  const commit = git('rev-parse', '--short', 'HEAD').trim();
  expect(commitOfCode(folder)).toBe(commit);
  writeFileSync(join(folder, 'README.md'), 'not code');
  expect(commitOfCode(folder)).toBe(commit);
  writeFileSync(join(folder, 'src/a.ts'), 'two');
  expect(commitOfCode(folder)).toBe(`${commit} and changes`);
  expect(codeVersion('7e42537')).toBe(`${programVersion()} (7e42537)`);
});
