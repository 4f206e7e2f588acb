/**
 * A URL query that keeps what was sent. Values stay percent-encoded until asked for: a command may hold bytes that
 * are no UTF-8, and decoding and encoding them again would change the command.
 */
export class Query {
  readonly #pairs: readonly { name: string; raw: string }[];

  private constructor(pairs: readonly { name: string; raw: string }[]) {
    this.#pairs = pairs;
  }

  /** `raw` has no leading `?`. Undefined when it is malformed or holds what no Kubernetes client sends (NUL, `;`). */
  static parse(raw: string): Query | undefined {
    const pairs: { name: string; raw: string }[] = [];
    for (const part of raw.split('&')) {
      if (part === '') {
        continue;
      }
      const equals = part.indexOf('=');
      const name = decodeOnce(equals < 0 ? part : part.slice(0, equals));
      const value = equals < 0 ? '' : part.slice(equals + 1);
      if (name === undefined || !isEncodedText(value)) {
        return undefined;
      }
      pairs.push({ name, raw: value });
    }
    return new Query(pairs);
  }

  has(name: string): boolean {
    return this.#pairs.some((pair) => pair.name === name);
  }

  /** The first value, decoded; undefined when absent or not UTF-8. */
  first(name: string): string | undefined {
    const pair = this.#pairs.find((pair) => pair.name === name);
    return pair === undefined ? undefined : decodeOnce(pair.raw);
  }

  /** Every value, in order, still encoded as it was sent. */
  rawValues(name: string): readonly string[] {
    return this.#pairs.filter((pair) => pair.name === name).map((pair) => pair.raw);
  }
}

/** What may stand in a query value: unreserved and reserved characters less `&#;`, and whole escapes other than NUL. */
const ENCODED_TEXT = /^(?:[\w\-.~!$'()*+,:@/?=[\]]|%(?!00)[\dA-Fa-f]{2})*$/;

function isEncodedText(raw: string): boolean {
  return ENCODED_TEXT.test(raw);
}

function decodeOnce(raw: string): string | undefined {
  try {
    return isEncodedText(raw) ? decodeURIComponent(raw.replaceAll('+', ' ')) : undefined;
  } catch {
    return undefined;
  }
}
