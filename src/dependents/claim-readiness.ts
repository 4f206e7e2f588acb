import type { ClaimState } from './claim-decision.ts';
import { MEMBER_CLAIM_ANNOTATION } from '../api/member-volume.ts';
import type { NotReady, Readiness } from './readiness.ts';

/** What keeps a step for a claim from being done. `taken`: somebody else's claim has its name in the member. */
export type ClaimFailure = { taken: true } | { problem: string };

interface ClaimPlace {
  /** Of the claim, in both clusters. */
  name: string;
  member: string;
  /** In the member. */
  namespace: string;
}

/** What a pod is told that waits for a claim. Reasons are API, see docs/reference/events.md. */
const say = (reason: string, message: string): NotReady => ({ ready: false, reason, message, pending: false });

/** What pods that use the claim are told. `volume`: name of its volume in the host. Pure. */
export function claimReadiness(
  state: ClaimState,
  place: ClaimPlace,
  volume: string,
  failure: ClaimFailure | undefined,
): Readiness {
  const problem = failure !== undefined && 'problem' in failure ? failure.problem : undefined;
  switch (state.is) {
    case 'ready':
      return { ready: true };
    case 'refused':
      return { ready: false, pending: false, ...state.refusal };
    case 'unknown':
      return claimUnknown(place, state.problem ?? problem);
    case 'lost':
      return claimLost(place, volume, state.replaced);
    case 'leaving':
      return claimTerminating(place);
    case 'former':
      return claimTaken(place, true);
    case 'pending':
      if (failure !== undefined && 'taken' in failure) return claimTaken(place, false);
      return problem === undefined ? claimPending(place.name, undefined) : claimNotCreated(place, problem);
  }
}

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
  const message = `Claim "${name}" was not made for this pod, as the claim of a generic ephemeral volume has to be. This does not pass by itself. Rename the pod or the volume, or remove the claim if nobody needs its data.`;
  return say('ClaimNotOwned', message);
}

/** `problem`: what keeps that from being known. Nobody is to take its data for lost meanwhile. */
function claimUnknown({ name, member, namespace }: ClaimPlace, problem: string | undefined): NotReady {
  const message =
    `Whether claim "${name}" is in namespace "${namespace}" of cluster "${member}" is not known` +
    `${problem === undefined ? '' : `: ${problem}`}. That says nothing about its data, so keep the claim. It is asked again by itself, and the pod starts when it is known.`;
  return { ...say('ClaimPending', message), pending: problem === undefined };
}

function claimLost({ name, member, namespace }: ClaimPlace, volume: string, replaced: boolean): NotReady {
  const were = `The data of claim "${name}" were in namespace "${namespace}" of cluster "${member}"`;
  const message = replaced
    ? `${were}. The claim that held them is gone, though not by this host, and another one has its name. That one is not used, as nobody here knows whether it has the data. ` +
      `This does not pass by itself. If it has them, as after a restore, remove annotation ${MEMBER_CLAIM_ANNOTATION} from PersistentVolume ${volume} here (docs/concepts/storage.md); ` +
      'only if it has not, delete both claims to start anew.'
    : `${were}, and the claim is not there any more, though not by this host. No empty volume takes its place. This does not pass by itself. ` +
      'Save there what can be saved, such as a volume that was kept; then delete the claim here to start anew.';
  return say('ClaimLost', message);
}

function claimTerminating({ name, member, namespace }: ClaimPlace): NotReady {
  const message =
    `The claim that holds the data of claim "${name}" is being deleted in namespace "${namespace}" of cluster "${member}", though not by this host. ` +
    'That cannot be undone: save the data there while they are there. Pods wait, and no empty volume takes its place.';
  return say('ClaimTerminating', message);
}

function claimTaken({ name, member, namespace }: ClaimPlace, former: boolean): NotReady {
  const whose = former ? 'holds the data of a former claim of this host' : 'does not belong to this host';
  const message = `Cluster "${member}" already has a claim "${name}" in namespace "${namespace}" that ${whose}. It is left alone; the pod starts by itself when that one is gone.`;
  return say('ClaimNameTaken', message);
}

function claimNotCreated({ name, member }: ClaimPlace, problem: string): NotReady {
  const message = `Claim "${name}" could not be brought to cluster "${member}": ${problem}. It is tried again by itself.`;
  return say('ClaimNotCreated', message);
}
