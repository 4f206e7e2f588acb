import { describe, expect, test } from 'vitest';
import { type MigratedPod, migrationMove, migrationStep } from '../../src/descheduler/migration.ts';

/** `name`, and where it differs from a Ready pod in east that surges. The smaller the age, the younger. */
function pod(name: string, more: Partial<Omit<MigratedPod, 'pod'>> & { age?: number } = {}): MigratedPod {
  const { age = 5, ...rest } = more;
  return {
    pod: {
      metadata: { name, uid: name, creationTimestamp: `2026-01-01T00:00:${String(30 - age).padStart(2, '0')}Z` },
      spec: { containers: [] },
    },
    cluster: 'east',
    isReady: true,
    isLeaving: false,
    surges: true,
    turn: 0,
    whyStays: undefined,
    ...rest,
  };
}
const alone = { surges: false };
function going(one: MigratedPod): MigratedPod {
  const metadata = { ...one.pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  return { ...one, pod: { ...one.pod, metadata } };
}

const TABLE: readonly {
  what: string;
  pods: readonly MigratedPod[];
  wanted?: number;
  moves: readonly string[];
  counts: Partial<Record<'waiting' | 'moving' | 'unplaced', number>>;
  isOver?: boolean;
}[] = [
  { what: 'nothing is there', pods: [], moves: [], counts: { waiting: 0 }, isOver: true },
  {
    what: 'those that another one is Ready before all go, the youngest first',
    pods: [pod('old', { age: 9 }), pod('young', { age: 1 })],
    wanted: 2,
    moves: ['young', 'old'],
    counts: { waiting: 2, moving: 0 },
  },
  {
    what: 'one that is not Ready goes before younger ones',
    pods: [pod('young', { age: 1 }), pod('ill', { age: 9, isReady: false, surges: false })],
    moves: ['ill', 'young'],
    counts: { waiting: 2 },
  },
  {
    what: 'what is released is on its way, and others follow as the mover lets them',
    pods: [pod('out', { isLeaving: true }), pod('next')],
    moves: ['next'],
    counts: { waiting: 1, moving: 1 },
  },
  {
    what: 'what is elsewhere stays there, and what has no place yet is waited for',
    pods: [pod('a', { cluster: 'west' }), pod('b', { cluster: undefined, isReady: false })],
    moves: [],
    counts: { waiting: 0, unplaced: 1 },
  },
  {
    what: 'all are elsewhere',
    pods: [pod('a', { cluster: 'west' }), pod('b', { cluster: 'west', isReady: false })],
    moves: [],
    counts: { waiting: 0, unplaced: 0 },
    isOver: true,
  },
  {
    what: 'of those that go before another one is there one goes',
    pods: [pod('a', { ...alone, age: 2 }), pod('b', { ...alone, age: 1 }), pod('c', { ...alone, cluster: 'west' })],
    wanted: 3,
    moves: ['b'],
    counts: { waiting: 2 },
  },
  {
    what: 'and none while another one is on its way',
    pods: [pod('a', alone), pod('b', { ...alone, isLeaving: true })],
    moves: [],
    counts: { waiting: 1, moving: 1 },
  },
  {
    what: 'but one that is being deleted, which may take days, keeps none where as many are there beside it',
    pods: [pod('a', alone), going(pod('b', { ...alone, isLeaving: true })), pod('c', { ...alone, cluster: 'west' })],
    wanted: 2,
    moves: ['a'],
    counts: { waiting: 1, moving: 1 },
  },
  {
    what: 'and does where nobody has come in its place',
    pods: [pod('a', alone), going(pod('b', { ...alone, isLeaving: true })), pod('c', { ...alone, cluster: 'west' })],
    wanted: 3,
    moves: [],
    counts: { waiting: 1, moving: 1 },
  },
  {
    what: 'nor while one elsewhere is not Ready',
    pods: [pod('a', alone), pod('b', { ...alone, cluster: 'west', isReady: false })],
    moves: [],
    counts: { waiting: 1 },
  },
  {
    what: 'nor while one is missing',
    pods: [pod('a', alone), pod('b', alone)],
    wanted: 3,
    moves: [],
    counts: { waiting: 2 },
  },
  {
    what: 'but one that is not Ready takes nothing away',
    pods: [pod('a', { ...alone, isReady: false }), pod('b', { ...alone, isReady: false, age: 1 })],
    wanted: 2,
    moves: ['b'],
    counts: { waiting: 2 },
  },
  {
    what: 'what is never moved stays, and does not keep the rest',
    pods: [pod('a', { whyStays: 'it uses claims, and its data are there' }), pod('b')],
    moves: ['b'],
    counts: { waiting: 2 },
  },
  {
    what: 'only what is never moved is left',
    pods: [pod('a', { whyStays: 'it uses claims, and its data are there' }), pod('b', { cluster: 'west' })],
    moves: [],
    counts: { waiting: 1 },
    isOver: true,
  },
];

describe('which pods of a workload leave east now', () => {
  test.each(TABLE)('$what', ({ pods, wanted, moves, counts, isOver = false }) => {
    const step = migrationStep(pods, 'east', wanted);
    expect(step.moves.map(({ metadata }) => metadata.name)).toEqual(moves);
    expect(step).toMatchObject({ ...counts, isOver });
  });
});

test('a move says whose wish it is, and where it leads', () => {
  const { pod: one } = pod('web-1');
  const named = migrationMove(one, { from: 'east', to: 'west', by: 'shop/now' }, { recheck: () => undefined });
  expect(named.cause).toBe('WorkloadMigration shop/now: its workload is moved from member east to member west');
  const out = migrationMove(one, { from: 'east', to: undefined, by: 'shop/now' }, { recheck: () => undefined });
  expect(out.stays).toBe('WorkloadMigration shop/now: its workload is moved out of member east, and it stays for now');
  expect(out.outcome).toBe('which goes there');
});
