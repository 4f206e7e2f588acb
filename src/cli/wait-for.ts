import { monotonic } from '../kube/clock.ts';
import { pause } from '../kube/timers.ts';
import { CliError } from './cli-error.ts';
import type { Terminal } from './terminal.ts';

/** Between two looks, in ms. */
const LOOK_MS = 500;

/**
 * What a look found: done with `value`, or what is still waited for, in words, and what helps, and is to be read, if that is not what always is.
 * `rests`: nothing is wrong, and until what it waits for is over nobody works at it.
 */
export type Look<T> =
  | { readonly value: T }
  | { readonly waitingFor: string; readonly fix?: string; readonly page?: string; readonly rests?: boolean };

export interface Patience {
  /** When the waiting began, if that was before, by {@link monotonic}. */
  readonly began?: number;
  /** The most time in all, in ms, if there is more than `timeoutMs` for what `rests`. */
  readonly atMostMs?: number;
}

/**
 * Looks again and again until it is done; says on stderr what it waits for whenever that changes. Throws CliError with the last of
 * it as the reason after `timeoutMs`, which count anew from the last look that found that it rests.
 */
export async function waitFor<T>(
  terminal: Pick<Terminal, 'note' | 'signal'>,
  what: string,
  timeoutMs: number,
  look: () => Promise<Look<T>>,
  fix: string,
  { began = monotonic(), atMostMs = timeoutMs }: Patience = {},
): Promise<T> {
  let since = began;
  let said = '';
  while (!terminal.signal.aborted) {
    const seen = await look();
    if ('value' in seen) return seen.value;
    const now = monotonic();
    if (seen.rests === true) since = now;
    const until = Math.min(since + timeoutMs, began + atMostMs);
    if (now >= until) {
      throw new CliError(`${what}: not within ${String(Math.round((until - began) / 1000))} s`, {
        reason: seen.waitingFor,
        fix: seen.fix ?? fix,
        page: seen.page ?? 'guides/install.md#when-it-does-not-work',
      });
    }
    if (seen.waitingFor !== said) terminal.note(`waiting: ${seen.waitingFor}`);
    said = seen.waitingFor;
    await pause(LOOK_MS, terminal.signal);
  }
  throw new CliError('interrupted', { reason: `it waited for this: ${said}` });
}
