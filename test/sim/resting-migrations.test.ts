import { describe, expect, it } from 'vitest';
import { restingMigrations } from './resting-migrations.ts';

const PATH = '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadmigrations/move';
const complete = (reason: string): object => ({ observedGeneration: 2, conditions: [{ type: 'Complete', reason }] });
const finished = { ...complete('Moved'), finishTime: '2026-01-01T00:00:00Z' };

describe('a migration rests', () => {
  it.each<[string, boolean, object, object | undefined]>([
    ['when it is over', true, {}, finished],
    ['when it is suspended and says so', true, { suspend: true }, complete('Suspended')],
    ['not before it says that it is suspended', false, { suspend: true }, complete('Progressing')],
    ['not while it is under way', false, {}, complete('Progressing')],
    ['not when it is asked for something else by now', false, {}, { ...finished, observedGeneration: 1 }],
    ['not before it was looked at', false, {}, undefined],
  ])('%s', (_when, rests, spec, status) => {
    const metadata = { name: 'move', namespace: 'shop', generation: 2 };
    const migration = { metadata, spec, status };
    expect([...restingMigrations([migration])]).toEqual(rests ? [PATH] : []);
  });
});
