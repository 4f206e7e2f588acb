import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withFileLock } from '../../hack/file-lock.ts';
import { identify } from '../../hack/process-table.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'lock-test-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

test('only one holds it at a time, and it is gone afterwards', async () => {
  let inside = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    most = Math.max(most, ++inside);
    await new Promise((resolve) => setTimeout(resolve, 5));
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 8 }, () => withFileLock(join(dir, 'lock'), work)));
  expect(most).toBe(1);
  expect(readdirSync(dir)).toEqual([]);
});

test('it is released when the work fails', async () => {
  const failing = withFileLock(join(dir, 'lock'), () => Promise.reject(new Error('no luck')));
  await expect(failing).rejects.toThrow('no luck');
  expect(await withFileLock(join(dir, 'lock'), () => Promise.resolve('again'))).toBe('again');
});

test.each([
  ['a dead process', () => JSON.stringify({ pid: spawnSync('true').pid, start: '1' })],
  ['a process whose number was given to another', () => JSON.stringify({ pid: process.pid, start: '1' })],
  ['a writer that was cut off', () => '{"pid":'],
])('the lock of %s is broken', async (_who, content) => {
  writeFileSync(join(dir, 'lock'), content());
  expect(await withFileLock(join(dir, 'lock'), () => Promise.resolve('mine'), { timeoutMs: 2_000 })).toBe('mine');
});

test('the lock of a living process is respected and its holder is named', async () => {
  const me = identify(process.pid);
  writeFileSync(join(dir, 'lock'), JSON.stringify(me));
  const holders: number[] = [];
  const options = { timeoutMs: 200, onWait: ({ pid }: { pid: number }) => holders.push(pid) };
  await expect(withFileLock(join(dir, 'lock'), () => Promise.resolve(), options)).rejects.toThrow(
    /not so after 200 ms/,
  );
  expect(holders).toEqual([process.pid]);
});
