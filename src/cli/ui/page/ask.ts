import type { Refusal } from '../view.ts';

/** What went wrong, in words for people. */
export class AskError extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.error);
    this.refusal = refusal;
  }
}

/** Longer than the server itself waits for the cluster, in ms. */
const DEADLINE_MS = 40_000;

/** A document of the server. Rejects with {@link AskError}. */
export async function ask<T>(path: string, query: Readonly<Record<string, string>> = {}): Promise<T> {
  const search = new URLSearchParams(query).toString();
  let answer: Response;
  try {
    answer = await fetch(search === '' ? path : `${path}?${search}`, { signal: AbortSignal.timeout(DEADLINE_MS) });
  } catch {
    throw new AskError({
      error: 'kubectl spillway ui does not answer',
      reason: 'it was ended, or is still waiting for the cluster',
      fix: 'look into its terminal; start it again, and open the address that it prints',
    });
  }
  if (answer.ok) return (await answer.json()) as T;
  if (answer.headers.get('content-type')?.startsWith('application/json') === true) {
    throw new AskError((await answer.json()) as Refusal);
  }
  throw new AskError({ error: (await answer.text()).trim(), reason: '', fix: '' });
}
