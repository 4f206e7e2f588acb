import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { HostObjectFollower } from '../../src/dependents/host-object-follower.ts';
import { BY_MANAGER, HostObjects, type HostObjectsOptions, type HostState } from '../../src/dependents/host-objects.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

const REF = { kind: 'ConfigMap', namespace: 'shop', name: 'a' } as const;
const PATH = '/api/v1/namespaces/shop/configmaps';

let api: MemoryApi;
let server: MemoryApiServer;
let clients: Map<string, KubeClient>;
let stop: () => Promise<void>;

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  clients = new Map(['east', 'west'].map((node) => [node, server.client(node)]));
});
afterEach(async () => {
  await stop();
  await server.close();
});

function start(options: Partial<HostObjectsOptions> = {}): HostObjects {
  const clientOf = (node: string): KubeClient => {
    const client = clients.get(node);
    if (client === undefined) throw new Error(`no client for node "${node}"`);
    return client;
  };
  const objects = new HostObjects({ clientOf, pollMs: 20, logger: pino({ level: 'silent' }), ...options });
  const end = new AbortController();
  const running = objects.run(end.signal);
  stop = async () => {
    end.abort();
    await running;
  };
  return objects;
}

const write = (value: string): void => {
  if (api.objects.has(`${PATH}/a`)) api.edit(`${PATH}/a`, { data: { value } });
  else {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'shop' }, data: { value } };
    api.handle({ method: 'POST', path: PATH, query: {}, body, contentType: 'application/json' });
  }
};
const valueOf = (state: HostState): string | undefined =>
  state.state === 'present' ? (state.object as { data?: { value?: string } }).data?.value : state.state;
const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 5_000, interval: 5 });

/** No request in the name of that node succeeds any more. */
const revoke = async (node: string): Promise<void> => await clients.get(node)?.close();

describe('an object of the host', () => {
  test('is read in the name of a node whose pods refer to it, by one watch for all', async () => {
    write('1');
    const objects = start();
    const [east, west] = ['east', 'west'].map((node) => objects.follow(REF, node, () => undefined));
    await until(() => expect(valueOf(east?.current() ?? { state: 'absent' })).toBe('1'));
    expect(valueOf(west?.current() ?? { state: 'absent' })).toBe('1');
    expect(api.listeners.size).toBe(1);
    expect(await objects.confirmAbsent(REF, AbortSignal.timeout(5_000))).toBe(false);
  });

  test.each([
    ['watched', {}],
    ['polled', { maxWatches: 0 }],
  ])(
    '%s: another node takes over when the last pod of the first is gone, and nothing is forgotten',
    async (_, options) => {
      write('1');
      const objects = start(options);
      const east = objects.follow(REF, 'east', () => undefined);
      let changes = 0;
      const west = objects.follow(REF, 'west', () => (changes += 1));
      await until(() => expect(valueOf(west.current())).toBe('1'));
      east.stop();
      expect(valueOf(west.current())).toBe('1');
      await revoke('east');
      changes = 0;
      write('2');
      await until(() => expect(valueOf(west.current())).toBe('2'));
      expect(changes).toBeGreaterThan(0);
      expect(await objects.confirmAbsent(REF, AbortSignal.timeout(5_000))).toBe(false);
    },
  );

  test.each([
    ['watched', {}],
    ['polled', { maxWatches: 0 }],
  ])('%s: is read for nobody while no pod refers to it, and anew once one does', async (_, options) => {
    write('1');
    const objects = start(options);
    const [east, west] = [objects.follow(REF, 'east', () => undefined), objects.follow(REF, 'west', () => undefined)];
    await until(() => expect(valueOf(west.current())).toBe('1'));
    west.use(false);
    east.use(false);
    await until(() => expect(api.listeners.size).toBe(0));
    const requests = api.seen.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(api.seen.length).toBe(requests);
    expect(valueOf(west.current())).toBe('1');
    east.stop();
    await revoke('east');
    write('2');
    west.use(true);
    // What it was is not what it is.
    expect(west.current()).toEqual({ state: 'unknown', problem: undefined });
    await until(() => expect(valueOf(west.current())).toBe('2'));
    write('3');
    await until(() => expect(valueOf(west.current())).toBe('3'));
  });

  test('may be refused for a moment, until the host knows that the pod is on the node; later that is told', async () => {
    write('1');
    const lines: string[] = [];
    const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    let refusals = 2;
    const forbidden = { code: 403, reason: 'Forbidden', message: 'no relationship found between node and this object' };
    api.fault = () => (refusals-- > 0 ? forbidden : undefined);
    const objects = start({ logger });
    const east = objects.follow(REF, 'east', () => undefined);
    await until(() => expect(valueOf(east.current())).toBe('1'));
    expect(lines).toEqual([]);
    refusals = Number.POSITIVE_INFINITY;
    server.cutWatches();
    await vi.waitFor(() => expect(lines.join('')).toContain('no relationship found'), { timeout: 15_000 });
  });

  test.each([
    ['watched', {}],
    ['polled', { maxWatches: 0 }],
  ])('%s: is read by the manager only while no node may', async (_, options) => {
    write('1');
    const manager = new MemoryApi();
    const other = await serveMemoryApi(manager);
    clients.set(BY_MANAGER, other.client('manager'));
    const objects = start(options);
    try {
      const byPolicy = objects.follow(REF, BY_MANAGER, () => undefined);
      await until(() => expect(byPolicy.current()).toEqual({ state: 'absent' }));
      const east = objects.follow(REF, 'east', () => undefined);
      await until(() => expect(valueOf(byPolicy.current())).toBe('1'));
      east.stop();
      await until(() => expect(byPolicy.current()).toEqual({ state: 'absent' }));
    } finally {
      await stop();
      await other.close();
    }
  });

  test('that nobody refers to any more is not read', async () => {
    const objects = start();
    const east = objects.follow(REF, 'east', () => undefined);
    await until(() => expect(east.current()).toEqual({ state: 'absent' }));
    east.stop();
    await until(() => expect(api.listeners.size).toBe(0));
    await expect(objects.confirmAbsent(REF, AbortSignal.timeout(5_000))).rejects.toThrow('nobody refers to');
  });
});

describe('the nodes in whose name an object is followed', () => {
  test('are those with a pod that refers to it; the last stays', () => {
    stop = () => Promise.resolve();
    const open: string[] = [];
    const uses: string[] = [];
    const source = new HostObjectFollower((node) => {
      open.push(node);
      return {
        current: () => ({ state: 'unknown', problem: node }),
        use: (inUse) => void uses.push(`${node} ${inUse}`),
        stop: () => void open.splice(open.indexOf(node), 1),
      };
    });
    expect(source.current()).toEqual({ state: 'unknown', problem: undefined });
    source.need('east');
    source.need('east');
    source.need('west');
    expect(open).toEqual(['east', 'west']);
    source.leave('east');
    expect(open).toEqual(['east', 'west']);
    source.leave('east');
    expect(open).toEqual(['west']);
    source.leave('west');
    expect(open).toEqual(['west']);
    source.need('west');
    source.leave('west');
    expect(uses).toEqual(['east false', 'west false', 'west true', 'west false']);
    source.need('south');
    expect(open).toEqual(['south']);
    expect(source.current()).toEqual({ state: 'unknown', problem: 'south' });
    source.stop();
    expect(open).toEqual([]);
  });
});
