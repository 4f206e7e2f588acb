import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { whileHeld } from '../../src/manager/while-held.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';

let server: MemoryApiServer;
beforeEach(async () => {
  const api = new MemoryApi();
  server = await serveMemoryApi(api);
});
afterEach(async () => {
  await server.close();
});

test('who works can ask at any moment whether the Lease is held, also when it is over', async () => {
  const config = loadConfig(undefined, { namespace: 'spillway-system' });
  const services = { host: server.client('host'), hostId: 'here', config };
  const end = new AbortController();
  const seen: boolean[] = [];
  let ask = (): boolean => false;
  const work = async (held: AbortSignal, isHeld: () => boolean): Promise<void> => {
    ask = isHeld;
    seen.push(isHeld());
    end.abort();
    await Promise.resolve(held);
  };
  await whileHeld(services, 'spillway-test', pino({ level: 'silent' }), end.signal, work);
  expect([...seen, ask()]).toEqual([true, false]);
});
