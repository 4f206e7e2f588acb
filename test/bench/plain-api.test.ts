import { describe, expect, it } from 'vitest';
import { eachLine, textAfter } from '../../bench/plain-api.ts';

describe('eachLine', () => {
  it.each([1, 2, 3, 7, 100])('finds the same lines in pieces of %i bytes', (size) => {
    const bytes = Buffer.from('{"a":1}\n\n{"b":"é"}\n{"c":3}\n{"unfini');
    const lines: string[] = [];
    let rest: Buffer | undefined;
    for (let at = 0; at < bytes.length; at += size) {
      rest = eachLine(rest, bytes.subarray(at, at + size), (line) => lines.push(line.toString()));
    }
    expect(lines).toEqual(['{"a":1}', '{"b":"é"}', '{"c":3}']);
    expect(rest?.toString()).toBe('{"unfini');
  });
});

describe('textAfter', () => {
  const line = Buffer.from('{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"load-7","namespace":"n"}}}');

  it('reads the text up to the next quotation mark', () => {
    expect(textAfter(line, '"metadata":{"name":"')).toBe('load-7');
    expect(textAfter(line, '{"type":"')).toBe('ADDED');
  });

  it('is undefined where the mark is missing', () => {
    expect(textAfter(line, '"phase":"')).toBeUndefined();
  });
});
