import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Cli } from '../../src/cli/cli.ts';
import { CliError, errorLines, explained } from '../../src/cli/cli-error.ts';
import { completion, type Completer } from '../../src/cli/completion.ts';
import { buildProgram, runProgram } from '../../src/cli/program.ts';
import { viewerAccess, viewerContexts } from '../../src/cli/viewer-access.ts';
import { ApiError, TransportError } from '../../src/kube/errors.ts';
import { FakeTerminal } from './fake-terminal.ts';

const dir = mkdtempSync(join(tmpdir(), 'spillway-cli-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function run(...words: string[]): Promise<{ code: number; terminal: FakeTerminal }> {
  const terminal = new FakeTerminal({ env: { HOME: dir } });
  return { code: await runProgram(words, terminal), terminal };
}

describe('the program', () => {
  it('shows its verbs, as a part of kubectl', async () => {
    for (const words of [[], ['--help'], ['help']]) {
      const { code, terminal } = await run(...words);
      expect(code).toBe(0);
      expect(terminal.stdout).toMatch(/^Usage: kubectl spillway \[options\] \[command\]/);
      expect(terminal.stdout).toContain('clusters');
    }
    const { terminal } = await run('status', '--help');
    expect(terminal.stdout).toMatch(/^Usage: kubectl spillway status \[options\]/);
  });

  it.each([
    ['no such verb', ['frobnicate'], /unknown command 'frobnicate'/],
    ['no such flag', ['clusters', '--frobnicate'], /unknown option '--frobnicate'/],
    ['no such format', ['clusters', '-o', 'xml'], /no output format "xml"/],
  ])('ends with 2 for %s', async (_what, words, message) => {
    const { code, terminal } = await run(...words);
    expect(code).toBe(2);
    expect(terminal.notes.join('\n')).toMatch(message);
    expect(terminal.stdout).toBe('');
  });

  it('ends with 1 and says what to do where there is no kubeconfig', async () => {
    const { code, terminal } = await run('clusters', '--kubeconfig', join(dir, 'none'));
    expect(code).toBe(1);
    expect(terminal.notes[0]).toBe('error: the kubeconfig cannot be used');
    expect(terminal.notes.join('\n')).toMatch(/reason: .*cannot be read[\s\S]*fix: /);
  });
});

describe('errors', () => {
  const about = { cluster: 'prod', method: 'GET', path: '/api/v1/nodes' };
  const answer = (code: number, reason: string, message: string): ApiError =>
    new ApiError({ ...about, code, status: { kind: 'Status', code, reason, message } });

  it.each([
    [answer(403, 'Forbidden', 'nodes is forbidden'), 3, 'you may not list nodes in the cluster of context prod'],
    [answer(401, 'Unauthorized', 'Unauthorized'), 1, 'does not know you'],
    [answer(404, 'NotFound', 'pods "web" not found'), 4, 'pods "web" not found'],
    [answer(404, 'NotFound', 'the server could not find the requested resource'), 1, 'does not know what is asked for'],
    [new TransportError({ ...about, kind: 'refused', detail: 'nobody listens' }), 1, 'does not answer'],
    [new Error('surprise'), 1, 'it was not possible to list nodes'],
  ])('%s', (error, code, message) => {
    const told = explained(error, 'list nodes', 'prod');
    expect(told.exitCode).toBe(code);
    expect(told.message).toContain(message);
  });

  it('are lines without tricks', () => {
    const error = new CliError('a\u001b[2J', { reason: 'two\nlines', fix: 'do it', page: 'reference/cli.md' });
    expect(errorLines(error)).toEqual(['error: a[2J', 'reason: two lines', 'fix: do it', 'see: docs/reference/cli.md']);
  });
});

describe('the kubeconfig', () => {
  const kubeconfig = (file: string, contexts: readonly string[], current?: string, namespace?: string): string => {
    const path = join(dir, file);
    const content = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: `https://${file}.example` } }],
      users: [{ name: 'u', user: { token: 'secret' } }],
      contexts: contexts.map((name) => ({ name, context: { cluster: 'c', user: 'u', namespace } })),
      ...(current === undefined ? {} : { 'current-context': current }),
    };
    writeFileSync(path, JSON.stringify(content));
    return path;
  };
  const one = kubeconfig('one', ['a'], 'a', 'shop');
  const two = kubeconfig('two', ['b', 'c'], 'c');

  it('is the one that is named, and brings its namespace', async () => {
    const { access, context, namespace } = await viewerAccess({ kubeconfig: one }, { KUBECONFIG: two });
    expect([access.endpoint.server, context, namespace]).toEqual(['https://one.example', 'a', 'shop']);
  });

  it('may be several files: the first current-context, and the file that has the context', async () => {
    const env = { KUBECONFIG: [join(dir, 'gone'), one, two].join(':') };
    expect((await viewerAccess({}, env)).context).toBe('a');
    const { access, context, namespace } = await viewerAccess({ context: 'b' }, env);
    expect([access.endpoint.server, context, namespace]).toEqual(['https://two.example', 'b', undefined]);
    expect(viewerContexts({}, env)).toEqual(['a', 'b', 'c']);
    await expect(viewerAccess({ context: 'z' }, env)).rejects.toThrow(/no context "z"/);
  });
});

describe('completion', () => {
  const names: Completer = {
    contexts: () => ['prod', 'test'],
    clusters: async ({ context }) => await Promise.resolve(context === 'prod' ? ['east', 'west'] : []),
    namespaces: async () => await Promise.resolve(['shop']),
    pods: async () => await Promise.resolve([]),
  };
  const program = buildProgram(new Cli(new FakeTerminal()));
  const complete = async (...words: string[]): Promise<string[]> =>
    (await completion(program, words, names)).trimEnd().split('\n');

  it('knows verbs, flags and their values', async () => {
    expect(await complete('clu')).toEqual([expect.stringMatching(/^clusters\tlist the members/), ':4']);
    expect(await complete('clusters', '--wa')).toEqual([expect.stringMatching(/^--watch\t/), ':4']);
    expect(await complete('clusters', '-o', 'y')).toEqual(['yaml', ':4']);
    expect(await complete('clusters', '--context', '')).toEqual(['prod', 'test', ':4']);
    expect(await complete('clusters', '--kubeconfig', '')).toEqual([':0']);
  });

  it('asks the cluster that the words are about for names', async () => {
    expect(await complete('clusters', '--context', 'prod', 'e')).toEqual(['east', ':4']);
    expect(await complete('clusters', '--context=prod', 'east', '')).toEqual(['east', 'west', ':4']);
    expect(await complete('clusters', '')).toEqual([':4']);
  });
});
