/** `node dist/hack/lint/check-imports.js`: holds the import rules for all of src; exit code 1 and a list when broken. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../repository.ts';
import { checkImports } from './import-rules.ts';

const root = repositoryRoot();
const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => `src/${path.replaceAll('\\', '/')}`);
const breaches = checkImports(new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')])));
for (const breach of breaches) console.error(breach);
console.error(`import rules: ${paths.length} files, ${breaches.length} breaches`);
process.exitCode = breaches.length === 0 ? 0 : 1;
