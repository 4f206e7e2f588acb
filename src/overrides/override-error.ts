/** An overrider cannot be applied to an object. Final until the policy or the object changes. */
export class OverrideError extends Error {
  override readonly name = 'OverrideError';
  /** Where: a JSON Pointer into the object, or words such as `container "app"`. */
  readonly path: string;

  /** `problem` is for users: a clause without a full stop, and never with a value of the object, which may be secret. */
  constructor(path: string, problem: string) {
    super(problem);
    this.path = path;
  }
}
