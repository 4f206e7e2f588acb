import { fnv32a } from '../kube/fnv.ts';

/** Ties in a division follow the alphabet, backwards for every other workload, so that not always the same cluster gains. */
export function tiesDescend(uid: string | undefined): boolean {
  return uid !== undefined && fnv32a(uid) % 2 === 1;
}
