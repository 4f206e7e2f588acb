import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { MemberClusterController } from '../../src/members/member-cluster-controller.ts';
import { whyMovesPaused } from '../../src/placement/lost-members.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

const PATH = '/apis/spillway.dev/v1alpha1/memberclusters';
const [ONE, ANOTHER] = ['0b1c2d3e', '4f5a6b7c'];

let api: MemoryApi;
let server: MemoryApiServer;
let stop: AbortController;
let running: Promise<void>;

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
  await server.close();
});

function add(name: string, status: object, spec: object = {}): void {
  const body = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...spec },
    status,
  };
  api.handle({ method: 'POST', path: PATH, query: {}, body, contentType: 'application/json' });
}

test('a MemberCluster may stand for a cluster until it is known to stand for another one, or to be gone', async () => {
  add('pinned', { identity: ONE });
  add('elsewhere', { identity: ANOTHER });
  add('new', {});
  add('unreadable', { identity: ONE }, { taintMode: 'x' });
  const controller = new MemberClusterController({
    host: server.client('host'),
    hostId: 'h',
    startScope: () => {
      throw new Error('there is no lease');
    },
    logger: pino({ level: 'silent' }),
  });
  const namesFor = (identity: string): string[] =>
    ['pinned', 'elsewhere', 'new', 'unreadable', 'never'].filter((name) => controller.mayStandFor(name, identity));
  // Nothing is known yet.
  expect(namesFor(ONE)).toEqual(['pinned', 'elsewhere', 'new', 'unreadable', 'never']);
  running = controller.run(stop.signal);
  await until('all are known', () => controller.synced, { intervalMs: 5 });
  expect(namesFor(ONE)).toEqual(['pinned', 'new', 'unreadable']);
  expect(namesFor(ANOTHER)).toEqual(['elsewhere', 'new', 'unreadable']);
  const isKnown = (except: string): boolean[] => [ONE, ANOTHER].map((id) => controller.isKnownToBeShared(id, except));
  expect(['new', 'pinned', 'elsewhere'].map(isKnown)).toEqual([
    [true, true],
    [false, true],
    [true, false],
  ]);
  api.edit(`${PATH}/elsewhere`, { status: { identity: ONE } });
  await until('it was moved', () => controller.mayStandFor('elsewhere', ONE), { intervalMs: 5 });
  api.handle({ method: 'DELETE', path: `${PATH}/pinned`, query: {}, body: undefined, contentType: '' });
  await until('it is gone', () => !controller.mayStandFor('pinned', ONE), { intervalMs: 5 });
  expect(namesFor(ONE)).toEqual(['elsewhere', 'new', 'unreadable']);
});

test('lost members say that their pods are not moved while all are known to be lost, and no longer', async () => {
  const reachable = (status: 'True' | 'False', reason: string): object => ({
    conditions: [{ type: 'Reachable', status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }],
  });
  add('east', reachable('False', 'Timeout'));
  add('west', reachable('False', 'Timeout'));
  const said = (name: string): string[] => {
    const { status } = api.objects.get(`${PATH}/${name}`) as unknown as {
      status: { conditions: { type: string; status: string; reason: string }[] };
    };
    return status.conditions.filter(({ type }) => type === 'MovesAllowed').map((one) => `${one.status} ${one.reason}`);
  };
  const controller = new MemberClusterController({
    host: server.client('host'),
    hostId: 'h',
    leaseFor: () => ({ held: true, run: async ({ signal, onAcquired }) => await onAcquired(signal) }),
    startScope: () => {
      throw new Error('they do not answer');
    },
    whyMovesPaused,
    logger: pino({ level: 'silent' }),
  });
  running = controller.run(stop.signal);
  const paused = ['False MovesPaused'];
  await until('both say it', () => said('east').join() === paused.join() && said('west').join() === paused.join());
  add('north', reachable('True', 'ProbeSucceeded'));
  add('south', reachable('True', 'ProbeSucceeded'));
  await until('enough answer', () => said('east').join() === 'True NotPaused');
});
