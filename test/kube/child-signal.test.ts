import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { childSignal } from '../../src/kube/child-signal.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

describe('childSignal', () => {
  it('aborts with whichever parent aborts first, and for its reason', () => {
    const [a, b] = [new AbortController(), new AbortController()];
    const { signal } = childSignal(a.signal, b.signal);
    b.abort(new Error('b'));
    a.abort(new Error('a'));
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toEqual(new Error('b'));
  });

  it('is aborted from the start where a parent is', () => {
    expect(childSignal(AbortSignal.abort('gone')).signal.reason).toBe('gone');
  });

  it('aborts by itself, and leaves its parent alone', () => {
    const parent = new AbortController();
    const child = childSignal(parent.signal);
    child.abort(new Error('late'));
    expect(child.signal.reason).toEqual(new Error('late'));
    expect(parent.signal.aborted).toBe(false);
  });

  it('leaves nothing at a parent that lives on, however many there were', () => {
    const [parent, other] = [new AbortController(), new AbortController()];
    for (let i = 0; i < 1_000; i += 1) childSignal(parent.signal, other.signal).release();
    expect([listeners(parent.signal), listeners(other.signal)]).toEqual([0, 0]);
    const released = childSignal(parent.signal);
    released.release();
    parent.abort();
    expect(released.signal.aborted).toBe(false);
  });
});
