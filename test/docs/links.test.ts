import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

const pages = [
  ...readdirSync('.').filter((name) => name.endsWith('.md')),
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** Code shows what looks like links and headings. */
function proseOf(page: string): string {
  return readFileSync(page, 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ' '));
}

/** As GitHub makes it from a heading. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  const seen = new Map<string, number>();
  for (const [, heading = ''] of readFileSync(page, 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .matchAll(/^#{1,6} (.+)$/gm)) {
    const anchor = anchorOf(heading);
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    anchors.add(before === 0 ? anchor : `${anchor}-${before}`);
  }
  return anchors;
}

function brokenLinksOf(page: string): string[] {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return !/^https:\/\/[a-z]/.test(link);
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : normalize(join(dirname(page), path));
    if (!existsSync(target)) return true;
    return anchor !== undefined && !anchorsOf(target).has(anchor);
  });
}

describe('links between pages', () => {
  it.each(pages)('%s', (page) => {
    expect(brokenLinksOf(page)).toEqual([]);
  });

  it('reach every page from README.md', () => {
    const reached = new Set<string>();
    const left = ['README.md'];
    for (let page = left.pop(); page !== undefined; page = left.pop()) {
      if (reached.has(page)) continue;
      reached.add(page);
      for (const [, link = ''] of proseOf(page).matchAll(/\]\(([^)#\s]+\.md)[^)]*\)/g)) {
        if (!link.startsWith('https:')) left.push(normalize(join(dirname(page), link)));
      }
    }
    expect(pages.filter((page) => !reached.has(page))).toEqual([]);
  });
});
