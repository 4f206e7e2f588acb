import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { NODE_OPTIONS } from '../../hack/spillway.ts';

test('the image runs Node.js as tests and measurements do', () => {
  const image = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
  expect(/^ENV .*\bNODE_OPTIONS=(\S+)$/m.exec(image)?.[1]).toBe(NODE_OPTIONS);
});
