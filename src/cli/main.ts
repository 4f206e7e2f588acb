#!/usr/bin/env node
/** `kubectl-spillway`, which kubectl runs as `kubectl spillway`. */
import process from 'node:process';
import { EXIT } from './exit-code.ts';
import { runProgram } from './program.ts';
import { processTerminal } from './terminal.ts';

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // A second signal means now.
    if (stop.signal.aborted) process.exit(130);
    stop.abort(new Error(`received ${name}`));
  });
}
// `| head` is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});
// Should nothing be left to wait for before it has ended, that is no success.
process.exitCode = EXIT.failed;
// Without a top-level await, which the program as a single file cannot have.
void runProgram(process.argv.slice(2), processTerminal(stop.signal)).then((code) => (process.exitCode = code));
