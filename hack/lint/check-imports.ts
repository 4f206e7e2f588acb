/**
 * `node dist/hack/lint/check-imports.js`: holds the import rules for all of src, and the limits of docs/design.md; exit code 1
 * and a list when broken.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../repository.ts';
import { beyondLimits, houseFigures } from './house-figures.ts';
import { checkImports, goneFromRules } from './import-rules.ts';

const root = repositoryRoot();
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => `src/${path.replaceAll('\\', '/')}`);
const sources = new Map(paths.map((path) => [path, textOf(path)]));
const figures = houseFigures(sources);
const breaches = [
  ...checkImports(sources),
  ...goneFromRules(paths),
  ...beyondLimits(figures, textOf('docs/design.md')),
];
for (const breach of breaches) console.error(breach);
const { rooms, floors, arrows } = figures;
console.error(`import rules: ${paths.length} files, ${breaches.length} breaches`);
console.error(`${rooms} rooms on ${floors} floors, ${arrows} arrows between them`);
process.exitCode = breaches.length === 0 ? 0 : 1;
