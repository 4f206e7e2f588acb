import { MIRRORED_CONDITION } from '../../api/marks.ts';
import { isFinished } from '../../api/pod-phase.ts';
import { isUnreadyByMember } from '../../api/unreachable.ts';
import { capitalized } from '../../kube/capitalized.ts';
import { conditionOf } from '../../kube/conditions.ts';
import { REACHABLE_CONDITION } from '../../nodes/node-marks.ts';
import { wordsOf } from '../../pods/creation-intent.ts';
import { MEMBER_SCHEDULED_CONDITION } from '../../pods/host-status.ts';
import type { ContainerStatus, Pod } from '../../kube/core-v1.ts';
import type { Advice, Step } from './explanation.ts';
import { memberTrouble } from './member-trouble.ts';
import { eventOf, type PodFacts } from './pod-facts.ts';
import { REASON_HELP } from './reason-help.ts';
import { sentence } from './sentence.ts';

const NODES = 'concepts/virtual-nodes.md';

/** What became of a pod that is bound to a virtual node of `member`: handed over, given a node there, run. */
export function memberSteps(facts: PodFacts, nodeName: string, member: string): Step[] {
  const handed = handover(facts, nodeName, member);
  if (handed.state !== 'ok') {
    const mirrored = conditionOf(facts.pod, MIRRORED_CONDITION)?.status ?? 'False';
    if (mirrored !== 'False') {
      const is = mirrored === 'True' ? 'It was made there' : 'It may be there';
      return [
        handed,
        { by: 'member scheduler', state: 'unknown', says: `${is}: what became of it is not known now.` },
        { by: 'kubelet', state: 'unknown', says: 'Whether it runs is not known now.' },
      ];
    }
    return [
      handed,
      { by: 'member scheduler', state: 'next', says: 'The pod is not in the member yet.' },
      { by: 'kubelet', state: 'next', says: 'Nothing was started.' },
    ];
  }
  const scheduled = conditionOf(facts.pod, MEMBER_SCHEDULED_CONDITION);
  if (scheduled?.status === 'False') {
    const { message = 'it has found no node yet', reason = 'Unschedulable' } = scheduled;
    const advice = REASON_HELP.get(`Member${reason}`) ?? REASON_HELP.get('MemberUnschedulable');
    return [
      handed,
      {
        by: 'member scheduler',
        state: 'waits',
        says: `The scheduler of ${member} finds no node for it: ${message}`,
        ...advice,
      },
      { by: 'kubelet', state: 'next', says: 'Nothing was started.' },
    ];
  }
  const scheduler: Step = {
    by: 'member scheduler',
    state: 'ok',
    says: `The scheduler of ${member} gave it a node there.`,
  };
  return [handed, scheduler, kubeletStep(facts, `of ${member}`)];
}

/** Whether Spillway made the pod in the member, and whether the two are still in touch. */
function handover(
  { pod, nodes, now, members, memberServed, events }: PodFacts,
  nodeName: string,
  member: string,
): Step {
  const by = 'Spillway';
  const mirrored = conditionOf(pod, MIRRORED_CONDITION);
  const node = nodes?.find(({ metadata }) => metadata.name === nodeName);
  const reachable = node === undefined ? undefined : conditionOf(node, REACHABLE_CONDITION);
  const trouble = memberTrouble(members?.find(({ metadata }) => metadata.name === member));
  const nodeReady = node === undefined ? undefined : conditionOf(node, 'Ready');
  // Kubernetes leaves a condition that says Unknown as it is when the manager is gone: only its Lease tells.
  const isByMember = isUnreadyByMember(nodeReady?.reason) && memberServed !== false;
  const isServed = node === undefined || nodeReady?.status === 'True' || isByMember;
  const unserved = isServed ? '' : ` No manager serves virtual node ${nodeName} now.`;
  if (pod.status?.reason === 'DaemonSetIgnored') {
    return {
      by,
      state: 'ok',
      says: pod.status.message ?? 'The pod of a DaemonSet counts as ready, and nothing runs.',
      ...REASON_HELP.get('DaemonSetIgnored'),
    };
  }
  if (mirrored?.status === 'True') {
    const where = inMember(mirrored.message ?? '');
    const ready = conditionOf(pod, 'Ready');
    const lost =
      ready?.reason === 'MemberUnreachable'
        ? (ready.message ?? '')
        : reachable?.status === 'False'
          ? (reachable.message ?? '')
          : undefined;
    if (lost !== undefined && !isFinished(pod)) {
      // What was seen last of the pod says less than the cause.
      const why =
        trouble?.stays === true
          ? `: ${sentence(trouble.says)}`
          : lost === ''
            ? '.'
            : `. ${sentence(capitalized(lost))}`;
      return {
        by,
        state: trouble?.stays === true ? 'failed' : 'waits',
        says: `It is ${where} in member ${member}, which cannot be reached${why} The pod may run on; what is shown of it is as old as the last contact.${unserved}`,
        ...(trouble?.stays === true ? adviceOf(trouble) : isServed ? REASON_HELP.get('MemberUnreachable') : NO_MANAGER),
      };
    }
    const without = eventOf(events, 'OptionalConfigMapNotFound', 'OptionalSecretNotFound')?.message;
    const lacks = without === undefined ? '' : ` It was made without something optional: ${without}`;
    return { by, state: 'ok', says: `It was made in member ${member} as ${where}.${lacks}` };
  }
  if (mirrored !== undefined) {
    const { reason = '', status } = mirrored;
    const message = wordsOf(mirrored) ?? '';
    if (reason === 'MemberUnreachable' && trouble?.stays === true) {
      return {
        by,
        state: 'failed',
        says: `Held back (${reason}): nothing can be made in member ${member}: ${trouble.says}`,
        ...adviceOf(trouble),
      };
    }
    if (TRANSIENT.has(reason) && !isServed) {
      return { by, state: 'failed', says: `Held back (${reason}): ${message}${unserved}`, ...NO_MANAGER };
    }
    const passes = status === 'Unknown' ? 'waits' : 'failed';
    return {
      by,
      state: TRANSIENT.has(reason) ? 'waits' : passes,
      says: `Held back (${reason}): ${message}`,
      ...(REASON_HELP.get(reason) ?? { page: 'reference/events.md#pods' }),
    };
  }
  if (!isServed) {
    return {
      by,
      state: 'failed',
      says: `No manager serves virtual node ${nodeName}, so nothing was made in member ${member}.`,
      ...NO_MANAGER,
    };
  }
  if (trouble !== undefined) {
    return {
      by,
      state: trouble.stays ? 'failed' : 'waits',
      says: `Nothing can be made in member ${member}: ${trouble.says}`,
      ...adviceOf(trouble),
    };
  }
  const waited = now - Date.parse(conditionOf(pod, 'PodScheduled')?.lastTransitionTime ?? '');
  return {
    by,
    state: 'waits',
    says: `It is being made in member ${member}${waited > 10_000 ? ', which takes unusually long' : ''}.`,
  };
}

const NO_MANAGER: Advice = {
  help: 'see kubectl spillway status: some manager has to run',
  page: `${NODES}#when-no-manager-runs`,
};

const adviceOf = ({ help, page }: Advice): Advice => ({ help, page });

/** Reasons that nobody has to look after. Whose room is kept meanwhile is another question, see pods/passing-holds.ts. */
const TRANSIENT = new Set([
  'MemberUnreachable',
  'MemberUnavailable',
  'DependentsPending',
  'CreationUnanswered',
  'NamespaceTerminating',
  'ClaimPending',
  'Creating',
]);

/** `shop/web-0 with PriorityClass high (changed by …)`, from the words of condition Mirrored. */
function inMember(message: string): string {
  const namespace = /(?:^| )namespace=(\S+)/.exec(message)?.[1] ?? '?';
  const overrides = /(?:^| )overrides=(\S+)/.exec(message)?.[1];
  const priorityClass = /(?:^| )priorityClass=(\S+)/.exec(message)?.[1];
  const ranked = priorityClass === undefined ? '' : ` with PriorityClass ${priorityClass}`;
  const changed = overrides === undefined ? '' : ` (changed by ${overrides.split(',').join(', ')})`;
  return `${namespace}/${/(?:^| )name=(\S+)/.exec(message)?.[1] ?? '?'}${ranked}${changed}`;
}

/** What the kubelet says of the containers. @param whose such as `of east`; '' for a node of this cluster */
export function kubeletStep(facts: PodFacts, whose: string): Step {
  const { pod, events } = facts;
  const by = 'kubelet';
  const kubelet = `The kubelet${whose === '' ? '' : ` ${whose}`}`;
  const trouble = containerTrouble(pod);
  if (trouble !== undefined)
    return { by, state: trouble.state, says: `${kubelet} says: ${trouble.says}`, help: trouble.help };
  const { phase } = pod.status ?? {};
  if (phase === 'Running') {
    const ready = conditionOf(pod, 'Ready');
    if (ready?.status === 'True') return { by, state: 'ok', says: `${kubelet} runs it, and it is ready.` };
    const probe = eventOf(events, 'Unhealthy')?.message;
    const why =
      ready?.reason === 'ReadinessGatesNotReady'
        ? (ready.message ?? '')
        : (probe ?? ready?.message ?? 'it is not ready yet');
    return {
      by,
      state: 'waits',
      says: `It runs, and is not ready: ${why}`,
      help: probe === undefined ? undefined : 'see its log and its readiness probe: kubectl logs',
    };
  }
  const warning = eventOf(
    events,
    'FailedMount',
    'FailedAttachVolume',
    'FailedCreatePodSandBox',
    'NetworkNotReady',
    'FailedMapVolume',
  );
  const says =
    warning === undefined
      ? `${kubelet} is preparing it.`
      : `${kubelet} cannot start it yet: ${warning.message ?? warning.reason ?? ''}`;
  return { by, state: 'waits', says };
}

const IMAGE = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'RegistryUnavailable',
  'ImageInspectError',
]);
const CONFIG = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);
const ON_ITS_WAY = new Set(['ContainerCreating', 'PodInitializing']);

/** The first container that does not do what it should. */
function containerTrouble({
  status,
}: Pod): { state: 'waits' | 'failed'; says: string; help: string | undefined } | undefined {
  for (const one of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
    const { reason = '', message = '' } = one.state?.waiting ?? {};
    if (reason === '' || ON_ITS_WAY.has(reason)) continue;
    const words = message === '' ? '' : `: ${message}`;
    const says = `container ${one.name} waits (${reason})${words}${lastEnd(one)}`;
    if (IMAGE.has(reason)) {
      return {
        state: 'failed',
        says,
        help: `check image ${one.image}: its name, and that nodes there reach the registry and have its pull secret (an override policy can change it for one cluster)`,
      };
    }
    if (CONFIG.has(reason))
      return {
        state: 'failed',
        says,
        help: 'correct the container: its message names a ConfigMap, a Secret, a key or a command',
      };
    return {
      state: 'failed',
      says,
      help: reason === 'CrashLoopBackOff' ? 'see why it ends: kubectl logs --previous' : undefined,
    };
  }
  return undefined;
}

function lastEnd({ lastState, restartCount }: ContainerStatus): string {
  const ended = lastState?.terminated;
  if (ended === undefined) return '';
  return `. It has ended ${restartCount} times, last with exit code ${ended.exitCode}${ended.reason === undefined ? '' : ` (${ended.reason})`}`;
}
