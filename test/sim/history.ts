import { unsettledBudgets } from './budget-convergence.ts';
import { unsettled } from './convergence.ts';
import type { Violation } from './oracles.ts';
import { enterSimulation } from './simulation.ts';
import { MIGRATIONS, restingMigrations } from './resting-migrations.ts';
import { unplaced } from './placement-convergence.ts';
import type { Plan } from './plan.ts';
import { Random } from './random.ts';
import { Scene } from './scene.ts';
import type { Change } from './sim-cluster.ts';
import { isOfProgram } from './sim-process.ts';
import { STEPS } from './steps.ts';
import { PATHS } from './world.ts';

/** How long everything may take to come to rest once nothing is broken any more, in ms of simulated time. */
const CONVERGENCE_MS = 12 * 60_000;
const LOOK_MS = 2_000;
/** What is written every ten seconds at most comes later than what it speaks of, in ms. */
const LATEST_WORDS_MS = 15_000;
/** After that nothing may be written any more, for so long. */
const QUIET_MS = 20_000;

export interface Outcome {
  readonly violation: Violation | undefined;
  /** The step after which it was seen. */
  readonly step: number;
  /** Of everything that happened: equal for equal histories. */
  readonly digest: number;
  readonly turns: number;
  readonly simulatedMs: number;
}

/** Runs one history up to the first violation. `say` gets a line for each step, and for each change if `all`. */
export async function runHistory(
  plan: Plan,
  o: {
    ca: string;
    say?: ((line: string) => void) | undefined;
    changes?: boolean | undefined;
    /** Told after each turn in which step that was, and when, in ms. */
    onTurn?: ((step: number, at: number) => void) | undefined;
  },
): Promise<Outcome> {
  const { seed, replicas, mostPods, hasRules, hasResidence, isCrowded } = plan;
  const scene = new Scene(seed, { ca: o.ca, replicas, mostPods, hasRules, hasResidence, isCrowded });
  const { world, oracles } = scene;
  const { loop, network } = world;
  // Always a function: what the argument of an optional call does would be done only where somebody listens.
  const { say = () => undefined } = o;
  let digest = 0x811c9dc5;
  const mix = (text: string): void => {
    for (let i = 0; i < text.length; i++) digest = Math.imul(digest ^ text.charCodeAt(i), 0x01000193);
  };
  network.onSend = (call, fate) => {
    oracles.sent(call);
    mix(`${loop.now} ${call.outgoing.method} ${call.outgoing.path} ${fate}`);
    if (o.changes === true && call.outgoing.method !== 'GET' && !call.outgoing.path.includes('/leases')) {
      say(
        `        ${time(loop.now)} ${call.owner?.name} sends ${call.outgoing.method} ${call.origin}${call.outgoing.path}: ${fate}`,
      );
    }
  };
  network.onReceive = (call, text) => oracles.received(call, text);
  world.onChange.push((change) => {
    mix(`${change.at} ${change.cluster.name} ${change.type} ${change.path} ${change.by} ${change.version}`);
    if (o.changes === true) say(`        ${time(loop.now)} ${told(change)}`);
  });
  enterSimulation({ loop, random: new Random(plan.seed, 3), network });
  let step = 0;
  const { onTurn } = o;
  if (onTurn !== undefined) loop.onTurn = () => onTurn(step, loop.now);
  const first = (): Violation | undefined => oracles.violations[0];
  try {
    for (const replica of scene.replicas) await replica.start();
    await loop.runUntil(3_000);
    for (const [index, planned] of plan.steps.entries()) {
      step = index;
      const did = await STEPS[planned.kind](scene, new Random(planned.seed));
      if (did !== undefined && did !== '') say(`${String(index).padStart(5)}  ${time(loop.now)} ${did}`);
      await loop.runUntil(loop.now + planned.restMs);
      watchProgram(scene);
      if (first() !== undefined) break;
    }
    if (first() === undefined) {
      step = plan.steps.length;
      say(`${String(step).padStart(5)}  ${time(loop.now)} from now on all works`);
      await converge(scene, say);
    }
  } finally {
    enterSimulation(undefined);
  }
  const violation = first();
  if (violation !== undefined) say(`VIOLATION at ${time(violation.at)} of ${violation.oracle}: ${violation.what}`);
  return { violation, step, digest: digest >>> 0, turns: loop.turns, simulatedMs: loop.now };
}

function watchProgram({ replicas, oracles }: Scene): void {
  for (const { process } of replicas) {
    if (process?.failure === undefined) continue;
    oracles.programEnded(process.name, process.failure);
    process.failure = undefined;
  }
}

async function converge(scene: Scene, say: (line: string) => void): Promise<void> {
  const { world, oracles } = scene;
  const { loop } = world;
  scene.heal();
  // What was sent before may be carried out yet.
  await loop.runUntil(scene.lastStraggler());
  if (!(await settle(scene, say))) return;
  // Who sleeps shows it only when there is something to do.
  const turnedOver = scene.turnOver();
  say(`       ${time(loop.now)} ${turnedOver}`);
  if (!(await settle(scene, say))) return;
  await loop.runUntil(loop.now + LATEST_WORDS_MS);
  const before = world.changes.length;
  const resting = restingMigrations(world.host.list(MIGRATIONS));
  await loop.runUntil(loop.now + QUIET_MS);
  const needless = world.changes
    .slice(before)
    .filter(
      ({ by, path, type }) => isOfProgram(by) && (!isHeartbeat(path) || (resting.has(path) && type !== 'DELETED')),
    );
  const [one] = needless;
  if (one === undefined) return;
  // A pod may have been found to be better off elsewhere a moment ago.
  const isCaused = world.changes.some(({ by, at }) => !isOfProgram(by) && at > one.at - LATEST_WORDS_MS);
  if (!isCaused)
    oracles.violations.push({ oracle: 'quiet', what: `written although nothing happened: ${told(one)}`, at: one.at });
}

/** Waits until all is as it should be; false when that takes too long, or something happened that must not. */
async function settle(scene: Scene, say: (line: string) => void): Promise<boolean> {
  const { world, oracles } = scene;
  const { loop } = world;
  const deadline = loop.now + CONVERGENCE_MS;
  for (;;) {
    await scene.keepOneRunning();
    await loop.runUntil(loop.now + LOOK_MS);
    watchProgram(scene);
    if (oracles.violations.length > 0) return false;
    scene.confirmDeletions();
    const problems = [...unsettled(world), ...unsettledBudgets(world), ...unplaced(world)];
    if (problems.length === 0) {
      say(`       ${time(loop.now)} all is as it should be`);
      return true;
    }
    if (loop.now > deadline) {
      for (const { metadata, status } of world.host.list(PATHS.members)) {
        say(`       ${metadata.name}: ${JSON.stringify((status as { conditions?: unknown } | undefined)?.conditions)}`);
      }
      for (const { metadata, spec, ...node } of world.host.list(PATHS.nodes)) {
        const { conditions, allocatable } = node['status'] as { conditions?: unknown; allocatable?: unknown };
        say(`       ${metadata.name}: ${JSON.stringify({ spec, conditions, allocatable })}`);
      }
      oracles.violations.push({ oracle: 'convergence', what: problems.slice(0, 5).join('; '), at: loop.now });
      return false;
    }
  }
}
/** Written all the time, or when something has been so for long. */
function isHeartbeat(path: string): boolean {
  return (
    path.includes('/leases/') ||
    path.includes('/events/') ||
    path.startsWith('/api/v1/nodes/') ||
    path.includes('/memberclusters/') ||
    path.includes('/workloadmigrations/')
  );
}

function told({ cluster, type, path, by, object, previous }: Change): string {
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
  const { phase } = (object['status'] ?? {}) as { phase?: string };
  const deleting =
    deletionTimestamp !== undefined && previous?.metadata.deletionTimestamp === undefined
      ? ` deleting, grace ${deletionGracePeriodSeconds} s`
      : '';
  return `${cluster.name} ${type} ${path} by ${by}${phase === undefined ? '' : ` ${phase}`}${deleting}`;
}

function time(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`;
}
