/** One step of a JSON patch (RFC 6902), of the kinds that defaulting needs. */
export interface PatchStep {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}
