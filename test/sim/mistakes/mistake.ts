/** A mistake to put into a copy of the program: in `file` of src, each `from` becomes its `to`. */
export interface Mistake {
  readonly name: string;
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** A history that shows it; looked for anew when it does so no more. */
  readonly seed?: number;
  /** Histories of this theme show it; no others are looked at. */
  readonly theme?: string;
}
