import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const PAGE = readFileSync('docs/threat-model.md', 'utf8');
const REFERENCE = /`(test\/[^`]+\.test\.ts)`: ([^|]+?)(?=; `test\/| \||$)/g;
const rows = PAGE.split('\n')
  .filter((line) => line.startsWith('| ') && line.split('|').length === 6)
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, who = '', may = '', heldBy = '', shownBy = '']) => ({ who, may, heldBy, shownBy }))
  .filter(({ who }) => who !== 'who');

/** What tests, and groups of them, are called in the file: the text that such a call, or one of its table, begins with. */
function titlesIn(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  const calls = /(?:\b(?:it|test|describe)(?:\.\w+)*(?:<[^(]*>)?|\))\(\s*(?:'((?:[^'\\\n]|\\.)*)'|"([^"\n]*)"|`([^`\n]*)`)\s*,/g;
  return [...text.matchAll(calls)].map(([, a, b, c]) => (a ?? b ?? c ?? '').replaceAll("\\'", "'"));
}

describe('the threat model', () => {
  it.each(rows)('$who may $may: it is shown, or nothing holds it', ({ heldBy, shownBy }) => {
    const references = [...`${shownBy} |`.matchAll(REFERENCE)];
    if (references.length === 0) expect(heldBy).toMatch(/nothing (holds it|is decided)/);
    expect(references.map(([all]) => all).join('; ')).toBe(shownBy);
    for (const [, file = '', title = ''] of references) {
      expect(titlesIn(file).some((one) => one.includes(title)), `${file}: ${title}`).toBe(true);
    }
  });

  it('speaks of every actor', () => {
    const actors = [...PAGE.matchAll(/^\| (thief of [TNMS]|[a-z ]+) \| [^|]+\|$/gm)].map(([, actor = '']) => actor);
    expect(actors.length).toBeGreaterThan(8);
    for (const actor of actors.slice(1)) expect(rows.some(({ who }) => who.includes(actor)), actor).toBe(true);
  });

  it('names every policy that keeps one of our keys to its work', () => {
    for (const file of ['node-guard.yaml', 'storage.yaml', 'scheduler/pod-guard.yaml', 'member/guard.yaml']) {
      expect(PAGE).toContain(`\`${file}\``);
    }
  });
});
