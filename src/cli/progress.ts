import type { Terminal } from './terminal.ts';

/** Nobody is told of what takes less, in ms. */
const QUIET_MS = 1000;

/** Waits for `work`; says on stderr what it is that takes its time, once that is more than a second. */
export async function withProgress<T>(
  terminal: Pick<Terminal, 'note'>,
  what: string,
  work: Promise<T>,
  quietMs = QUIET_MS,
): Promise<T> {
  const timer = setTimeout(() => terminal.note(`${what} ...`), quietMs);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
