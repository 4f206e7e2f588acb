import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Moment } from '../../hack/burst-history.ts';
import { type BurstLab, PACE, startBurstLab } from '../../hack/burst-lab.ts';
import { loseMember, loseMemberForGood } from '../../hack/burst-loss.ts';
import { judgeLoss, type Loss } from '../../hack/burst-verdict.ts';
import { type Burst, runBurst } from '../../hack/burst.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { podsOf } from '../fixtures/live-pods.ts';
import { errorsOf } from '../fixtures/topology.ts';

/** What `make burst-demo` shows in its second act: a member is lost while it has pods, and comes back, twice. */
let workspace: Workspace;
let lab: BurstLab;
let burst: Burst;
let loss: Loss;
let forGood: Loss;
let moments: Moment[];

beforeAll(async () => {
  workspace = Workspace.create();
  lab = await startBurstLab(workspace);
  const lines: string[] = [];
  try {
    burst = await runBurst(
      lab,
      (line) => lines.push(line),
      async (stage) => {
        loss = await loseMember(lab, stage);
        forGood = await loseMemberForGood(lab, stage);
      },
    );
  } finally {
    console.info(lines.join('\n'));
  }
  moments = burst.history.moments();
}, 600_000);
afterAll(async () => {
  const errors = lab === undefined ? [] : errorsOf(lab.spillway);
  await workspace?.close();
  expect(errors).toEqual([]);
});

const between = (from: number, to: number): Moment[] =>
  moments.filter(({ revision }) => revision >= from && revision <= to);

test('lost: its three pods are replaced in b, one after the other, and no other pod goes', () => {
  const seen = between(loss.cut, loss.replaced);
  expect(seen[0]).toMatchObject({ ready: 20, local: 10, a: 3, b: 7 });
  expect(seen.at(-1)).toMatchObject({ ready: 20, local: 10, a: 0, b: 10, waiting: 0 });
  expect(seen.filter(({ ready, local, b }) => ready < 17 || local < 10 || b < 7)).toEqual([]);
});

test('both times they leave at the pace that was set, all have a place, and are where the policy says in the end', () => {
  for (const one of [loss, forGood]) expect(judgeLoss(moments, one, PACE)).toEqual([]);
});

test('back: they go home one by one, each once another one is ready', () => {
  const seen = between(loss.replaced, loss.settled);
  expect(seen.at(-1)).toMatchObject({ ready: 20, local: 10, a: 3, b: 7, waiting: 0 });
  expect(seen.filter(({ ready }) => ready < 20)).toEqual([]);
});

test('lost again, by a policy that takes nobody home: they are replaced, and stay in b when it is back', () => {
  const seen = between(forGood.cut, forGood.settled);
  expect(seen[0]).toMatchObject({ ready: 20, local: 10, a: 3, b: 7 });
  expect(seen.filter(({ ready, local }) => ready < 17 || local < 10)).toEqual([]);
  const after = between(forGood.replaced, forGood.settled);
  expect(after.filter(({ ready, a, b }) => ready < 20 || a > 0 || b < 10)).toEqual([]);
});

test('each pod was made once: twenty, three for those that were lost, three that went home, three that were lost again', () => {
  expect(burst.history.podsMade).toBe(29);
});

test('nothing is left in the members', async () => {
  for (const member of lab.members) {
    await until(`${member.name} is empty`, async () => (await podsOf(member, 'shop')).length === 0);
  }
});
