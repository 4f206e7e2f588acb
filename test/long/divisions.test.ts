import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Ended, liveRows, runRow, startForRows, toldOf } from '../fixtures/live-divisions.ts';
import { errorsOf, type Topology } from '../fixtures/topology.ts';

/**
 * The divisions known from Karmada and KubeFed that test/cluster/division.test.ts leaves out because of their size, and those
 * with two answers once for each. With the two files every one of them is run; each here is made, rolled out, and scaled
 * 3 -> 30 -> 3. One figure of KubeFed's is nobody's answer: the 7 pods that it asks for beyond the 50 to probe a full cluster.
 * Spillway never asks for more than the replicas.
 */
const ROWS = liveRows('long');

let topology: Topology;
/** Where each row ended. */
const ended = new Map<string, Ended>();

beforeAll(async () => {
  topology = await startForRows(ROWS);
});

afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

describe.concurrent('a Deployment ends on the exact division at every size:', () => {
  test.for(ROWS)('$name', { timeout: 600_000 }, async (row) => {
    ended.set(row.name, await runRow(topology, row));
  });
});

// After all of them, as it takes up to ten seconds until what was found last is written.
test('WorkloadPlacements tell where pods are and should be', { timeout: 400_000 }, async () => {
  for (const row of ROWS) {
    const end = ended.get(row.name);
    if (end !== undefined) await toldOf(topology, end);
  }
});
