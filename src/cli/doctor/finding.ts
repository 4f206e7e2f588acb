/** `warning`: it works, and could be better. `unknown`: the viewer may not know. */
export type Verdict = 'ok' | 'warning' | 'failed' | 'unknown';

/** What was looked at, and what came of it. */
export interface Finding {
  /** Which check, in one word or two. Stable: programs may look for it. */
  check: string;
  verdict: Verdict;
  says: string;
  /** What helps, where something is wrong. */
  fix?: string;
  /** Below docs/. */
  page?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, verdict: 'ok', says });

export function failed(check: string, says: string, fix: string, page?: string): Finding {
  return { check, verdict: 'failed', says, fix, ...(page === undefined ? {} : { page }) };
}

export function warning(check: string, says: string, fix: string, page?: string): Finding {
  return { ...failed(check, says, fix, page), verdict: 'warning' };
}

/** What the viewer may not know. @param right such as `list nodes` */
export function notAllowed(check: string, right: string): Finding {
  return { check, verdict: 'unknown', says: `not looked at: you may not ${right}`, page: 'reference/cli.md#rights' };
}
