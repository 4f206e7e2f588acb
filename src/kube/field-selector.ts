import { SelectorError } from './label-selector.ts';

/** One comparison of a dotted path such as `spec.nodeName`; a field that is absent counts as the empty string. */
export interface FieldRequirement {
  readonly path: string;
  readonly equal: boolean;
  readonly value: string;
}

/** All requirements must hold; an empty list matches everything. */
export type FieldSelector = readonly FieldRequirement[];

/**
 * Parses `metadata.name=a,spec.nodeName!=b`. In values `\\`, `\,` and `\=` stand for the character itself.
 *
 * @throws SelectorError when a term has no operator or a value has a stray or unknown escape.
 */
export function parseFieldSelector(text: string): FieldSelector {
  return splitTerms(text)
    .filter((term) => term !== '')
    .map((term) => {
      const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
      const [, path = '', operator = '', value = ''] = match ?? [];
      if (match === null || path === '') {
        throw new SelectorError(`field selector "${text}": "${term}" is not of the form path=value or path!=value`);
      }
      return { path, equal: operator !== '!=', value: unescapeValue(value, text) };
    });
}

/** Splits at commas that no backslash precedes. */
function splitTerms(text: string): string[] {
  return text.match(/(?:\\[\s\S]?|[^,\\])+/g) ?? [];
}

function unescapeValue(value: string, text: string): string {
  return value.replaceAll(/\\([\s\S]?)|[=,]/g, (whole, escaped: string | undefined) => {
    if (escaped !== undefined && escaped !== '' && '\\,='.includes(escaped)) return escaped;
    throw new SelectorError(`field selector "${text}": "${whole}" must be escaped in a value`);
  });
}

/** Escapes a literal for use as a value in a field selector. */
export function escapeFieldValue(value: string): string {
  return value.replaceAll(/[\\,=]/g, (character) => `\\${character}`);
}

export function formatFieldSelector(selector: FieldSelector): string {
  return selector.map(({ path, equal, value }) => `${path}${equal ? '=' : '!='}${escapeFieldValue(value)}`).join(',');
}

export function matchesFields(selector: FieldSelector, object: unknown): boolean {
  return selector.every(({ path, equal, value }) => (fieldAt(object, path) === value) === equal);
}

/** The value at a dotted path as text; anything that is no scalar counts as absent. */
function fieldAt(object: unknown, path: string): string {
  let current = object;
  for (const segment of path.split('.')) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, segment)) return '';
    current = (current as Record<string, unknown>)[segment];
  }
  if (typeof current === 'string') return current;
  return typeof current === 'number' || typeof current === 'boolean' || typeof current === 'bigint'
    ? String(current)
    : '';
}
