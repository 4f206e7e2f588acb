/** What becomes of a field that is not simply the same afterwards. */
export interface Remark {
  /** Of the object that is translated, such as `spec.placement.workloadAffinity`. */
  readonly field: string;
  readonly says: string;
  /** Something that the object did is not done any more. */
  readonly lost: boolean;
}

/** What is to be said of one object, in the order in which it was found. */
export class Remarks {
  readonly #all: Remark[] = [];

  get all(): readonly Remark[] {
    return this.#all;
  }

  /** It is done in another way, or is not needed. */
  differs(field: string, says: string): void {
    this.#all.push({ field, says, lost: false });
  }

  lost(field: string, says: string): void {
    this.#all.push({ field, says, lost: true });
  }
}
