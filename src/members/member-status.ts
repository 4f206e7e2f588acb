import { CONFIRM_DELETIONS_ANNOTATION, CONFIRM_IDENTITY_ANNOTATION, OUT_OF_SERVICE_TAINT } from '../api/marks.ts';
import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import { capitalized } from '../kube/capitalized.ts';
import { cleanText } from '../kube/clean-text.ts';
import { AFTER_LIMIT } from '../kube/limit-error.ts';
import { someOf } from '../kube/some-of.ts';
import { no, unknown, yes, type Condition, type Finding } from './condition-finding.ts';
import { credentialsValid, type CredentialsFacts } from './credentials-finding.ts';
import type { FencingFinding } from './member-fencing.ts';
import { deletionToken, type KeptDeletions } from './kept-deletions.ts';
import type { PodSecurityFinding } from './pod-security.ts';
import type { Reachability } from './reachability.ts';
import { retirementAdvice, retirementInWords, type RetiringNode } from './retiring-node.ts';

export const REACHABLE = 'Reachable';
export const IDENTITY_PINNED = 'IdentityPinned';
export const DELETIONS_ALLOWED = 'DeletionsAllowed';
export const SERVICES_MIRRORED = 'ServicesMirrored';
export const SERVICES_EXCHANGED = 'ServicesExchanged';
export const BUDGETS_MIRRORED = 'BudgetsMirrored';
/** Parts of it may be words of the member. */
const MAX_MESSAGE_BYTES = 2_048;
const MAX_NAME_BYTES = 600;

/** One that was never reached offers nothing and runs nothing; nor does one without nodes. */
const NO_ROOM = { cpu: '0', memory: '0' };
const NO_PODS = { running: 0, pending: 0, total: 0 };

export interface Refusal {
  reason: string;
  message: string;
}

/** `open`: what would settle it is under way since who acts for the member began, and usually does within a second. */
export interface Hindrance extends Refusal {
  open?: boolean;
}

/** Whether PodDisruptionBudgets of the host hold for evictions made in the member. */
export interface BudgetsFinding extends Refusal {
  status: 'True' | 'False';
}

/** Whether Services of the host stand in the member. */
export interface ServicesFinding extends Refusal {
  status: 'True' | 'False';
}

/** Whether Services that clusters export are exchanged with the member. */
export interface ExchangeFinding extends Refusal {
  status: 'True' | 'False';
}

/** What keeps a MemberCluster that somebody deleted. */
export interface LeavingFinding extends Refusal {
  pods: number;
  copies: number;
  claims: number;
  mayRemain?: readonly string[];
  /** Nothing does. */
  done: boolean;
}

/** All that is known about a member when its status is written. */
export interface MemberFacts {
  /** Name of the MemberCluster. */
  name: string;
  generation: number | undefined;
  /** What is wrong with the spec, by field. */
  problems: readonly string[];
  /** Why some of it cannot be served as the spec wants it, such as a virtual node whose name somebody else has. */
  conflict: Hindrance | undefined;
  credentials: CredentialsFacts;
  /** resourceVersion of the Secret by which the member was asked. Undefined until it was. */
  credentialsVersion?: string | undefined;
  reachability: Reachability;
  /** Identity at first contact, and as last seen. */
  pinned: string | undefined;
  observed: string | undefined;
  /** Set when the member is the host itself. */
  isHost: boolean;
  synced: boolean;
  cacheProblem: string | undefined;
  /** Which limit of memory what the member sends has met, in words. */
  cacheLimit?: string | undefined;
  /** What of the member is left out because it is no valid object, in words. */
  leftOut?: string | undefined;
  version: string | undefined;
  allocatable: MemberClusterStatus['allocatable'] | undefined;
  room: Pick<MemberClusterStatus, 'largestFreeSlot' | 'fits'> | undefined;
  pods: MemberClusterStatus['pods'] | undefined;
  /** Names of its virtual nodes that real nodes have. Undefined while nothing runs for the member. */
  takenNames?: readonly string[] | undefined;
  /** Undefined while nothing runs for the member, or not all of it: then what was said before stays. */
  keptDeletions: KeptDeletions | undefined;
  /** Virtual nodes that the spec does not want any more. Undefined while nothing runs for the member. */
  retiring: readonly RetiringNode[] | undefined;
  /** Undefined while there is nothing to say. */
  budgets?: BudgetsFinding | undefined;
  /** The same. */
  services?: ServicesFinding | undefined;
  /** The same. */
  exchange?: ExchangeFinding | undefined;
  podSecurity?: PodSecurityFinding | undefined;
  /** Virtual nodes that an administrator has taken out of service; undefined while it is not known. */
  fencing?: FencingFinding | undefined;
  /** Other MemberClusters that stand for the same cluster. */
  sharedWith?: readonly string[] | undefined;
  /** Why its pods are not moved although it is lost, if that is so; undefined while it is not known. */
  movesPaused?: { why: string | undefined } | undefined;
  /** Set when it was deleted. */
  leaving?: LeavingFinding | undefined;
}

/**
 * The status to be written. What is not known at present (version, figures) stays as it was; conditions of others stay;
 * `lastTransitionTime` moves only with `status`. Pure; `now` is RFC 3339.
 */
export function memberStatus(
  previous: MemberClusterStatus | undefined,
  facts: MemberFacts,
  now: string,
): MemberClusterStatus {
  const before = previous?.conditions ?? [];
  const found = [
    credentialsValid(facts, Date.parse(now)),
    reachable(facts, before, now),
    identityPinned(facts),
    capacityFresh(facts),
  ];
  const parts = found.map((part) => asBefore(part, before, facts) ?? part);
  const allowed = facts.keptDeletions === undefined ? [] : [deletionsAllowed(facts.name, facts.keptDeletions)];
  const findings = [
    ready(facts, parts, before),
    ...parts,
    ...allowed,
    ...nodesRetired(facts, before),
    ...budgetsMirrored(facts, before),
    ...(facts.services === undefined ? [] : [{ type: SERVICES_MIRRORED, ...facts.services }]),
    ...(facts.exchange === undefined ? [] : [{ type: SERVICES_EXCHANGED, ...facts.exchange }]),
    ...podSecuritySet(facts, before),
    ...outOfService(facts, before),
    ...clusterUnique(facts, before),
    ...movesAllowed(facts, before),
    ...leaves(facts),
  ];
  const own = new Set(findings.map(({ type }) => type));
  const conditions = findings.map((finding): Condition => {
    const old = before.find(({ type }) => type === finding.type);
    return {
      ...finding,
      message: cleanText(finding.message, MAX_MESSAGE_BYTES),
      ...(facts.generation === undefined ? {} : { observedGeneration: facts.generation }),
      lastTransitionTime: sinceWhen(finding, old, now),
    };
  });
  const { takenNames: takenBefore = [], ...rest } = previous ?? {};
  const takenNames = facts.takenNames ?? takenBefore;
  return {
    ...rest,
    ...(takenNames.length === 0 ? {} : { takenNames: [...takenNames] }),
    ...(facts.generation === undefined ? {} : { observedGeneration: facts.generation }),
    conditions: [...conditions, ...before.filter(({ type }) => !own.has(type))],
    ...(facts.version === undefined ? {} : { version: facts.version }),
    ...(facts.pinned === undefined ? {} : { identity: facts.pinned }),
    ...(facts.credentialsVersion === undefined ? {} : { credentialsVersion: facts.credentialsVersion }),
    allocatable: { ...NO_ROOM, ...(facts.allocatable ?? previous?.allocatable) },
    ...facts.room,
    pods: facts.pods ?? previous?.pods ?? NO_PODS,
    ...leavingFigures(facts),
  };
}

/**
 * What the process before said of a member, while this one has not found out anything itself: it has not been asked yet, or
 * nodes and pods are being listed anew. Who acts for a member may change at any time, and that is no outage.
 */
function asBefore(part: Finding, before: readonly Condition[], facts: MemberFacts): Finding | undefined {
  const { reachability, credentials } = facts;
  const old = before.find(({ type }) => type === part.type);
  const notAsked = reachability.reachable === undefined && credentials.state !== 'refused';
  const isListing = reachability.reachable === true && part.status === 'Unknown' && old?.status === 'True';
  if (old === undefined || !(notAsked || isListing)) return undefined;
  const { type, status, reason, message } = old;
  return { type, status, reason, message };
}

function sinceWhen({ status }: Finding, old: Condition | undefined, now: string): string {
  return old?.status === status ? old.lastTransitionTime : now;
}

/**
 * The time in the words is that of the condition, which Events of the descheduler name, too: an outage has one beginning, whoever tells of it, and
 * keeps it when another process takes over. The first probe that failed was a little earlier.
 */
function reachable({ reachability }: MemberFacts, before: readonly Condition[], now: string): Finding {
  const type = REACHABLE;
  const { reachable: state, failure } = reachability;
  if (state === true) return yes(type, 'ProbeSucceeded', 'The API server answers.');
  if (state === undefined || failure === undefined)
    return unknown(type, 'NotProbed', 'The API server has not been asked yet.');
  const found = no(type, failure.reason, failure.message);
  const since = sinceWhen(
    found,
    before.find((one) => one.type === type),
    now,
  );
  return { ...found, message: `${failure.message} Not reachable since ${since}.` };
}

function identityPinned({ name, pinned, observed, isHost }: MemberFacts): Finding {
  const type = IDENTITY_PINNED;
  if (isHost)
    return no(
      type,
      'MemberIsHost',
      'The kubeconfig leads back to this cluster itself, which cannot be its own member.',
    );
  if (pinned === undefined) return unknown(type, 'NotContacted', 'The member has not answered yet.');
  if (observed === undefined || observed === pinned) return yes(type, 'Pinned', `The member is the cluster ${pinned}.`);
  return no(
    type,
    'IdentityChanged',
    `Cluster ${observed} answers in the place of ${pinned}. Nothing is written to it. If this is meant to be, run: ` +
      `kubectl annotate --overwrite membercluster ${name} ${CONFIRM_IDENTITY_ANNOTATION}=${observed}`,
  );
}

/** Not part of Ready: new pods are welcome meanwhile. */
function deletionsAllowed(name: string, { uids, open, hostWentBack }: KeptDeletions): Finding {
  const type = DELETIONS_ALLOWED;
  if (!open && uids.length === 0) return yes(type, 'NothingKept', 'No pod is kept that should have been deleted.');
  const pods = uids.length === 1 ? '1 pod is' : `${uids.length} pods are`;
  const why = hostWentBack
    ? 'The host cluster shows an older state than before, as after a restore from a backup'
    : 'Host pods vanished in numbers, and nobody saw them being deleted';
  const how =
    uids.length === 0
      ? 'None is kept at present; deletions are allowed again after 5 minutes without one.'
      : `If they are to be deleted, run: kubectl annotate --overwrite membercluster ${name} ` +
        `${CONFIRM_DELETIONS_ANNOTATION}=${deletionToken(uids)}`;
  const reason = open ? 'DeletionBreakerOpen' : 'HostWentBack';
  return no(type, reason, `${why}. ${pods} kept in the member. ${how}`);
}

/** Said once there is something to say. Not part of Ready: the nodes that are wanted work. */
function nodesRetired({ retiring }: MemberFacts, before: readonly Condition[]): Finding[] {
  const type = 'NodesRetired';
  const [first] = retiring ?? [];
  if (first !== undefined) {
    const all = retiring ?? [];
    const words = all.map((one) => `${retirementInWords(one)}.`).join(' ');
    return [no(type, 'PodsRemain', `${words} ${retirementAdvice(all)}`)];
  }
  const isSaid = before.some((one) => one.type === type);
  if (!isSaid || retiring === undefined) return [];
  return [yes(type, 'NoneLeft', 'All virtual nodes are those of the spec.')];
}

/** Not part of Ready: pods run there all the same. That budgets are ignored, as the spec says, is news only after they were not. */
function budgetsMirrored({ budgets }: MemberFacts, before: readonly Condition[]): Finding[] {
  const type = BUDGETS_MIRRORED;
  if (budgets === undefined) return [];
  const isSaid = before.some((one) => one.type === type);
  return budgets.reason === 'Ignored' && !isSaid ? [] : [{ type, ...budgets }];
}

/** Said once there is something to say. Not part of Ready: pods run there all the same. */
function podSecuritySet({ podSecurity }: MemberFacts, before: readonly Condition[]): Finding[] {
  const type = 'PodSecuritySet';
  if (podSecurity === undefined) return [];
  const isSaid = before.some((one) => one.type === type);
  return podSecurity.reason === 'LevelsSet' && !isSaid ? [] : [{ type, ...podSecurity }];
}

/** Said once there is something to say. Not part of Ready: it works, but not as somebody may expect. */
function clusterUnique({ sharedWith = [] }: MemberFacts, before: readonly Condition[]): Finding[] {
  const type = 'ClusterUnique';
  if (sharedWith.length > 0) {
    const [names, verb] = sharedWith.length === 1 ? ['MemberCluster', 'stands'] : ['MemberClusters', 'stand'];
    return [
      no(
        type,
        'SharedCluster',
        `${names} ${sharedWith.join(', ')} ${verb} for the same cluster. Each counts what the other one runs as taken by others, and copies of ConfigMaps and ` +
          'Secrets are shared. If that is not meant, delete one of them; node pools of one cluster are virtualNodes of one MemberCluster.',
      ),
    ];
  }
  const isSaid = before.some((one) => one.type === type);
  return isSaid ? [yes(type, 'Unique', 'No other MemberCluster stands for this cluster.')] : [];
}

/** Said once there is something to say. Not part of Ready: a member that does not answer is not Ready for that. */
function movesAllowed({ name, movesPaused }: MemberFacts, before: readonly Condition[]): Finding[] {
  const type = 'MovesAllowed';
  if (movesPaused === undefined) return [];
  const { why } = movesPaused;
  if (why !== undefined) {
    const taint = `{"spec":{"clusterTaints":[{"key":"gone","effect":"NoExecute"}]}}`;
    const how = `If it is gone for good, have its pods moved all the same (this replaces the list of taints): kubectl patch membercluster ${name} --type=merge -p '${taint}'`;
    return [no(type, 'MovesPaused', `${capitalized(why)}. It goes on by itself when enough members answer. ${how}`)];
  }
  const isSaid = before.some((one) => one.type === type);
  return isSaid
    ? [yes(type, 'NotPaused', 'The member is not lost, or enough others answer for its pods to be moved.')]
    : [];
}

/** Said once there is something to say. Not part of Ready: a member that does not answer is not Ready for that. */
function outOfService({ fencing }: MemberFacts, before: readonly Condition[]): Finding[] {
  const type = 'OutOfService';
  if (fencing === undefined) return [];
  const { fenced, refused, pods, notEnded } = fencing;
  const ended =
    pods === 0
      ? ''
      : ` ${pods === 1 ? '1 pod that was' : `${pods} pods that were`} ended there may come back with the member, and would be ended first.`;
  if (fenced.length > 0) {
    const words = `By the word of an administrator nothing runs on ${fenced.join(', ')} any more. It counts while the member does not answer.`;
    return [yes(type, 'Fenced', `${words}${ended}`)];
  }
  const running = runOn(notEnded);
  if (refused.length > 0) {
    const how = refused.map((name) => `kubectl taint node ${name} ${OUT_OF_SERVICE_TAINT}-`).join('; ');
    return [
      no(
        type,
        'MemberAnswers',
        `The taint does not count, as the member answered with it. Take it away: ${how}.${running}${ended}`,
      ),
    ];
  }
  if (running !== '')
    return [no(type, 'CopiesNotEnded', `No virtual node is out of service any more.${running}${ended}`)];
  const isSaid = before.some((one) => one.type === type);
  return isSaid ? [no(type, 'InService', `No virtual node is out of service.${ended}`)] : [];
}

function runOn(copies: FencingFinding['notEnded']): string {
  const [first] = copies;
  if (first === undefined) return '';
  const names = copies.map(({ copy }) => copy);
  return (
    ` Of pods that were ended there copies are back and run on, as the member does not let them be deleted: ${someOf(names)} (${first.why}). ` +
    'It is tried again by itself, a minute later at most, and pods of these names wait for it. Delete them there, or mend what refuses it.'
  );
}

function leaves({ leaving }: MemberFacts): Finding[] {
  return leaving === undefined ? [] : [yes('Leaving', leaving.reason, leaving.message)];
}

function leavingFigures({ leaving }: MemberFacts): Pick<MemberClusterStatus, 'leaving'> {
  if (leaving === undefined) return {};
  const { pods, copies, claims, mayRemain } = leaving;
  const named = mayRemain === undefined ? {} : { mayRemain: mayRemain.map((name) => cleanText(name, MAX_NAME_BYTES)) };
  return { leaving: { pods, copies, claims, ...named } };
}

function capacityFresh({ reachability, synced, cacheProblem, cacheLimit, leftOut }: MemberFacts): Finding {
  const type = 'CapacityFresh';
  if (reachability.reachable !== true)
    return no(type, 'MemberUnreachable', 'The figures are those of the last contact.');
  if (cacheLimit !== undefined) {
    return no(type, 'CacheLimit', `${cacheLimit}. ${AFTER_LIMIT}`);
  }
  if (!synced && cacheProblem !== undefined) {
    return no(type, 'CacheProblem', `${cacheProblem}. It is tried again by itself.`);
  }
  if (!synced) return unknown(type, 'Listing', 'Nodes and pods of the member are being listed.');
  if (leftOut !== undefined) {
    return yes(type, 'ObjectsLeftOut', `Nodes and pods of the member are watched, but ${leftOut}.`);
  }
  return yes(type, 'Watching', 'Nodes and pods of the member are watched.');
}

function ready(facts: MemberFacts, parts: readonly Finding[], before: readonly Condition[]): Finding {
  const type = 'Ready';
  const { conflict } = facts;
  const wasReady = before.some((one) => one.type === type && one.status === 'True');
  if (facts.leaving !== undefined)
    return no(
      type,
      'Leaving',
      'The MemberCluster was deleted: no new pods are sent to the member. See condition Leaving.',
    );
  if (facts.problems.length > 0) return no(type, 'InvalidSpec', `${facts.problems.join('; ')}.`);
  if (conflict !== undefined && !(conflict.open === true && wasReady))
    return no(type, conflict.reason, conflict.message);
  // A refused new kubeconfig does not make a member unready that the old one still serves; that it was taken away does at once.
  const { credentials, reachability } = facts;
  const works = reachability.reachable === true && !(credentials.state === 'refused' && !credentials.stillUsed);
  const counted = parts.filter((part) => part.type !== 'CredentialsValid' || !works);
  const bad = counted.find(({ status }) => status === 'False') ?? counted.find(({ status }) => status === 'Unknown');
  if (bad !== undefined) return { type, status: bad.status, reason: bad.reason, message: bad.message };
  return yes(type, 'Ready', 'Pods can be sent to the member.');
}
