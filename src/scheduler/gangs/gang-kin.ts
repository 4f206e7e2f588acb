import { GANG_PLACED_ANNOTATION } from '../../api/marks.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { controllerOf } from '../../kube/owner-references.ts';

/**
 * How many pods succeeded of the very gang that `pods` are of. `finished` have its name, but may be of a former one, such as
 * last night's Job of a CronJob. Of the same gang are pods that have a controller in common, or got their place in the same moment,
 * with each other or by way of others that finished.
 */
export function succeededKin(pods: readonly Pod[], finished: readonly Pod[]): number {
  const traces = new Set(pods.flatMap(tracesOf));
  let strangers = finished;
  let succeeded = 0;
  for (;;) {
    const kin = strangers.filter((pod) => tracesOf(pod).some((trace) => traces.has(trace)));
    if (kin.length === 0) return succeeded;
    const found = new Set(kin);
    strangers = strangers.filter((pod) => !found.has(pod));
    succeeded += kin.filter(({ status }) => status?.phase === 'Succeeded').length;
    for (const trace of kin.flatMap(tracesOf)) traces.add(trace);
  }
}

/** What pods of one gang have in common. */
function tracesOf({ metadata }: Pod): string[] {
  const controller = controllerOf({ metadata })?.uid;
  const placed = metadata.annotations?.[GANG_PLACED_ANNOTATION];
  return [
    ...(controller === undefined ? [] : [`controller ${controller}`]),
    ...(placed === undefined ? [] : [`placed ${placed}`]),
  ];
}
