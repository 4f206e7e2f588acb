import { Command, CommanderError } from 'commander';
import { programVersion } from '../version.ts';
import { Cli, type AddVerb } from './cli.ts';
import { addClusters } from './clusters.ts';
import { addCordon, addUncordon } from './cordon.ts';
import { addDoctor } from './doctor.ts';
import { addDrain } from './drain.ts';
import { addExplainPolicy } from './explain-policy.ts';
import { EXIT } from './exit-code.ts';
import { addInstall, addUpgrade } from './install.ts';
import { addJoin } from './join.ts';
import { addLeave } from './leave.ts';
import { addMove } from './move.ts';
import { addOrphans } from './orphans.ts';
import { otherVerb } from './other-verbs.ts';
import { addRebalance } from './rebalance.ts';
import { addSimulate } from './simulate.ts';
import { addStatus } from './status.ts';
import { addResumeMoves, addStopMoves } from './stop-moves.ts';
import { addSupportBundle } from './support-bundle.ts';
import { addTop } from './top.ts';
import { addTranslate } from './translate.ts';
import { addUi } from './ui.ts';
import { addUninstall } from './uninstall.ts';
import type { Terminal } from './terminal.ts';
import { addWhy } from './why.ts';

/** In the order of `kubectl spillway --help`. */
const VERBS: readonly AddVerb[] = [
  addStatus,
  addClusters,
  addTop,
  addWhy,
  addUi,
  addDoctor,
  addSupportBundle,
  addSimulate,
  addExplainPolicy,
  addCordon,
  addUncordon,
  addDrain,
  addMove,
  addRebalance,
  addStopMoves,
  addResumeMoves,
  addTranslate,
  addInstall,
  addUpgrade,
  addJoin,
  addLeave,
  addOrphans,
  addUninstall,
  addVersion,
];

/** `kubectl spillway` with all its verbs. */
export function buildProgram(cli: Cli): Command {
  const program = new Command('kubectl spillway')
    .description('Shows and steers what Spillway does with this cluster and its members.')
    .addHelpText(
      'after',
      '\nExit codes: 0 done or answered, 1 failed, 2 wrong usage, 3 a right is missing, 4 not found, 5 something is not as it should be.',
    )
    // Before the verbs are added, which inherit it.
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.terminal.out(text),
      writeErr: (text) => cli.terminal.note(text.trimEnd()),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .showHelpAfterError("Run 'kubectl spillway --help' for all verbs and 'kubectl spillway VERB --help' for one.");
  for (const add of VERBS) add(program, cli);
  return program;
}

/** Runs the program with the words behind `kubectl spillway`; resolves with the exit code and never rejects. */
export async function runProgram(words: readonly string[], terminal: Terminal): Promise<number> {
  const cli = new Cli(terminal);
  const other = otherVerb(words[0]);
  if (other !== undefined) {
    cli.fail(other);
    return cli.exitCode;
  }
  const program = buildProgram(cli);
  try {
    await program.parseAsync(words.length === 0 ? ['--help'] : words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    cli.fail(error);
  }
  return cli.exitCode;
}

function addVersion(program: Command, cli: Cli): void {
  program
    .command('version')
    .description('print the version of this program')
    .action(() => cli.terminal.out(`kubectl-spillway ${programVersion()}\n`));
}
