import { expect, test } from 'vitest';
import { withoutSecretValues } from '../../src/dependents/secret-words.ts';

test('hides every value of a Secret as it is and decoded, also when one begins with another', () => {
  const object = {
    metadata: { name: 's' },
    data: { a: 'cGFzc3dvcmQ=', b: 'cGFzc3dvcmQxMjM=' },
    stringData: { c: 'open', d: 'open sesame', short: 'a' },
  };
  const said = 'neither password nor password123 (cGFzc3dvcmQ=, cGFzc3dvcmQxMjM=), open or open sesame; a stays';
  expect(withoutSecretValues(said, object)).toBe(
    'neither (hidden) nor (hidden) ((hidden), (hidden)), (hidden) or (hidden); a stays',
  );
});

test('leaves words about other objects alone', () => {
  expect(withoutSecretValues('data.a is wrong', { metadata: { name: 'c' } })).toBe('data.a is wrong');
  expect(withoutSecretValues('data.a is wrong', undefined)).toBe('data.a is wrong');
});
