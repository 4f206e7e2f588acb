import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatImage, parseImage } from '../../src/kube/image-reference.ts';

const SHA256 = `sha256:${'0123456789abcdef'.repeat(4)}`;
const SHA512 = `sha512:${'0123456789abcdef'.repeat(8)}`;
const image = (registry: string, repository: string, tag = '', digest = '') => ({ registry, repository, tag, digest });

describe('parseImage', () => {
  it.each([
    ['pause', image('', 'pause')],
    ['nginx:1.27', image('', 'nginx', '1.27')],
    ['library/nginx', image('', 'library/nginx')],
    ['subpath/imagename:v1.0.0', image('', 'subpath/imagename', 'v1.0.0')],
    ['registry.example/imagename:v1.0.0', image('registry.example', 'imagename', 'v1.0.0')],
    ['registry.example:10443/sub/name:v1', image('registry.example:10443', 'sub/name', 'v1')],
    [`registry.example:10443/sub/name@${SHA256}`, image('registry.example:10443', 'sub/name', '', SHA256)],
    [`registry.example/name:v1@${SHA256}`, image('registry.example', 'name', 'v1', SHA256)],
    [`name@${SHA512}`, image('', 'name', '', SHA512)],
    ['10.10.10.10:10443/name', image('10.10.10.10:10443', 'name')],
    ['[2001:db8::1]:5000/name:v1', image('[2001:db8::1]:5000', 'name', 'v1')],
    ['localhost/name', image('localhost', 'name')],
    ['localhost:5000/name', image('localhost:5000', 'name')],
    ['host:5000/name', image('host:5000', 'name')],
    ['name:5000', image('', 'name', '5000')],
    ['Host/name', image('Host', 'name')],
    ['a/b/c/d:e', image('', 'a/b/c/d', 'e')],
    ['a--b__c/e-f:_X.y-Z', image('', 'a--b__c/e-f', '_X.y-Z')],
    ['a'.repeat(255), image('', 'a'.repeat(255))],
    [`a:${'t'.repeat(128)}`, image('', 'a', 't'.repeat(128))],
  ])('reads %s', (text, parts) => {
    expect(parseImage(text)).toEqual(parts);
    expect(formatImage(parts)).toBe(text);
  });

  it.each([
    '',
    ':v1',
    'name:',
    'name@',
    '@' + SHA256,
    'name@sha256:abc',
    `name@${SHA256.toUpperCase()}`,
    `name@md5:${'a'.repeat(32)}`,
    'Name',
    'registry.example/Name',
    'registry.example/',
    'registry.example//name',
    '/name',
    'name/',
    'a..b',
    'a___b',
    '-a',
    'a-',
    'name:-tag',
    'name:a b',
    'na me',
    'name:v1:v2',
    'https://registry.example/name',
    'registry.example:port/name',
    'under_score.example/name',
    'a'.repeat(256),
    `a:${'t'.repeat(129)}`,
  ])('does not take %j for an image', (text) => {
    expect(parseImage(text)).toBeUndefined();
  });

  it('reads back what it writes, and is quick about anything', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'A', '0', '.', '-', '_', ':', '/', '@', '[', ']'), maxLength: 60 }),
        (text) => {
          const parts = parseImage(text);
          if (parts !== undefined) expect(formatImage(parts)).toBe(text);
        },
      ),
      { numRuns: 3000 },
    );
    const start = performance.now();
    parseImage(`${'a_'.repeat(100_000)}!`);
    parseImage(`${'a-'.repeat(100)}!`);
    expect(performance.now() - start).toBeLessThan(500);
  });
});
