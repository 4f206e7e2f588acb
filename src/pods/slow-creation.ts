import { systemTimers } from '../kube/timers.ts';
import type { Hold } from './hold.ts';

/** A creation that is open for so long is told of, in ms: users see within 5 s why a pod does not start. */
export const SLOW_CREATION_MS = 4_000;

/** What is said meanwhile. Kubernetes waits 10 s for a webhook unless told otherwise, and we wait 30 s for an answer. */
export function slowCreation(member: string): Hold {
  return {
    reason: 'MemberUnavailable',
    message: `Cluster "${member}" has not answered the creation of the pod for ${SLOW_CREATION_MS / 1000} s: its API server, or a webhook there, is slow. This is transient; the pod starts by itself as soon as there is an answer.`,
  };
}

/**
 * What `work` comes to. If it takes longer than {@link SLOW_CREATION_MS}, `tell` is called once, beside it. It must not
 * reject, and has ended when this returns, so that nothing is written after what follows from the work.
 */
export async function tellIfSlow<T>(work: Promise<T>, tell: () => Promise<void>): Promise<T> {
  let told: Promise<void> | undefined;
  const cancel = systemTimers.start(() => {
    told = tell();
  }, SLOW_CREATION_MS);
  try {
    return await work;
  } finally {
    cancel();
    await told;
  }
}
