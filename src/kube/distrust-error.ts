/**
 * A well-formed answer that cannot be true: a list older than what is known (`backward`), one without objects that are
 * there (`empty`), or watch events out of order (`disorder`). The cache stays as it is.
 */
export class DistrustError extends Error {
  override readonly name = 'DistrustError';
  readonly reason: 'backward' | 'disorder' | 'empty';

  constructor(reason: 'backward' | 'disorder' | 'empty', message: string) {
    super(message);
    this.reason = reason;
  }
}
