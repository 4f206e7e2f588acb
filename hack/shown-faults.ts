import { relative } from 'node:path';
import type { Fault } from './fault-matrix.ts';
import { type FaultRow, NOT_RUN } from './faults-page.ts';

type Matrix = Readonly<Record<string, Fault>>;
type Shown = Fault & { elsewhere: NonNullable<Fault['elsewhere']> };

/** A test outside test/faults that a line of the table names. */
export interface NamedTest {
  file: string;
  title: string;
}

export function namedTest(test: string): NamedTest {
  const [file = '', title = ''] = test.split(/: (.*)/);
  return { file, title };
}

/** Those that other tests show; with `words` those of which a test is in a file with one of them in its path. */
export function shownElsewhere(matrix: Matrix, words: readonly string[] = []): Record<string, Shown> {
  const isChosen = (test: string): boolean =>
    words.length === 0 || words.some((word) => namedTest(test).file.includes(word));
  const shown = Object.entries(matrix).flatMap(([id, { elsewhere, ...fault }]): [string, Shown][] =>
    elsewhere?.tests.some(isChosen) === true ? [[id, { ...fault, elsewhere }]] : [],
  );
  return Object.fromEntries(shown);
}

/** What vitest is told so that it runs their tests and no others: by project, quick ones first. */
export function argumentsByProject(faults: Readonly<Record<string, Shown>>): Map<string, string[]> {
  const tests = Object.values(faults).flatMap(({ elsewhere }) => elsewhere.tests.map(namedTest));
  const args = ['unit', 'cluster', 'long'].map((project): [string, string[]] => {
    const named = tests.filter(({ file }) => (/^test\/(cluster|long)\//.exec(file)?.[1] ?? 'unit') === project);
    const titles = new Set(named.map(({ title }) => patternOf(title)));
    return [project, [...new Set(named.map(({ file }) => file)), '-t', `(^| )(${[...titles].join('|')})$`]];
  });
  return new Map(args.filter(([, [first]]) => first !== '-t'));
}

/** What became of them, from vitest's JSON reports: a test that is in none of them, or was skipped, shows nothing. */
export function shownRows(faults: Readonly<Record<string, Shown>>, reports: unknown[], root: string): FaultRow[] {
  const results = (reports as Report[]).flatMap(({ testResults = [] }) =>
    testResults.flatMap(({ name, assertionResults = [] }) =>
      assertionResults.map((test) => ({ ...test, file: relative(root, name) })),
    ),
  );
  const becameOf = (test: string): string => {
    const { file, title } = namedTest(test);
    const pattern = new RegExp(`^${patternOf(title)}$`);
    const found = results.filter((one) => one.file === file && pattern.test(one.title)).map(({ status }) => status);
    return found.find((status) => status === 'failed') ?? found.find((status) => status !== 'passed') ?? found[0] ?? '';
  };
  return Object.entries(faults).map(([id, { what, elsewhere }]) => {
    const all = elsewhere.tests.map(becameOf);
    const bad = all.includes('failed') ? '**FAILED**' : NOT_RUN;
    return { id, what, result: all.every((one) => one === 'passed') ? elsewhere.result : bad, figures: '' };
  });
}

interface Report {
  testResults?: { name: string; assertionResults?: { status: string; title: string }[] }[];
}

/** What vitest puts in the place of `%s` and `$name` may be anything. */
function patternOf(title: string): string {
  const parts = title.split(/%[sdifjo]|\$\w+/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return parts.join('.*');
}
