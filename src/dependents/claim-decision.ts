import { HOST_UID_ANNOTATION } from '../api/marks.ts';
import type { PersistentVolumeClaim } from '../kube/volumes.ts';
import { compare, parseQuantity } from '../kube/quantity.ts';
import {
  type ClaimHome,
  type ClaimRefusal,
  type HostClaim,
  isChosen,
  refusalOfClaim,
  refusalOfClass,
} from './claim-refusal.ts';
import type { ClaimPlan, ClaimRules } from './claim-overrides.ts';
import { type ClaimReport, reportOf } from './claim-report.ts';
import type { ClaimCopy } from './copy.ts';
import type { Knowledge } from './copy-informers.ts';
import type { MemberVolume } from '../api/member-volume.ts';

/** Everything that decides about one claim of the host in one member. */
export interface ClaimFacts extends HostClaim {
  home: ClaimHome;
  /** The claim of ours that has its place in the member, be it for this claim or a former one. */
  copy: ClaimCopy | undefined;
  /** Whether all of ours in that namespace of the member are known. */
  knowledge: Knowledge;
  /** What the member itself has said, when asked, of the claim that the volume stands for; undefined: nothing yet. */
  answer: ClaimAnswer | undefined;
  /** The namespace of the member where pods that use it go, or the one where a pod is that asks. */
  place: string | undefined;
  /** A pod of the host on a virtual node of the member uses it, which neither is going nor has ended. */
  wanted: boolean;
  /** What override policies make of it, should it be made. */
  plan: () => ClaimPlan;
}

/** The claim is gone. `replaced`: another one has its name. */
export type ClaimAnswer = 'gone' | 'replaced';

export type ClaimAction =
  | { do: 'nothing' }
  /** No volume for it can be in the member: the scheduler is to choose anew. */
  | { do: 'refuse'; refusal: ClaimRefusal }
  /** Make the volume of the host that binds it to the member. */
  | { do: 'bind' }
  /** Make the claim in the member. */
  | { do: 'create'; volume: MemberVolume; rules: ClaimRules | undefined }
  /** What policies make of it, or what is in the member, is not known yet. */
  | { do: 'wait' }
  /** Ask the member itself whether the claim is gone: people are told to give data up for it, so no cache is sure enough. */
  | { do: 'ask'; volume: MemberVolume }
  /** Write on the volume which claim of the member it is, before any pod uses it. */
  | { do: 'note'; volume: MemberVolume; copy: ClaimCopy }
  | { do: 'resize'; copy: ClaimCopy; storage: string | number }
  | { do: 'report'; report: ClaimReport };

/** Where the claim stands for pods that are to use it. */
export type ClaimState =
  | { is: 'ready' }
  | { is: 'pending' }
  | { is: 'refused'; refusal: ClaimRefusal }
  /** Whether it is in the member is not known. */
  | { is: 'unknown'; problem: string | undefined }
  /** It was in the member and is not any more, by the member's own word. `replaced`: another one has its name. */
  | { is: 'lost'; replaced: boolean }
  /** The member's claim is being deleted. */
  | { is: 'leaving' }
  /** The member's claim of that name holds the data of a former claim. */
  | { is: 'former' };

const NOTHING: ClaimAction = { do: 'nothing' };

/** The next step for a claim, one at a time; each leads to another look. Pure. */
export function decideClaim(facts: ClaimFacts): ClaimAction {
  const { claim, volume, home, wanted } = facts;
  if (claim.metadata.deletionTimestamp !== undefined) return NOTHING;
  if (volume === undefined) {
    if ((claim.spec.volumeName ?? '') !== '' || !isChosen(facts, home, wanted)) return NOTHING;
    const refusal = refusalOfClaim(facts, home, facts.place);
    return refusal === undefined ? { do: 'bind' } : { do: 'refuse', refusal };
  }
  if (!isBoundHere(claim, volume, home)) return NOTHING;
  if (!facts.knowledge.known) return { do: 'wait' };
  const copy = copyFor(facts);
  if (volume.claimUid !== undefined && copy?.metadata.uid !== volume.claimUid) {
    return wanted && facts.answer === undefined ? { do: 'ask', volume } : NOTHING;
  }
  if (copy === undefined) {
    if (facts.copy !== undefined || !wanted) return NOTHING;
    const refusal = refusalOfClaim(facts, home, facts.place) ?? refusalOfClass(facts, home);
    return refusal === undefined ? creation(facts.plan(), volume) : NOTHING;
  }
  if (copy.metadata.deletionTimestamp !== undefined) return NOTHING;
  if (volume.claimUid === undefined) return { do: 'note', volume, copy };
  const storage = claim.spec.resources?.requests?.['storage'];
  if (storage !== undefined && !isSame(storage, copy.claim.spec.resources?.requests?.['storage'])) {
    return { do: 'resize', copy, storage };
  }
  const report = reportOf(claim, volume, copy);
  return report === undefined ? NOTHING : { do: 'report', report };
}

/** What a pod that uses the claim is to be told. Pure. */
export function claimState(facts: ClaimFacts): ClaimState {
  const { claim, volume, home, copy: found, knowledge, answer } = facts;
  const refusal = refusalOfClaim(facts, home, facts.place);
  if (refusal !== undefined) return { is: 'refused', refusal };
  if (volume === undefined || !isBoundHere(claim, volume, home)) return { is: 'pending' };
  if (!knowledge.known) return { is: 'unknown', problem: knowledge.problem };
  const copy = copyFor(facts);
  if (volume.claimUid !== undefined && copy?.metadata.uid !== volume.claimUid) {
    if (answer === undefined) return { is: 'unknown', problem: undefined };
    return { is: 'lost', replaced: found !== undefined || answer === 'replaced' };
  }
  if (copy === undefined) {
    if (found !== undefined) return { is: 'former' };
    const refused = refusalOfClass(facts, home) ?? refusalOfPlan(facts.plan());
    return refused === undefined ? { is: 'pending' } : { is: 'refused', refusal: refused };
  }
  if (copy.metadata.deletionTimestamp !== undefined) return { is: 'leaving' };
  return volume.claimUid === undefined ? { is: 'pending' } : { is: 'ready' };
}

/** The member's claim that was found is the one that the host's volume stands for. */
export function isIn(facts: Pick<ClaimFacts, 'claim' | 'volume' | 'home' | 'copy'>): boolean {
  const { claim, volume, home } = facts;
  const copy = copyFor(facts);
  if (volume === undefined || copy === undefined || !isBoundHere(claim, volume, home)) return false;
  return volume.claimUid === undefined || volume.claimUid === copy.metadata.uid;
}

function creation(plan: ClaimPlan, volume: MemberVolume): ClaimAction {
  if (plan === 'unknown') return { do: 'wait' };
  if (plan === 'none') return { do: 'create', volume, rules: undefined };
  return 'refused' in plan ? NOTHING : { do: 'create', volume, rules: plan };
}

function refusalOfPlan(plan: ClaimPlan): ClaimRefusal | undefined {
  return typeof plan === 'object' && 'refused' in plan
    ? { reason: 'OverrideRefused', message: plan.refused }
    : undefined;
}

function isBoundHere(claim: PersistentVolumeClaim, volume: MemberVolume, home: ClaimHome): boolean {
  return (
    claim.spec.volumeName === volume.name &&
    volume.for.uid === claim.metadata.uid &&
    volume.member === home.member &&
    volume.identity === home.identity
  );
}

/** The member's claim, if it was made for exactly this one. */
function copyFor({ claim, copy }: Pick<ClaimFacts, 'claim' | 'copy'>): ClaimCopy | undefined {
  return copy?.metadata.annotations?.[HOST_UID_ANNOTATION] === claim.metadata.uid ? copy : undefined;
}

function isSame(a: string | number, b: string | number | undefined): boolean {
  return b !== undefined && compare(parseQuantity(a), parseQuantity(b)) === 0;
}
