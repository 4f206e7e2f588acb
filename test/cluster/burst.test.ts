import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Moment } from '../../hack/burst-history.ts';
import { type BurstLab, startBurstLab } from '../../hack/burst-lab.ts';
import { type Burst, placesOf, runBurst } from '../../hack/burst.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { podsOf } from '../fixtures/live-pods.ts';
import { errorsOf } from '../fixtures/topology.ts';

/** What `make burst-demo` shows: an autoscaler takes a Deployment from 2 to 20 pods and back, driven by what they use. */
describe('a burst', () => {
  let workspace: Workspace;
  let lab: BurstLab;
  let burst: Burst;
  let moments: Moment[];
  const lines: string[] = [];

  beforeAll(async () => {
    workspace = Workspace.create();
    lab = await startBurstLab(workspace);
    try {
      burst = await runBurst(lab, (line) => lines.push(line));
    } finally {
      console.info(lines.join('\n'));
    }
    moments = burst.history.moments();
  });

  afterAll(async () => {
    const errors = lab === undefined ? [] : errorsOf(lab.spillway);
    await workspace?.close();
    expect(errors).toEqual([]);
  });

  const growing = (): Moment[] => moments.filter(({ revision }) => revision >= burst.calm && revision <= burst.grown);
  const shrinking = (): Moment[] => moments.filter(({ revision }) => revision > burst.grown);

  test('goes from 2 to 20 and back, and is everywhere as the policy says when it rests', () => {
    const atRest = [burst.calm, burst.grown, Number.POSITIVE_INFINITY].map((end) =>
      moments.findLast(({ revision }) => revision <= end),
    );
    expect(atRest).toMatchObject([
      { wanted: 2, ready: 2, ...placesOf(2), waiting: 0 },
      { wanted: 20, ready: 20, local: 10, a: 3, b: 7, waiting: 0 },
      { wanted: 2, ready: 2, ...placesOf(2), waiting: 0 },
    ]);
  });

  test('growing: the host is full before a gets a pod, and a has all it may before b gets one', () => {
    const seen = growing();
    expect(new Set(seen.map(({ wanted }) => wanted)).size).toBeGreaterThan(3);
    // At no moment are more in any place than belong there, so those to come belong where there is room.
    expect(seen.filter(({ wanted, ...is }) => exceeds(is, placesOf(wanted)))).toEqual([]);
  });

  test('shrinking: b is emptied first, then a, then the host', () => {
    const seen = shrinking();
    expect(new Set(seen.map(({ wanted }) => wanted)).size).toBeGreaterThan(3);
    // At no moment is one missing that belongs to those who stay: what went was always the last that may be there.
    expect(seen.filter(({ wanted, ...is }) => exceeds(placesOf(wanted), is))).toEqual([]);
  });

  test('no pod is lost that is wanted: readiness never falls below what the autoscaler wants by more than one', () => {
    const fell = moments.filter(({ ready, wanted }, index) => {
      const before = moments[index - 1];
      return before !== undefined && ready < before.ready && ready < wanted - 1;
    });
    expect(fell).toEqual([]);
    expect(burst.history.podsMade).toBe(20);
  });

  test('nothing is left in the members', async () => {
    for (const member of lab.members) {
      await until(`${member.name} is empty`, async () => (await podsOf(member, 'shop')).length === 0);
    }
  });
});

type Three = Pick<Moment, 'local' | 'a' | 'b'>;

/** Whether one has more than the other in any place. */
function exceeds(one: Three, other: Three): boolean {
  return one.local > other.local || one.a > other.a || one.b > other.b;
}
