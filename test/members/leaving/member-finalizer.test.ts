import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../../hack/until.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { MemberFinalizer } from '../../../src/members/leaving/member-finalizer.ts';
import { MemoryApi } from '../../fixtures/memory-api.ts';

const PATH = '/apis/spillway.dev/v1alpha1/memberclusters/east';
const OURS = 'spillway.dev/leaving';

let api: MemoryApi;
let stop: AbortController;
let mayGo: boolean;
let settled: number;

beforeEach(() => {
  api = new MemoryApi();
  stop = new AbortController();
  [mayGo, settled] = [false, 0];
  api.put(PATH, { apiVersion: 'spillway.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'east' } });
});
afterEach(() => stop.abort());

const there = (): KubeObject | undefined => api.objects.get(PATH);
const finalizers = (): readonly string[] => there()?.metadata.finalizers ?? [];

/** The finalizer as one replica keeps it, with the object as its watch shows it. */
function start(): MemberFinalizer {
  let known = there();
  const finalizer = new MemberFinalizer({
    host: api.client('host'),
    object: () => (known = there() ?? known) ?? { metadata: { name: 'east' } },
    mayGo: () => Promise.resolve(mayGo),
    settled: () => (settled += 1),
    logger: pino({ level: 'silent' }),
  });
  api.listeners.add(() => finalizer.touch());
  void finalizer.run(stop.signal);
  return finalizer;
}

describe('the finalizer of a MemberCluster', () => {
  it('is there before anything is made, beside those of others, and is written once', async () => {
    api.edit(PATH, { metadata: { finalizers: ['example.com/a'] } });
    const finalizer = start();
    expect(finalizer.isSettled).toBe(false);
    await until('it is there', () => finalizers().length === 2);
    await until('it is known', () => finalizer.isSettled && settled === 1);
    expect(finalizers()).toEqual(['example.com/a', OURS]);
    api.edit(PATH, { metadata: { labels: { a: 'b' } } });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(api.requests('PATCH')).toHaveLength(1);
  });

  it('holds a deletion until nothing is left, and goes alone', async () => {
    api.edit(PATH, { metadata: { finalizers: ['example.com/a', OURS] } });
    const finalizer = start();
    expect(finalizer.isSettled).toBe(true);
    await api.client().request({ method: 'DELETE', path: PATH });
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(finalizers()).toContain(OURS);
    mayGo = true;
    await until('it is taken off', () => !finalizers().includes(OURS));
    expect(finalizers()).toEqual(['example.com/a']);
  });

  it('is no reason to do nothing where it may not be written', async () => {
    api.fault = ({ method }) => (method === 'PATCH' ? { code: 403, reason: 'Forbidden' } : undefined);
    const finalizer = start();
    await until('it is given up for now', () => finalizer.isSettled && settled === 1);
    expect(finalizers()).toEqual([]);
  });

  it('is written again when somebody changed the object meanwhile', async () => {
    api.fault = ({ method }) =>
      method === 'PATCH' && api.requests('PATCH').length === 1 ? { code: 409, reason: 'Conflict' } : undefined;
    const finalizer = start();
    await until('it is there', () => finalizers().includes(OURS));
    await until('it is known', () => finalizer.isSettled);
  });
});
