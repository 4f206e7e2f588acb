import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { VolumePlaces } from '../../src/dependents/volume-places.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

const VOLUMES = '/api/v1/persistentvolumes';
const IN_ZONE_A = {
  nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In' as const, values: ['a'] }] }],
};
const eventually = async (question: () => void): Promise<void> => await vi.waitFor(question, { timeout: 10_000 });

describe('where volumes of the member can be used', () => {
  let api: MemoryApi;
  let server: MemoryApiServer;
  let places: VolumePlaces;
  let lines: string[];
  let stop: () => Promise<void>;

  beforeEach(async () => {
    api = new MemoryApi();
    server = await serveMemoryApi(api);
    lines = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    places = new VolumePlaces({ member: 'east', client: server.client('east'), logger });
    const end = new AbortController();
    const running = places.run(end.signal);
    stop = async () => {
      end.abort();
      await running;
    };
  });
  afterEach(async () => {
    await stop();
    await server.close();
  });

  function make(name: string, spec: object): void {
    const body = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec };
    api.handle({ method: 'POST', path: VOLUMES, query: {}, body, contentType: 'application/json' });
  }
  const asked = (): string[] => api.seen.filter(({ method }) => method === 'GET').map(({ path }) => path);

  it('is read once for each that is wanted, by name', async () => {
    make('limited', { nodeAffinity: { required: IN_ZONE_A } });
    make('free', {});
    make('of-others', { nodeAffinity: { required: IN_ZONE_A } });
    for (const name of ['limited', 'free', 'gone', 'limited', 'free']) places.want(name);
    await eventually(() => expect(places.of('limited')).toEqual(IN_ZONE_A));
    await eventually(() => expect(asked()).toHaveLength(3));
    expect(places.of('free')).toBeUndefined();
    expect(places.of('of-others')).toBeUndefined();
    places.want('limited');
    places.want('free');
    make('marker', { nodeAffinity: { required: IN_ZONE_A } });
    places.want('marker');
    await eventually(() => expect(places.of('marker')).toEqual(IN_ZONE_A));
    expect(asked().toSorted()).toEqual(['free', 'gone', 'limited', 'marker'].map((name) => `${VOLUMES}/${name}`));
    places.forget('limited');
    expect(places.of('limited')).toBeUndefined();
  });

  it('is nowhere in particular without the right, which is said once', async () => {
    make('a', { nodeAffinity: { required: IN_ZONE_A } });
    make('b', { nodeAffinity: { required: IN_ZONE_A } });
    api.fault = () => ({ code: 403 });
    places.want('a');
    places.want('b');
    await eventually(() => expect(asked()).toHaveLength(2));
    await eventually(() => expect(lines).toHaveLength(1));
    expect(lines[0]).toContain('manifests/member/read.yaml');
    expect([places.of('a'), places.of('b')]).toEqual([undefined, undefined]);
  });
});
