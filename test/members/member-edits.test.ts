import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { MemberObserver } from '../../src/members/member-observer.ts';
import { MemberRunner } from '../../src/members/member-runner.ts';
import type { MemberScope } from '../../src/members/member-scope.ts';
import { idleScope } from '../fixtures/idle-scope.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

/** What a scope is told of, for a member that is known from before and does not answer. */

let server: MemoryApiServer;
let stop: AbortController;
let running: Promise<void>;
let changes: MemberCluster[] | undefined;

beforeEach(async () => {
  server = await serveMemoryApi(new MemoryApi());
  stop = new AbortController();
  changes = undefined;
});
afterEach(async () => {
  stop.abort();
  await running;
  await server.close();
});

/** As the host has it after edits: only those of the spec count as a generation. */
function edited(metadata: object, generation = 1, status: object = {}): KubeObject {
  const raw = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', uid: 'u', generation, finalizers: ['spillway.dev/leaving'], ...metadata },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } },
    status: { identity: '0b1c2d3e', ...status },
  };
  return raw;
}

function scope(signal: AbortSignal): MemberScope {
  changes = [];
  return idleScope(signal, { changed: (member) => void changes?.push(member) });
}

const common = () => ({ host: server.client('host'), hostId: 'h', logger: pino({ level: 'silent' }) });

function startRunner(): (raw: KubeObject) => void {
  const runner = new MemberRunner(edited({}), {
    ...common(),
    lease: { held: true, run: async ({ signal, onAcquired }) => await onAcquired(signal) },
    startScope: (_member, _connection, signal) => scope(signal),
    startObserved: undefined,
  });
  running = runner.run(stop.signal);
  return (raw) => runner.update(raw);
}

function startObserver(): (raw: KubeObject) => void {
  const observer = new MemberObserver({
    ...common(),
    name: 'east',
    start: (_member, _connection, signal) => scope(signal),
  });
  const update = (raw: KubeObject): void => {
    const parsed = parseMemberCluster(raw);
    if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
    observer.update(parsed.member);
  };
  update(edited({}));
  running = observer.run(stop.signal);
  return update;
}

describe.each([
  ['who acts for a member', startRunner],
  ['who observes a member', startObserver],
])('%s', (_who, start) => {
  test('hears of an edit of its spec or labels, and of nothing else', async () => {
    const update = start();
    const told = await until('the scope runs', () => changes, { intervalMs: 5 });
    const labels = { tier: 'gold' };
    update(edited({ labels }));
    expect(told.map(({ metadata }) => metadata.labels)).toEqual([labels]);
    update(edited({ labels: { ...labels }, resourceVersion: '7', annotations: { note: 'x' } }));
    update(edited({ labels }, 1, { version: 'v1.36.0' }));
    expect(told).toHaveLength(1);
    update(edited({ labels }, 2));
    update(edited({}, 2));
    expect(told.map(({ metadata }) => metadata.labels)).toEqual([labels, labels, undefined]);
  });
});
