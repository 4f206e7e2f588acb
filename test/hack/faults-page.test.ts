import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Fault, FAULTS } from '../../hack/fault-matrix.ts';
import { type FaultRow, faultRows, faultsPage, faultTable, rowsOfPage, wholeMatrix } from '../../hack/faults-page.ts';
import { namedTest } from '../../hack/shown-faults.ts';

const row = { id: 'F12', what: 'watches answer 410', result: 'fine', figures: '0 writes | none' };
const report = {
  testResults: [
    {
      assertionResults: [
        { status: 'passed', title: 'F12: watches', meta: { faults: [row] } },
        { status: 'skipped', title: 'F02: skipped' },
        { status: 'failed', title: 'no scenario' },
        { status: 'failed', title: 'F01 F05: killed and upgraded', meta: { faults: [{ ...row, id: 'F01' }] } },
      ],
    },
    { assertionResults: [{ status: 'passed', title: 'something else' }] },
  ],
};

it('takes the lines of passed scenarios, and shows those that failed or were skipped as such', () => {
  expect(faultRows(report).map(({ id, result }) => [id, result])).toEqual([
    ['F01', '**FAILED**'],
    ['F02', '**NOT RUN**'],
    ['F05', '**FAILED**'],
    ['F12', 'fine'],
  ]);
  expect(faultTable([row])).toBe('F12  watches answer 410\n     fine: 0 writes | none');
  expect(faultsPage([row], { machine: '2 cores', version: '1' })).toContain(
    '| F12 | watches answer 410 | fine | 0 writes \\| none |  |',
  );
});

it('says of every fault who shows it, or why nobody does, and that nobody did', () => {
  const matrix = {
    F12: { what: row.what },
    F13: { what: 'lies', elsewhere: { result: 'refused', tests: ['test/a.test.ts: a title'] } },
    F14: { what: 'the past', not: 'no time machine' },
    F15: { what: 'forgotten' },
  };
  expect(wholeMatrix([row], matrix).map(({ result, figures }) => [result, figures])).toEqual([
    ['fine', '0 writes | none'],
    ['**NOT RUN**', '`test/a.test.ts`: a title'],
    ['not run', 'no time machine'],
    ['**NOT RUN**', ''],
  ]);
});

it('joins what several scenarios say of one fault, and hides no failure', () => {
  const matrix = { F12: { what: row.what } };
  const other = { ...row, figures: 'and 1 more' };
  expect(wholeMatrix([row, other], matrix)).toEqual([{ ...row, figures: '0 writes | none; and 1 more' }]);
  const failed = { ...row, result: '**FAILED**', figures: '' };
  expect(wholeMatrix([row, failed], matrix)).toEqual([{ ...row, result: '**FAILED**' }]);
});

it('keeps the lines of earlier runs until their scenarios run again', () => {
  const about = { machine: '2 cores', version: '1' };
  const matrix = { F12: { what: row.what }, F14: { what: 'the past', not: 'no time machine' }, F15: { what: 'new' } };
  const page = faultsPage(wholeMatrix([{ ...row, day: '2026-11-20, 7e42537' }], matrix), about);
  const earlier = rowsOfPage(page);
  expect(earlier).toEqual([{ ...row, day: '2026-11-20, 7e42537' }]);
  const next = { id: 'F12', what: '', result: 'better', figures: '', day: '2026-11-21' };
  expect(wholeMatrix([next], matrix, earlier).map(({ result }) => result)).toEqual([
    'better',
    'not run',
    '**NOT RUN**',
  ]);
  expect(wholeMatrix([], matrix, earlier)[0]).toEqual(earlier[0]);
});

it('says behind the tests that show a fault what they measured, until they run again or others show it', () => {
  const about = { machine: '2 cores', version: '1' };
  const elsewhere = { result: 'refused', tests: ['test/a.test.ts: a title'] };
  const matrix = { F13: { what: 'lies', elsewhere } };
  const run = { id: 'F13', what: 'lies', result: 'refused', figures: 'after 1.2 s', day: '2026-11-20, 7e42537' };
  const page = faultsPage(wholeMatrix([{ ...run, figures: '' }, run], matrix), about);
  const shown = { ...run, figures: '`test/a.test.ts`: a title. Measured: after 1.2 s' };
  expect(rowsOfPage(page)).toEqual([shown]);
  expect(wholeMatrix([], matrix, rowsOfPage(page))).toEqual([shown]);
  const moved = { F13: { what: 'lies', elsewhere: { ...elsewhere, tests: ['test/b.test.ts: other'] } } };
  expect(wholeMatrix([], moved, rowsOfPage(page))).toEqual([
    { id: 'F13', what: 'lies', result: '**NOT RUN**', figures: '`test/b.test.ts`: other' },
  ]);
  const next = { ...run, figures: 'after 3 s', day: '2026-11-21' };
  expect(wholeMatrix([next], matrix, rowsOfPage(page))[0]).toMatchObject({
    figures: '`test/a.test.ts`: a title. Measured: after 3 s',
    day: '2026-11-21',
  });
});

const all: [string, Fault][] = Object.entries(FAULTS);

it.each(all.flatMap(([id, { elsewhere }]) => (elsewhere?.tests ?? []).map((test) => [id, test])))(
  '%s is shown by a test that always runs: %s',
  (_id, test) => {
    const { file, title } = namedTest(test);
    const source = readFileSync(file, 'utf8').replaceAll("\\'", "'");
    const call = /^ *(?:(?:it|test)(?:\.\w+)*(?:\([^)]*\))?|\]\))\(\s*(['"`])(.*)\1,/gm;
    expect([...source.matchAll(call)].map(([, , one]) => one)).toContain(title);
    expect(source).not.toMatch(/\b(?:it|test|describe)(?:\.\w+)*\.(?:skip|skipIf|todo|only|fails)\b/);
  },
);

it('stands in docs as it is in the matrix, each with a run that went well', () => {
  const page = readFileSync('docs/faults.md', 'utf8');
  const rows = wholeMatrix([], FAULTS, rowsOfPage(page));
  const isWell = ({ result }: FaultRow): boolean => !result.startsWith('**');
  expect(rows.filter((row) => row.day === undefined || !isWell(row)).map(({ id }) => id)).toEqual([]);
  const lines = (text: string): string[] => text.split('\n').filter((line) => /^\| [FI]\d/.test(line));
  expect(lines(page)).toEqual(lines(faultsPage(rows, { machine: '', version: '' })));
});

it('is as long as README says', () => {
  expect(readFileSync('README.md', 'utf8')).toContain(`in ${String(all.length)} faults`);
});

it('has a scenario for every other fault', () => {
  const files = readdirSync('test/faults').filter((file) => file.endsWith('.test.ts'));
  const text = files.map((file) => readFileSync(`test/faults/${file}`, 'utf8')).join('');
  const shown = new Set([...text.matchAll(/'([FI]\d+)'/g)].map(([, id]) => id));
  const wanted = all.filter(([, { elsewhere, not }]) => elsewhere === undefined && not === undefined).map(([id]) => id);
  expect(wanted.filter((id) => !shown.has(id))).toEqual([]);
});
