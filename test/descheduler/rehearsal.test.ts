import { describe, expect, test } from 'vitest';
import { type KindDefinition, openApiSchema } from '../../src/api/crd.ts';
import { workloadMigrationKind } from '../../src/api/workload-migration.ts';
import { workloadRebalancerKind } from '../../src/api/workload-rebalancer.ts';
import { whyRehearsed } from '../../src/descheduler/rehearsal.ts';
import { STRATEGIES, type Strategy } from '../../src/descheduler/strategies.ts';

const BY_POLICY = 'its policy says failover.dryRun: true';
const BY_CONFIGURATION = 'descheduler.dryRun is set';
const ALL = Object.keys(STRATEGIES) as Strategy[];
/** Nothing is moved by it to a better place: it gives back what is of no use. */
const NEVER_REHEARSED: readonly Strategy[] = ['GangTimedOut'];
/** By which people order the moves of a strategy, each with a dry run of its own. */
const ORDERS: Readonly<Partial<Record<Strategy, KindDefinition>>> = {
  Rebalance: workloadRebalancerKind,
  Migrate: workloadMigrationKind,
};

describe.each(ALL)('%s', (strategy) => {
  const isOrdered = STRATEGIES[strategy].isOrdered === true;
  const isNever = NEVER_REHEARSED.includes(strategy);

  test('is rehearsed by the word of the configuration', () => {
    expect(whyRehearsed(strategy, { dryRun: true }, true)).toBe(isNever ? undefined : BY_CONFIGURATION);
    expect(whyRehearsed(strategy, undefined, true)).toBe(isNever ? undefined : BY_CONFIGURATION);
  });

  test('by that of a policy where Spillway moves by itself, and of the order where somebody gives one', () => {
    expect(whyRehearsed(strategy, { dryRun: true }, false)).toBe(isNever || isOrdered ? undefined : BY_POLICY);
    const order = ORDERS[strategy];
    expect(order !== undefined).toBe(isOrdered);
    if (order === undefined) return;
    expect(openApiSchema(order.schema).properties?.['spec']?.properties).toHaveProperty('dryRun.default', false);
  });

  test('else it is made', () => {
    expect(whyRehearsed(strategy, { dryRun: false }, false)).toBeUndefined();
    expect(whyRehearsed(strategy, undefined, false)).toBeUndefined();
  });
});
