import { expect, it } from 'vitest';
import { cleanText } from '../../src/kube/clean-text.ts';

it.each([
  ['pods of 3 nodes: ~10 %', 'pods of 3 nodes: ~10 %', 'clean already'],
  ['1234567890123456789012', '1234567890123456789012', 'as long as may be'],
  ['12345678901234567890123', '1234567890123456789…', 'longer'],
  ['', '', 'nothing'],
  [' a b ', 'a b', 'space around it'],
  ['a  b', 'a b', 'two spaces'],
  ['a\nb\tc', 'a b c', 'other white space'],
  ['a\u0007b\u202ec', 'abc', 'what is not seen'],
  ['größer als möglich', 'größer als möglich', 'more bytes than characters, and room for them'],
  ['größer als möglich ist', 'größer als mögli…', 'more bytes than characters, and no room'],
])('%j becomes %j: %s', (text, expected) => {
  expect(cleanText(text, 22)).toBe(expected);
});
