import { expect, test } from 'vitest';
import { changedConditions, exportConditions } from '../../src/multi-cluster/export-conditions.ts';
import type { MergedService } from '../../src/multi-cluster/merged-service.ts';

const MERGED: MergedService = {
  type: 'ClusterSetIP',
  ports: [],
  ipFamilies: ['IPv4'],
  sessionAffinity: 'None',
  clusters: ['east', 'local'],
  leader: 'local',
  conflicts: [],
};
const short = (conditions: { type: string; status: string; reason?: string }[]): string[] =>
  conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);

test.each([
  ['is exported', { merged: MERGED }, ['Valid=True Valid', 'Ready=True Exported', 'Conflict=False NoConflicts']],
  [
    'differs',
    { merged: { ...MERGED, conflicts: ['TypeConflict' as const, 'PortConflict' as const] } },
    ['Valid=True Valid', 'Ready=True Exported', 'Conflict=True TypeConflict,PortConflict'],
  ],
  [
    'has no Service',
    { refusal: { valid: 'NoService' as const, message: 'x' } },
    ['Valid=False NoService', 'Ready=False Failed'],
  ],
  ['may not be', { refusal: { failed: 'x' } }, ['Valid=True Valid', 'Ready=False Failed']],
  ['waits', { pending: 'x' }, ['Valid=True Valid', 'Ready=False Pending']],
])('an export that %s says so', (_, outcome, said) => {
  expect(short(exportConditions(outcome))).toEqual(said);
});

test('what was said before is not said again, conditions of others stay, and times move with the status only', () => {
  const others = { type: 'Other', status: 'True' };
  const found = exportConditions({ merged: MERGED });
  const first = changedConditions([others], found, { now: '2026-01-01T00:00:00Z', generation: 1 });
  expect(first?.map(({ type }) => type)).toEqual(['Valid', 'Ready', 'Conflict', 'Other']);
  expect(changedConditions(first ?? [], found, { now: '2026-01-02T00:00:00Z', generation: 1 })).toBeUndefined();
  const refused = exportConditions({ refusal: { failed: 'x' } });
  const then = changedConditions(first ?? [], refused, { now: '2026-01-02T00:00:00Z', generation: 1 });
  expect(then?.map(({ type, lastTransitionTime = '' }) => `${type} ${lastTransitionTime}`)).toEqual([
    'Valid 2026-01-01T00:00:00Z',
    'Ready 2026-01-02T00:00:00Z',
    'Other ',
  ]);
});
