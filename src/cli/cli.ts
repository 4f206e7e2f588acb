import type { Command } from 'commander';
import { CliError, errorLines, explained } from './cli-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Terminal } from './terminal.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { Viewer } from './viewer.ts';

/** Adds one verb to the program. */
export type AddVerb = (program: Command, cli: Cli) => void;

/** What all verbs share while the program runs once: the terminal, and how it is going to end. */
export class Cli {
  readonly terminal: Terminal;
  exitCode: ExitCode = EXIT.ok;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  /** Does the work of a verb; its answer is the exit code. What goes wrong is told on stderr. */
  async run(work: () => Promise<ExitCode>): Promise<void> {
    try {
      this.exitCode = await work();
    } catch (error) {
      this.fail(error);
    }
  }

  /** The same with the cluster of the viewer's kubeconfig. */
  async withHost(flags: ClusterFlags, work: (host: Viewer) => Promise<ExitCode>): Promise<void> {
    await this.run(async () => {
      const host = await Viewer.connect(flags, this.terminal);
      try {
        return await work(host);
      } finally {
        await host.close();
      }
    });
  }

  fail(error: unknown): void {
    if (this.terminal.signal.aborted) {
      this.exitCode = EXIT.interrupted;
      return;
    }
    const told = error instanceof CliError ? error : explained(error, 'do that', '');
    for (const line of errorLines(told)) this.terminal.note(line);
    this.exitCode = told.exitCode;
  }
}
