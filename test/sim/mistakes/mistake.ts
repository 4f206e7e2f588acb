/** A mistake to put into a copy of the program: in `file` of src, each `from` becomes its `to`. */
export interface Mistake {
  readonly name: string;
  /** What it shows in, as `rule: what is reported`: a history in which another rule is broken shows something else. */
  readonly rule: RegExp;
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** A history that shows it; looked for anew when it does so no more. */
  readonly seed?: number;
  /** Histories of this theme show it; no others are looked at. */
  readonly theme?: string;
}

/** Whether what the simulator said of a history shows that mistake: a line `seed 1, step 2: rule: what is reported`. */
export function isShownIn(output: string, { rule }: Pick<Mistake, 'rule'>): boolean {
  const [, report = ''] = /^seed \d+, step \d+: (.*)$/m.exec(output) ?? [];
  return rule.test(report);
}
