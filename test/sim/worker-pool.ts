import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Outcome } from './history.ts';
import { TurnWatch, type Turned } from './turn-watch.ts';

/** After so many histories a process is replaced, so that what they leave behind does not pile up. */
const HISTORIES_PER_PROCESS = 600;

/**
 * Much of a history is forgotten at once: in a young generation of the usual size, collecting that takes a tenth of all time. And a
 * process runs the same code for minutes: the sooner it is compiled, the better. But not optimized as soon as usual: the threads
 * that do it took a third of all CPU, which other workers want.
 */
const V8_FLAGS = [
  '--max-semi-space-size=64',
  '--always-sparkplug',
  '--no-lazy-feedback-allocation',
  '--interrupt-budget=264000',
];

export interface SeedOutcome {
  readonly seed: number;
  readonly outcome: Outcome;
  /** What its process used meanwhile, in ms. */
  readonly cpuMs: number;
}

/**
 * Runs seeds in several processes until `next` has none left, and tells of each outcome as it comes. Rejects when a process
 * ends by itself.
 */
export async function runSeeds(
  next: () => number | undefined,
  o: { workers: number; steps: number; onOutcome: (outcome: SeedOutcome) => void },
): Promise<void> {
  await Promise.all(
    Array.from({ length: o.workers }, async () => {
      let again = true;
      while (again) again = await runWorker(next, o);
    }),
  );
}

/** Returns whether there may be more to do. */
async function runWorker(
  next: () => number | undefined,
  o: { steps: number; onOutcome: (outcome: SeedOutcome) => void },
): Promise<boolean> {
  let done = 0;
  let seed = next();
  if (seed === undefined) return false;
  const child: ChildProcess = fork(fileURLToPath(new URL('main.js', import.meta.url)), ['worker', String(o.steps)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: [...process.execArgv, ...V8_FLAGS],
  });
  return await new Promise<boolean>((resolve, reject) => {
    const watch = new TurnWatch(({ step, at }, what) => {
      const stuck = seed;
      seed = undefined;
      child.kill('SIGKILL');
      if (stuck !== undefined) o.onOutcome({ seed: stuck, outcome: stuckAt(step, at, what), cpuMs: 0 });
      resolve(true);
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      watch.end();
      if (seed !== undefined) reject(new Error(`the process that ran seed ${seed} ended with code ${code}`));
    });
    child.on('message', (message: SeedOutcome | Turned | 'ready') => {
      if (message !== 'ready' && !('outcome' in message)) {
        watch.took(message);
        return;
      }
      if (message !== 'ready') {
        o.onOutcome(message);
        done += 1;
        seed = done < HISTORIES_PER_PROCESS ? next() : undefined;
      }
      watch.took(seed === undefined ? undefined : { step: 0, at: 0 });
      if (seed !== undefined) child.send({ seed });
      else {
        child.disconnect();
        resolve(done >= HISTORIES_PER_PROCESS);
      }
    });
  });
}

/** Of a history whose process does nothing else any more. */
function stuckAt(step: number, at: number, what: string): Outcome {
  return { violation: { oracle: 'busy', what, at }, step, digest: 0, turns: 0, simulatedMs: at };
}
