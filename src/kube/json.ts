/**
 * JSON for Kubernetes objects without loss. JavaScript's parser turns int64 values above 2^53 into their nearest
 * double; objects that only pass through must come out as they went in. Numbers that a double cannot carry become
 * {@link RawNumber}, which keeps their text; every other number is an ordinary one.
 */

/** A number token kept as text because a double would change it. Compare by `text`; do not clone structurally. */
export class RawNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Plain `JSON.stringify` (logs and the like) sees the nearest double; {@link stringifyJson} writes the text. */
  toJSON(): number {
    rawNumberSeen = true;
    return Number(this.text);
  }

  toString(): string {
    return this.text;
  }
}

let rawNumberSeen = false;

/** Integers up to 15 digits are always exact in a double. */
const SAFE_DIGITS = 15;

/** The engine copies parts that are shorter, see {@link copied}. */
const SHORTEST_VIEW = 13;

/** Keeps the recursive careful path off the end of the stack. No object of Kubernetes is so deep (see shapes/shape.ts). */
const MAX_DEPTH = 2_000;

/**
 * Parses JSON; throws SyntaxError as JSON.parse does. `__proto__` becomes an own property like any other key.
 *
 * Below {@link MAX_DEPTH} long numbers are doubles.
 *
 * The fast path is JSON.parse. It is safe unless the text holds a run of 16 or more digits: fractions and exponents
 * come from the API server in the shortest form that its own float64 needs, so a double carries them.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasLongDigitRun(text) ? new LosslessReader(text).read() : value;
}

/**
 * Writes JSON as JSON.stringify does, with each {@link RawNumber} as the text it was read from. Throws TypeError for what has
 * no JSON form, and for what is nested thousands deep.
 */
export function stringifyJson(value: unknown): string {
  rawNumberSeen = false;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
    if (text !== undefined && rawNumberSeen) text = write(value);
  } catch (error) {
    throw error instanceof RangeError ? new TypeError('the value is nested too deeply', { cause: error }) : error;
  }
  if (text === undefined) {
    throw new TypeError('the value has no JSON form');
  }
  return text;
}

/**
 * Looks at every 16th character only: a run of 16 digits cannot avoid all of them. About a fiftieth of the time
 * that parsing takes.
 */
function hasLongDigitRun(text: string): boolean {
  const step = SAFE_DIGITS + 1;
  for (let probe = SAFE_DIGITS; probe < text.length; probe += step) {
    if (!isDigit(text.charCodeAt(probe))) {
      continue;
    }
    let first = probe;
    while (first > 0 && isDigit(text.charCodeAt(first - 1))) {
      first--;
    }
    let end = probe + 1;
    while (end < text.length && isDigit(text.charCodeAt(end))) {
      end++;
    }
    if (end - first > SAFE_DIGITS) {
      return true;
    }
  }
  return false;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

const NUMBER = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y;
const PLAIN_STRING = /"[^"\\]*"/y;
const SPACE = /[ \t\n\r]*/y;

/** Reads text that JSON.parse has already accepted, so it checks no syntax of its own. */
class LosslessReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(depth = 0): unknown {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '{':
        return depth > MAX_DEPTH ? this.#deep() : this.#object(depth);
      case '[':
        return depth > MAX_DEPTH ? this.#deep() : this.#array(depth);
      case '"':
        return this.#string();
      case 't':
        this.#at += 4;
        return true;
      case 'f':
        this.#at += 5;
        return false;
      case 'n':
        this.#at += 4;
        return null;
      default:
        return toNumber(copied(this.#take(NUMBER)));
    }
  }

  #object(depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    this.#at++;
    while (!this.#closes('}')) {
      const key = this.#string();
      this.#skipSpace();
      this.#at++; // ':'
      const value = this.read(depth + 1);
      if (key === '__proto__') {
        Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
      } else {
        object[key] = value;
      }
    }
    return object;
  }

  #array(depth: number): unknown[] {
    const array: unknown[] = [];
    this.#at++;
    while (!this.#closes(']')) {
      array.push(this.read(depth + 1));
    }
    return array;
  }

  /** An object or a list with ordinary numbers only; without recursion. */
  #deep(): unknown {
    const start = this.#at;
    let open = 0;
    do {
      const next = this.#text[this.#at];
      if (next === '"') {
        this.#string();
        continue;
      }
      if (next === '{' || next === '[') open++;
      if (next === '}' || next === ']') open--;
      this.#at++;
    } while (open > 0);
    return JSON.parse(this.#text.slice(start, this.#at));
  }

  /** Steps over a comma; true (and past it) at the closing bracket. */
  #closes(bracket: string): boolean {
    this.#skipSpace();
    const next = this.#text[this.#at];
    if (next === ',') {
      this.#at++;
      this.#skipSpace();
      return false;
    }
    if (next === bracket) {
      this.#at++;
      return true;
    }
    return false;
  }

  #string(): string {
    const start = this.#at;
    const plain = this.#match(PLAIN_STRING);
    if (plain !== undefined) {
      return copied(plain.slice(1, -1));
    }
    // No pattern: one with a choice for each character runs out of stack on a long text.
    let end = start + 1;
    while (this.#text[end] !== '"') end += this.#text[end] === '\\' ? 2 : 1;
    this.#at = end + 1;
    const parsed: unknown = JSON.parse(this.#text.slice(start, this.#at));
    return String(parsed);
  }

  #skipSpace(): void {
    this.#match(SPACE);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) {
      this.#at += found.length;
    }
    return found;
  }

  #take(pattern: RegExp): string {
    const found = this.#match(pattern);
    if (found === undefined) {
      throw new SyntaxError(`unexpected JSON at position ${this.#at}`);
    }
    return found;
  }
}

/** The engine keeps a part of a text as a view of the text, which then stays as a whole. `part` needs no escapes. */
function copied(part: string): string {
  return part.length < SHORTEST_VIEW ? part : String(JSON.parse(`"${part}"`));
}

/** An ordinary number where its value survives a double, else the text. */
function toNumber(token: string): number | RawNumber {
  const value = Number(token);
  if (Number.isSafeInteger(value) || String(value) === token) {
    return value;
  }
  const digits = token
    .replace(/[eE].*$/, '')
    .replace(/^[-0.]+/, '')
    .replace('.', '').length;
  const inexact = digits > SAFE_DIGITS || !Number.isFinite(value) || (value === 0 && digits > 0);
  return inexact ? new RawNumber(token) : value;
}

/** JSON.stringify's rules by hand, only for values that hold a RawNumber; JSON.stringify has found no cycle. */
function write(value: unknown): string {
  return writeValue(value) ?? 'null';
}

function writeValue(value: unknown): string | undefined {
  if (value instanceof RawNumber) {
    return value.text;
  }
  if (typeof value !== 'object' || value === null) {
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map((item) => writeValue(item) ?? 'null').join(',')}]`;
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return JSON.stringify(value);
  }
  const parts: string[] = [];
  for (const [key, field] of Object.entries(value)) {
    const text = writeValue(field);
    if (text !== undefined) {
      parts.push(`${JSON.stringify(key)}:${text}`);
    }
  }
  return `{${parts.join(',')}}`;
}
