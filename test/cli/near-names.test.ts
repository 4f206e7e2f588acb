import { expect, test } from 'vitest';
import { didYouMean, nearNames } from '../../src/cli/near-names.ts';

const MEMBERS = ['east', 'west', 'east-gpu', 'frankfurt', 'frankfurt-2'];

test.each<[string, string[]]>([
  ['esat', ['east']],
  ['eas', ['east']],
  ['easst', ['east']],
  ['wast', ['east', 'west']],
  ['East', ['east']],
  ['frankfrut', ['frankfurt']],
  ['frankfurt2', ['frankfurt', 'frankfurt-2']],
  ['frank', ['frankfurt', 'frankfurt-2']],
  ['moon', []],
  ['e', []],
  ['', []],
])('of the names that there are, near to %j are %j', (word, near) => {
  expect(nearNames(word, MEMBERS)).toEqual(near);
});

test('a name of a letter or two is near to nothing that is not like it', () => {
  expect(nearNames('a', ['b', 'c'])).toEqual([]);
  expect(nearNames('db', ['ab', 'eu'])).toEqual([]);
  expect(didYouMean('moon', MEMBERS)).toBeUndefined();
  expect(didYouMean('frank', MEMBERS, 'member/')).toBe('did you mean member/frankfurt or member/frankfurt-2?');
});
