import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WRONG_CONFIGURATIONS } from './wrong-configurations.ts';

vi.setConfig({ testTimeout: 60_000 });

const root = join(import.meta.dirname, '..');
const program = join(root, 'dist/src/main.js');
let dir: string;

beforeAll(() => {
  if (!existsSync(program)) throw new Error(`${program} is not there: run make build`);
  dir = mkdtempSync(join(tmpdir(), 'main-test-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** Starts the built program as a user would. */
function spillway(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return run(args);
}

function run(args: string[], nodeOptions: string[] = []): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    // No cluster can be reached from here, should an argument be taken that must not be.
    const env = { PATH: process.env['PATH'], HOME: dir };
    execFile(
      process.execPath,
      [...nodeOptions, program, ...args],
      { env, timeout: 55_000 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : error.code, stdout, stderr });
      },
    );
  });
}

function config(name: string, text: string): string {
  const file = join(dir, name);
  writeFileSync(file, text);
  return file;
}

test('spillway version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  expect(await spillway('version')).toEqual({ code: 0, stdout: `spillway ${version}\n`, stderr: '' });
});

test('spillway --help lists the commands, and manager --help its flags with what they mean', async () => {
  const help = await spillway('--help');
  expect(help).toMatchObject({ code: 0, stderr: '' });
  expect(help.stdout).toMatch(/^ {2}version +print the version$/m);
  const { stdout } = await spillway('manager', '--help');
  expect(stdout).toMatch(/--first-port <port> +first of up to 1000 ports for virtual nodes/);
});

describe('one line says what is wrong with the arguments, and nothing is started', () => {
  test.each<[string, string[], RegExp]>([
    ['no such command', ['serve'], /^error: unknown command 'serve'\n$/],
    ['no such flag', ['manager', '--port', '1'], /^error: unknown option '--port'/],
    [
      'not a port',
      ['manager', '--http-port', 'http'],
      /^error: option '--http-port <port>' argument 'http' is invalid\. must be a port number, 0 to 65535\n$/,
    ],
    ['a port that there is not', ['manager', '--first-port', '65536'], /--first-port.*must be a port number/],
    ['a first port without room after it', ['manager', '--first-port', '65001'], /^spillway: flags: .*<=65000/s],
    ['no such component', ['manager', '--components', 'members,cheduler'], /^spillway: flags: .*components\[1\]/s],
    ['no such level', ['manager', '--log-level', 'loud'], /^spillway: flags: .*logLevel/s],
    ['no such file', ['manager', '--config', '/nonexistent/config.yaml'], /^spillway: ENOENT.*config\.yaml/],
    ['no such kubeconfig', ['manager', '--kubeconfig', '/nonexistent/kubeconfig'], /^spillway: kubeconfig .*ENOENT\n$/],
  ])('%s', async (_, args, words) => {
    const { code, stdout, stderr } = await spillway(...args);
    expect(stderr).toMatch(words);
    expect(stderr).not.toMatch(/\n +at /);
    // Nothing on standard output but what a program that began to start has logged.
    expect(stdout === '' || args.includes('--kubeconfig')).toBe(true);
    expect(code).toBe(1);
  });

  test('a configuration file with a wrong field: which file, which field', async () => {
    const file = config('wrong.yaml', 'kubelet:\n  fristPort: 10260\n');
    const { code, stderr } = await spillway('manager', '--config', file);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`spillway: ${file}: `)]);
    expect(stderr).toContain('fristPort');
  });

  test('a configuration file that is no mapping', async () => {
    const file = config('list.yaml', '- kubelet\n');
    const { code, stderr } = await spillway('manager', '--config', file);
    expect([code, stderr]).toEqual([1, `spillway: ${file}: the configuration must be a mapping\n`]);
  });
});

describe('a mistake that nobody caught ends the manager in order', () => {
  test.each([
    ['uncaughtException', "throw new Error('planted')"],
    ['unhandledRejection', "void Promise.reject(new Error('planted'))"],
  ])('%s', async (event, mistake) => {
    // A host that takes connections and never answers: the manager waits for it.
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const cluster = `{name: c, cluster: {server: 'http://127.0.0.1:${port}'}}`;
    const context = '{name: x, context: {cluster: c, user: u}}';
    const user = '{name: u, user: {token: t}}';
    const kubeconfig = config(
      `${event}.kubeconfig`,
      `{apiVersion: v1, kind: Config, current-context: x, clusters: [${cluster}], contexts: [${context}], users: [${user}]}`,
    );
    const preload = config(
      `${event}.mjs`,
      `setInterval(() => { if (process.listenerCount('${event}') > 0) ${mistake}; }, 100).unref();`,
    );
    const { code, stderr } = await run(
      ['manager', '--kubeconfig', kubeconfig, '--http-port', '0'],
      ['--import', preload],
    );
    silent.close();
    expect(stderr).toMatch(new RegExp(`^spillway: ${event}, which is a mistake in Spillway.*planted`, 's'));
    expect(code).toBe(1);
  });
});

describe('config check', () => {
  test('prints what the manager would do, every default included', async () => {
    const { code, stdout, stderr } = await spillway(
      'config',
      'check',
      '--config',
      config('well.yaml', 'logLevel: debug\n'),
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^logLevel: debug$/m);
    expect(stdout).toMatch(/^forceLeaveSeconds: 300$/m);
  });

  test.each(WRONG_CONFIGURATIONS)('names what is wrong: %s', async (_, text, says) => {
    const file = config('wrong.yaml', text);
    const { code, stdout, stderr } = await spillway('config', 'check', '--config', file);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(file);
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain(says);
  });
});
