import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { cleanText } from '../../src/kube/clean-text.ts';
import { redact, redactText } from '../../src/telemetry/redaction.ts';
import { fuzz } from './fuzz.ts';
import { json, text } from './inputs.ts';

const SECRET = 'c2VjcmV0LXNlY3JldC1zZWNyZXQ';
const said = fc
  .array(
    fc.oneof(text, fc.constantFrom('Bearer ', 'eyJ', '.', '-', '-----BEGIN PRIVATE KEY-----', '"', 'token: ', SECRET)),
    {
      maxLength: 8,
    },
  )
  .map((parts) => parts.join(''));

describe('what is logged and shown', () => {
  fuzz('holds no bearer token', said, { share: 1_000 }, (text) => {
    const line = JSON.stringify(`${text}\nBearer ${SECRET}`);
    expect(redactText(line)).not.toContain(`Bearer ${SECRET}`);
  });

  fuzz('is one short line', said, { share: 1_000 }, (text) => {
    const line = cleanText(text, 200);
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(200);
    expect(line).not.toMatch(/[\p{Cc}\u2028\u202e]/u);
  });

  fuzz('may be anything', json, { share: 500 }, (value) => {
    JSON.stringify(redact(value));
  });
});
