import { LOCAL } from '../../api/cluster-tiers.ts';
import { NOT_READY_TAINT, UNREACHABLE_TAINT, VIRTUAL_NODE_TAINT } from '../../api/marks.ts';
import { specOf, type MemberCluster } from '../../api/member-cluster.ts';
import { memberOfNode } from '../../api/provider-id.ts';
import { podRequests } from '../../capacity/pod-requests.ts';
import { parseAmounts } from '../../kube/amounts.ts';
import { conditionOf } from '../../kube/conditions.ts';
import type { Node } from '../../kube/core-v1.ts';
import { nodeIsChosenBy } from '../../kube/node-selector.ts';
import { firstUntolerated, type Taint } from '../../kube/taints.ts';
import { whyTainted } from '../../placement/candidates.ts';
import { clusterOf } from '../../api/cluster.ts';
import { shortageInWords } from '../../placement/free-slots.ts';
import type { Rules } from '../../placement/policy-selection.ts';
import { asksForItself, whyPodWouldLeave } from '../../scheduler/node-demands.ts';
import type { Advice, PlaceWords } from './explanation.ts';
import { memberTrouble } from './member-trouble.ts';
import type { PodFacts } from './pod-facts.ts';
import { whyNotChosen } from './rules-step.ts';
import { schedulerWords } from './scheduler-words.ts';

const CAPACITY = 'concepts/capacity.md';
const PLACEMENT = 'concepts/placement.md';
const LOST = 'concepts/failover.md#which-members-are-lost';
/** Taints by which Kubernetes says that nobody serves a node. */
const NOT_SERVED = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']);

/**
 * Why a pod without a node is in none of the clusters, one by one. What Spillway told the scheduler comes first; where it was not
 * asked about a cluster, because the scheduler's own checks came before, it is worked out from what the viewer can see.
 */
export function placesOf(facts: PodFacts, rules: Rules | undefined): PlaceWords[] {
  const { pod, members } = facts;
  const told = schedulerWords(conditionOf(pod, 'PodScheduled')?.message ?? '').clusters;
  const byCluster = new Map(told.map((one) => [one.cluster, { ...one, ...adviceFor(one.says) }]));
  for (const member of members ?? []) {
    const { name } = member.metadata;
    const found = byCluster.get(name) ?? whyNotIn(facts, member, rules);
    // The scheduler's words are of the last time it looked; that a member is lost is known better here.
    const lost = memberTrouble(member);
    const words = lost ?? found;
    if (words === undefined) continue;
    const { says, help, page } = words;
    byCluster.set(name, { cluster: name, says, help, page });
  }
  return [...byCluster.values()].toSorted(
    (a, b) => order(a.cluster) - order(b.cluster) || (a.cluster < b.cluster ? -1 : 1),
  );
}

const order = (cluster: string): number => (cluster === LOCAL ? 0 : 1);

type Words = Advice & { says: string };

function whyNotIn(facts: PodFacts, member: MemberCluster, rules: Rules | undefined): Words | undefined {
  const cluster = clusterOf(member);
  const { name } = cluster;
  const notChosen = rules === undefined ? undefined : whyNotChosen(rules.placement, cluster);
  if (notChosen !== undefined) {
    return {
      says: notChosen,
      help: `change ${rules?.source.kind ?? 'the policy'} ${rules?.source.name ?? ''} if the pod may go there`,
      page: PLACEMENT,
    };
  }
  if (cluster.unavailable !== undefined) {
    const help = member.spec.unschedulable
      ? `kubectl spillway uncordon ${name}`
      : `see kubectl spillway clusters ${name}`;
    return { says: cluster.unavailable, help };
  }
  const tainted = whyTainted(cluster, rules?.placement.tolerations ?? []);
  if (tainted !== undefined)
    return { says: tainted, help: 'add clusterTolerations to the policy of the pod', page: PLACEMENT };
  const nodes = (facts.nodes ?? []).filter((node) => memberOfNode(node) === name);
  if (facts.nodes === undefined) return undefined;
  if (nodes.length === 0) return { says: 'it has no virtual node yet', help: `see kubectl spillway clusters ${name}` };
  const whys = nodes.map((node) => whyNotOn(facts, node, rules) ?? whyNotFor(facts, node, member));
  return whys.every((why) => why !== undefined) ? whys[0] : whyNoRoom(facts, member);
}

/** What the scheduler checks of a node itself, before anybody is asked. */
function whyNotOn({ pod, namespaceLabels }: PodFacts, node: Node, rules: Rules | undefined): Words | undefined {
  if (!nodeIsChosenBy(pod.spec, node)) {
    return {
      says: 'the node selector or node affinity of the pod leaves it out',
      help: 'change the node selector or affinity, or give the member such labels in spec.labels',
      page: 'concepts/constraints.md',
    };
  }
  const taints = node.spec?.taints ?? [];
  // Kubernetes' own taints may follow from these, where the Node is to fail with its member.
  const byMember = taints.filter(({ key }) => key === UNREACHABLE_TAINT || key === NOT_READY_TAINT);
  const taint = firstUntolerated(pod.spec.tolerations ?? [], [...byMember, ...taints]);
  if (taint !== undefined) return untolerated(taint);
  if (rules === undefined && namespaceLabels !== undefined && !asksForItself(pod, node, namespaceLabels)) {
    return {
      says: 'nothing says that the pod may leave this cluster',
      help: 'write a PlacementPolicy, or label its namespace spillway.dev/burst=enabled',
      page: PLACEMENT,
    };
  }
  return undefined;
}

/** Taints of effect NoExecute stand on the Node as NoSchedule, and mean more to whoever moves pods. */
function whyNotFor({ pod }: PodFacts, node: Node, member: MemberCluster): Words | undefined {
  const says = whyPodWouldLeave(pod, specOf(member, node.metadata.name).taints);
  return says === undefined ? undefined : { says, ...adviceFor(says) };
}

function untolerated(taint: Taint): Words {
  const value = taint.value === undefined || taint.value === '' ? '' : `=${taint.value}`;
  const words = `${taint.key}${value}:${taint.effect}`;
  if (taint.key === VIRTUAL_NODE_TAINT) {
    return {
      says: `the pod does not tolerate ${words}, which keeps pods off virtual nodes unless they ask for them`,
      help: `add a toleration for ${VIRTUAL_NODE_TAINT} to the pod template, or let admission do it for the whole namespace`,
      page: 'guides/admission.md',
    };
  }
  if (taint.key === UNREACHABLE_TAINT) return { says: 'it cannot be reached', page: LOST };
  if (taint.key === NOT_READY_TAINT)
    return { says: 'it is not ready: it does not serve, or cannot be asked', page: LOST };
  if (NOT_SERVED.has(taint.key)) {
    return {
      says: `no manager serves it (taint ${words} of its virtual node)`,
      help: 'see kubectl spillway status: some manager has to run',
      page: 'concepts/virtual-nodes.md#when-no-manager-runs',
    };
  }
  return {
    says: `the pod does not tolerate taint ${words}`,
    help: `add a toleration for ${taint.key} to the pod template`,
  };
}

/** By the figures that the member's status shows: the most that one node of it has free. */
function whyNoRoom({ pod }: PodFacts, { status }: MemberCluster): Words | undefined {
  if (status?.largestFreeSlot === undefined) return undefined;
  const asked = podRequests(pod);
  const free = parseAmounts(status.largestFreeSlot);
  const isShort = [...asked].some(([name, amount]) => free.has(name) && amount > (free.get(name) ?? 0n));
  if (!isShort) return undefined;
  const known = new Map([...asked].filter(([name]) => free.has(name)));
  return { says: shortageInWords(known, free), ...ROOM };
}

const ROOM: Advice = {
  help: 'ask for less, or make room: kubectl spillway clusters shows what is free where',
  page: CAPACITY,
};

/** What helps against words that Spillway told the scheduler. */
function adviceFor(says: string): Advice {
  if (/quota/i.test(says)) return { help: 'raise the ResourceQuota in the member, or make room in it', page: CAPACITY };
  if (/untolerated taint|does not tolerate taint/.test(says))
    return { help: 'add a toleration for that taint to the pod template', page: CAPACITY };
  if (/cluster taint/.test(says)) return { help: 'add clusterTolerations to the policy of the pod', page: PLACEMENT };
  if (/ free|insufficient|too many pods/.test(says)) return ROOM;
  if (/the policy /.test(says)) return { help: 'change the policy if the pod may go there', page: PLACEMENT };
  if (/is avoided until/.test(says)) return { page: `${PLACEMENT}#refusals-are-remembered` };
  if (/nothing says that the pod may leave/.test(says)) {
    return { help: 'write a PlacementPolicy, or label its namespace spillway.dev/burst=enabled', page: PLACEMENT };
  }
  return {};
}
