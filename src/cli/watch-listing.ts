import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { OutputFlags } from './flags.ts';
import { listed, type Listing } from './output.ts';
import { repeatedly } from './repeat.ts';

/** What one look found, and what has to be said of it, once. */
export interface Found<T extends object> {
  listing: Listing<T>;
  notes: readonly string[];
}

/** As `kubectl get --watch`: all once, then lines that changed. Throws CliError. */
export async function watchListing<T extends object>(
  cli: Cli,
  flags: OutputFlags,
  look: () => Promise<Found<T>>,
): Promise<ExitCode> {
  if (flags.output === 'json' || flags.output === 'yaml') {
    throw new CliError('--watch shows tables and names only', {
      exitCode: EXIT.usage,
      fix: 'leave --watch out, or use -o table, wide or name',
    });
  }
  const shown = new Map<string, string>();
  let isFirst = true;
  return await repeatedly(cli.terminal, async () => {
    const { listing, notes } = await look();
    const items = listing.items.filter((one) => shown.get(listing.name(one)) !== JSON.stringify(one));
    for (const one of items) shown.set(listing.name(one), JSON.stringify(one));
    if (items.length > 0 || isFirst) {
      cli.terminal.out(listed({ ...listing, items }, flags.output, flags.headers && isFirst));
    }
    if (isFirst) for (const note of notes) cli.terminal.note(note);
    isFirst = false;
  });
}
