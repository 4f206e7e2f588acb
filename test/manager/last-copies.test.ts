import { beforeEach, describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { LastCopies } from '../../src/manager/last-copies.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const PODS = '/api/v1/namespaces/shop/pods';
const { signal } = new AbortController();

describe('copies that lists do not show any more', () => {
  let member: MemoryApi;
  let copies: LastCopies;
  const make = (name: string): Pod => {
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { containers: [{ name: 'main', image: 'a' }] },
    };
    const request = { method: 'POST', path: PODS, query: {}, body, contentType: 'application/json' };
    return member.handle(request) as unknown as Pod;
  };
  const areGone = async () => await copies.areGone(member.client(), signal);

  beforeEach(() => {
    let made = 0;
    member = new MemoryApi({ uid: () => `m-${String((made += 1))}` });
    copies = new LastCopies(({ metadata }) => metadata.labels?.['copy'] !== 'no');
  });

  test('are gone when the member, asked for each, has none of them', async () => {
    copies.seen([make('a'), make('b')]);
    // What the cache shows later on.
    copies.seen([]);
    member.delete(`${PODS}/a`);
    expect(await areGone()).toBe(false);
    member.delete(`${PODS}/b`);
    expect(await areGone()).toBe(true);
    expect(member.requests('GET')).toHaveLength(3);
    expect(await areGone()).toBe(true);
    expect(member.requests('GET')).toHaveLength(3);
  });

  test('are not gone as a list shows only some of them, and these end', async () => {
    copies.seen([make('a'), make('b')]);
    const [, b] = [make('c'), make('d')];
    copies.seen([b]);
    for (const name of ['b', 'c', 'd']) member.delete(`${PODS}/${name}`);
    expect(await areGone()).toBe(false);
  });

  test('are gone when they are copies no more', async () => {
    copies.seen([make('a')]);
    member.edit(`${PODS}/a`, { metadata: { labels: { copy: 'no' } } });
    expect(await areGone()).toBe(true);
  });

  test('are gone where others have their names', async () => {
    copies.seen([make('a')]);
    member.delete(`${PODS}/a`);
    make('a');
    expect(await areGone()).toBe(true);
  });

  test('are not known to be gone while the member does not say so', async () => {
    copies.seen([make('a')]);
    member.fault = () => ({ code: 503 });
    await expect(areGone()).rejects.toThrow('503');
  });

  test('are asked for by fifty', async () => {
    copies.seen(Array.from({ length: 60 }, (_, index) => make(`p-${String(index)}`)));
    for (let index = 0; index < 60; index++) member.delete(`${PODS}/p-${String(index)}`);
    expect(await areGone()).toBe(true);
    expect(member.requests('GET')).toHaveLength(50);
  });
});
