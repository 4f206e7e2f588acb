/**
 * `node dist/hack/test.js unit cluster`: runs vitest projects one after another, with everything they need in place
 * first, and ends with a line that counts all tests. Further arguments after `--` go to vitest.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { codeVersion, commitOfCode } from './code-version.ts';
import { FAULTS } from './fault-matrix.ts';
import { ensureBrowser } from './browser.ts';
import { ensureBinaries } from './binaries.ts';
import { failedFiles, failedTests, slowestFiles } from './failed-tests.ts';
import { type FaultRow, faultRows, faultsPage, faultTable, NOT_RUN, rowsOfPage, wholeMatrix } from './faults-page.ts';
import { imageArchive } from './images.ts';
import { sayOnStderr as say } from './progress.ts';
import { repositoryRoot } from './repository.ts';
import { argumentsByProject, shownElsewhere, shownRows } from './shown-faults.ts';
import { canRunKubelets, installKubeletPackages } from './system-packages.ts';
import { CONTROL_PLANE_TOOLS, OTHER_VERSIONS, VERSIONED_TOOLS } from './tools.ts';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
  failures: string[];
  /** What failed first, and passed when its file was run again. */
  unstable: string[];
}

/**
 * How many files of cluster tests are run again when they fail. What real clusters do at one moment in thousands of tests
 * does not refuse a change that is well, but it is named: it is a bug, of the test or of the program.
 */
const RUN_AGAIN = 2;

/** Gets slow things before the tests' clocks start: binaries, packages, images. */
async function prepareClusters(): Promise<void> {
  say(
    'getting what cluster tests need: real control planes, kwok nodes, metrics-server, helm, promtool, real kubelets',
  );
  await ensureBinaries([...CONTROL_PLANE_TOOLS, 'kwok', 'metrics-server', 'helm', 'promtool', 'glua'], { say });
  const can = await canRunKubelets();
  if (!can.ok) {
    say(`real kubelets cannot run here: ${can.reason}. Their tests are skipped.`);
    return;
  }
  await installKubeletPackages(say);
  await ensureBinaries(['kubelet', 'kube-proxy', 'coredns', 'agnhost'], { say });
  await imageArchive(say);
}

/** Control planes of other versions only for the scenario that has members of them: they may have to be built. */
async function prepareFaults(): Promise<void> {
  await ensureBinaries([...CONTROL_PLANE_TOOLS, 'kwok'], { say });
  if (more.some((one) => one.includes('.test.') && !one.includes('versions'))) return;
  for (const kubernetes of OTHER_VERSIONS) await ensureBinaries(VERSIONED_TOOLS, { say, kubernetes });
}

/**
 * Prints the table of faults and puts its lines into the page: of a whole run nothing but its own. Answers what was to be
 * run and was not.
 */
function showFaults(found: readonly FaultRow[]): string[] {
  const commit = commitOfCode();
  const day = [new Date().toISOString().slice(0, 10), ...(commit === undefined ? [] : [commit])].join(', ');
  const page = join(repositoryRoot(), 'docs/faults.md');
  const earlier = more.length > 0 && existsSync(page) ? rowsOfPage(readFileSync(page, 'utf8')) : [];
  const matrix = wholeMatrix(found, FAULTS, earlier).map((row) => ({ ...row, day: row.day ?? day }));
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node.js ${process.version}`;
  writeFileSync(page, faultsPage(matrix, { machine, version: codeVersion(commit) }));
  const run = matrix.filter(({ id }) => more.length === 0 || found.some((row) => row.id === id));
  console.log(`\n${faultTable(run)}`);
  return run.filter(({ result }) => result === NOT_RUN).map(({ id, what }) => `${id} was not run: ${what}`);
}

/** How many inputs the fuzz tests tried. */
function inputsIn(report: unknown): number {
  const { testResults = [] } = report as { testResults?: { assertionResults: { meta?: { inputs?: number } }[] }[] };
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  return tests.reduce((sum, { meta }) => sum + (meta?.inputs ?? 0), 0);
}

interface Run extends Counts {
  /** Those in which something failed. */
  files: string[];
  /** What vitest says in JSON. */
  report: unknown;
}

async function runProject(project: string, more: readonly string[]): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'test-report-'));
  const report = join(folder, 'report.json');
  const root = repositoryRoot();
  try {
    say(`running the ${project} tests`);
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--project', project, ...reporters, ...more];
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? 1));
    });
    const result = existsSync(report)
      ? (JSON.parse(readFileSync(report, 'utf8')) as Record<string, number | undefined>)
      : {};
    if (project !== 'unit') say(`the slowest files:\n${slowestFiles(result, root, 12).join('\n')}`);
    if (project === 'fuzz') say(`${inputsIn(result)} inputs`);
    const failed = result['numFailedTests'] ?? 0;
    return {
      passed: result['numPassedTests'] ?? 0,
      // A file that does not load fails without any test in it.
      failed: code === 0 ? failed : Math.max(failed, 1),
      skipped: (result['numPendingTests'] ?? 0) + (result['numTodoTests'] ?? 0),
      failures: failedTests(result, root),
      files: failedFiles(result, root),
      unstable: [],
      report: result,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs cluster tests. Of a whole run, few files that failed are run once more, each whole and with new clusters. */
async function runClusters(): Promise<Counts> {
  const first = await runProject('cluster', more);
  const { length } = first.files;
  if (first.failed === 0 || length === 0 || length > RUN_AGAIN || more.length > 0) return first;
  say(`failed, run again:\n${first.failures.join('\n')}`);
  const again = await runProject('cluster', first.files);
  if (again.failed > 0) return { ...first, failures: [...first.failures, ...again.failures] };
  return { ...first, passed: first.passed + first.failed, failed: 0, failures: [], unstable: first.failures };
}

/** Runs the scenarios, then what other tests show of faults: all, or those with a test in the files that were asked for. */
async function runFaults(): Promise<Counts> {
  const scenarios = await runProject('faults', ['--passWithNoTests', ...more]);
  const ofTitle = more.some((one) => one.startsWith('-'));
  const elsewhere = ofTitle ? {} : shownElsewhere(FAULTS, more);
  const tests = argumentsByProject(elsewhere);
  if (tests.has('cluster') || tests.has('long')) await prepareClusters();
  const runs: Run[] = [];
  for (const [project, args] of tests) runs.push(await runProject(project, args));
  const reports = runs.map(({ report }) => report);
  const rows = [
    // Those of other titles than the one that was asked for are skipped, too.
    ...faultRows(scenarios.report).filter(({ result }) => !ofTitle || result !== NOT_RUN),
    ...shownRows(elsewhere, reports, repositoryRoot()),
    ...reports.flatMap(faultRows).filter(({ id }) => id in elsewhere),
  ];
  const notRun = showFaults(rows);
  const all = [scenarios, ...runs];
  return {
    passed: all.reduce((sum, { passed }) => sum + passed, 0),
    failed: all.reduce((sum, { failed }) => sum + failed, notRun.length),
    // Of the others nothing is asked but what is named.
    skipped: scenarios.skipped,
    failures: [...all.flatMap(({ failures }) => failures), ...notRun],
    unstable: [],
  };
}

const RUNS: Record<string, () => Promise<Counts>> = { cluster: runClusters, faults: runFaults };

const split = process.argv.indexOf('--');
const projects = process.argv.slice(2, split < 0 ? undefined : split);
const more = split < 0 ? [] : process.argv.slice(split + 1);
const total: Counts = { passed: 0, failed: 0, skipped: 0, failures: [], unstable: [] };
for (const project of projects) {
  if (project === 'cluster' || project === 'long') await prepareClusters();
  if (project === 'faults') await prepareFaults();
  if (project === 'page') await ensureBrowser(say);
  if (project === 'soak') await ensureBinaries([...CONTROL_PLANE_TOOLS, 'kwok', 'metrics-server'], { say });
  const counts = await (RUNS[project]?.() ?? runProject(project, more));
  total.passed += counts.passed;
  total.failed += counts.failed;
  total.skipped += counts.skipped;
  total.failures.push(...counts.failures);
  total.unstable.push(...counts.unstable);
}
if (total.failures.length > 0) console.log(`\nfailed:\n${total.failures.join('\n')}`);
if (total.unstable.length > 0) console.log(`\nfailed, and passed when run again:\n${total.unstable.join('\n')}`);
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
