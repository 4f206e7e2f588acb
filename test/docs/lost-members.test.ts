import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { mayBeLost, UNREACHABLE, unreadyReason } from '../../src/api/unreachable.ts';

/** For what a member is not reachable, and whether it may be lost for that. */
const [, TABLE = ''] =
  /^\| `Reachable` is False for \|.*\n\|[-|]+\|\n((?:\|.*\n)+)/m.exec(
    readFileSync('docs/concepts/failover.md', 'utf8'),
  ) ?? [];
const ROWS = TABLE.trimEnd()
  .split('\n')
  .flatMap((line) => {
    const [, reasons = '', lost, taint] = line.split('|').map((cell) => cell.trim());
    return [...reasons.matchAll(/`(\w+)`/g)].map(([, reason = '']) => ({ reason, lost, taint }));
  });

it('the table has each reason once', () => {
  // What was not asked is summed up by the row of credentials, which have many reasons.
  const asked = Object.entries(UNREACHABLE).filter(([, says]) => says !== 'not asked');
  const rows = ROWS.filter(({ reason }) => Object.hasOwn(UNREACHABLE, reason));
  expect(rows.map(({ reason }) => reason).toSorted()).toEqual(asked.map(([reason]) => reason).toSorted());
});

it.each(ROWS)('the table says of $reason what becomes of the member', ({ reason, lost, taint }) => {
  const isUnreachable = unreadyReason(reason) === 'MemberUnreachable';
  expect([lost, taint]).toEqual([
    mayBeLost(reason) ? 'yes' : 'no',
    isUnreachable ? '`member-unreachable`' : '`member-not-ready`',
  ]);
});
