import type { Outcome } from './history.ts';
import type { Plan, PlannedStep } from './plan.ts';

/**
 * Leaves out steps as long as the same oracle still speaks: first many at once, then one by one. `run` runs a plan;
 * `enough` says when it has taken long enough.
 */
export async function shrink(
  plan: Plan,
  found: Outcome,
  run: (plan: Plan) => Promise<Outcome>,
  enough: () => boolean,
): Promise<Plan> {
  const oracle = found.violation?.oracle;
  let steps = plan.steps.slice(0, found.step + 1);
  let size = Math.ceil(steps.length / 2);
  while (size >= 1 && !enough()) {
    let shorter = false;
    for (let at = 0; at < steps.length && !enough();) {
      const fewer: PlannedStep[] = [...steps.slice(0, at), ...steps.slice(at + size)];
      const outcome = await run({ ...plan, steps: fewer });
      if (outcome.violation?.oracle === oracle) {
        steps = fewer.slice(0, outcome.step + 1);
        shorter = true;
      } else at += size;
    }
    size = shorter && size === 1 ? 1 : size === 1 ? 0 : Math.ceil(size / 2);
  }
  return { ...plan, steps };
}
