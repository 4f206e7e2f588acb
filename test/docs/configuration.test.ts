import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { configurationFields, configurationPage } from '../../hack/configuration-page.ts';
import { REASONS } from '../../hack/configuration-reasons.ts';

const fields = configurationFields();
const withDefault = fields.filter((field) => field.default !== undefined);

describe('the page about the configuration of the manager', () => {
  it('is what the schema says: make manifests', () => {
    expect(readFileSync('docs/reference/configuration.md', 'utf8')).toBe(configurationPage());
  });

  it.each(fields.map((field) => [field.path, field] as const))('says of %s what it is', (_path, field) => {
    const place = field.default === undefined && !field.required;
    // What is only there to hold others, and which form it has, these say.
    if (!place && !field.type.startsWith('object')) expect(field.meaning).toMatch(/^\S.*\.$/);
    expect(field.type).not.toContain('any');
  });

  it.each(fields.map((field) => [field.path, field] as const))('says whether %s may be left out', (path, field) => {
    const holdsOthers = fields.some((other) => other.path.startsWith(`${path}.`));
    expect(field.required || holdsOthers || field.default !== undefined ).toBe(true);
  });

  it.each(withDefault.map((field) => [field.path, field.default] as const))(
    'says why %s is %s: another default needs another reason',
    (path, value) => {
      expect(REASONS[path]?.default).toBe(value);
    },
  );

  it('gives no reason for what is not there', () => {
    expect(Object.keys(REASONS).filter((path) => fields.every((field) => field.path !== path))).toEqual([]);
  });

  it.each(fields.filter(({ path }) => /Seconds$|PerSecond|PerHour|PerMember/.test(path)).map(({ path }) => path))(
    'says in which unit %s is',
    (path) => {
      expect(REASONS[path]?.unit ?? '').not.toBe('');
    },
  );
});
