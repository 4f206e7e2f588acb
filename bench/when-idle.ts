import type { ManagedProcess } from '../hack/managed-process.ts';
import { until } from '../hack/until.ts';

/** What a program at rest may use in a second. */
const IDLE_CPU_SECONDS = 0.05;

/** Waits until a program does next to nothing, so that requests it still wants to make are counted too. */
export async function whenIdle(program: ManagedProcess, timeoutMs = 30_000): Promise<void> {
  let before = Number.NaN;
  await until(
    `${program.spec.name} has nothing more to do`,
    () => {
      const now = program.usage()?.cpuSeconds ?? Number.NaN;
      const idle = now - before < IDLE_CPU_SECONDS;
      before = now;
      return idle;
    },
    { intervalMs: 1_000, timeoutMs },
  );
}
