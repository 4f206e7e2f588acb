import { setTimeout as sleep } from 'node:timers/promises';
import { isTransient } from '../kube/errors.ts';
import { CliError } from './cli-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Terminal } from './terminal.ts';

/** Time between two looks, in ms. */
const PERIOD_MS = 2000;

/** Shows something again and again until Ctrl-C. A cluster that does not answer for a while is told of once, and asked again. */
export async function repeatedly(
  terminal: Pick<Terminal, 'signal' | 'note'>,
  show: () => Promise<void>,
): Promise<ExitCode> {
  const { signal } = terminal;
  let isFailing = false;
  while (!signal.aborted) {
    try {
      await show();
      isFailing = false;
    } catch (error) {
      if (!(error instanceof CliError) || !isTransient(error.cause)) throw error;
      if (!isFailing) terminal.note(`${error.message}: ${error.reason ?? ''}; asking again until it does`);
      isFailing = true;
    }
    await sleep(PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
  return EXIT.interrupted;
}
