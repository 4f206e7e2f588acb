/** A cluster's claim in a division. Weights are whole numbers, so that comparisons are exact. */
export interface Share {
  readonly name: string;
  readonly weight: number;
  /** Seats it gets before anything goes by weight; default 0. */
  readonly min?: number;
  /** Seats it gets at most; default without limit. */
  readonly max?: number;
}

export type Counts = ReadonlyMap<string, number>;
