/** How one spec of a ginkgo suite ended. */
export interface Outcome {
  name: string;
  state: 'passed' | 'failed' | 'skipped';
  /** Why it failed or skipped itself, in the suite's words. */
  message: string;
  /** More than 1: it failed first and passed then, or never. */
  attempts: number;
  seconds: number;
}

interface SpecReport {
  LeafNodeType?: string;
  ContainerHierarchyTexts?: string[] | null;
  LeafNodeText?: string;
  State?: string;
  RunTime?: number;
  NumAttempts?: number;
  Failure?: { Message?: string };
}

/**
 * The specs that ran, by name, out of ginkgo's `--json-report`. Specs that the selection left out are not in it; a spec
 * that skipped itself is.
 */
export function outcomesOf(report: string): Map<string, Outcome> {
  const suites = JSON.parse(report) as { SpecReports?: SpecReport[] | null }[];
  const outcomes = new Map<string, Outcome>();
  for (const spec of suites.flatMap((suite) => suite.SpecReports ?? [])) {
    const message = (spec.Failure?.Message ?? '').trim();
    if (spec.LeafNodeType !== 'It' || spec.State === 'pending') continue;
    if (spec.State === 'skipped' && message === '') continue;
    const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText ?? ''].join(' ').trim();
    const state = spec.State === 'passed' || spec.State === 'skipped' ? spec.State : 'failed';
    const seconds = (spec.RunTime ?? 0) / 1e9;
    outcomes.set(name, { name, state, message, attempts: spec.NumAttempts ?? 1, seconds });
  }
  return outcomes;
}

/** Tests and subtests out of `go test -v`'s text, without the parents of subtests. */
export function goTestOutcomes(text: string): Outcome[] {
  const found = [...text.matchAll(/^\s*--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)$/gm)].map(
    ([, verdict, name = '', seconds]): Outcome => ({
      name,
      state: verdict === 'PASS' ? 'passed' : verdict === 'SKIP' ? 'skipped' : 'failed',
      message: '',
      attempts: 1,
      seconds: Number(seconds),
    }),
  );
  return found.filter(({ name }) => !found.some((other) => other.name.startsWith(`${name}/`)));
}
