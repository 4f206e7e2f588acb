import type { EventLoop } from './event-loop.ts';
import type { Network } from './network.ts';
import type { Random } from './random.ts';

export interface Simulation {
  loop: EventLoop;
  /** For what the program asks of chance. */
  random: Random;
  network: Network;
}

/** The first moment of every history. */
export const EPOCH = Date.UTC(2026, 0, 5);
/** Content of files by path; they are there for every process. */
export const FILES = new Map<string, string>();

let running: Simulation | undefined;

export function simulation(): Simulation {
  if (running === undefined) throw new Error('nothing is simulated at the moment');
  return running;
}

/** From now on what the program does happens there. */
export function enterSimulation(next: Simulation | undefined): void {
  running = next;
}

export function runningSimulation(): Simulation | undefined {
  return running;
}
