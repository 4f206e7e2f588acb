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
if (!kubelets.ok) console.warn(`kwok plays all nodes of the demo here: ${kubelets.reason}`);

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
  const env = { PATH: (/ PATH=(\S+)/.exec(printed)?.[1] ?? '').replace('$PATH', process.env['PATH'] ?? '') };
  return runKubectl(binaries.kubectl, args, { kubeconfig, cacheDir: parent, env });
}

async function podsOn(node: string): Promise<string[]> {
  const list = await kubectl('get', 'pods', '-o', 'name', `--field-selector=spec.nodeName=${node}`);
  return list.stdout.trim().split('\n');
}

async function podOn(node: string): Promise<string> {
  return (await podsOn(node))[0] ?? '';
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

/** How many pods of the Deployment are Running, by node. */
async function places(): Promise<Record<string, number>> {
  const query = 'jsonpath={range .items[?(@.status.phase=="Running")]}{.spec.nodeName}{"\\n"}{end}';
  const { stdout } = await kubectl('get', 'pods', '-o', query);
  const counts: Record<string, number> = {};
  for (const node of stdout.trim().split('\n')) counts[node] = (counts[node] ?? 0) + 1;
  return counts;
}

const local = kubelets.ok ? 'local' : 'local-0';

test('the host takes what it has room for, east what it may have, west the rest; a person is told what to try', async () => {
  expect(printed).toMatch(/east +Ready[\s\S]*west +Ready/);
  expect(await places()).toEqual({ [local]: 4, east: 3, west: 1 });
  expect(printed.match(/^ {2}kubectl .*$/gm)?.length).toBeGreaterThan(7);
});

test('the printed commands work on a pod that runs in a member', async () => {
  const pod = await podOn('east');
  const logs = await kubectl('logs', pod);
  expect(logs).toMatchObject({ code: 0 });
  if (kubelets.ok) {
    expect(logs.stdout).toContain(`hello from ${pod.replace('pod/', '')}`);
    const exec = await kubectl('exec', pod, '--', 'hostname');
    expect(exec.stdout).toBe(`${pod.replace('pod/', '')}\n`);
    const [call = ''] = /wget .*hello(?= #)/.exec(printed) ?? [];
    const answered = new Set<string>();
    await until('pods of the host and of east answer by the name of the Service', async () => {
      const { stdout } = await kubectl('exec', pod, '--', ...call.split(' '));
      answered.add(stdout.trim());
      const answers = async (node: string): Promise<boolean> =>
        (await podsOn(node)).some((name) => answered.has(`hello from ${name.replace('pod/', '')}`));
      return (await answers(local)) && (await answers('east'));
    });
  }
  expect((await kubectl('config', 'current-context')).stdout).toBe('host\n');
  const copy = await kubectl('--context', 'east', 'get', pod, '-o', 'jsonpath={.spec.nodeName}');
  expect(copy.stdout).toMatch(/^east-(n)?0$/);
  const why = await kubectl('spillway', 'why', pod.replace('pod/', ''));
  expect(why).toMatchObject({ code: 0, stderr: '' });
  expect(why.stdout).toMatch(/\beast\b/);
  expect((await kubectl('spillway', 'status')).stdout).toMatch(/^ *east +True/m);
  const onWest = await kubectl('exec', await podOn('west'), '--', 'hostname');
  expect(onWest.code).not.toBe(0);
  expect((await kubectl('scale', 'deployment', 'hello', '--replicas=12')).code).toBe(0);
  await until('12 pods run', async () => (await places())['west'] === 5, { timeoutMs: 60_000 });
  expect((await kubectl('get', 'workloadplacements')).stdout).toMatch(/hello/);
  await until('kubectl top knows pods of both members', () => allMeasured(), { timeoutMs: 90_000, intervalMs: 1_000 });
  expect((await kubectl('scale', 'deployment', 'hello', '--replicas=3')).code).toBe(0);
  await until('what is left is at home', async () => Object.keys(await places()).join() === local, {
    timeoutMs: 60_000,
  });
});

/** metrics-server passes over pods that it has seen once only. */
async function allMeasured(): Promise<boolean> {
  const { stdout } = await kubectl('top', 'pods', '--no-headers');
  return stdout.trim().split('\n').length === 12;
}

test('a second demo starts nothing and prints the same', async () => {
  const before = processesUsing(dir).length;
  expect((await command('demo')).trim()).toBe(printed.trim());
  expect(processesUsing(dir).length).toBe(before);
});

test('demo-down leaves no process, mount, namespace or file', async () => {
  expect(processesUsing(dir).length).toBeGreaterThan(10);
  await command('demo-down');
  // The first process of a machine may take a moment to be reaped.
  await until('nothing remains', () => remains(dir, dir.slice(-6).toLowerCase()).length === 0, { timeoutMs: 30_000 });
  expect(existsSync(join(root, '.cache/running/demo-test.json'))).toBe(false);
});
