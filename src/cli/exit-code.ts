/** What the program ends with. Scripts depend on these: they never change their meaning (docs/reference/cli.md). */
export const EXIT = {
  /** Done, or answered. */
  ok: 0,
  /** It could not be done; the message says why. */
  failed: 1,
  /** Flags or arguments that make no sense. */
  usage: 2,
  /** The viewer lacks a right; the message names it. */
  forbidden: 3,
  /** What was asked about does not exist. */
  notFound: 4,
  /** Answered, and the answer is that something is not as it should be. */
  findings: 5,
  /** Ended by Ctrl-C or SIGTERM. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
