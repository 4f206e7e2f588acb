import { FORCE_LEAVE_ANNOTATION, HOST_LABEL } from '../../api/marks.ts';
import { counted } from '../../kube/counted.ts';
import { someOf } from '../../kube/some-of.ts';
import { undeletedInWords, type UndeletedList } from '../undeleted-in-words.ts';

/** The MemberCluster that leaves. */
export interface Leaver {
  name: string;
  uid: string;
  hostId: string;
  /** An administrator said that it is gone for good. */
  forced: boolean;
  /** That counts only after the member could not be asked for so long without a break. */
  forceAfterSeconds: number;
}

export interface WaitingFacts {
  member: Leaver;
  /** Virtual nodes that are still there. */
  nodes: readonly string[];
  pods: number;
  /** Copies that were told to end, and do not go, by virtual node. */
  undeleted?: readonly UndeletedList[];
  /** Why the member cannot be asked, if it cannot. */
  unreachable: string | undefined;
}

/** Names in the status are cut off with what is said of them, where the way out stands at the end. */
const inShort = (why: string): string => (why.length <= 200 ? why : `${why.slice(0, 199)}…`);

const kubectlGet = (hostId: string): string =>
  `kubectl get namespaces,pods,configmaps,secrets,persistentvolumeclaims,services,endpointslices,poddisruptionbudgets -A -l ${HOST_LABEL}=${hostId}`;

/** What keeps a MemberCluster that was deleted, and what can be done. */
export function waitingForPods({ member, nodes, pods, undeleted = [], unreachable }: WaitingFacts): string {
  const named = undeletedInWords(undeleted);
  const stuck = named === undefined ? '' : ` ${named}`;
  const where = nodes.length === 0 ? '' : ` (virtual node${nodes.length === 1 ? '' : 's'} ${someOf(nodes)})`;
  const what = pods === 0 ? `Its virtual nodes${where} are being removed` : `${counted(pods, 'pod')} are there${where}`;
  const verb = pods === 1 ? what.replace(' are there', ' is there') : what;
  const drain =
    pods === 0 || nodes.length === 0
      ? ''
      : ` They go on running, and no new ones come. To move them: kubectl drain ${nodes.join(' ')} --ignore-daemonsets --delete-emptydir-data, or ` +
        `kubectl spillway leave ${member.name} --mode=drain. To evict none, and wait until they end by themselves: ` +
        `kubectl spillway leave ${member.name} --mode=detach.`;
  return `${verb}.${stuck}${drain}${keep(member)}${giveUp(member, unreachable)}`;
}

export function waitingForClaims(member: Leaver, claims: readonly string[], unreachable: string | undefined): string {
  const are = claims.length === 1 ? 'has its' : 'have their';
  return (
    `${counted(claims.length, 'claim')} of this cluster ${are} data there: ${someOf(claims)}. Delete the claims, and what becomes of the data ` +
    `their reclaim policy says, or move the data first.${keep(member)}${giveUp(member, unreachable)}`
  );
}

export function waitingForCopies(copies: readonly string[]): string {
  return `${counted(copies.length, 'object')} of ours are being removed there: ${someOf(copies)}.`;
}

/** What keeps a claim there whose claim in the host is gone, by the volume that stands for it in the host. */
export function claimWaits(volume: string, why: string): string {
  return `(not deleted so far: ${inShort(why)}; to leave the data there, set the reclaim policy of volume ${volume} here to Retain)`;
}

/** The same when it is waited for no more. */
export function claimStays(volume: string, why: string): string {
  return `(not deleted: ${inShort(why)}; volume ${volume} here stays, too)`;
}

/** Nothing is on its virtual nodes; whether copies are left there cannot be seen. */
export function waitingForMember(member: Leaver, unreachable: string): string {
  return `No pod is there any more, but copies of ConfigMaps, Secrets and Services may be.${keep(member)}${giveUp(member, unreachable)}`;
}

function giveUp({ name, uid, forced, forceAfterSeconds }: Leaver, unreachable: string | undefined): string {
  const early =
    ` Annotation ${FORCE_LEAVE_ANNOTATION} does not count while the member answers; take it off, or it will in the next outage that ` +
    `lasts ${forceAfterSeconds} s.`;
  if (unreachable === undefined) return forced ? early : '';
  const waits = ` The member cannot be asked (${unreachable}), and is waited for.`;
  const counts = `once it could not be asked for ${forceAfterSeconds} s without a break`;
  if (forced)
    return `${waits} Annotation ${FORCE_LEAVE_ANNOTATION} counts ${counts}; a restart of Spillway begins that anew.`;
  return (
    `${waits} If it is gone for good, and nothing of it runs any more, say so, which counts ${counts}: ` +
    `kubectl spillway leave ${name} --mode=force, or kubectl annotate --overwrite membercluster ${name} ${FORCE_LEAVE_ANNOTATION}=${uid}`
  );
}

/** A deletion cannot be taken back, but nothing of the member is lost by it yet. */
function keep({ name }: Leaver): string {
  return (
    ` To keep the member after all, save the MemberCluster to a file, let it go by kubectl patch membercluster ${name} --type=merge -p ` +
    `'{"metadata":{"finalizers":null}}' and apply the file within half a minute: pods that run are not touched.`
  );
}

/** It has gone. `stays`: what is left there on purpose; `unseen`: where nobody could look. */
export function gone(stays: readonly string[], unseen: readonly string[]): string {
  const where = unseen.length === 0 ? '' : ' where Spillway may look';
  const all = `The member has left: no virtual node, pod, copy of a ConfigMap, Secret or Service, or disruption budget of it is left${where}.`;
  const may = unseen.length === 0 ? '' : ` What may remain there: ${someOf(unseen)}.`;
  return `${all}${may}${stays.length === 0 ? '' : ` What stays there: ${someOf(stays)}.`}`;
}

/** It was given up. */
export function givenUp({ hostId }: Leaver, names: readonly string[]): string {
  const known =
    names.length === 0
      ? 'Nothing is known to be left there, but it could not be asked.'
      : `${counted(names.length, 'object')} may remain there, as the following Events and the log name them.`;
  return `The member was given up. ${known} To find what there is, run there: ${kubectlGet(hostId)}`;
}
