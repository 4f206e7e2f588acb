import { cleanText } from '../kube/clean-text.ts';
import type { Lease } from '../kube/lease.ts';
import { MOVES_STOPPED_ANNOTATION } from './marks.ts';

/** Lease of the replica that moves pods. What people write on it is kept over renewals and takeovers, and counts for every replica. */
export const DESCHEDULER_LEASE = 'spillway-descheduler';
/** Of what was said, in bytes. */
const LONGEST = 200;

/** That all moves are stopped, in the words of who did it, which may be none (''); undefined: they are not. */
export function movesStopped({ metadata }: Lease): string | undefined {
  const said = metadata.annotations?.[MOVES_STOPPED_ANNOTATION];
  return said === undefined ? undefined : cleanText(said, LONGEST);
}

/** `all moves are stopped (...)`, with where, and why. */
export function stopInWords(said: string): string {
  const where = `annotation ${MOVES_STOPPED_ANNOTATION} of Lease ${DESCHEDULER_LEASE}`;
  return `all moves are stopped (${said === '' ? where : `${where}: ${said}`})`;
}
