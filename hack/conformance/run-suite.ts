import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../cluster.ts';
import { until } from '../until.ts';
import { outcomesOf, type Outcome } from './report.ts';

const LONGEST_MS = 3 * 3600_000;
const PROGRESS_MS = 60_000;

export interface SuiteRun {
  ginkgo: string;
  e2eTest: string;
  /** File for KUBE_TEST_REPO_LIST. */
  repositories: string;
  focus: string;
  skip: readonly string[];
  /** Processes at once; specs that must run alone do so at the end. */
  processes: number;
}

/** Runs the selected specs against a cluster and tells how each of them ended. A spec that fails is tried once more. */
export async function runSuite(cluster: Cluster, what: string, o: SuiteRun): Promise<Map<string, Outcome>> {
  const { workspace } = cluster;
  const dir = join(workspace.dir, 'suite', what);
  mkdirSync(dir, { recursive: true });
  const log = join(dir, 'suite.log');
  const began = Date.now();
  const suite = workspace.start({
    name: `the suite (${what})`,
    file: o.ginkgo,
    args: argumentsOf(cluster, dir, o),
    logFile: log,
    cwd: dir,
    env: { ...process.env, KUBE_TEST_REPO_LIST: o.repositories },
    end: 'SIGTERM',
  });
  const progress = setInterval(() => {
    workspace.say(
      `  the suite (${what}) has run for ${Math.round((Date.now() - began) / 60_000)} min; its log: ${log}`,
    );
  }, PROGRESS_MS);
  try {
    await until(`the suite (${what}) has ended`, () => !suite.running, { timeoutMs: LONGEST_MS, intervalMs: 500 });
  } finally {
    clearInterval(progress);
  }
  const report = join(dir, 'report.json');
  if (!existsSync(report)) throw new Error(`the suite (${what}) left no report:\n${suite.logTail(30)}`);
  return outcomesOf(readFileSync(report, 'utf8'));
}

function argumentsOf({ kubeconfig, kubectlPath }: Cluster, dir: string, o: SuiteRun): string[] {
  const ginkgo = {
    nodes: o.processes,
    'no-color': true,
    'flake-attempts': 2,
    timeout: '3h',
    'output-dir': dir,
    'json-report': 'report.json',
    focus: o.focus,
    skip: o.skip.join('|'),
  };
  const suite = {
    kubeconfig,
    'kubectl-path': kubectlPath,
    provider: 'skeleton',
    'dump-logs-on-failure': false,
    'disable-log-dump': true,
  };
  const flags = (all: object): string[] => Object.entries(all).map(([name, value]) => `--${name}=${value}`);
  return ['-p', ...flags(ginkgo), o.e2eTest, '--', ...flags(suite)];
}
