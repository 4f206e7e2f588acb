import type { PlacedMember } from '../placement/placed-pods.ts';

/** Why of members nothing is known at present, by name. */
export function silentMembers(members: readonly PlacedMember[]): ReadonlyMap<string, string> {
  return new Map(
    members.flatMap(({ name, unavailable }) => (unavailable === undefined ? [] : [[name, unavailable] as const])),
  );
}
