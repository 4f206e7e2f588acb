import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CommandBlock, Guide } from '../fixtures/guide.ts';
import { NOT_FOLLOWED } from './not-followed.ts';

/** Each block of commands on a page is pasted by a test on clusters as it stands there, or it is said why none does. */
const guides = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
].map((page) => new Guide(page));

/** What a test takes of a page: `of.script('kubectl …')`, where `of` is the page; a part has all blocks under its heading. */
interface Taken {
  readonly page: string;
  readonly how: string;
  readonly what: string;
}

function takenBy(source: string): Taken[] {
  const pages = new Map(
    [...source.matchAll(/\bconst (\w+) = new Guide\('([^']+)'\)/g)].map(([, name = '', page = '']) => [name, page]),
  );
  const calls = source.matchAll(/\b(\w+)\s*\.(script|commands|session|part)\(\s*(['"])((?:\\.|(?!\3).)+)\3/g);
  return [...calls].flatMap(([, name = '', how = '', , what = '']) => {
    const page = pages.get(name);
    return page === undefined ? [] : [{ page, how, what: what.replaceAll(/\\(.)/g, '$1') }];
  });
}

const tests = ['cluster', 'faults', 'long', 'page'].flatMap((folder) =>
  readdirSync(join('test', folder)).map((name) => join('test', folder, name)),
);
const taken = tests.flatMap((file) => takenBy(readFileSync(file, 'utf8')));

function blocksOf({ page, how, what }: Taken): CommandBlock[] {
  const guide = new Guide(page);
  if (how !== 'part') return [guide.find(what)];
  const found = guide.blocks.filter(({ heading }) => heading === what);
  if (found.length === 0) throw new Error(`${page} has no commands under ${what}`);
  return found;
}

/** Without what is said behind the commands. */
const scriptOf = ({ commands }: CommandBlock): string =>
  commands.map(({ typed }) => typed.replace(/ +# .*$/, '')).join('\n');
/** What stands on two pages need be followed on one of them. */
const followed = new Set(taken.flatMap((one) => blocksOf(one).map(scriptOf)));
const excused = NOT_FOLLOWED.flatMap(({ blocks }) =>
  Object.entries(blocks).flatMap(([page, beginnings]) =>
    beginnings.map((beginning) => scriptOf(new Guide(page).find(beginning))),
  ),
);
/** The reference shows how a verb is called. */
const isSynopsis = (script: string): boolean => script.includes('[options]');

describe('blocks of commands', () => {
  it.each(guides.map((guide) => [guide.page, guide] as const))('%s', (_, { blocks }) => {
    const scripts = blocks.map(scriptOf).filter((script) => !isSynopsis(script));
    expect(scripts.filter((script) => !followed.has(script) && !excused.includes(script))).toEqual([]);
  });

  it('are excused once, and only where no test follows them', () => {
    expect(excused).toEqual([...new Set(excused)]);
    expect(excused.filter((script) => followed.has(script))).toEqual([]);
  });

  it('are looked at', () => {
    expect(followed.size).toBeGreaterThan(40);
    const source = `const page = new Guide('docs/x.md');\nawait shell.paste(page.script(\n  "echo 'a'",\n));\nother.script('b');`;
    expect(takenBy(source)).toEqual([{ page: 'docs/x.md', how: 'script', what: "echo 'a'" }]);
  });
});
