import { expect, test } from 'vitest';
import { OrderMemory } from '../../src/descheduler/order.ts';
import type { KubeObject } from '../../src/kube/object.ts';

const order = (uid: string, generation: number): KubeObject => ({ metadata: { name: 'now', uid, generation } });

test('what is remembered of an order is of the one that was asked for: an edit begins it anew, and so does one made anew', () => {
  const memory = new OrderMemory<{ from: string }>();
  const of = (uid: string, generation: number): string =>
    memory.of('now', order(uid, generation), () => ({ from: `${uid} ${String(generation)}` })).from;
  expect([of('a', 1), of('a', 1), of('a', 2), of('b', 2), of('b', 2)]).toEqual(['a 1', 'a 1', 'a 2', 'b 2', 'b 2']);
  expect(memory.get('now')).toEqual({ from: 'b 2' });
  memory.forget('now');
  expect(memory.get('now')).toBeUndefined();
});
