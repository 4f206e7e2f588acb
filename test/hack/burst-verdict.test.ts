import { expect, test } from 'vitest';
import type { Moment } from '../../hack/burst-history.ts';
import { judgeLoss, type Loss } from '../../hack/burst-verdict.ts';

/** Where twenty pods are, by revision, which is also the time in seconds. */
type Row = readonly [revision: number, a: number, b: number, waiting?: number];

const moments = (rows: readonly Row[]): Moment[] =>
  rows.map(([revision, a, b, waiting = 0]) => {
    return { revision, at: revision * 1_000, wanted: 20, ready: 20 - waiting, local: 10, a, b, waiting };
  });
const LEFT: readonly Row[] = [
  [10, 3, 7],
  [20, 2, 7, 1],
  [21, 2, 8],
  [22, 1, 8, 1],
  [23, 1, 9],
  [24, 0, 9, 1],
  [25, 0, 10],
];
const HOME: readonly Row[] = [
  [40, 1, 9],
  [50, 3, 7],
];
const LOSS: Loss = { cut: 10, replaced: 30, settled: 60, goesHome: true };
const STAYED: Loss = { ...LOSS, goesHome: false };

test.each<[string, readonly Row[], Loss, number, RegExp[]]>([
  ['as it should be, home again', [...LEFT, ...HOME], LOSS, 0.5, []],
  ['as it should be, where they stay', LEFT, STAYED, 0.5, []],
  ['within a tenth of the pace', LEFT, STAYED, 0.54, []],
  [
    'too fast',
    LEFT,
    STAYED,
    0.44,
    [/^0\.50 pods a second left a \(after 0\.0, 2\.0, 4\.0 s\), and it was set to 0\.44 /],
  ],
  ['too slow', LEFT, STAYED, 0.6, [/^0\.50 pods a second left a .* and it was set to 0\.6 /]],
  ['all at once', [LEFT[0] ?? [0, 0, 0], [20, 0, 10]], STAYED, 0.5, [/^Infinity pods a second left a/]],
  [
    'one only',
    LEFT.slice(0, 3),
    STAYED,
    0.5,
    [/^only 1 pod left a/, /^while a does not answer, a has 2 pods and b 8 pods, and not 0 and 10$/, /^once a answers/],
  ],
  [
    'one that stays without a place',
    LEFT.slice(0, 6),
    STAYED,
    0.5,
    [
      /^while a does not answer, a has 0 pods and b 9 pods/,
      /^while a does not answer, 1 pod of 20 has no place$/,
      /^once a answers again, where its policy lets them stay, a has 0 pods and b 9 pods/,
      /^once a answers again, 1 pod of 20 has no place$/,
    ],
  ],
  [
    'one that has none after it, though nobody shows it as waiting',
    [...LEFT, [40, 0, 9]],
    STAYED,
    0.5,
    [/^once a answers again, where .* b 9 pods/, /^once a answers again, 1 pod of 20 has no place$/],
  ],
  ['they do not go home', LEFT, LOSS, 0.5, [/policy takes them home, a has 0 pods and b 10 pods, and not 3 and 7$/]],
  ['they go home and are to stay', [...LEFT, ...HOME], STAYED, 0.5, [/lets them stay, a has 3 pods and b 7 pods/]],
  [
    'they go home for a time',
    [...LEFT, ...HOME, [55, 0, 10]],
    STAYED,
    0.5,
    [/^3 pods went back to a for a time, and its policy lets them stay$/],
  ],
  ['nothing was seen', [], LOSS, 0.5, [/^nothing was seen of it$/]],
])('%s', (_, rows, loss, pace, lines) => {
  expect(judgeLoss(moments(rows), loss, pace)).toEqual(lines.map((line): unknown => expect.stringMatching(line)));
});
