import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import { StatusWriter } from '../../src/members/status-writer.ts';
import type { StatusObject } from '../../src/members/status-writer.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const COLLECTION = '/apis/spillway.dev/v1alpha1/memberclusters';
const PATH = `${COLLECTION}/east`;

describe('StatusWriter', () => {
  const stop = new Set<AbortController>();
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    for (const controller of stop) controller.abort();
    vi.useRealTimers();
  });

  function start(wanted: MemberClusterStatus) {
    const api = new MemoryApi();
    const body = { apiVersion: 'spillway.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'east' }, status: {} };
    const object = api.handle({ method: 'POST', path: COLLECTION, query: {}, body, contentType: '' });
    const state = { wanted };
    const written: MemberClusterStatus[] = [];
    let rendered = 0;
    const writer = new StatusWriter(object as unknown as StatusObject, {
      host: api.client('host'),
      render: (previous) => {
        rendered += 1;
        return { ...previous, ...state.wanted };
      },
      written: (status) => void written.push(status),
      logger: pino({ level: 'silent' }),
    });
    const controller = new AbortController();
    stop.add(controller);
    const running = writer.run(controller.signal);
    const want = (status: MemberClusterStatus): void => {
      state.wanted = status;
      writer.touch();
    };
    return {
      api,
      writer,
      written,
      want,
      running,
      controller,
      patches: () => api.requests('PATCH'),
      rendered: () => rendered,
    };
  }

  it('waits a moment, writes once, and is silent while nothing changes', async () => {
    const { patches, written, writer } = start({ version: 'v1' });
    await vi.advanceTimersByTimeAsync(300);
    expect(patches()).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(patches()).toMatchObject([
      {
        path: `${PATH}/status`,
        contentType: 'application/merge-patch+json',
        body: { metadata: { uid: 'uid-1' }, status: { version: 'v1' } },
      },
    ]);
    expect(written).toEqual([{ version: 'v1' }]);
    for (let i = 0; i < 10; i += 1) writer.touch();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(patches()).toHaveLength(1);
  });

  it('writes at most every two seconds, and figures alone every five', async () => {
    const { patches, want } = start({ version: 'v0', pods: { running: 0, pending: 0, total: 0 } });
    await vi.advanceTimersByTimeAsync(500);
    expect(patches()).toHaveLength(1);
    for (let i = 1; i <= 20; i += 1) {
      want({ version: `v${String(i)}` });
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(patches().length).toBeLessThanOrEqual(2);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(patches().at(-1)?.body).toMatchObject({ status: { version: 'v20' } });
    const before = patches().length;
    want({ version: 'v20', pods: { running: 1, pending: 0, total: 1 } });
    await vi.advanceTimersByTimeAsync(2_500);
    expect(patches()).toHaveLength(before);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(patches()).toHaveLength(before + 1);
  });

  it('is not worked out while nothing may be written', async () => {
    const { rendered, patches, want } = start({ version: 'v0' });
    await vi.advanceTimersByTimeAsync(500);
    const before = rendered();
    for (let i = 1; i <= 18; i += 1) {
      want({ version: `v${String(i)}` });
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(rendered()).toBe(before);
    await vi.advanceTimersByTimeAsync(100);
    expect(rendered()).toBe(before + 1);
    expect(patches().at(-1)?.body).toMatchObject({ status: { version: 'v18' } });
  });

  it('sends only what differs, and takes away what is not wanted any more', async () => {
    const { patches, want } = start({ version: 'v1', allocatable: { cpu: '4', gpu: '1' } });
    await vi.advanceTimersByTimeAsync(500);
    want({ version: 'v1', allocatable: { cpu: '4' } });
    await vi.advanceTimersByTimeAsync(6_000);
    expect(patches().at(-1)?.body).toEqual({ metadata: { uid: 'uid-1' }, status: { allocatable: { gpu: null } } });
  });

  it('goes on after failures, slower each time, without a hot loop', async () => {
    const { api, patches, written } = start({ version: 'v1' });
    api.fault = () => ({ code: 500 });
    await vi.advanceTimersByTimeAsync(60_000);
    const tries = patches().length;
    expect(tries).toBeGreaterThan(2);
    expect(tries).toBeLessThan(8);
    api.fault = undefined;
    await vi.advanceTimersByTimeAsync(40_000);
    expect(written).toEqual([{ version: 'v1' }]);
  });

  it('never writes to another object of the same name', async () => {
    const { api, patches, written } = start({ version: 'v1' });
    api.delete(PATH);
    const body = { kind: 'MemberCluster', metadata: { name: 'east' }, status: {} };
    api.handle({ method: 'POST', path: COLLECTION, query: {}, body, contentType: '' });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(patches().length).toBeGreaterThan(0);
    expect(written).toEqual([]);
    expect(api.objects.get(PATH)?.['status']).toEqual({});
  });

  it('repairs what somebody else wrote, and does not go back to an older object', async () => {
    const { api, writer, patches } = start({ version: 'v1' });
    const old = structuredClone(api.objects.get(PATH)) as unknown as StatusObject;
    await vi.advanceTimersByTimeAsync(500);
    writer.observe(old);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(patches()).toHaveLength(1);
    api.edit(PATH, { status: { version: 'wrong' } });
    writer.observe(structuredClone(api.objects.get(PATH)) as unknown as StatusObject);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(patches()).toHaveLength(2);
  });

  it('sends what a former CRD drops only now and then, and all else at once', async () => {
    const { api, patches, want, writer } = start({ version: 'v1', credentialsVersion: '7' });
    api.fault = ({ body }) => {
      delete (body as { status: MemberClusterStatus }).status.credentialsVersion;
      return undefined;
    };
    await vi.advanceTimersByTimeAsync(600_000);
    expect(patches().length).toBeLessThan(25);
    expect(writer.isWritten).toBe(true);
    const before = patches().length;
    want({ version: 'v2', credentialsVersion: '7' });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(patches().length - before).toBeGreaterThan(0);
    expect(api.objects.get(PATH)?.['status']).toEqual({ version: 'v2' });
    api.fault = undefined;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(api.objects.get(PATH)?.['status']).toEqual({ version: 'v2', credentialsVersion: '7' });
  });

  it('goes on from the older object of a host that was restored', async () => {
    const { api, writer, patches, want } = start({ version: 'v1' });
    await vi.advanceTimersByTimeAsync(500);
    const known = structuredClone(api.objects.get(PATH)) as unknown as StatusObject;
    known.metadata.resourceVersion = '99999';
    writer.observe(known);
    want({ version: 'v2' });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(patches()).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(patches()).toHaveLength(2);
  });

  it('ends when told', async () => {
    const { running, controller } = start({});
    controller.abort();
    await running;
  });
});
