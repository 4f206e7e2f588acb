import { readFileSync } from 'node:fs';

/** The program's version, from package.json: beside `src/` when run from source, one level further up when built. */
export function programVersion(): string {
  for (const place of ['../package.json', '../../package.json']) {
    try {
      const content: unknown = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8'));
      const { name, version } = content as { name?: unknown; version?: unknown };
      if (name === 'spillway' && typeof version === 'string') return version;
    } catch {
      continue;
    }
  }
  return 'unknown';
}
