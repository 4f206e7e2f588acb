import type { Pod } from '../../kube/core-v1.ts';

/**
 * `held`: it stays for now. `controllerHeld`: so do the others of its controller that are Ready, or not, as it is. `stopped`: so do all others, whatever pod it is. `notWanted`: it is not to go any more,
 * or has changed.
 */
export type GaveBack = 'gone' | 'held' | 'controllerHeld' | 'stopped' | 'notWanted';

/** Evicts pods of gangs that give back what they have. Done by whoever evicts pods for any reason, at its pace. */
export interface GangEvictions {
  /** In the order in which they are to be asked about: those last that were held before for reasons of their own. */
  inTurn(pods: readonly Pod[]): Pod[];
  /**
   * `at`: the place of the gang, a member or `local`. `isStillToGo`: asked of the pod as it is right before it goes, which may be
   * minutes later; it stays otherwise. A pod that is held, as its disruption budget says, is no failure.
   */
  giveBack(pod: Pod, at: string, isStillToGo: (live: Pod) => boolean, signal: AbortSignal): Promise<GaveBack>;
}
