import { measured, type Measurement, quantile, thirds, withSpread } from './measurement.ts';

export const p99 = (samples: readonly number[]): number => quantile(samples, 0.99);

/** Makes figures of many samples in milliseconds, each with its spread; they are about `what`. */
export function figureOf(what: string) {
  return (
    name: string,
    samples: readonly number[],
    figure: (samples: readonly number[]) => number,
    goal: number | null = null,
  ): Measurement =>
    withSpread(measured(`${what}, ${name}`, figure(samples), 'ms', 'lower', goal), thirds(samples, figure));
}
