import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { importsOf } from '../../hack/lint/module-imports.ts';
import { repositoryRoot } from '../../hack/repository.ts';

/** Files below src that come into memory with one of them, without what is loaded on demand. */
function loadedWith(start: string): string[] {
  const loaded = new Set<string>();
  const load = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const source = readFileSync(join(repositoryRoot(), 'src', file), 'utf8');
    const lines = source.split('\n');
    for (const { specifier, typeOnly, line } of importsOf(source)) {
      const isOnDemand = lines[line - 1]?.includes('await import(') === true;
      const isModule = specifier.startsWith('.') && specifier.endsWith('.ts');
      if (isModule && !typeOnly && !isOnDemand) load(join(dirname(file), specifier));
    }
  };
  load(start);
  return [...loaded];
}

it('loads nothing of schedulers and moves for a manager that only serves members', () => {
  const loaded = loadedWith('manager/manager.ts');
  expect(loaded).toContain('manager/member.ts');
  expect(loaded.filter((file) => /^(?:scheduler|descheduler)\//.test(file))).toEqual([
    'scheduler/unheeded-policies.ts',
  ]);
});
