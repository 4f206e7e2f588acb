/** What takes the host longer than this takes up the time of others (ms). */
export const SLOW_MS = 1_000;
/** So many times as long as it took nothing of the same controller is tried. */
const RESTS = 20;

/**
 * How long pods of one controller are left alone when the host took so long not to do what was asked about one of them, in ms: they are much alike, and what takes it
 * long for one of them must not take up the time of all others. 0: it was no long time.
 */
export function slowRestMs(tookMs: number): number {
  return tookMs >= SLOW_MS ? tookMs * RESTS : 0;
}
