import { pino } from 'pino';
import { Gauge } from 'prom-client';
import { afterEach, describe, expect, it } from 'vitest';
import { TelemetryServer } from '../../src/telemetry/http-server.ts';
import type { HealthCheck } from '../../src/telemetry/http-server.ts';
import { createRegistry } from '../../src/telemetry/metrics.ts';

const logger = pino({ level: 'silent' });
const open: TelemetryServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close(0)));
});

async function serve(readiness: HealthCheck[], registry = createRegistry('1.2.3')) {
  const server = new TelemetryServer({ address: '127.0.0.1', port: 0, registry, readiness, logger });
  const { port } = await server.listen();
  open.push(server);
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`);
    return { status: response.status, text: await response.text(), type: response.headers.get('content-type') ?? '' };
  };
  return { server, port, get };
}

describe('TelemetryServer', () => {
  it('answers probes', async () => {
    let state: true | string = 'host pods are not listed yet';
    const { get } = await serve([
      { name: 'host-cache', check: () => state },
      { name: 'config', check: () => true },
    ]);
    expect(await get('/healthz')).toMatchObject({ status: 200, text: 'ok' });
    expect(await get('/readyz')).toMatchObject({
      status: 503,
      text: '[-]host-cache: host pods are not listed yet\n[+]config ok\n',
    });
    state = true;
    expect(await get('/readyz')).toMatchObject({ status: 200, text: 'ok' });
    expect(await get('/readyz?verbose')).toMatchObject({ status: 200, text: '[+]host-cache ok\n[+]config ok\n' });
  });

  it('shows process figures, the version and what components registered', async () => {
    const registry = createRegistry('1.2.3');
    new Gauge({ name: 'spillway_test', help: 'x', registers: [registry] }).set(7);
    const { get } = await serve([], registry);
    const { status, text, type } = await get('/metrics');
    expect(status).toBe(200);
    expect(type).toContain('text/plain');
    expect(text).toContain('spillway_build_info{version="1.2.3"} 1');
    expect(text).toContain('spillway_test 7');
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
    ]) {
      expect(text).toMatch(new RegExp(`^${name} [0-9.e-]+`, 'm'));
    }
  });

  it('knows no other path and no other method', async () => {
    const { get, port } = await serve([]);
    expect((await get('/')).status).toBe(404);
    expect((await get('/metrics/../etc')).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${String(port)}/healthz`, { method: 'POST' })).status).toBe(404);
  });

  it('says when its port is taken', async () => {
    const { port } = await serve([]);
    const second = new TelemetryServer({
      address: '127.0.0.1',
      port,
      registry: createRegistry('1'),
      readiness: [],
      logger,
    });
    await expect(second.listen()).rejects.toThrow('EADDRINUSE');
  });

  it('closes although a client keeps its connection open', async () => {
    const { server, port, get } = await serve([]);
    await get('/healthz');
    await server.close(50);
    await expect(fetch(`http://127.0.0.1:${String(port)}/healthz`)).rejects.toThrow('fetch failed');
  });
});
