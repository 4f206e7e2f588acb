import type { NotReady } from './readiness.ts';

/** What a pod is told that waits for a claim. Reasons are API, see docs/reference/events.md. */
const say = (reason: string, message: string): NotReady => ({ ready: false, reason, message, pending: false });

/** `problem`: what has kept it from being prepared so far. */
export function claimPending(name: string, problem: string | undefined): NotReady {
  const message = `Claim "${name}" is being prepared${problem === undefined ? '' : `: ${problem}`}. The pod starts by itself when it is there.`;
  return { ...say('ClaimPending', message), pending: problem === undefined };
}

export function claimNotFound(name: string, namespace: string, ephemeral: boolean): NotReady {
  const message = `Claim "${name}", which the pod uses, does not exist in namespace "${namespace}". The pod starts by itself when it is created.`;
  return { ...say('ClaimNotFound', message), pending: ephemeral };
}

export function claimNotOwned(name: string): NotReady {
  const message = `Claim "${name}" was not made for this pod, as the claim of a generic ephemeral volume has to be. This does not pass by itself. Remove it, or rename the pod or the volume.`;
  return say('ClaimNotOwned', message);
}

export function claimLost(name: string, member: string, namespace: string, how: 'lost' | 'leaving'): NotReady {
  const what = how === 'lost' ? 'is not there any more' : 'is being deleted there';
  const message =
    `The data of claim "${name}" were in namespace "${namespace}" of cluster "${member}", and the claim ${what}, though not by this host. ` +
    'No empty volume takes its place. This does not pass by itself. Delete the claim here to start anew, after its data have been saved if they can be.';
  return say('ClaimLost', message);
}

export function claimTaken(name: string, member: string, namespace: string, former: boolean): NotReady {
  const whose = former ? 'holds the data of a former claim of this host' : 'does not belong to this host';
  const message = `Cluster "${member}" already has a claim "${name}" in namespace "${namespace}" that ${whose}. It is left alone; the pod starts by itself when that one is gone.`;
  return say('ClaimNameTaken', message);
}

export function claimNotCreated(name: string, member: string, problem: string): NotReady {
  const message = `Claim "${name}" could not be brought to cluster "${member}": ${problem}. It is tried again by itself.`;
  return say('ClaimNotCreated', message);
}
