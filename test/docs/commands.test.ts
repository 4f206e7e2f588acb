import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { Cli } from '../../src/cli/cli.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { FakeTerminal } from '../cli/fake-terminal.ts';

/** All that pages tell people to type of `kubectl spillway` is something that it has. */
const pages = [
  'README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.endsWith('reference/cli.md'))
    .map((name) => join('docs', name)),
].filter((page) => commandsOn(page).length > 0);
const verbs: ReadonlyMap<string, Command> = new Map(
  buildProgram(new Cli(new FakeTerminal())).commands.map((command) => [command.name(), command]),
);

/** Words behind `kubectl spillway`, in blocks of code and in code within prose. */
function commandsOn(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/\\\n\s*/g, ' ');
  const code = [
    ...[...text.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span),
    ...text.split('\n').filter((line) => /^(\s{4,}|\$ |kubectl )/.test(line)),
  ];
  return code.flatMap((line) => [...line.matchAll(/kubectl spillway ([^|#;`]+)/g)].map(([, words = '']) => words.trim()));
}

/** What in a command is not there, in words. */
function wrongIn(words: string): string[] {
  const [name = '', ...rest] = words.split(/\s+/);
  if (!/^[a-z]/.test(name) || ['completion'].includes(name)) return [];
  const verb = verbs.get(name);
  if (verb === undefined) return [`there is no verb ${name}`];
  const known = new Set(verb.options.flatMap(({ long, short }) => [long, short]));
  return rest
    .filter((word) => /^--?[a-z]/i.test(word))
    .map((word) => word.replace(/[=,.:)…].*$/, ''))
    .filter((flag) => flag !== '--help' && !known.has(flag))
    .map((flag) => `${name} has no flag ${flag}`);
}

describe('commands of kubectl spillway', () => {
  it.each(pages)('%s', (page) => {
    expect(commandsOn(page).flatMap(wrongIn)).toEqual([]);
  });

  it('are looked at', () => {
    expect(pages).toEqual(expect.arrayContaining(['docs/guides/install.md', 'docs/concepts/leaving.md']));
    expect(wrongIn('leave east --frobnicate=1 -n shop')).toEqual([
      'leave has no flag --frobnicate',
      'leave has no flag -n',
    ]);
    expect(wrongIn('vanish east')).toEqual(['there is no verb vanish']);
    expect(wrongIn('VERB --help')).toEqual([]);
  });
});
