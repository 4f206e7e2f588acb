import { labelRequirement, SelectorError } from './label-selector.ts';
import type { LabelRequirement, LabelSelector } from './label-selector.ts';

type Token = '!' | '=' | '==' | '!=' | '>' | '<' | '(' | ')' | ',' | { readonly word: string };

const TOKENS = /\s*(?:(==|!=|[!=><(),])|([^\s!=><(),]+))/y;
const COMPARISONS = new Map<unknown, string>([
  ['=', 'In'],
  ['==', 'In'],
  ['!=', 'NotIn'],
  ['>', 'Gt'],
  ['<', 'Lt'],
]);

/**
 * Parses the string form: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`. An empty text matches everything. The grammar is
 * that of k8s.io/apimachinery/pkg/labels.
 *
 * @throws SelectorError that quotes the text and says what is wrong.
 */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = tokenize(text);
  const requirements: LabelRequirement[] = [];
  let position = 0;
  const peek = (): Token | undefined => tokens[position];
  const next = (): Token | undefined => tokens[position++];
  const fail = (wanted: string): never => {
    const found = tokens[position - 1];
    const shown = found === undefined ? 'the end' : `"${typeof found === 'string' ? found : found.word}"`;
    throw new SelectorError(`label selector "${text}": ${wanted} expected, ${shown} found`);
  };
  const word = (wanted: string): string => {
    const token = next();
    return typeof token === 'object' ? token.word : fail(wanted);
  };
  /** The single value of a comparison; nothing before a comma or the end means the empty value. */
  const exactValue = (): string => (peek() === undefined || peek() === ',' ? '' : word('a value'));
  const valueSet = (): string[] => {
    if (next() !== '(') fail('"("');
    const values: string[] = [];
    for (;;) {
      values.push(typeof peek() === 'object' ? word('a value') : '');
      const token = next();
      if (token === ')') return [...new Set(values)];
      if (token !== ',') fail('"," or ")"');
    }
  };
  const requirement = (): LabelRequirement => {
    if (peek() === '!') {
      next();
      return labelRequirement(word('a label key'), 'DoesNotExist');
    }
    const key = word('a label key');
    const operator = peek();
    if (operator === undefined || operator === ',') return labelRequirement(key, 'Exists');
    next();
    const comparison = COMPARISONS.get(operator);
    if (comparison !== undefined) return labelRequirement(key, comparison, [exactValue()]);
    const set = typeof operator === 'object' ? operator.word : undefined;
    if (set === 'in') return labelRequirement(key, 'In', valueSet());
    if (set === 'notin') return labelRequirement(key, 'NotIn', valueSet());
    return fail('an operator');
  };

  while (position < tokens.length) {
    requirements.push(requirement());
    if (peek() === undefined) break;
    if (next() !== ',') fail('","');
    if (peek() === undefined) {
      next();
      fail('a label key');
    }
  }
  return requirements;
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const trimmed = text.trimEnd();
  TOKENS.lastIndex = 0;
  while (TOKENS.lastIndex < trimmed.length) {
    const match = TOKENS.exec(trimmed);
    if (match === null) break;
    const [, symbol, word] = match;
    if (symbol !== undefined) tokens.push(symbol as Exclude<Token, object>);
    else if (word !== undefined) tokens.push({ word });
  }
  return tokens;
}
