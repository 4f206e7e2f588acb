import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

vi.setConfig({ testTimeout: 60_000 });

/** What `make demo-down` and `make demo-down PURGE=1` run, with a cache folder of their own. */
let cache: string;

beforeAll(() => {
  cache = mkdtempSync(join(tmpdir(), 'purge-test-'));
  mkdirSync(join(cache, 'spillway/bin/kubectl-v1'), { recursive: true });
  mkdirSync(join(cache, 'go-build'));
  writeFileSync(join(cache, 'spillway/bin/kubectl-v1/kubectl'), '');
});
afterAll(() => rmSync(cache, { recursive: true }));

async function demoDown(...more: string[]): Promise<string> {
  const program = join(import.meta.dirname, '../../dist/hack/main.js');
  const words = [program, 'demo-down', '--name', 'no-such-demo', ...more];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, words, {
    env: { ...process.env, XDG_CACHE_HOME: cache },
  });
  return stdout + stderr;
}

test('demo-down keeps binaries; with --purge it removes what Spillway keeps in the cache, nothing else, and says what stays', async () => {
  await demoDown();
  expect(existsSync(join(cache, 'spillway/bin/kubectl-v1/kubectl'))).toBe(true);
  const said = await demoDown('--purge');
  expect(said).toContain(
    `removed ${join(cache, 'spillway')}; what Go and npm keep in caches of their own, and Debian packages`,
  );
  expect(existsSync(join(cache, 'spillway'))).toBe(false);
  expect(existsSync(join(cache, 'go-build'))).toBe(true);
});
