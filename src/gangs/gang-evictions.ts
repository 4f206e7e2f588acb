import type { Pod } from '../kube/core-v1.ts';

/** Evicts pods of gangs that give back what they have. Done by whoever evicts pods for any reason, at its pace. */
export interface GangEvictions {
  /** `at`: the place of the gang, a member or `local`. A pod that stays for now, as its disruption budget says, is no failure. */
  giveBack(pod: Pod, at: string, signal: AbortSignal): Promise<void>;
}
