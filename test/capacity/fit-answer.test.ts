import { describe, expect, it } from 'vitest';
import { isShort, reasonsInWords } from '../../src/capacity/fit-answer.ts';

describe('reasonsInWords', () => {
  it('counts nodes, and lets what concerns the whole member stand alone', () => {
    expect(
      reasonsInWords([
        { text: 'insufficient cpu', nodes: 3 },
        { text: 'cordoned', nodes: 1 },
        { text: 'quota shop/all allows 10 pods', nodes: 0 },
      ]),
    ).toBe('3 nodes: insufficient cpu, 1 node: cordoned, quota shop/all allows 10 pods');
    expect(reasonsInWords([])).toBe('');
  });
});

it.each([
  ['insufficient cpu', 3, true],
  ['too many pods', 1, true],
  ['host port in use', 3, false],
  ['quota shop/all allows 10 pods', 0, false],
])('%s of %i nodes: some node has too little: %j', (text, nodes, is) => {
  expect(isShort([{ text, nodes }])).toBe(is);
});
