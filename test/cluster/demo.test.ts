import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureBinaries } from '../../hack/binaries.ts';
import { runKubectl, type KubectlResult } from '../../hack/kubectl.ts';
import { repositoryRoot } from '../../hack/repository.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { processesUsing, remains } from './remains.ts';

const root = repositoryRoot();
const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`both members of the demo are simulated here: ${kubelets.reason}`);

let parent: string;
let dir: string;
let printed: string;

/** What `make demo` and `make demo-down` run. */
async function command(verb: 'demo' | 'demo-down'): Promise<string> {
  const child = spawn(process.execPath, [join(root, 'dist/hack/main.js'), verb, '--name', 'demo-test'], {
    env: { ...process.env, TMPDIR: parent },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${verb} ended with ${code}:\n${stderr}`);
  return stdout;
}

async function kubectl(...args: string[]): Promise<KubectlResult> {
  const binaries = await ensureBinaries(['kubectl']);
  const kubeconfig = /KUBECONFIG=(\S+)/.exec(printed)?.[1] ?? '';
  return runKubectl(binaries.kubectl, args, { kubeconfig, cacheDir: parent });
}

async function podOn(node: string): Promise<string> {
  const list = await kubectl('get', 'pods', '-o', 'name', `--field-selector=spec.nodeName=${node}`);
  return list.stdout.split('\n')[0] ?? '';
}

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'demo-test-'));
  printed = await command('demo');
  dir = join(parent, readdirSync(parent).find((name) => name.startsWith('spillway-')) ?? 'none');
});

afterAll(async () => {
  await command('demo-down');
  rmSync(parent, { recursive: true });
});

test('four pods run on two virtual nodes, and a person is told what to try', async () => {
  expect(printed).toMatch(/east +Ready[\s\S]*west +Ready/);
  const { stdout } = await kubectl(
    'get',
    'pods',
    '-o',
    'jsonpath={range .items[*]}{.status.phase} {.spec.nodeName}{"\\n"}{end}',
  );
  expect(stdout.trim().split('\n').toSorted()).toEqual([
    'Running east',
    'Running east',
    'Running west',
    'Running west',
  ]);
  expect(printed.match(/^ {2}kubectl .*$/gm)).toHaveLength(5);
});

test('the printed commands work on a pod that runs in a member', async () => {
  const pod = await podOn('east');
  const logs = await kubectl('logs', pod);
  expect(logs).toMatchObject({ code: 0 });
  if (kubelets.ok) expect(logs.stdout).toContain(`hello from ${pod.replace('pod/', '')}`);
  const exec = await kubectl('exec', pod, '--', 'sh', '-c', 'echo in the member');
  expect(exec.stdout).toBe('in the member\n');
  expect((await kubectl('scale', 'deployment', 'hello', '--replicas=10')).code).toBe(0);
  expect((await kubectl('rollout', 'status', 'deployment', 'hello', '--timeout=60s')).code).toBe(0);
});

test('a second demo starts nothing and prints the same', async () => {
  const before = processesUsing(dir).length;
  expect((await command('demo')).trim()).toBe(printed.trim());
  expect(processesUsing(dir).length).toBe(before);
});

test('demo-down leaves no process, mount, namespace or file', async () => {
  expect(processesUsing(dir).length).toBeGreaterThan(10);
  await command('demo-down');
  // The first process of a machine may take a moment to be reaped.
  await until('nothing remains', () => remains(dir, dir.slice(-6).toLowerCase()).length === 0, { timeoutMs: 5_000 });
  expect(existsSync(join(root, '.cache/running/demo-test.json'))).toBe(false);
});
