import { availableParallelism } from 'node:os';
import { installFiles } from './certificate.ts';
import { runHistory, type Outcome } from './history.ts';
import { planOf, type Plan } from './plan.ts';
import { realNow } from './real-time.ts';
import { shrink } from './shrink.ts';
import { ALL_THEMES, LATER_THEMES } from './themes.ts';
import { tellingOfTurns } from './turn-watch.ts';
import { runSeeds, type SeedOutcome } from './worker-pool.ts';

const STEPS = 200;
/** How long shrinking may take, in ms. */
const SHRINK_MS = 180_000;

/**
 * `run COUNT [FROM]`: that many histories, exit code 1 if one of them breaks a rule. `find COUNT [FROM] [THEME]`: until the
 * first that does, among that many seeds; with a theme only its histories are run, with `later` those of all that only later seeds have. `replay SEED [STEP,STEP...]`: one, readable,
 * and then the shortest that breaks the same rule. `soak SECONDS`: new seeds until then. `same COUNT [FROM]`: each in two
 * processes, which have to agree in everything.
 */
export async function runProgram([command = 'run', first = '1000', second, ...rest]: string[]): Promise<void> {
  switch (command) {
    case 'worker':
      await work(Number(first));
      return;
    case 'run':
    case 'find':
      await runMany(Number(first), Number(second ?? '1'), command === 'find', rest[0]);
      return;
    case 'soak':
      await soak(Number(first), Number(second ?? Date.now() % 1_000_000_000));
      return;
    case 'same':
      await runTwice(Number(first), Number(second ?? '1'));
      return;
    case 'replay':
      await replay(Number(first), second, rest);
      return;
    default:
      throw new Error(`unknown command ${command}`);
  }
}

/** A process of a pool: runs the seeds it is sent. */
async function work(steps: number): Promise<void> {
  const { ca } = await installFiles();
  // Every request that is given up makes errors; where they came from is looked at in a replay only.
  Error.stackTraceLimit = 0;
  const onTurn = tellingOfTurns((turned) => process.send?.(turned));
  process.on('message', ({ seed }: { seed: number }) => {
    const before = process.cpuUsage();
    void runHistory(planOf(seed, steps), { ca, onTurn }).then((outcome) => {
      const { user, system } = process.cpuUsage(before);
      process.send?.({ seed, outcome, cpuMs: (user + system) / 1_000 } satisfies SeedOutcome);
    });
  });
  process.send?.('ready');
}

function report({ seed, outcome }: SeedOutcome): void {
  const { violation, step } = outcome;
  if (violation === undefined) return;
  console.log(`seed ${seed}, step ${step}: ${violation.oracle}: ${violation.what}\n  make sim SEED=${seed}`);
}

/** Of that theme only, or of all later ones, if one is given: `count` is how many seeds are looked at, other themes' included. */
async function runMany(count: number, from: number, untilFound: boolean, theme?: string): Promise<void> {
  const isWanted = wantedBy(theme);
  const began = realNow();
  const found: number[] = [];
  let given = 0;
  let done = 0;
  let turns = 0;
  let cpuMs = 0;
  let simulatedMs = 0;
  const next = (): number | undefined => {
    if (untilFound && found.length > 0) return undefined;
    while (given < count) {
      given += 1;
      const seed = from + given - 1;
      if (isWanted(planOf(seed, STEPS))) return seed;
    }
    return undefined;
  };
  await runSeeds(next, {
    workers: availableParallelism(),
    steps: STEPS,
    onOutcome: (outcome) => {
      done += 1;
      turns += outcome.outcome.turns;
      simulatedMs += outcome.outcome.simulatedMs;
      cpuMs += outcome.cpuMs;
      if (outcome.outcome.violation !== undefined) found.push(outcome.seed);
      report(outcome);
      if (done % 100 === 0) console.log(`${done} histories, ${seconds(began)} s`);
    },
  });
  console.log(
    `${done} histories of ${STEPS} steps, ${turns} turns, ${(simulatedMs / 3_600_000).toFixed(1)} h simulated, ` +
      `${seconds(began)} s, ${(cpuMs / 1_000).toFixed(0)} s of CPU, ${found.length} broke a rule` +
      (found.length === 0 ? '' : `: seeds ${found.join(', ')}`),
  );
  if (found.length > 0) process.exitCode = 1;
}

function wantedBy(theme: string | undefined): (plan: Plan) => boolean {
  if (theme === undefined) return () => true;
  if (theme === 'later') return (plan) => plan.theme !== undefined && plan.theme in LATER_THEMES;
  if (!(theme in ALL_THEMES)) throw new Error(`unknown theme ${theme}`);
  return (plan) => plan.theme === theme;
}

async function soak(forSeconds: number, from: number): Promise<void> {
  const began = realNow();
  let seed = from;
  let done = 0;
  let found = 0;
  await runSeeds(() => (realNow() - began > forSeconds * 1_000 ? undefined : seed++), {
    workers: availableParallelism(),
    steps: STEPS,
    onOutcome: (outcome) => {
      done += 1;
      if (outcome.outcome.violation !== undefined) found += 1;
      report(outcome);
      if (done % 100 === 0)
        console.log(`${done} histories from seed ${from} on, ${seconds(began)} s, ${found} broke a rule`);
    },
  });
  console.log(`${done} histories from seed ${from} on, ${seconds(began)} s, ${found} broke a rule`);
  if (found > 0) process.exitCode = 1;
}

/** The same seed does the same to the last message, in another process and after other histories too. */
async function runTwice(count: number, from: number): Promise<void> {
  const digests = new Map<number, number>();
  for (const order of ['forth', 'back']) {
    let given = 0;
    await runSeeds(
      () => {
        if (given >= count) return undefined;
        given += 1;
        return order === 'forth' ? from + given - 1 : from + count - given;
      },
      {
        workers: 1,
        steps: STEPS,
        onOutcome: ({ seed, outcome }) => {
          const before = digests.get(seed) ?? outcome.digest;
          digests.set(seed, outcome.digest);
          if (before === outcome.digest) return;
          console.log(`seed ${seed} is not the same twice: ${before} and ${outcome.digest}`);
          process.exitCode = 1;
        },
      },
    );
  }
  if (process.exitCode !== 1) console.log(`${digests.size} seeds did the same twice`);
}

async function replay(seed: number, only: string | undefined, flags: string[]): Promise<void> {
  const { ca } = await installFiles();
  const whole = planOf(seed, STEPS);
  const chosen = only === undefined || only === '' ? undefined : new Set(only.split(',').map(Number));
  const plan = { ...whole, steps: whole.steps.filter((_step, index) => chosen?.has(index) !== false) };
  const tell = async (which: Plan): Promise<Outcome> =>
    await runHistory(which, { ca, say: (line) => console.log(line), changes: flags.includes('changes') });
  const outcome = await tell(plan);
  if (outcome.violation === undefined || flags.includes('whole')) return;
  process.exitCode = 1;
  console.log('\nLooking for a shorter history that breaks the same rule.');
  const began = realNow();
  const quiet = async (which: Plan): Promise<Outcome> => await runHistory(which, { ca });
  const short = await shrink(plan, outcome, quiet, () => realNow() - began > SHRINK_MS);
  const indexes = short.steps.map((step) => whole.steps.indexOf(step));
  console.log(`\n${short.steps.length} of ${plan.steps.length} steps are enough:\n`);
  await tell(short);
  console.log(`\n  make sim SEED=${seed} STEPS=${indexes.join(',')}`);
}

function seconds(began: number): string {
  return ((realNow() - began) / 1_000).toFixed(0);
}
