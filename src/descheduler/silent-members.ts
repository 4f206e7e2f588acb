import type { PlacedMember } from '../placement/placed-pods.ts';

/** Why members take no new pods, or nothing is known of them, by name. */
export function closedMembers(members: readonly PlacedMember[]): ReadonlyMap<string, string> {
  return new Map(
    members.flatMap(({ name, unavailable }) => (unavailable === undefined ? [] : [[name, unavailable] as const])),
  );
}

/** Why of members nothing is known at present, by name. One that only takes no new pods is known as well as any other. */
export function silentMembers(members: readonly PlacedMember[]): ReadonlyMap<string, string> {
  return closedMembers(members.filter(({ isReady }) => !isReady));
}
