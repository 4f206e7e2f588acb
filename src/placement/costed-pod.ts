/** A pod whose cost is ours to choose. */
export interface CostedPod {
  readonly uid: string;
  readonly cluster: string;
  /** What we wrote; undefined (which counts as 0) when nothing. */
  readonly cost: number | undefined;
}
