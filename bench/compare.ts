import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { run } from '../hack/command.ts';
import { repositoryRoot } from '../hack/repository.ts';
import { compareRuns } from './comparison.ts';
import { renderComparison } from './comparison-table.ts';
import { parseRun, type StoredRun } from './stored-results.ts';

const LATEST = 'bench/results/latest.json';

const command = new Command('bench-compare')
  .description(
    'Compares two runs of the bench; fails where a figure became worse by more than 5 %, or by more than it spreads.',
  )
  .argument('[older]', `a file, or a git revision whose ${LATEST} is taken`, 'HEAD')
  .argument('[newer]', 'the same', join(repositoryRoot(), LATEST))
  .option('--all', 'say also what stayed the same', false)
  .parse();

async function read(where: string): Promise<StoredRun> {
  try {
    return parseRun(
      existsSync(where)
        ? readFileSync(where, 'utf8')
        : await run('git', ['show', `${where}:${LATEST}`], { cwd: repositoryRoot() }),
    );
  } catch (error) {
    return command.error(`${where}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const [older, newer] = command.processedArgs as [string, string];
const comparison = compareRuns(await read(older), await read(newer));
process.stdout.write(renderComparison(comparison, command.opts<{ all: boolean }>().all));
// Nothing compared is nothing found out.
const judged = comparison.figures.some(({ verdict }) => verdict !== 'not judged');
if (!judged || comparison.figures.some(({ verdict }) => verdict === 'worse')) process.exitCode = 1;
