import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { repositoryRoot } from './repository.ts';

const PROGRAMS = { 'kubectl-spillway': 'main.js', 'kubectl_complete-spillway': 'complete.js' };

/** Makes `kubectl spillway` of this checkout, as npm would link it, in a folder below `dir` for the PATH; that folder. */
export function kubectlPlugin(dir: string): string {
  const folder = join(dir, 'plugin');
  mkdirSync(folder, { recursive: true });
  for (const [name, file] of Object.entries(PROGRAMS)) {
    const program = join(repositoryRoot(), 'dist/src/cli', file);
    writeFileSync(join(folder, name), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`, { mode: 0o755 });
  }
  return folder;
}
