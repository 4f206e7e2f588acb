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
