import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Turned, TurnWatch } from './turn-watch.ts';

describe('a process whose turns are watched', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is stuck once it has said nothing of a history for long, which is told once', () => {
    const stuck: [Turned, string][] = [];
    const watch = new TurnWatch((last, what) => stuck.push([last, what]));
    watch.took({ step: 3, at: 12_000 });
    vi.advanceTimersByTime(25_000);
    watch.took({ step: 4, at: 14_000 });
    vi.advanceTimersByTime(25_000);
    expect(stuck).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(stuck).toEqual([[{ step: 4, at: 14_000 }, expect.stringContaining('busy for 30 s')]]);
  });

  it('has nothing to say between two histories', () => {
    const onStuck = vi.fn();
    const watch = new TurnWatch(onStuck);
    watch.took({ step: 200, at: 1 });
    watch.took(undefined);
    vi.advanceTimersByTime(600_000);
    expect(onStuck).not.toHaveBeenCalled();
    watch.end();
  });
});
