import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { INVARIANTS, InvariantError } from '../../src/api/invariants.ts';
import { InvariantCounter } from '../../src/telemetry/invariant-counter.ts';

it('shows every invariant from the start, and counts each by itself', async () => {
  const registry = new Registry();
  const counter = new InvariantCounter(registry);
  const values = async (): Promise<Map<unknown, number>> => {
    const [metric] = await registry.getMetricsAsJSON();
    return new Map(metric?.values.map(({ labels, value }) => [labels['invariant'], value]));
  };
  expect(new Set((await values()).keys())).toEqual(new Set(Object.keys(INVARIANTS)));
  expect([...(await values()).values()].every((value) => value === 0)).toBe(true);
  const error = counter.violated('I4', 'a new status for a finished pod');
  expect(error).toBeInstanceOf(InvariantError);
  expect(error).toMatchObject({ invariant: 'I4', message: 'I4: a new status for a finished pod' });
  expect((await values()).get('I4')).toBe(1);
  expect((await values()).get('I5')).toBe(0);
});
