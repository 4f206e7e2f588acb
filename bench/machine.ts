import { cpus, loadavg, release, totalmem, type as systemType } from 'node:os';

/** What a figure has to be read against. */
export interface Machine {
  cores: number;
  processor: string;
  memoryGiB: number;
  kernel: string;
  node: string;
  /** Processes that wanted to run in the minute before the first suite, on average: more than 0 and others were at work. */
  loadBefore: number;
}

/** Load of each core up to which the machine counts as quiet. What was built right before the run is in it, too. */
const QUIET_LOAD = 0.5;

/** Says that the machine had something else to do, where it had; of what is not known nothing is said. */
export function notQuiet({ cores, loadBefore }: Pick<Machine, 'cores' | 'loadBefore'>): string | undefined {
  return loadBefore / cores > QUIET_LOAD
    ? `**Not quiet:** load ${loadBefore.toFixed(2)} before the run, on ${cores} cores; up to ${QUIET_LOAD * cores} counts as quiet.`
    : undefined;
}

export function describeMachine(): Machine {
  const all = cpus();
  return {
    cores: all.length,
    processor: all[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    kernel: `${systemType()} ${release()}`,
    node: process.version,
    loadBefore: loadavg()[0] ?? Number.NaN,
  };
}
