import { describe, expect, test } from 'vitest';
import type { PodStatus } from '../../src/kube/core-v1.ts';
import { hostStatus, type StatusContext } from '../../src/pods/host-status.ts';
import { statusPatch } from '../../src/pods/status-patch.ts';
import { type Path, pathsBelow, textOf } from '../fixtures/api-fields.ts';
import { decisiveRow, exampleFor, type MappedExample } from '../fixtures/field-paths.ts';
import { fieldRows, podFields } from '../fixtures/pod-fields.ts';
import { hostPod, memberPod } from '../fixtures/pods.ts';
import { at, sampleOf } from '../fixtures/samples.ts';

const NOW = '2026-01-01T00:02:00Z';
const context: StatusContext = { member: 'east', network: 'Flat', inSync: true };

const NEEDED = {
  PodCondition: { type: 'mark', status: 'True' },
  ContainerStatus: { name: 'mark', restartCount: 0 },
};

/** What becomes of fields that are mapped, in the plain case. */
const same = (value: unknown): MappedExample => ({ before: value, after: value });
const MAPPED: Readonly<Record<string, MappedExample>> = {
  'PodStatus.message': same('mark'),
  'PodStatus.reason': same('mark'),
  'PodStatus.phase': same('Running'),
  'PodStatus.podIP': same('10.0.0.1'),
  'PodStatus.startTime': same('2026-01-01T00:00:00Z'),
  // The host pod's generation for the member pod's.
  'PodStatus.observedGeneration': { before: 1, after: 5 },
  'PodCondition.observedGeneration': { before: 1, after: 5 },
  'PodCondition.lastTransitionTime': same('2026-01-01T00:00:00Z'),
  'PodCondition.message': same('mark'),
  'PodCondition.reason': same('mark'),
  'PodCondition.status': same('Unknown'),
  'PodCondition.type': same('mark'),
  'ContainerStatus.restartCount': same(7),
};
/** What stays of fields that are filtered. */
const STAYING: Readonly<Record<string, unknown>> = { 'PodStatus.podIPs': '10.0.0.1' };

const above = () => hostPod({ metadata: { generation: 5 } });

function check(path: Path): void {
  const { row, depth } = decisiveRow(path);
  const what = `${textOf(path)} (${row.treatment})`;
  const mapped = exampleFor(row, MAPPED);
  const leaf = mapped?.before ?? STAYING[`${row.struct}.${row.field}`];
  const sample = sampleOf(path, { needed: NEEDED, ...(leaf === undefined ? {} : { leaf }) });
  const status = hostStatus(above(), memberPod({ status: sample }), context, NOW);
  const after = at(status, path, depth);
  if (row.treatment === 'kept') expect(after, what).toBeUndefined();
  else expect(after, what).toEqual(mapped?.after ?? at(sample, path, depth));
}

describe('along every path of PodStatus the host pod shows what the page says', () => {
  const paths = pathsBelow('PodStatus', podFields.structs);
  const fields = [...new Set(paths.map(({ steps }) => steps[0]?.field ?? ''))];
  test.each(fields)('%s', (field) => {
    const below = paths.filter(({ steps }) => steps[0]?.field === field);
    expect(below.length).toBeGreaterThan(0);
    for (const path of below) check(path);
  });
});

describe('what the member does not report any more', () => {
  const rows = (...treatments: string[]): string[] =>
    fieldRows
      .filter(({ struct, treatment }) => struct === 'PodStatus' && treatments.includes(treatment))
      .map(({ field }) => field);
  const after = (field: string): Record<string, unknown> => {
    const host = hostPod({ status: { phase: 'Running', [field]: { mark: true } } as unknown as PodStatus });
    const status = hostStatus(host, memberPod({ status: { phase: 'Running' } }), context, NOW);
    return (statusPatch(host, status)?.['status'] ?? {}) as Record<string, unknown>;
  };
  /** A pod never leaves its node, so these are only ever set. */
  const STAYS = new Set(['hostIP', 'hostIPs']);

  test.each(rows('copied', 'filtered').filter((field) => !STAYS.has(field)))('%s goes', (field) => {
    expect(after(field)).toMatchObject({ [field]: null });
  });
  test.each(rows('kept'))("%s stays, being the host's", (field) => {
    expect(after(field)).not.toHaveProperty([field]);
  });
});
