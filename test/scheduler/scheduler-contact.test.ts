import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { SchedulerContact } from '../../src/scheduler/scheduler-contact.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases';
const LEASE = `${LEASES}/spillway-asked`;

let api: MemoryApi;
let server: MemoryApiServer;
let ended: AbortController;
const running: Promise<void>[] = [];

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  ended = new AbortController();
});
afterEach(async () => {
  ended.abort();
  await Promise.all(running.splice(0));
  await server.close();
});

function replica(): SchedulerContact {
  const logger = pino({ level: 'silent' });
  const host = server.client('host');
  const contact = new SchedulerContact({ host, namespace: 'spillway-system', logger, clock: Date.now });
  running.push(contact.run(ended.signal));
  return contact;
}
const writes = (): number => api.requests('POST', LEASES).length;

test('the first question is remembered for all replicas, and written once', async () => {
  const asked = replica();
  let told = 0;
  asked.on(() => (told += 1));
  expect(asked.ever).toBe(false);
  asked.heard();
  asked.heard();
  expect(asked.ever).toBe(true);
  await until('it is written', () => Promise.resolve(api.objects.get(LEASE) !== undefined));
  expect(told).toBe(1);
  const other = replica();
  let heardOf = 0;
  other.on(() => (heardOf += 1));
  await until('the other replica knows', () => Promise.resolve(other.ever));
  expect(heardOf).toBe(1);
  other.heard();
  await running[1];
  expect(writes()).toBe(1);
});
