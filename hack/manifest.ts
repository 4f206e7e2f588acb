import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './repository.ts';

/** The text of a file below manifests/. */
export function manifest(file: string): string {
  return readFileSync(join(repositoryRoot(), 'manifests', file), 'utf8');
}
