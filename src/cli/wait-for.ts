import { pause } from '../kube/timers.ts';
import { CliError } from './cli-error.ts';
import type { Terminal } from './terminal.ts';

/** Between two looks, in ms. */
const LOOK_MS = 500;

/** What a look found: done with `value`, or what is still waited for, in words, and what helps, and is to be read, if that is not what always is. */
export type Look<T> =
  | { readonly value: T }
  | { readonly waitingFor: string; readonly fix?: string; readonly page?: string };

/**
 * Looks again and again until it is done; says on stderr what it waits for whenever that changes. Throws CliError with the last of
 * it as the reason after `timeoutMs`.
 */
export async function waitFor<T>(
  terminal: Pick<Terminal, 'note' | 'signal'>,
  what: string,
  timeoutMs: number,
  look: () => Promise<Look<T>>,
  fix: string,
): Promise<T> {
  const until = performance.now() + timeoutMs;
  let said = '';
  while (!terminal.signal.aborted) {
    const seen = await look();
    if ('value' in seen) return seen.value;
    if (performance.now() >= until) {
      throw new CliError(`${what}: not within ${String(Math.round(timeoutMs / 1000))} s`, {
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
