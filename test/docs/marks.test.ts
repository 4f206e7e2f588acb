import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const PAGE = readFileSync('docs/reference/marks.md', 'utf8');
const MARK = /`\$\{GROUP\}\/([A-Za-z-]+)`/g;

it('says of every mark who may write it and what is believed', () => {
  const missing = new Set<string>();
  for (const file of readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
    for (const [, mark = ''] of readFileSync(join('src', file), 'utf8').matchAll(MARK)) {
      if (!PAGE.includes(`\`${mark}\``)) missing.add(`${mark} (src/${file})`);
    }
  }
  expect([...missing]).toEqual([]);
});
