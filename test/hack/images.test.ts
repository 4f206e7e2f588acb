import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dockerArchive, IMAGES, imagesOf, makeLayer } from '../../hack/images.ts';
import { childrenOf } from '../../hack/process-table.ts';
import { isStatic } from '../../hack/system-packages.ts';
import { makeTar, sha256, type TarEntry } from '../../hack/tar.ts';
import { until } from '../../hack/until.ts';

const ENTRIES: TarEntry[] = [
  { type: 'folder', path: 'tmp', mode: 0o1777 },
  { type: 'file', path: 'tmp/hello.txt', mode: 0o640, content: Buffer.from('hello\n'), uid: 1000 },
  { type: 'file', path: 'empty', mode: 0o755, content: Buffer.alloc(0) },
  { type: 'file', path: 'block', mode: 0o644, content: Buffer.alloc(512, 'x') },
  { type: 'link', path: 'bin-sh', target: 'busybox' },
];

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'images-test-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('tar', () => {
  test('is the same for the same entries', () => {
    expect(sha256(makeTar(ENTRIES))).toBe(sha256(makeTar(structuredClone(ENTRIES))));
    expect(sha256(makeTar(ENTRIES))).not.toBe(sha256(makeTar(ENTRIES.toReversed())));
  });

  test('is read by the system tar with modes, owners and links', () => {
    writeFileSync(join(dir, 'a.tar'), makeTar(ENTRIES));
    const list = execFileSync('tar', ['--numeric-owner', '--utc', '-tvf', join(dir, 'a.tar')], { encoding: 'utf8' });
    const lines = list
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/));
    expect(lines.map(([mode, owner, size]) => [mode, owner, size])).toEqual([
      ['drwxrwxrwt', '0/0', '0'],
      ['-rw-r-----', '1000/1000', '6'],
      ['-rwxr-xr-x', '0/0', '0'],
      ['-rw-r--r--', '0/0', '512'],
      ['lrwxrwxrwx', '0/0', '0'],
    ]);
    expect(lines.at(-1)?.slice(-3)).toEqual(['bin-sh', '->', 'busybox']);
    expect(list).toContain('1970-01-01 00:00');
  });

  test('refuses a path that does not fit', () => {
    expect(() => makeTar([{ type: 'folder', path: 'x'.repeat(100), mode: 0o755 }])).toThrow(/path too long/);
  });
});

describe('image archive', () => {
  const base = makeLayer(ENTRIES);
  const top = makeLayer([{ type: 'file', path: 'app', mode: 0o755, content: Buffer.from('app') }]);
  const images = [
    { tags: ['a.test/base:1'], layers: [base], config: { Cmd: ['sh'] } },
    { tags: ['a.test/app:1'], layers: [base, top], config: { Entrypoint: ['/app'] } },
  ];

  test('is reproducible', () => {
    expect(sha256(dockerArchive(images, 'amd64'))).toBe(sha256(dockerArchive(structuredClone(images), 'amd64')));
  });

  test('names everything by its digest and holds a shared layer once', () => {
    const file = join(dir, 'images.tar');
    writeFileSync(file, dockerArchive(images, 'amd64'));
    execFileSync('tar', ['-xf', file, '-C', dir]);
    const read = (name: string): Buffer => readFileSync(join(dir, name));
    const manifest = JSON.parse(read('manifest.json').toString()) as {
      Config: string;
      RepoTags: string[];
      Layers: string[];
    }[];
    expect(manifest.map((one) => one.RepoTags)).toEqual([['a.test/base:1'], ['a.test/app:1']]);
    const names = execFileSync('tar', ['-tf', file], { encoding: 'utf8' }).trim().split('\n');
    expect(names.length).toBe(new Set(names).size);
    expect(names.length).toBe(2 + 2 + 1);
    for (const image of manifest) {
      expect(`${sha256(read(image.Config))}.json`).toBe(image.Config);
      const config = JSON.parse(read(image.Config).toString()) as { rootfs: { diff_ids: string[] }; config: object };
      expect(config.rootfs.diff_ids).toEqual(image.Layers.map((layer) => `sha256:${sha256(read(layer))}`));
    }
  });
});

describe('images without some of their parts', () => {
  const busybox = Buffer.from('busybox');
  const agnhost = Buffer.from('agnhost');
  const pause = Buffer.from('pause');
  const made = (parts: { agnhost?: Buffer; pause?: Buffer }): Map<string, string> =>
    new Map(
      imagesOf({ busybox, agnhost: parts.agnhost, pause: parts.pause }, ['sh', 'sleep']).map(({ tags, config }) => [
        tags.join(),
        [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])].join(' '),
      ]),
    );

  test('all of them', () => {
    const images = made({ agnhost, pause });
    expect([...images.keys()].toSorted()).toEqual(Object.values(IMAGES).toSorted());
    expect(images.get(IMAGES.pause)).toBe('/pause');
  });

  test('no C compiler: agnhost pauses', () => {
    expect(made({ agnhost }).get(IMAGES.pause)).toBe('/agnhost pause');
  });

  test('no agnhost: its image is left out, the others are as they were', () => {
    const images = made({ pause });
    expect([...images.keys()].toSorted()).toEqual([IMAGES.busybox, IMAGES.pause].toSorted());
    expect(images.get(IMAGES.pause)).toBe('/pause');
  });

  test('neither: a script of busybox pauses, and ends when it is told to', async () => {
    const script = imagesOf({ busybox, agnhost: undefined, pause: undefined }, ['sh'])
      .find(({ tags }) => tags.includes(IMAGES.pause))
      ?.config.Entrypoint?.at(-1);
    // A shell that has set its trap sleeps in a child of its own.
    const child = spawn('/bin/sh', ['-c', `${script}`], { detached: true, stdio: 'ignore' });
    const ended = once(child, 'exit');
    const group = child.pid ?? 0;
    try {
      await until('the script sleeps', () => childrenOf(group).length > 0);
      child.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
    } finally {
      process.kill(-group, 'SIGKILL');
    }
  });
});

test('a dynamic program is told from a static one', () => {
  // The smallest ELF header: no program headers at all, so no interpreter.
  const header = Buffer.alloc(64);
  header.write('\x7fELF', 0, 'latin1');
  header[4] = 2;
  header[5] = 1;
  header.writeUInt16LE(56, 54);
  expect(isStatic(header)).toBe(true);
  const dynamic = Buffer.concat([header, Buffer.alloc(56)]);
  dynamic.writeBigUInt64LE(64n, 32);
  dynamic.writeUInt16LE(1, 56);
  dynamic.writeUInt32LE(3, 64);
  expect(isStatic(dynamic)).toBe(false);
  expect(isStatic(Buffer.from('#!/bin/sh\n'))).toBe(false);
});
