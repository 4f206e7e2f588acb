import { exchangesServices, parseMemberCluster, virtualNodesOf, type MemberCluster } from '../../api/member-cluster.ts';
import { stopInWords } from '../../api/moves-stopped.ts';
import { isUnreadyByMember } from '../../api/unreachable.ts';
import { memberOfNode } from '../../api/provider-id.ts';
import { conditionOf } from '../../kube/conditions.ts';
import type { Condition, Node } from '../../kube/core-v1.ts';
import type { Lease } from '../../kube/lease.ts';
import { keyOf, type KubeObject } from '../../kube/object.ts';
import { someOf } from '../../kube/some-of.ts';
import { BURST_LABEL } from '../../api/marks.ts';
import { isHeld, memberLease, SCHEDULER_LEASE, stopOf } from '../overview.ts';
import { failed, ok, warning, type Finding } from './finding.ts';

const EVENTS = 'reference/events.md#memberclusters';
const SCHEDULING = 'guides/scheduling.md';

/** Whether somebody works for each member. @param now wall clock of the API server in ms */
export function managersAlive(members: readonly string[], leases: readonly Lease[], now: number): Finding[] {
  const check = 'manager';
  const held = new Set(leases.filter((lease) => isHeld(lease, now)).map(({ metadata }) => metadata.name));
  const without = members.filter((name) => !held.has(memberLease(name)));
  if (members.length === 0) return [];
  if (without.length === 0) return [ok(check, 'every member has a manager that works for it')];
  return [
    failed(
      check,
      without.length === members.length
        ? 'no manager works for any member: what runs goes on, nothing new is done'
        : `no manager works for ${without.join(', ')}`,
      'see that pods of the manager run: kubectl get pods,leases -n spillway-system, and their logs',
      'concepts/virtual-nodes.md#when-no-manager-runs',
    ),
  ];
}

/** Whether people have stopped all moves, which they may have forgotten. */
export function movesMayBegin(leases: readonly Lease[]): Finding[] {
  const said = stopOf(leases);
  if (said === undefined) return [];
  const page = 'concepts/failover.md#stop-all-moves';
  const fix = 'kubectl spillway resume-moves, when that is over';
  return [warning('moves', stopInWords(said), fix, page)];
}

/** What helps where a condition of a MemberCluster is not well, by its type. */
const MEMBER_FIX: ReadonlyMap<string, string> = new Map([
  ['Reachable', 'see that the API server of the member runs, and that the nodes of the manager reach it'],
  [
    'CredentialsValid',
    'put a kubeconfig that works into the Secret of spec.credentials, or repeat kubectl spillway join; Events TokenNotRenewed say why a token is not renewed',
  ],
  ['IdentityPinned', 'confirm the other cluster by the command of the message, if it is meant to be that one'],
  ['DeletionsAllowed', 'look at what was deleted, and confirm it by the command of the message'],
  ['CapacityFresh', 'read the message: rights of the credentials in the member, or memory of the manager'],
  ['NodesRetired', 'drain the virtual nodes that the message names'],
  ['BudgetsMirrored', 'read the message; rights: manifests/member/read.yaml in the member, manifests/rbac.yaml here'],
  [
    'ServicesMirrored',
    'read the message; rights in the member: manifests/member/services.yaml, or kubectl spillway join --mirror-services',
  ],
  [
    'ServicesExchanged',
    'read the message; kinds and rights: kubectl spillway upgrade --multi-cluster Exchange here, kubectl spillway join --exchange-services for the member',
  ],
  ['PodSecuritySet', 'the owner of the member says whether that is meant, by the command of the message'],
  ['ClusterUnique', 'delete one of the two MemberClusters, unless that is meant'],
  [
    'MovesAllowed',
    'see what is wrong on this side first, such as its network; if the member is gone, say so by the command of the message',
  ],
  ['OutOfService', 'read the message: take the taint away, or see to the copies that it names'],
  ['Ready', 'read the message'],
]);

/** Reasons that say what somebody wanted, whatever the status is. */
const AS_WANTED: ReadonlySet<string> = new Set(['Ignored', 'NotMirrored', 'NotExchanged', 'InService']);

/** Reasons of what is not known only because the member does not answer. */
const OF_SILENCE: ReadonlySet<string> = new Set(['MemberUnreachable', 'NotContacted']);

/** Pods are sent there and run all the same, and perhaps that is meant. */
const NO_FAILURE: ReadonlySet<string> = new Set(['PodSecuritySet', 'ClusterUnique', 'OutOfService']);

/** Trouble although the condition is True: namespaces that Spillway made allow more than the spec says; a token is to end. */
const TROUBLE: ReadonlySet<string> = new Set(['OtherLevels', 'TokenNotRenewed']);

function isTrouble({ status, reason = '' }: Condition): boolean {
  return TROUBLE.has(reason) || (status !== 'True' && !AS_WANTED.has(reason));
}

/** What the managers report of the members: every condition that is not well, the causes before what follows from them. */
export function membersWell(raw: readonly KubeObject[]): Finding[] {
  const check = 'members';
  if (raw.length === 0) {
    return [
      warning(
        check,
        'there are none yet',
        'kubectl apply -f manifests/samples/member-cluster.yaml',
        'reference/member-cluster.md',
      ),
    ];
  }
  const findings = raw.flatMap((object): Finding[] => {
    const { name } = object.metadata;
    const parsed = parseMemberCluster(object);
    if (!('member' in parsed)) {
      return [failed(check, `${name}: its spec cannot be read: ${parsed.problems.join('; ')}`, 'correct it', EVENTS)];
    }
    const conditions = parsed.member.status?.conditions ?? [];
    const bad = conditions.filter(isTrouble);
    // Ready repeats the reason of the first of those that it is made of.
    const isCaused = bad.some(
      ({ type, reason }) => type !== 'Ready' && reason === conditionOf(parsed.member, 'Ready')?.reason,
    );
    const causes = isCaused ? bad.filter(({ type }) => type !== 'Ready') : bad;
    if (conditions.length === 0) {
      return [failed(check, `${name}: no manager has looked at it yet`, 'see the check of the manager', EVENTS)];
    }
    const shown = causes.some(({ type }) => type === 'Reachable')
      ? causes.filter(({ reason }) => !OF_SILENCE.has(reason))
      : causes;
    return shown.map(({ type, status, reason, message }) => {
      const found = NO_FAILURE.has(type) || status === 'True' ? warning : failed;
      const says = `${name}: ${type} is ${status} (${reason}): ${message}`;
      return found(check, says, MEMBER_FIX.get(type) ?? 'read the message', EVENTS);
    });
  });
  return findings.length > 0
    ? findings
    : [ok(check, `${raw.length === 1 ? '1 member is' : `all ${raw.length} are`} reachable, known and ready`)];
}

/** Whether any member is to exchange Services with this cluster. */
export function wantsExchange(raw: readonly KubeObject[]): boolean {
  return raw.some((object) => {
    const parsed = parseMemberCluster(object);
    return 'member' in parsed && exchangesServices(parsed.member);
  });
}

/** Whether each wanted virtual node is there, ours, and served. */
export function virtualNodesWell(raw: readonly KubeObject[], nodes: readonly Node[]): Finding[] {
  const check = 'virtual nodes';
  const members = raw.flatMap((object): MemberCluster[] => {
    const parsed = parseMemberCluster(object);
    return 'member' in parsed ? [parsed.member] : [];
  });
  const findings = members.flatMap((member) =>
    virtualNodesOf(member).flatMap(({ name }): Finding[] => {
      const node = nodes.find(({ metadata }) => metadata.name === name);
      if (node === undefined || memberOfNode(node) !== member.metadata.name) {
        return [
          failed(
            check,
            `${name} of member ${member.metadata.name} is not there`,
            `see kubectl spillway clusters ${member.metadata.name}`,
            'concepts/virtual-nodes.md',
          ),
        ];
      }
      const ready = conditionOf(node, 'Ready');
      if (ready?.status === 'True') return [];
      if (isUnreadyByMember(ready?.reason)) {
        return [
          failed(
            check,
            `${name} is not ready: ${ready?.message ?? ''}`,
            `see the check of member ${member.metadata.name}`,
            'concepts/failover.md#nodes-that-fail-with-their-member',
          ),
        ];
      }
      return [
        failed(
          check,
          `${name} is not ready: ${ready?.message ?? 'nobody serves it'}`,
          'see the check of the manager',
          'concepts/virtual-nodes.md#when-no-manager-runs',
        ),
      ];
    }),
  );
  return findings.length > 0 || members.length === 0
    ? findings
    : [ok(check, 'all that are wanted are there and ready')];
}

interface SchedulingFacts {
  policies: readonly KubeObject[];
  namespaces: readonly KubeObject[];
  /** WorkloadPlacements: traces of answers to schedulers. */
  placements: readonly KubeObject[];
  leases: readonly Lease[];
  /** Of the API server, in ms. */
  now: number;
}

/** A policy that is younger may not have had any pod yet, in ms. */
const SETTLED_MS = 120_000;

/** Whether rules can have any effect: somebody answers schedulers, and some scheduler asks. */
export function schedulingWired({ policies, namespaces, placements, leases, now }: SchedulingFacts): Finding[] {
  const check = 'scheduling';
  const bursting = namespaces.filter(({ metadata }) => metadata.labels?.[BURST_LABEL] === 'enabled');
  const answers = leases.some((lease) => lease.metadata.name === SCHEDULER_LEASE && isHeld(lease, now));
  const rules = [
    ...policies.map((one) => `policy ${keyOf(one)}`),
    ...bursting.map((one) => `namespace ${one.metadata.name}`),
  ];
  if (rules.length === 0)
    return [
      ok(
        check,
        answers ? 'schedulers are answered; there are no rules yet' : 'there are no rules, so no scheduler has to ask',
      ),
    ];
  const some = someOf(rules, 3);
  if (!answers) {
    return [
      failed(
        check,
        `nobody answers schedulers, so rules have no effect: ${some}`,
        'run the manager with components: [members, scheduler], and let the scheduler ask it',
        SCHEDULING,
      ),
    ];
  }
  const settled = [...policies, ...bursting].some(
    ({ metadata }) => now - Date.parse(metadata.creationTimestamp ?? '') > SETTLED_MS,
  );
  if (placements.length > 0 || !settled) return [ok(check, 'schedulers are answered')];
  return [
    warning(
      check,
      `there are rules (${some}), and no scheduler has asked about any pod yet`,
      'see that the configuration of kube-scheduler has the extender, unless no pod under rules was created yet',
      SCHEDULING,
    ),
  ];
}

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } };

/** Policies, and ClusterTaintPolicies, that are not in use as they are written. */
export function policiesWell(policies: readonly KubeObject[], taintPolicies: readonly KubeObject[] = []): Finding[] {
  const check = 'policies';
  const all = [
    ...policies.map((policy) => ({ policy, name: keyOf(policy), page: 'concepts/placement.md' })),
    ...taintPolicies.map((policy) => ({
      policy,
      name: `ClusterTaintPolicy ${keyOf(policy)}`,
      page: 'concepts/failover.md#by-policy',
    })),
  ];
  const findings = all.flatMap(({ policy: object, name, page }): Finding[] => {
    const policy: WithConditions = object;
    const bad = policy.status?.conditions?.find(({ status }) => status === 'False');
    if (bad === undefined) return [];
    const found = bad.type === 'Accepted' ? failed : warning;
    const says = `${name}: ${bad.message ?? bad.reason ?? ''}`;
    return [found(check, says, 'correct the policy', page)];
  });
  return findings.length > 0 || all.length === 0 ? findings : [ok(check, `${all.length} in use`)];
}
