import type { Failover } from '../api/failover.ts';
import { STRATEGIES, type Strategy } from './strategies.ts';

/**
 * Why a move is only told, and not made, to be read after "but"; undefined: it is made. A gang that gives up is not moved: it gives back what is
 * of no use to it, and others may wait for it.
 *
 * @param all the configuration says that of all moves.
 */
export function whyRehearsed(strategy: Strategy, failover: Failover | undefined, all: boolean): string | undefined {
  if (strategy === 'GangTimedOut') return undefined;
  if (all) return 'descheduler.dryRun is set';
  return failover?.dryRun === true && STRATEGIES[strategy].isOrdered !== true
    ? 'its policy says failover.dryRun: true'
    : undefined;
}
