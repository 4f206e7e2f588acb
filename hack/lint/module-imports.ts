/** One import of a module, as written. */
export interface ModuleImport {
  /** What stands between the quotes. */
  specifier: string;
  /** `import type`, `export type`, or only `type` names between the braces: gone at run time. */
  typeOnly: boolean;
  /** What it takes, by the names that the module itself gives; `*` for all of it. None where it is only run. */
  names: readonly string[];
  line: number;
}

/**
 * The imports, re-exports and dynamic imports of a TypeScript module. Not a parser: it blanks comments and string
 * contents, then looks for the statements, which is exact for the code style of this project.
 */
export function importsOf(source: string): ModuleImport[] {
  const { code, strings } = blank(source);
  const found: ModuleImport[] = [];
  const add = (position: number, typeOnly: boolean, names: readonly string[]): void => {
    const specifier = strings.get(position);
    if (specifier !== undefined) {
      found.push({ specifier, typeOnly, names, line: source.slice(0, position).split('\n').length });
    }
  };
  const statement = /(?<![\w$.])(?:import|export)\s+(type\b\s*)?([\w$*{},\s]*?)\s*from\s*(['"])/g;
  for (const match of code.matchAll(statement)) {
    const [whole, type, names = ''] = match;
    add(match.index + whole.length - 1, type !== undefined || onlyTypes(names), namesIn(names));
  }
  const bare = /(?<![\w$.])import\s*\(?\s*(['"])/g;
  for (const match of code.matchAll(bare))
    add(match.index + match[0].length - 1, false, match[0].includes('(') ? ['*'] : []);
  return found.toSorted((a, b) => a.line - b.line);
}

/** `a, { b as c, type D }`: `default`, `b`, `D`. */
function namesIn(text: string): string[] {
  const [, before = '', braces = ''] = /^([^{]*)(?:\{([\s\S]*)\})?$/.exec(text.trim()) ?? [];
  const parts = (list: string): string[] => list.split(',').flatMap((part) => part.trim() || []);
  return [
    ...parts(before).map((part) => (part.startsWith('*') ? '*' : 'default')),
    ...parts(braces).map((part) => part.replace(/^type\s+/, '').replace(/\s[\s\S]*$/, '')),
  ];
}

/** `{ type A, type B }` */
function onlyTypes(names: string): boolean {
  const braces = /^\{([\s\S]*)\}$/.exec(names.trim());
  if (braces === null) return false;
  const parts = (braces[1] ?? '').split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '').every((part) => part.startsWith('type '));
}

/** The source with comments and the insides of strings as spaces, and each string's content by its first quote. */
function blank(source: string): { code: string; strings: Map<number, string> } {
  const strings = new Map<number, string>();
  const token = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`/g;
  const spaces = (text: string): string => text.replaceAll(/[^\n]/g, ' ');
  const code = source.replaceAll(token, (text, position: number) => {
    const first = text[0];
    if (first !== "'" && first !== '"' && first !== '`') return spaces(text);
    strings.set(position, text.slice(1, -1));
    return `${first}${spaces(text.slice(1, -1))}${first}`;
  });
  return { code, strings };
}
