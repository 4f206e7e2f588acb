import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { MemberClusterController } from '../../src/members/member-cluster-controller.ts';
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
