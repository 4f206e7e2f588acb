import { memberOfNode } from '../../api/provider-id.ts';
import { conditionOf } from '../../kube/conditions.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { clusterOf, localCluster } from '../../api/cluster.ts';
import { age } from '../age.ts';
import type { PlaceWords, Step } from './explanation.ts';
import { namesItsNode } from './named-node.ts';
import type { PodFacts } from './pod-facts.ts';
import { sourceInWords, whyNotChosen, type KnownRules } from './rules-step.ts';
import { schedulerWords } from './scheduler-words.ts';

const SCHEDULING = 'guides/scheduling.md';
const ASKS = `${SCHEDULING}#whether-anybody-asks`;
const DEFAULT_SCHEDULER = 'default-scheduler';
/** A scheduler that has not looked at a pod for so long does not run, or is very busy, in ms. */
const LATE_MS = 15_000;
/** A WorkloadPlacement is written at most every ten seconds, so it is missed only later, in ms. */
const WRITTEN_BY_MS = 30_000;

/** What the scheduler of this cluster did, or what it lacks. @param places why each cluster does not take the pod */
export function schedulerStep(facts: PodFacts, known: KnownRules, places: readonly PlaceWords[]): Step {
  const { pod, now } = facts;
  const { nodeName, schedulingGates = [], schedulerName = DEFAULT_SCHEDULER } = pod.spec;
  const by = 'host scheduler';
  if (nodeName !== undefined && nodeName !== '') return boundStep(facts, known, nodeName);
  if (schedulingGates.length > 0)
    return { by, state: 'next', says: `${schedulerName} looks at it when its gates are gone.` };
  const scheduled = conditionOf(pod, 'PodScheduled');
  const waitedMs = now - Date.parse(pod.metadata.creationTimestamp ?? '');
  if (scheduled?.status !== 'False') {
    const late = waitedMs > LATE_MS;
    return {
      by,
      state: late ? 'failed' : 'waits',
      says: `No scheduler has said anything of it${late ? ` in ${age(waitedMs)}: is ${schedulerName} running?` : ' yet.'}`,
      ...(late ? { help: `see that a scheduler named ${schedulerName} runs in this cluster`, page: SCHEDULING } : {}),
    };
  }
  const { own, clusters } = schedulerWords(scheduled.message ?? '');
  const reasons = own.length === 0 ? '' : ` Of nodes themselves it says: ${own.join(', ')}.`;
  const unwired = whyNotAsked(facts, known);
  const notKnown = unwired === undefined && clusters.length === 0 ? whyNotKnown(facts, known) : undefined;
  const inClusters = `${notKnown === undefined ? '' : ` ${notKnown.says}`} It looks again by itself when something changes.${places.length === 0 ? '' : ' Cluster by cluster:'}`;
  return {
    by,
    state: 'waits',
    says: `${schedulerName} has found no node for it.${reasons}${unwired === undefined ? inClusters : ` ${unwired.says}`}`,
    ...(unwired === undefined ? {} : { help: unwired.help, page: SCHEDULING }),
    ...(notKnown === undefined ? {} : { help: notKnown.help, page: ASKS }),
  };
}

/** Signs that the scheduler of a pod with rules does not ask Spillway; undefined: there are none. */
function whyNotAsked(facts: PodFacts, { source }: KnownRules): { says: string; help: string } | undefined {
  const { pod, placement, schedulerAnswers, now } = facts;
  if (source === undefined) return undefined;
  const { schedulerName = DEFAULT_SCHEDULER, nodeName } = pod.spec;
  if (schedulerAnswers === false) {
    return {
      says: `${source.kind} ${source.name} has no effect: no manager with component scheduler runs, so nobody tells ${schedulerName} what it says.`,
      help: 'run the manager with components: [members, scheduler], and let the scheduler ask it',
    };
  }
  // Of a pod without a controller nothing is ever written.
  if (placement !== null || isAlone(facts) || !isOldEnough(pod, now)) return undefined;
  // Who was asked about one of its pods has written so.
  const isBound = nodeName !== undefined;
  return {
    says: `${source.kind} ${source.name} ${isBound ? 'had' : 'has'} no effect on it: ${schedulerName} has not asked Spillway about this workload.`,
    help: `let ${schedulerName} ask Spillway: it needs the extender in its configuration`,
  };
}

/** Of a pod with rules whose scheduler has said nothing that is of Spillway: its own checks may have left no node to ask about, or it does not ask. */
function whyNotKnown(facts: PodFacts, { source }: KnownRules): { says: string; help: string } | undefined {
  const { schedulerName = DEFAULT_SCHEDULER } = facts.pod.spec;
  if (source === undefined || !isAlone(facts) || !isOldEnough(facts.pod, facts.now)) return undefined;
  return {
    says: `Whether ${schedulerName} asks Spillway about it cannot be seen, as nothing is written of pods without a controller.`,
    help: `see that ${schedulerName} is a scheduler that asks Spillway: column Effective of kubectl get placementpolicies -A says whether any does`,
  };
}

function isOldEnough({ metadata }: Pod, now: number): boolean {
  return now - Date.parse(metadata.creationTimestamp ?? '') >= WRITTEN_BY_MS;
}

/** Whether the pod has no controller. */
function isAlone({ chain }: Pick<PodFacts, 'chain'>): boolean {
  return chain.length === 1;
}

function boundStep(facts: PodFacts, known: KnownRules, nodeName: string): Step {
  const { nodes, members, pod } = facts;
  const member = memberOf(facts, nodeName);
  const { schedulerName = DEFAULT_SCHEDULER } = pod.spec;
  const by = 'host scheduler';
  const where =
    member === undefined
      ? nodes === undefined
        ? `node ${nodeName}`
        : `node ${nodeName} of this cluster itself`
      : `virtual node ${nodeName}, which stands for member ${member}`;
  if (namesItsNode(pod)) return namedStep(known, where, member);
  const says = `${schedulerName} bound it to ${where}.`;
  const unwired = whyNotAsked(facts, known);
  if (unwired !== undefined)
    return { by, state: 'ok', says: `${says} ${unwired.says}`, help: unwired.help, page: SCHEDULING };
  const found = members?.find(({ metadata }) => metadata.name === member);
  const isLocal = member === undefined && nodes !== undefined;
  const cluster = found === undefined ? (isLocal ? localCluster() : undefined) : clusterOf(found);
  const against =
    cluster === undefined || known.rules === undefined ? undefined : whyNotChosen(known.rules.placement, cluster);
  if (against !== undefined) {
    return {
      by,
      state: 'ok',
      says: `${says} By its policy it would not go there now (${against}): the policy was changed since, or ${schedulerName} did not ask Spillway.`,
      help: isAlone(facts)
        ? 'nobody makes a pod without a controller anew, so nothing moves it: delete it, and make it again, if it is to go elsewhere'
        : 'a change of a policy moves nothing that runs, unless failover.activation is Eager: delete the pod if it is to go elsewhere',
      page: isAlone(facts) ? ASKS : 'concepts/placement.md',
    };
  }
  const decision = facts.placement?.status?.lastDecision;
  const words = decision === undefined || decision.cluster !== (member ?? 'local') ? '' : ` ${decided(decision)}`;
  return { by, state: 'ok', says: `${says}${words}` };
}

/** Of a pod that chose its node itself. */
function namedStep({ source }: KnownRules, where: string, member: string | undefined): Step {
  const unheeded = source === undefined ? '' : ` ${sourceInWords(source)} had no effect on it.`;
  const says = `It was made with spec.nodeName, for ${where}: no scheduler was asked, and nobody looked whether it has room there.${unheeded}`;
  const isOurs = source !== undefined || member !== undefined;
  const help =
    'leave spec.nodeName out, and make the pod anew, to have a scheduler choose its node; for a certain virtual node there is node selector spillway.dev/node';
  return { by: 'host scheduler', state: 'ok', says, ...(isOurs ? { help, page: SCHEDULING } : {}) };
}

function decided({ time, message }: { time: string; message: string }): string {
  return `What was last decided for a pod of this workload, at ${time}: ${message}.`;
}

/** The member that a node stands for; undefined: a real node, or not known. */
export function memberOf(
  { nodes, members }: Pick<PodFacts, 'nodes' | 'members'>,
  nodeName: string,
): string | undefined {
  const node = nodes?.find(({ metadata }) => metadata.name === nodeName);
  if (node !== undefined) return memberOfNode(node);
  if (nodes !== undefined) return undefined;
  return members?.find(({ metadata: { name } }) => name === nodeName || nodeName.startsWith(`${name}-`))?.metadata.name;
}
