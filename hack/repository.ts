import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout this file belongs to: works from the source (`hack/`) and from the compiled tree (`dist/hack/`). */
export function repositoryRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'hack', 'tools', 'kubernetes', 'go.mod'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('hack/tools/kubernetes/go.mod not found above this program');
    folder = parent;
  }
  return folder;
}
