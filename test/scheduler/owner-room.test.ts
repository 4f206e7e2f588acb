import { beforeEach, describe, expect, test } from 'vitest';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { whyBare } from '../../src/scheduler/bare-owner.ts';
import { OwnerAccount, OwnerRoom } from '../../src/scheduler/owner-room.ts';

const ROOM = 1024 * 1024;
const LARGE = 4_000;

let account: OwnerAccount;

const owner = (namespace: string, name: string, length: number): TypedObject => ({
  apiVersion: 'argoproj.io/v1alpha1',
  kind: 'Rollout',
  metadata: {
    name,
    ...(namespace === '' ? {} : { namespace }),
    uid: `uid-${name}`,
    resourceVersion: '7',
    labels: { text: 'x'.repeat(length) },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Above', name: 'a', uid: 'uid-a', controller: true }],
  },
});
/** How many of so many owners are kept as a whole. */
function fill(namespace: string, count: number, length: number): number {
  const names = Array.from({ length: count }, (_, index) => `o${String(index)}`);
  return names.filter((name) => isWhole(namespace, name, length)).length;
}
const isWhole = (namespace: string, name: string, length: number): boolean =>
  whyBare(account.keep(owner(namespace, name, length))) === undefined;

beforeEach(() => {
  account = new OwnerAccount(new OwnerRoom(ROOM));
});

describe('the room for owners', () => {
  test.each([
    ['a few large ones', 10, ROOM],
    ['many', 500, LARGE],
    ['very many small ones', 20_000, 1],
  ])('of a namespace is not taken by %s of another one', (_, count, length) => {
    expect(fill('mean', count, length)).toBeLessThan(count);
    expect(fill('shop', 50, LARGE)).toBe(50);
    expect(fill('', 10, LARGE)).toBe(10);
  });

  test('is for a quarter at most of one namespace', () => {
    const kept = fill('mean', 500, LARGE);
    expect(kept * LARGE).toBeLessThan(ROOM / 4);
    expect(kept * LARGE).toBeGreaterThan(ROOM / 6);
  });

  test('has an even part of half of it for each, whatever the others take', () => {
    const namespaces = Array.from({ length: 20 }, (_, index) => `mean-${String(index)}`);
    for (const namespace of namespaces) fill(namespace, 100, LARGE);
    expect(fill('late', 4, LARGE)).toBe(4);
    expect(fill('late', 100, LARGE)).toBeLessThan(100);
  });

  test('is free again after owners went, became smaller or were not listed any more', () => {
    const kept = fill('shop', 500, LARGE);
    expect([isWhole('shop', 'z10', LARGE), account.hasRoomAgain]).toEqual([false, false]);
    account.forget(owner('shop', 'o10', LARGE));
    expect(account.hasRoomAgain).toBe(true);
    expect(isWhole('shop', 'z10', LARGE)).toBe(true);
    expect(isWhole('shop', 'z11', LARGE)).toBe(false);
    for (const name of ['o11', 'o12']) account.keep(owner('shop', name, 1));
    expect(isWhole('shop', 'z11', LARGE)).toBe(true);
    account.retain(new Set());
    expect(fill('shop', 500, LARGE)).toBe(kept);
    account.end();
    expect(fill('shop', 500, LARGE)).toBe(kept);
  });

  test('leaves of an owner beyond it which object it is', () => {
    fill('shop', 500, LARGE);
    const { apiVersion, kind, metadata } = owner('shop', 'late', LARGE);
    const { name, namespace, uid, resourceVersion } = metadata;
    expect(account.keep(owner('shop', 'late', LARGE))).toEqual({
      apiVersion,
      kind,
      metadata: { name, namespace, uid, resourceVersion },
      whyBare: 'the owners in its namespace take as much memory as they may, so its labels are not kept',
    });
  });
});
