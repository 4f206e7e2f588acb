/**
 * A well-formed answer that cannot be true: a list older than what is known (`backward`) or watch events out of order
 * (`disorder`). The cache stays as it is.
 */
export class DistrustError extends Error {
  override readonly name = 'DistrustError';
  readonly reason: 'backward' | 'disorder';

  constructor(reason: 'backward' | 'disorder', message: string) {
    super(message);
    this.reason = reason;
  }
}
