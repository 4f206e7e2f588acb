import { expect, it } from 'vitest';
import { waverFigures } from '../../bench/division.ts';

/** 1,000 replicas to 1,001 and back, ten times, with so many writes of deletion costs. */
function figures(patches: number): ReturnType<typeof waverFigures> {
  const requests = {
    host: new Map([
      ['patch pods', patches],
      ['patch pods/status', 20],
    ]),
    members: new Map([['create pods', 10]]),
  };
  return waverFigures('wavering', {
    pods: 10,
    bound: Number.NaN,
    done: 60,
    ordered: 63,
    cpuSeconds: 1,
    cpuSecondsAfter: 0.5,
    requests,
    wrong: [],
    othersShare: 0,
  });
}

it('a workload that wavers by one misses its goal when every pod is given a cost anew', () => {
  const ofCosts = (patches: number): unknown =>
    figures(patches).find(({ name }) => name === 'wavering: patch pods per pod that came at the host');
  expect(ofCosts(10)).toMatchObject({ value: 1, ok: true });
  expect(ofCosts(30_120)).toMatchObject({ value: 3_012, ok: false });
});

it('all that it takes is told per pod that came', () => {
  expect(figures(10).map(({ value }) => value)).toEqual([0, 1, 4, 150]);
});
