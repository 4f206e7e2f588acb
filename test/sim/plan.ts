import { Random } from './random.ts';
import { ALWAYS, WEIGHTS, type StepKind } from './steps.ts';
import { ALL_THEMES, CROWDED_THEMES, FIRST_LATER, LATER_THEMES, RARE_THEMES, THEMES } from './themes.ts';

/** What a history will do; each step has chance of its own, so that leaving one out changes no other. */
export interface Plan {
  readonly seed: number;
  readonly replicas: number;
  readonly theme: string | undefined;
  /** Users of the host make nothing while it has so many pods. */
  readonly mostPods: number;
  /** There are policies, and the scheduler asks about them; else chance says so. */
  readonly hasRules: boolean;
  /** Some of them say where pods have to be. */
  readonly hasResidence: boolean;
  /** There is little room, and nothing happens but what its theme says. */
  readonly isCrowded: boolean;
  readonly steps: readonly PlannedStep[];
}

export interface PlannedStep {
  readonly kind: StepKind;
  readonly seed: number;
  /** Until the next step. */
  readonly restMs: number;
}

/**
 * What breaks a rule needs few pods, and a history of few pods takes a fraction of the time; some have many, for what only shows
 * in numbers.
 */
const MOST_PODS = [4, 4, 8, 8, 8, 15, 15, 30];
/** In one of so many histories: {@link MANY_PODS}. */
const FEW = 30;
const MANY_PODS = 80;

/** What these themes are about takes many: those that vanish at once, and those of one workload that are in two clusters. */
const NUMEROUS: ReadonlyMap<string, number> = new Map([
  ['vanishing', MANY_PODS],
  ['moves', 25],
  ['gangs', 25],
  ['rehearsals', 25],
  ['tenants', 15],
  ['rollouts', 20],
  ['rules', 20],
  ['breakers', 2 * MANY_PODS],
]);
/** Later themes that are about policies. */
const RULED: ReadonlySet<string> = new Set(['rollouts', 'rules']);
/** Where room is short few fill it; some histories have a large workload beside them. */
const CROWDED_PODS = [16, 16, 42];
/** There a step takes seconds, for schedulers to act in, and so many less are done. */
const CROWDED_PART = 3;

/** One in so many histories has a rare theme, whatever else its seed says: what others do stays as it is. */
const RARE = 12;
/** Of later seeds one in so many has a later theme. */
const LATER = 3;
/** And one in so many one of those in which room is short, whatever theme it had else. */
const RARER = 24;

/** How much more often than else a step of the theme comes. */
const OFTEN = 6;

/** Each history leaves out some kinds and likes others, so that together they meet more. */
export function planOf(seed: number, length: number): Plan {
  const random = new Random(seed, 0);
  const weights = { ...WEIGHTS };
  for (const kind of Object.keys(weights) as StepKind[]) {
    // What comes with its theme only takes no chance from the others.
    if (weights[kind] === 0) continue;
    weights[kind] *= ALWAYS.has(kind) ? 1 : (random.pick([0, 0, 0.5, 1, 1, 3]) ?? 1);
  }
  const usualTheme = random.pick([undefined, ...Object.keys(THEMES)]);
  const rare = new Random(seed, 21);
  const rareTheme = rare.chance(1 / RARE) ? rare.pick(Object.keys(RARE_THEMES)) : usualTheme;
  const later = new Random(seed, 24);
  const isLater = seed >= FIRST_LATER && later.chance(1 / LATER);
  const rarer = new Random(seed, 22);
  const isCrowded = !isLater && rarer.chance(1 / RARER);
  const calmTheme = isLater ? later.pick(Object.keys(LATER_THEMES)) : rareTheme;
  const theme = isCrowded ? rarer.pick(Object.keys(CROWDED_THEMES)) : calmTheme;
  if (isCrowded) for (const kind of Object.keys(weights) as StepKind[]) weights[kind] = 0;
  for (const kind of ALL_THEMES[theme ?? ''] ?? []) weights[kind] = isCrowded ? 1 : OFTEN * WEIGHTS[kind] + OFTEN / 2;
  const count = isCrowded ? Math.ceil(length / CROWDED_PART) : length;
  const steps = Array.from({ length: count }, (): PlannedStep => {
    const kind = random.weighted(weights);
    const restMs = Math.round(random.pick([0, 0, 0, 10, 50, 300, 500, 2_500]) ?? 0);
    return { kind, seed: random.int(2 ** 31), restMs: random.chance(0.005) ? 60_000 : restMs };
  });
  const replicas = theme === 'twins' || random.chance(0.35) ? 2 : 1;
  const crowd = new Random(seed, 20);
  const usual = crowd.chance(1 / FEW) ? MANY_PODS : crowd.pick(MOST_PODS);
  const usualPods = NUMEROUS.get(theme ?? '') ?? usual ?? 15;
  const mostPods = isCrowded ? (rarer.pick(CROWDED_PODS) ?? usualPods) : usualPods;
  const hasRules = isCrowded || (theme !== undefined && (theme in RARE_THEMES || RULED.has(theme)));
  return { seed, replicas, theme, mostPods, hasRules, hasResidence: theme === 'tenants', isCrowded, steps };
}
