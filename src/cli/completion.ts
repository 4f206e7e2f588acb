import type { Command, Option } from 'commander';

/** Flags that say which cluster and namespace the words so far are about. */
interface Given {
  kubeconfig: string | undefined;
  context: string | undefined;
  namespace: string | undefined;
}

/** Where names come from; without an answer there are none. */
export interface Completer {
  contexts(given: Given): string[];
  clusters(given: Given): Promise<string[]>;
  namespaces(given: Given): Promise<string[]>;
  pods(given: Given): Promise<string[]>;
}

/** cobra's directives, as kubectl hands them to the shell: what to do besides the suggestions. */
const FILES_TOO = 0;
const NO_FILES = 4;

/**
 * What kubectl expects of a completion program: a suggestion a line, with a description behind a tab, and a last line with the
 * directive. The last of `words` is the one at the cursor, '' for a new one.
 */
export async function completion(program: Command, words: readonly string[], from: Completer): Promise<string> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const verb = verbIn(program, before);
  const { suggestions, directive } = await suggested(program, verb, before, current, from);
  const lines = suggestions.filter((line) => line.startsWith(current)).map((line) => `${line}\n`);
  return `${lines.join('')}:${directive}\n`;
}

interface Suggested {
  suggestions: string[];
  directive: number;
}

const only = (suggestions: readonly string[]): Suggested => ({ suggestions: [...suggestions], directive: NO_FILES });

async function suggested(
  program: Command,
  verb: Command | undefined,
  before: readonly string[],
  current: string,
  from: Completer,
): Promise<Suggested> {
  if (verb === undefined) {
    return only(program.commands.map((one) => `${one.name()}\t${one.summary() || one.description()}`));
  }
  const given = givenIn(before);
  const last = before.at(-1) ?? '';
  const open = verb.options.find((option) => isNamed(option, last));
  if (open !== undefined && takesValue(open)) return await valuesOf(open, given, from);
  if (current.startsWith('-')) return only(verb.options.map((option) => `${option.long ?? ''}\t${option.description}`));
  const position = positionals(verb, before) - 1;
  const { registeredArguments } = verb;
  const argument = registeredArguments[Math.min(position, registeredArguments.length - 1)];
  if (argument === undefined || (position >= registeredArguments.length && !argument.variadic)) return only([]);
  return await namesFor(argument.name(), given, from);
}

async function valuesOf(option: Option, given: Given, from: Completer): Promise<Suggested> {
  if (option.argChoices !== undefined) return only(option.argChoices);
  switch (option.long) {
    case '--output':
      return only(/: (.*)$/.exec(option.description)?.[1]?.split(', ') ?? []);
    case '--context':
      return only(from.contexts(given));
    case '--from':
      return only(await from.clusters(given));
    case '--to':
      return only(['local', ...(await from.clusters(given))]);
    case '--namespace':
    case '--system-namespace':
      return only(await from.namespaces(given));
    case '--kubeconfig':
    case '--filename':
    case '--file':
      return { suggestions: [], directive: FILES_TOO };
    default:
      return only([]);
  }
}

async function namesFor(argument: string, given: Given, from: Completer): Promise<Suggested> {
  switch (argument) {
    case 'cluster':
      return only(await from.clusters(given));
    case 'pod':
      return only(await from.pods(given));
    case 'file':
      return { suggestions: [], directive: FILES_TOO };
    default:
      return only([]);
  }
}

const isNamed = ({ short, long }: Option, word: string): boolean => word !== '' && (word === short || word === long);
const takesValue = (option: Option): boolean => option.required || option.optional;

/** The first word that is a verb; flags may stand before it. */
function verbIn(program: Command, words: readonly string[]): Command | undefined {
  for (const word of words) {
    const found = program.commands.find((one) => one.name() === word);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** How many words are neither flags nor their values, the verb included. */
function positionals(verb: Command, words: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (!word.startsWith('-')) count += 1;
    else if (!word.includes('=') && verb.options.some((option) => isNamed(option, word) && takesValue(option)))
      index += 1;
  }
  return count;
}

function givenIn(words: readonly string[]): Given {
  const value = (...names: string[]): string | undefined => {
    for (const [index, word] of words.entries()) {
      if (names.includes(word)) return words[index + 1];
      const name = names.find((one) => word.startsWith(`${one}=`));
      if (name !== undefined) return word.slice(name.length + 1);
    }
    return undefined;
  };
  return {
    kubeconfig: value('--kubeconfig'),
    context: value('--context'),
    namespace: value('-n', '--namespace'),
  };
}
