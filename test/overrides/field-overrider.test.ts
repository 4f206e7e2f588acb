import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { overridersSchema } from '../../src/api/overriders.ts';
import { applyOverriders } from '../../src/overrides/apply-overriders.ts';
import { OverrideError } from '../../src/overrides/override-error.ts';
import { patchYaml } from '../../src/overrides/yaml-patch.ts';
import type { JsonRecord } from '../../src/kube/json-fields.ts';

const config = (text: string): JsonRecord => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c' },
  data: { file: text, other: 'kept' },
});
const override = (object: JsonRecord, entry: object): JsonRecord =>
  applyOverriders(object, overridersSchema.parse({ fieldOverrider: [{ fieldPath: '/data/file', ...entry }] })).object;
const fileOf = (object: JsonRecord) => (object['data'] as { file: string }).file;
const op = (operator: string, subPath: string, value?: unknown) => ({
  operator,
  subPath,
  ...(value === undefined ? {} : { value }),
});

function errorOf(work: () => unknown): OverrideError {
  try {
    work();
  } catch (error) {
    if (error instanceof OverrideError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('JSON in a string', () => {
  const text = '{ "db": {"host": "local", "ports": [1, 2]}, "big": 12345678901234567890 }';

  it.each([
    [[op('replace', '/db/host', 'eu')], '{"db":{"host":"eu","ports":[1,2]},"big":12345678901234567890}'],
    [[op('add', '/db/ports/-', { n: 3 })], '{"db":{"host":"local","ports":[1,2,{"n":3}]},"big":12345678901234567890}'],
    [[op('remove', '/db'), op('add', '/x', null)], '{"big":12345678901234567890,"x":null}'],
    [[op('replace', '', [1])], '[1]'],
  ])('%j', (json, expected) => {
    const object = override(config(text), { json });
    expect(fileOf(object)).toBe(expected);
    expect(object['data']).toMatchObject({ other: 'kept' });
  });

  it('does not repeat a text that it cannot read', () => {
    const error = errorOf(() => override(config('{"password": "hunter2"'), { json: [op('remove', '/a')] }));
    expect(error).toMatchObject({
      path: 'fieldOverrider[0] at /data/file',
      message: 'the text there is not valid JSON',
    });
  });
});

describe('YAML in a string', () => {
  const text = [
    '# Where we are',
    'server:',
    '  port: 8080 # outside',
    '  mode: 0644',
    '  enabled: yes',
    '  name: "east"',
    '  ratio: 1.50',
    '  motd: |',
    '    Hello',
    '      there',
    'list:',
    '  - a # first',
    '  - b',
    '8: eight',
    '',
  ].join('\n');

  it.each([
    [[op('replace', '/server/port', 9090)], 'port: 8080', 'port: 9090'],
    [[op('replace', '/server/name', 'west')], 'name: "east"', 'name: west'],
    [[op('add', '/server/mode', '0600')], 'mode: 0644', 'mode: "0600"'],
    [[op('replace', '/server/name', 'no')], 'name: "east"', 'name: "no"'],
    [[op('replace', '/server/name', '1e3')], 'name: "east"', 'name: "1e3"'],
    [[op('replace', '/server/name', null)], 'name: "east"', 'name: null'],
    [[op('replace', '/server/name', true)], 'name: "east"', 'name: true'],
    [[op('replace', '/server/name', '')], 'name: "east"', 'name: ""'],
    [[op('remove', '/server/enabled')], '  enabled: yes\n', ''],
    [[op('replace', '/list/0', 'c')], '- a # first', '- c # first'],
    [[op('add', '/list/1', 'x')], '  - b', '  - x\n  - b'],
    [[op('add', '/list/-', { k: [1, 'two'] })], '  - b', '  - b\n  - k:\n      - 1\n      - two'],
    [[op('remove', '/list/1')], '\n  - b', ''],
    [[op('replace', '/8', 'acht')], '8: eight', '8: acht'],
    [[op('add', '/yes', 'x')], '8: eight', '8: eight\n"yes": x'],
  ])('%j changes that and nothing else', (yaml, before, after) => {
    expect(fileOf(override(config(text), { yaml }))).toBe(text.replace(before, after));
  });

  it('replaces the whole document', () => {
    expect(parse(fileOf(override(config(text), { yaml: [op('replace', '', { a: ['b'] })] })))).toEqual({ a: ['b'] });
  });

  it('writes aliases out, so that a change stays where it was made', () => {
    const shared = 'base: &base\n  host: a\n  port: 1\none: *base\ntwo:\n  <<: *base\n  port: 2\n';
    const after = fileOf(override(config(shared), { yaml: [op('replace', '/one/host', 'b')] }));
    expect(parse(after, { merge: true })).toEqual({
      base: { host: 'a', port: 1 },
      one: { host: 'b', port: 1 },
      two: { host: 'a', port: 2 },
    });
    const source = fileOf(override(config(shared), { yaml: [op('replace', '/base/host', 'b')] }));
    expect(parse(source, { merge: true })).toMatchObject({
      base: { host: 'b' },
      one: { host: 'a' },
      two: { host: 'a' },
    });
  });

  it.each([
    ['', 'not exactly one YAML document'],
    ['a: 1\n---\nb: 2\n', 'not exactly one YAML document'],
    ['a: [1', 'not valid YAML'],
    ['a: *nobody\n', 'alias without an anchor'],
    ['a: &a [*a]\n', 'alias of what it is in itself'],
    ['a: &a [x, &b [*a], *b]\n', 'alias of what it is in itself'],
    ['a: 1\n', 'nothing at that path'],
  ])('refuses %j', (broken, problem) => {
    const error = errorOf(() => override(config(broken), { yaml: [op('replace', '/x/y', 1)] }));
    expect(error.message).toContain(problem);
    expect(error.path).toContain('fieldOverrider[0] at /data/file');
  });

  it.each([
    [op('replace', '/server/nothing', 1), '/data/file -> /server/nothing'],
    [op('remove', '/server/port/deep'), '/data/file -> /server/port'],
    [op('replace', '/list/7', 1), '/data/file -> /list/7'],
    [op('add', '/list/01', 1), '/data/file -> /list/01'],
    [op('add', '/server/name/x', 1), '/data/file -> /server/name'],
  ])('says where %j does not lead', (operation, path) => {
    expect(errorOf(() => override(config(text), { yaml: [operation] })).path).toBe(`fieldOverrider[0] at ${path}`);
  });

  it('is not blown up by aliases of aliases', () => {
    const rows = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 9; level++) {
      const [name, below] = ['abcdefghi'[level], 'abcdefghi'[level - 1]];
      rows.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${below}`).join(', ')}]`);
    }
    const start = performance.now();
    expect(() => patchYaml(rows.join('\n'), [{ operator: 'add', path: '/z', value: 1 }])).toThrow(
      'too many YAML aliases',
    );
    expect(performance.now() - start).toBeLessThan(2000);
  });

  it('says only that it could not read what breaks the parser', () => {
    const error = errorOf(() => override(config('['.repeat(50_000)), { yaml: [op('remove', '/a')] }));
    expect(error.message).toMatch(/^the text there (cannot be read|is not valid YAML)/);
  });

  it('does not reach prototypes', () => {
    const after = fileOf(override(config('a: {}\n'), { yaml: [op('add', '/a/__proto__', { polluted: true })] }));
    expect(after).toContain('__proto__:');
    expect('polluted' in {}).toBe(false);
  });
});

describe('a Secret', () => {
  const secret = (bytes: Buffer): JsonRecord => ({
    ...config(bytes.toString('base64')),
    kind: 'Secret',
    type: 'Opaque',
  });

  it('is decoded and encoded', () => {
    const object = override(secret(Buffer.from('user: ä\n')), { yaml: [op('add', '/host', 'eu')] });
    expect(Buffer.from(fileOf(object), 'base64').toString()).toBe('user: ä\nhost: eu\n');
  });

  it('may hold what is no text, which is left alone by refusing', () => {
    expect(() => override(secret(Buffer.from([0xff, 0xfe, 0])), { json: [op('remove', '/a')] })).toThrow('is not text');
  });
});

describe('the field', () => {
  it.each(['/data/missing', '/data', '/metadata/labels/x'])('must be a string: %s', (fieldPath) => {
    expect(() => override(config('{}'), { fieldPath, json: [op('add', '/a', 1)] })).toThrow(
      'there is no text at that path',
    );
  });

  it.each(['/metadata/name', '/kind'])('must not be what an object is: %s', (fieldPath) => {
    expect(() => override(config('{}'), { fieldPath, json: [op('add', '/a', 1)] })).toThrow('what an object is');
  });

  it('can be anywhere in a pod', () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { annotations: { 'a/b': '{"x":1}' } }, spec: {} };
    const fieldPath = '/spec/template/metadata/annotations/a~1b';
    expect(override(pod, { fieldPath, json: [op('replace', '/x', 2)] })).toEqual({
      ...pod,
      metadata: { annotations: { 'a/b': '{"x":2}' } },
    });
  });
});
