import fc from 'fast-check';
import { expect, test } from 'vitest';

/** What the shares of all targets come to. */
const ALL_SHARES = 83_000;
const RUNS = Number(process.env['FUZZ_RUNS'] ?? 50_000);
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() & 0x7fffffff);

/** No input may keep the event loop for longer: other members and pods wait meanwhile. */
const LONGEST_MS = 1_000;

/** Characters. The seed repeats what is cut. */
const LONGEST_REPORT = 20_000;

export interface FuzzOptions<T> {
  /** Of the inputs of a whole run, as a share of {@link ALL_SHARES}. */
  share: number;
  /** Always among the inputs: what once went wrong. */
  examples?: readonly T[];
}

/**
 * Tries `check` on arbitrary inputs. It throws, or rejects, for a wrong outcome; beyond that no input may take longer than a
 * second, and none may change what all objects inherit. A failure names the seed and the smallest input that shows it.
 */
export function fuzz<T>(
  title: string,
  arbitrary: fc.Arbitrary<T>,
  { share, examples = [] }: FuzzOptions<T>,
  check: (input: T) => void | Promise<void>,
): void {
  test(title, { timeout: 0 }, async ({ task }) => {
    const numRuns = Math.max(1, Math.ceil((share * RUNS) / ALL_SHARES));
    let slow = false;
    const property = fc.asyncProperty(arbitrary, async (input) => {
      if (slow) return; // a smaller one would be looked for by many slow runs
      const ms = await timeOf(input, check);
      slow = ms > LONGEST_MS;
      if (slow) throw new Error(`it took ${Math.round(ms)} ms`);
      expect(inherited()).toEqual(INHERITED);
    });
    const report = await fc.check(property, {
      numRuns,
      seed: SEED,
      examples: examples.map((example): [T] => [example]),
    });
    Object.assign(task.meta, { inputs: report.numRuns });
    if (report.failed) {
      const why = report.errorInstance instanceof Error ? report.errorInstance.stack : String(report.errorInstance);
      throw new Error(
        `make fuzz SEED=${SEED}\n${why}\n${(fc.defaultReportMessage(report) ?? '').slice(0, LONGEST_REPORT)}`,
      );
    }
    expect(report.numRuns).toBe(numRuns);
  });
}

/** The shortest of three times: a slow machine is slow now and then, a slow input always. */
async function timeOf<T>(input: T, check: (input: T) => void | Promise<void>): Promise<number> {
  let fastest = Infinity;
  for (let attempt = 0; attempt < 3 && fastest > LONGEST_MS; attempt++) {
    const began = performance.now();
    await check(input);
    fastest = Math.min(fastest, performance.now() - began);
  }
  return fastest;
}

/** Runs `act`; what it throws must be one of these. Answers undefined then. */
export function throwsOnly<T>(errors: readonly (new (...args: never[]) => Error)[], act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (errors.some((known) => error instanceof known)) return undefined;
    throw error;
  }
}

function inherited(): string[] {
  return [Object, Array, Function, String, Number, Map].map(({ prototype }) =>
    Reflect.ownKeys(prototype).map(String).join(),
  );
}

const INHERITED = inherited();
