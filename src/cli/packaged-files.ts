import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Beside `src/` when run from source, one level further up when built. */
const ROOTS = ['../../', '../../../'];

/**
 * A file that comes with the program, by its path in the package, such as `manifests/rbac.yaml`; undefined: it did not come along.
 * The program as a single file has another module in the place of this one, with all of them in it (hack/single-file.ts).
 */
export function packagedFile(path: string): Buffer | undefined {
  return inRoot((root) => readFileSync(new URL(path, root)));
}

/** Names of the files in such a folder, in the order of the alphabet; undefined: it did not come along. */
export function packagedFolder(path: string): string[] | undefined {
  return inRoot((root) => readdirSync(new URL(`${path}/`, root)).toSorted());
}

/** What an import of another package leads to, as it was published. Throws where that is not installed. */
export function packagedModule(name: string): Buffer {
  return readFileSync(createRequire(import.meta.url).resolve(name));
}

function inRoot<T>(read: (root: URL) => T): T | undefined {
  for (const place of ROOTS) {
    try {
      return read(new URL(place, import.meta.url));
    } catch {
      continue;
    }
  }
  return undefined;
}
