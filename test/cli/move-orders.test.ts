import { expect, test } from 'vitest';
import {
  migrationInWords,
  migrationsUnderWay,
  rebalancerInWords,
  rebalancersUnderWay,
} from '../../src/cli/move-orders.ts';
import type { KubeObject } from '../../src/kube/object.ts';

const AT = '2026-03-01T12:00:00Z';
const db = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' };

function migration(name: string, status?: object, way: object = { from: 'east', to: 'west' }): KubeObject {
  const spec = { workloads: [db], ...way };
  const object = { metadata: { name, namespace: 'shop', generation: 1 }, spec };
  return status === undefined ? object : Object.assign(object, { status: { observedGeneration: 1, ...status } });
}
const said = (fits: string, reason: string, message: string): object[] => [
  { type: 'Fits', status: fits, reason: 'x', message: '', lastTransitionTime: AT },
  { type: 'Complete', status: 'False', reason, message, lastTransitionTime: AT },
];
const of = (name: string, more: object = {}): object => ({
  workload: { ...db, name },
  pods: 2,
  waiting: 2,
  moving: 0,
  moved: 0,
  reason: 'Moving',
  ...more,
});
const lines = (...objects: KubeObject[]): string[] => migrationsUnderWay(objects).map(migrationInWords);

test('of a migration: its way, how far it is, and what keeps the next pod', () => {
  const message = 'not moved now: its disruption budget allows no eviction now';
  const workloads = [
    of('web', { waiting: 0, moving: 1, moved: 1 }),
    of('gone', { pods: 7, reason: 'LeftBehind', message: '7 pods: claims' }),
    of('db', { message }),
    of('other', { message }),
  ];
  const status = { conditions: said('True', 'Progressing', 'in member east: ...'), workloads };
  expect(lines(migration('m', status))).toEqual([
    `migration shop/m: east to west, 1 of 6 pods moved, 1 on the way; statefulset/db (and 1 other workload): ${message}`,
  ]);
});

test('of one that has not begun: why, without what was found of another spec', () => {
  const unknown = { conditions: said('Unknown', 'Progressing', 'member west: its nodes are not known yet') };
  const stopped = { conditions: said('Unknown', 'Suspended', 'all moves are stopped (INC-7)'), workloads: [] };
  const halfway = {
    conditions: said('True', 'Suspended', 'no move begins while spec.suspend is true'),
    workloads: [of('db', { waiting: 1, moved: 1 })],
  };
  const edited = { conditions: said('True', 'Moved', 'all pods have left'), observedGeneration: 0, finishTime: AT };
  expect(
    lines(
      migration('d', edited),
      migration('c', halfway),
      migration('b', stopped),
      migration('a', unknown),
      migration('e', undefined, { from: 'east' }),
    ),
  ).toEqual([
    'migration shop/a: east to west, not judged yet; member west: its nodes are not known yet',
    'migration shop/b: east to west, suspended; all moves are stopped (INC-7)',
    'migration shop/c: east to west, 1 of 2 pods moved, suspended; no move begins while spec.suspend is true',
    'migration shop/d: east to west, no manager has looked at it yet',
    'migration shop/e: out of member east, no manager has looked at it yet',
  ]);
});

test('what is over is not shown, and what was said is one short line', () => {
  const over = { conditions: said('False', 'Refused', 'no room'), finishTime: AT };
  expect(lines(migration('m', over))).toEqual([]);
  const hostile = { conditions: said('Unknown', 'Progressing', `\u001b[31m\n${'x'.repeat(900)}`) };
  const [line = ''] = lines(migration('m', hostile));
  expect([line.includes('\u001b'), line.includes('\n'), line.length < 400]).toEqual([false, false, true]);
});

test('of a rebalancer: how many workloads have their result, and what the first of the others waits for', () => {
  const workload = (name: string) => ({ ...db, namespace: 'shop', name });
  const workloads = ['a', 'b', 'c', 'd'].map(workload);
  const observedWorkloads = [
    { workload: workload('a'), result: 'Successful', reason: 'Rebalanced' },
    { workload: workload('b'), reason: 'Progressing' },
    { workload: workload('c'), reason: 'Progressing', message: 'not moved now: its budget' },
    { workload: workload('d'), reason: 'Progressing', message: 'not moved now: its budget' },
  ];
  const object = (name: string, status?: object): KubeObject => {
    const raw = { metadata: { name, generation: 1 }, spec: { workloads } };
    return status === undefined ? raw : Object.assign(raw, { status: { observedGeneration: 1, ...status } });
  };
  const all = [
    object('now', { observedWorkloads }),
    object('over', { observedWorkloads, finishTime: AT }),
    object('new'),
    object('edited', { observedWorkloads, finishTime: AT, observedGeneration: 0 }),
  ];
  expect(rebalancersUnderWay(all).map(rebalancerInWords)).toEqual([
    'rebalancer edited: 0 of 4 workloads done',
    'rebalancer new: 0 of 4 workloads done',
    'rebalancer now: 1 of 4 workloads done; statefulset/c in shop (and 1 other workload): not moved now: its budget',
  ]);
});
