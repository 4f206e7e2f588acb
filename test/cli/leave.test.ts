import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../hack/until.ts';
import { leavingWords } from '../../src/cli/leave-words.ts';
import { runProgram } from '../../src/cli/program.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { AGAINST_BUDGET } from '../fixtures/eviction-refusals.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const EAST = '/apis/spillway.dev/v1alpha1/memberclusters/east';
const PODS = '/api/v1/namespaces/shop/pods';
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'rs', controller: true };

let api: MemoryApi;
let server: MemoryApiServer;
let folder: string;
let terminal: FakeTerminal;
let stop: AbortController;
let uid: string;

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  folder = mkdtempSync(join(tmpdir(), 'spillway-leave-'));
  writeKubeconfig(join(folder, 'kubeconfig'), { c: server });
  stop = new AbortController();
  terminal = new FakeTerminal({ env: { HOME: folder }, signal: stop.signal });
  uid = register();
});
afterEach(async () => {
  stop.abort();
  await server.close();
  rmSync(folder, { recursive: true });
});

function send(method: string, path: string, body?: object): { metadata: { uid: string } } {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return api.handle({ method, path, query: {}, body, contentType }) as unknown as { metadata: { uid: string } };
}

/** Answers the UID. */
function register(): string {
  const { metadata } = send('POST', '/apis/spillway.dev/v1alpha1/memberclusters', {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', finalizers: ['spillway.dev/leaving'] },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'member-east' } } },
  });
  return metadata.uid;
}

const SECRET = '/api/v1/namespaces/spillway-system/secrets/member-east';
/** As join makes them. */
function credentials(): void {
  const metadata = {
    namespace: 'spillway-system',
    name: 'member-east',
    labels: { 'spillway.dev/renew-token': 'true' },
  };
  send('POST', '/api/v1/namespaces/spillway-system/secrets', { apiVersion: 'v1', kind: 'Secret', metadata });
}

function makePod(name: string, more: { ownerReferences?: object[] } = { ownerReferences: [OWNER] }): void {
  const spec = { nodeName: 'east', containers: [{ name: 'main', image: 'app' }] };
  send('POST', PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop', ...more }, spec });
}

/** As the manager writes it. */
function setStatus(
  leaving: object,
  ...conditions: [type: string, status: string, message: string, reason?: string][]
): void {
  const all = conditions.map(([type, status, message, reason = 'R']) => ({ type, status, reason, message }));
  send('PATCH', `${EAST}/status`, { status: { conditions: all, leaving } });
}
const letGo = (): void => void send('PATCH', EAST, { metadata: { finalizers: [] } });

const run = async (...words: string[]): Promise<number> =>
  await runProgram(['leave', 'east', '--kubeconfig', join(folder, 'kubeconfig'), ...words], terminal);
const writes = (): string[] =>
  api.seen.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`);
const notes = (): string => terminal.notes.join('\n');

describe('a member that leaves', () => {
  it('is deleted and drained, and what may remain there is listed to the last', async () => {
    makePod('web-1');
    const running = run();
    await until('it is drained', () => writes().includes(`POST ${PODS}/web-1/eviction`), { intervalMs: 5 });
    expect(writes()).toEqual([`DELETE ${EAST}`, `POST ${PODS}/web-1/eviction`]);
    expect(api.requests('DELETE')[0]?.body).toMatchObject({ preconditions: { uid } });
    setStatus({ pods: 1, copies: 0, claims: 0 }, ['Leaving', 'True', '1 pod is there. They go on running.']);
    await until('it is said', () => notes().includes('waiting: R: 1 pod is there.'), { intervalMs: 5 });
    await until('the pod is gone', () => terminal.stdout.includes('pod/web-1'), { intervalMs: 5 });
    const mayRemain = ['Namespace kept (holds Service theirs)', 'Secrets of namespace shop (which may not be listed)'];
    // Nobody looks between the two.
    setStatus({ pods: 0, copies: 0, claims: 0, mayRemain }, ['Leaving', 'True', 'The member has left.']);
    letGo();
    expect(await running).toBe(5);
    expect(terminal.stdout).toBe(
      'membercluster/east deleted\npod/web-1 (namespace shop) evicted\nmembercluster/east left\n\nWhat may remain in the member (2 objects):\n' +
        '  Namespace kept (holds Service theirs)\n  Secrets of namespace shop (which may not be listed)\n',
    );
  });

  it('ends with 0 where nothing remains, also when it left and came back meanwhile', async () => {
    const running = run();
    await until('it is deleted', () => writes().length > 0, { intervalMs: 5 });
    letGo();
    register();
    expect(await running).toBe(0);
    expect(terminal.stdout).toBe('membercluster/east deleted\nmembercluster/east left\n');
    expect(api.objects.has(EAST)).toBe(true);
  });

  it('ends with 0 where somebody else has taken it out at the same time', async () => {
    credentials();
    send('PATCH', EAST, { metadata: { finalizers: [] } });
    api.fault = ({ method, path }) => {
      // Just before it is asked for here.
      if (method === 'DELETE' && [EAST, SECRET].includes(path)) send('DELETE', path);
      return undefined;
    };
    expect(await run('--mode=detach')).toBe(0);
    expect(terminal.stdout).toContain('membercluster/east left\n');
    expect(api.objects.has(SECRET)).toBe(false);
  });

  it.each<[string, () => void]>([
    ['gone', () => undefined],
    ['exchanged for another one', () => void register()],
  ])(
    'has not left when its MemberCluster was let go with pods there, and is %s: its credentials stay',
    async (_what, then) => {
      credentials();
      makePod('web-1');
      const running = run('--mode=detach');
      await until('it is waited for', () => notes().includes('waiting'), { intervalMs: 5 });
      letGo();
      then();
      expect(await running).toBe(1);
      expect(terminal.stdout).toBe('membercluster/east deleted\n');
      expect(notes()).toMatch(/error: member east was let go, and has not left: 1 pod is on its virtual nodes\n/);
      expect(api.objects.has(SECRET)).toBe(true);
    },
  );

  it('has not left either when the same is run again after it was let go', async () => {
    credentials();
    makePod('web-1');
    letGo();
    send('DELETE', EAST);
    expect(await run('--mode=detach')).toBe(1);
    expect(notes()).toMatch(/error: member east was let go, and has not left/);
    expect(api.objects.has(SECRET)).toBe(true);
  });

  it('has left with pods that come back to nobody, or by its own last word', async () => {
    credentials();
    makePod('agent', { ownerReferences: [{ ...OWNER, kind: 'DaemonSet' }] });
    const running = run('--mode=detach');
    await until('it is waited for', () => notes().includes('waiting'), { intervalMs: 5 });
    // Of the next member of that name.
    makePod('web-1');
    setStatus({ pods: 0, copies: 0, claims: 0 }, ['Leaving', 'True', 'The member has left.', 'NothingRemains']);
    await until('it is seen', () => notes().includes('NothingRemains'), { intervalMs: 5 });
    letGo();
    expect(await running).toBe(0);
    expect(terminal.stdout).toContain('membercluster/east left\nsecret/member-east deleted\n');
  });

  it('has left when it was given up, though the host still has its pods, and what may remain there is listed', async () => {
    makePod('web-1');
    setStatus({}, ['Reachable', 'False', 'It does not.']);
    const running = run('--mode=force');
    await until('it is waited for', () => notes().includes('waiting'), { intervalMs: 5 });
    const mayRemain = ['Pod shop/web-1'];
    setStatus({ pods: 1, copies: 0, claims: 0, mayRemain }, ['Leaving', 'True', 'It was given up.', 'GivenUp']);
    await until('it is seen', () => notes().includes('GivenUp'), { intervalMs: 5 });
    letGo();
    expect(await running).toBe(5);
    expect(terminal.stdout).toBe(
      'membercluster/east deleted\nmembercluster/east annotated\nmembercluster/east left\n\n' +
        'What may remain in the member (1 object):\n  Pod shop/web-1\n',
    );
  });

  it('is asked to let go of a pod again when a disruption budget is against it', async () => {
    makePod('web-1');
    api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
    const running = run();
    await until('it is told', () => /pod shop\/web-1 waits: its disruption budget/.test(notes()), { intervalMs: 5 });
    api.fault = undefined;
    await until('it is asked again', () => notes().includes('evicting pod shop/web-1'), { timeoutMs: 15_000 });
    letGo();
    expect(await running).toBe(0);
  }, 30_000);

  it('is left by the other pods while a webhook denies the eviction of one with a 429, and says what that said', async () => {
    makePod('guarded');
    makePod('web-1');
    const message = 'admission webhook "keep.example" denied the request: not on Fridays';
    api.fault = ({ path }) =>
      path.endsWith('/guarded/eviction') ? { code: 429, reason: 'TooManyRequests', message } : undefined;
    const running = run();
    await until('the other one goes', () => notes().includes('evicting pod shop/web-1'), { intervalMs: 5 });
    expect(notes()).toMatch(/pod shop\/guarded waits: .*not on Fridays/);
    api.fault = undefined;
    await until('it is asked again', () => notes().includes('evicting pod shop/guarded'), { timeoutMs: 15_000 });
    letGo();
    expect(await running).toBe(0);
  }, 30_000);

  it('is not touched while pods would be lost, unless the person says so', async () => {
    makePod('alone', {});
    expect(await run()).toBe(1);
    expect(writes()).toEqual([]);
    expect(notes()).toMatch(/nothing was done to member east: 1 pod .*\nreason: shop\/alone: .*--force/);
    expect(await run('--force', '--dry-run=client')).toBe(0);
    expect(terminal.stdout).toContain('pod/alone (namespace shop) evicted (dry run)\n');
  });

  it.each<[string, string[]]>([
    ['client', []],
    ['server', [`DELETE ${EAST}`, `POST ${PODS}/web-1/eviction`]],
  ])('is only looked at with --dry-run=%s', async (mode, sent) => {
    makePod('web-1');
    expect(await run(`--dry-run=${mode}`)).toBe(0);
    expect(writes()).toEqual(sent);
    const { seen } = api;
    expect(seen.filter(({ method, query }) => method !== 'GET' && query['dryRun'] !== 'All')).toEqual([]);
    const how = mode === 'server' ? '(server dry run)' : '(dry run)';
    expect(terminal.stdout).toBe(`membercluster/east deleted ${how}\npod/web-1 (namespace shop) evicted ${how}\n`);
    expect(api.objects.get(EAST)?.metadata.deletionTimestamp).toBeUndefined();
  });

  it('keeps its pods with --mode=detach, and goes on leaving after --timeout', async () => {
    makePod('web-1');
    makePod('alone', {});
    expect(await run('--mode=detach', '--timeout=1')).toBe(1);
    expect(writes()).toEqual([`DELETE ${EAST}`]);
    expect(notes()).toMatch(
      /waiting: a manager to look .*\nerror: member east has not left within 1 s\nreason: a manager/,
    );
    expect(await run('--mode=detach', '--no-wait')).toBe(0);
    expect(writes()).toEqual([`DELETE ${EAST}`]);
    expect(notes()).toContain('membercluster/east is being deleted already');
  });

  it('is given up with --mode=force by its own UID, once it does not answer', async () => {
    setStatus({}, ['Reachable', 'True', 'It answers.']);
    expect(await run('--mode=force')).toBe(1);
    expect(writes()).toEqual([]);
    expect(notes()).toMatch(/^error: member east is not given up: it answers\n/);
    const conditions = [{ type: 'Reachable', status: 'False', reason: 'TooManyRequests', message: 'It is busy.' }];
    send('PATCH', `${EAST}/status`, { status: { conditions } });
    expect(await run('--mode=force')).toBe(1);
    expect(writes()).toEqual([]);
    expect(notes()).toContain('it answers, though not as it should (TooManyRequests)\n');
    setStatus({}, ['Reachable', 'False', 'It does not.']);
    expect(await run('--mode=force', '--no-wait')).toBe(0);
    expect(writes()).toEqual([`DELETE ${EAST}`, `PATCH ${EAST}`]);
    expect(api.objects.get(EAST)?.metadata.annotations).toEqual({ 'spillway.dev/force-leave': uid });
    expect(notes()).toContain('warning: the controllers of its pods make others elsewhere.');
  });

  it('is not said to be given up when that could not be written', async () => {
    setStatus({}, ['Reachable', 'False', 'It does not.']);
    api.fault = ({ method }) => (method === 'PATCH' ? { code: 409, reason: 'Conflict' } : undefined);
    expect(await run('--mode=force', '--no-wait')).not.toBe(0);
    expect(terminal.stdout).toBe('membercluster/east deleted\n');
  });

  it('evicts nothing before its nodes are cordoned, and says which pods stay that came after the first look', async () => {
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'east', labels: { 'spillway.dev/member': 'east' } },
    };
    send('POST', '/api/v1/nodes', { ...node, spec: { providerID: 'spillway://east/east' } });
    makePod('web-1');
    const running = run();
    await until('it waits', () => notes().includes('the manager to cordon east'), { intervalMs: 5 });
    expect(writes()).toEqual(
      ['POST /apis/spillway.dev/v1alpha1/memberclusters', 'POST /api/v1/nodes', `POST ${PODS}`, `DELETE ${EAST}`].slice(
        -1,
      ),
    );
    makePod('alone', {});
    send('PATCH', '/api/v1/nodes/east', { spec: { unschedulable: true } });
    await until('the pod is evicted', () => writes().includes(`POST ${PODS}/web-1/eviction`));
    await until('the other one is named', () => /pod shop\/alone stays, .*--force/.test(notes()));
    send('DELETE', `${PODS}/alone`);
    letGo();
    expect(await running).toBe(0);
  }, 30_000);

  it.each([
    ['it is not there', 404, 'NotFound', 4],
    ['it may not be deleted', 403, 'Forbidden', 3],
  ])('ends with a code of its own when %s', async (_what, code, reason, exitCode) => {
    const method = code === 403 ? 'DELETE' : 'GET';
    api.fault = (request) => (request.method === method && request.path === EAST ? { code, reason } : undefined);
    expect(await run()).toBe(exitCode);
  });

  it('goes on leaving when the person stops waiting', async () => {
    const running = run('--mode=detach');
    await until('it is waited for', () => notes().includes('waiting'), { intervalMs: 5 });
    stop.abort();
    expect(await running).toBe(130);
    expect(api.objects.get(EAST)?.metadata.deletionTimestamp).toBeDefined();
  });
});

it('what is waited for is said without what helps, but where only the person can help', () => {
  const of = (reason: string, message: string): string =>
    leavingWords({ conditions: [{ type: 'Leaving', status: 'True', reason, message, lastTransitionTime: '' }] });
  expect(of('PodsRemain', '3 pods are there (virtual node a.b). They go on running.')).toBe(
    'PodsRemain: 3 pods are there (virtual node a.b).',
  );
  const lost =
    'No pod is there any more. The member cannot be asked (refused), and is waited for. If it is gone, run: x';
  expect(of('MemberUnreachable', lost)).toBe(`MemberUnreachable: ${lost}`);
});

describe('a member that is drained', () => {
  it('is not held up by many pods that a budget keeps', async () => {
    for (let index = 0; index < 20; index += 1) makePod(`kept-${String(index).padStart(2, '0')}`);
    makePod('web');
    api.fault = ({ path }) => (/kept-.*\/eviction$/.test(path) ? AGAINST_BUDGET : undefined);
    const args = ['drain', 'east', '--kubeconfig', join(folder, 'kubeconfig'), '--timeout=10'];
    const running = runProgram(args, terminal);
    await until('the other one is evicted', () => terminal.stdout.includes('pod/web evicted'), {
      intervalMs: 5,
      timeoutMs: 4_000,
    });
    api.fault = undefined;
    expect(await running).toBe(0);
    expect(terminal.stdout).toContain('membercluster/east drained');
  }, 30_000);
});
