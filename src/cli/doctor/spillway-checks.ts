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
import { ok, type Finding } from './finding.ts';

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
    {
      check,
      verdict: 'failed',
      says:
        without.length === members.length
          ? 'no manager works for any member: what runs goes on, nothing new is done'
          : `no manager works for ${without.join(', ')}`,
      fix: 'see that pods of the manager run: kubectl get pods,leases -n spillway-system, and their logs',
      page: 'concepts/virtual-nodes.md#when-no-manager-runs',
    },
  ];
}

/** Whether people have stopped all moves, which they may have forgotten. */
export function movesMayBegin(leases: readonly Lease[]): Finding[] {
  const said = stopOf(leases);
  if (said === undefined) return [];
  const page = 'concepts/failover.md#stop-all-moves';
  const fix = 'kubectl spillway resume-moves, when that is over';
  return [{ check: 'moves', verdict: 'warning', says: stopInWords(said), fix, page }];
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
      {
        check,
        verdict: 'warning',
        says: 'there are none yet',
        fix: 'kubectl apply -f manifests/samples/member-cluster.yaml',
        page: 'reference/member-cluster.md',
      },
    ];
  }
  const findings = raw.flatMap((object): Finding[] => {
    const { name } = object.metadata;
    const parsed = parseMemberCluster(object);
    if (!('member' in parsed)) {
      return [
        {
          check,
          verdict: 'failed',
          says: `${name}: its spec cannot be read: ${parsed.problems.join('; ')}`,
          fix: 'correct it',
          page: EVENTS,
        },
      ];
    }
    const conditions = parsed.member.status?.conditions ?? [];
    const bad = conditions.filter(isTrouble);
    // Ready repeats the reason of the first of those that it is made of.
    const isCaused = bad.some(
      ({ type, reason }) => type !== 'Ready' && reason === conditionOf(parsed.member, 'Ready')?.reason,
    );
    const causes = isCaused ? bad.filter(({ type }) => type !== 'Ready') : bad;
    if (conditions.length === 0) {
      return [
        {
          check,
          verdict: 'failed',
          says: `${name}: no manager has looked at it yet`,
          fix: 'see the check of the manager',
          page: EVENTS,
        },
      ];
    }
    const shown = causes.some(({ type }) => type === 'Reachable')
      ? causes.filter(({ reason }) => !OF_SILENCE.has(reason))
      : causes;
    return shown.map(({ type, status, reason, message }) => ({
      check,
      verdict: NO_FAILURE.has(type) || status === 'True' ? ('warning' as const) : ('failed' as const),
      says: `${name}: ${type} is ${status} (${reason}): ${message}`,
      fix: MEMBER_FIX.get(type) ?? 'read the message',
      page: EVENTS,
    }));
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
          {
            check,
            verdict: 'failed',
            says: `${name} of member ${member.metadata.name} is not there`,
            fix: `see kubectl spillway clusters ${member.metadata.name}`,
            page: 'concepts/virtual-nodes.md',
          },
        ];
      }
      const ready = conditionOf(node, 'Ready');
      if (ready?.status === 'True') return [];
      if (isUnreadyByMember(ready?.reason)) {
        return [
          {
            check,
            verdict: 'failed',
            says: `${name} is not ready: ${ready?.message ?? ''}`,
            fix: `see the check of member ${member.metadata.name}`,
            page: 'concepts/failover.md#nodes-that-fail-with-their-member',
          },
        ];
      }
      return [
        {
          check,
          verdict: 'failed',
          says: `${name} is not ready: ${ready?.message ?? 'nobody serves it'}`,
          fix: 'see the check of the manager',
          page: 'concepts/virtual-nodes.md#when-no-manager-runs',
        },
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
      {
        check,
        verdict: 'failed',
        says: `nobody answers schedulers, so rules have no effect: ${some}`,
        fix: 'run the manager with components: [members, scheduler], and let the scheduler ask it',
        page: SCHEDULING,
      },
    ];
  }
  const settled = [...policies, ...bursting].some(
    ({ metadata }) => now - Date.parse(metadata.creationTimestamp ?? '') > SETTLED_MS,
  );
  if (placements.length > 0 || !settled) return [ok(check, 'schedulers are answered')];
  return [
    {
      check,
      verdict: 'warning',
      says: `there are rules (${some}), and no scheduler has asked about any pod yet`,
      fix: 'see that the configuration of kube-scheduler has the extender, unless no pod under rules was created yet',
      page: SCHEDULING,
    },
  ];
}

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } };

/** Policies that are not in use as they are written. */
export function policiesWell(policies: readonly KubeObject[]): Finding[] {
  const check = 'policies';
  const findings = (policies as readonly WithConditions[]).flatMap((policy): Finding[] => {
    const bad = policy.status?.conditions?.find(({ status }) => status === 'False');
    if (bad === undefined) return [];
    const verdict = bad.type === 'Accepted' ? 'failed' : 'warning';
    return [
      {
        check,
        verdict,
        says: `${keyOf(policy)}: ${bad.message ?? bad.reason ?? ''}`,
        fix: 'correct the policy',
        page: 'concepts/placement.md',
      },
    ];
  });
  return findings.length > 0 || policies.length === 0 ? findings : [ok(check, `${policies.length} in use`)];
}

type SigningRequest = KubeObject & {
  spec?: { signerName?: string; username?: string };
  status?: { certificate?: string; conditions?: Condition[] };
};

/** A request that nobody has looked at for so long waits for somebody, in ms. */
const UNANSWERED_MS = 20_000;

interface CertificateFacts {
  requests: readonly KubeObject[];
  /** Names of virtual nodes. */
  nodes: ReadonlySet<string>;
  /** The API server reaches the ports of virtual nodes as it is; undefined: not known. */
  portsWork: boolean | undefined;
  /** Of the API server, in ms. */
  now: number;
}

/** Whether requests of virtual nodes for certificates are approved and signed; of several for one purpose the newest counts. */
export function certificatesIssued({ requests, nodes, portsWork, now }: CertificateFacts): Finding[] {
  const check = 'certificates';
  const page = 'security.md';
  const findings = newestOf(requests as readonly SigningRequest[], nodes).flatMap(
    ({ metadata, spec, status }): Finding[] => {
      const { signerName = '' } = spec ?? {};
      const request = `${metadata.name} (${signerName})`;
      const is = (type: string): Condition | undefined =>
        status?.conditions?.find((one) => one.type === type && one.status !== 'False');
      const refused = is('Denied') ?? is('Failed');
      if (refused !== undefined) {
        const says = `${request} was refused: ${refused.message ?? refused.reason ?? ''}`;
        return [
          {
            check,
            verdict: 'failed',
            says,
            fix: 'find out who refused it: an approver of this cluster, or its signer',
            page,
          },
        ];
      }
      const waits = now - Date.parse(metadata.creationTimestamp ?? '') > UNANSWERED_MS;
      if (!waits || (status?.certificate ?? '') !== '') return [];
      if (is('Approved') !== undefined) {
        const fix =
          'see that the signer runs in this cluster, or set kubelet.servingCertificate in the configuration of the manager';
        return [{ check, verdict: 'failed', says: `${request} is approved, and nobody has signed it`, fix, page }];
      }
      const isServing = signerName === 'kubernetes.io/kubelet-serving';
      const effect = isServing
        ? 'logs and exec of its pods fail where the API server checks certificates of kubelets'
        : 'its virtual node does its work with the rights of the manager, or not at all';
      const verdict = isServing && portsWork === true ? 'warning' : 'failed';
      return [
        {
          check,
          verdict,
          says: `${request} waits for an approval; until then ${effect}`,
          fix: `kubectl certificate approve ${metadata.name}`,
          page,
        },
      ];
    },
  );
  return findings.length > 0 ? findings : [ok(check, 'no request of a virtual node is left unanswered')];
}

function newestOf(requests: readonly SigningRequest[], nodes: ReadonlySet<string>): SigningRequest[] {
  const newest = new Map<string, SigningRequest>();
  for (const request of requests) {
    // Names are made of the node and five random characters.
    const node = /^spillway-(.*)-[a-z0-9]{5}$/.exec(request.metadata.name)?.[1];
    if (node === undefined || !nodes.has(node)) continue;
    const purpose = `${node} ${request.spec?.signerName ?? ''}`;
    const other = newest.get(purpose)?.metadata.creationTimestamp ?? '';
    if ((request.metadata.creationTimestamp ?? '') >= other) newest.set(purpose, request);
  }
  return [...newest.values()];
}

/** How the API server of the host reached the port of a virtual node. */
export interface PortAnswer {
  node: string;
  /** Undefined: it did. */
  error: string | undefined;
}

/** Whether kubectl logs and exec can work: the API server itself asked each virtual node whether it is well. */
export function portsReached(answers: readonly PortAnswer[]): Finding[] {
  const check = 'kubelet ports';
  const findings = answers.flatMap(({ node, error }): Finding[] => {
    if (error === undefined) return [];
    const isTrust = /x509|certificate|tls:/.test(error);
    const isTime = /has expired|not yet valid/.test(error);
    const fix = isTime
      ? 'the manager renews it by itself: see that the clocks of its node and of this API server agree, and in its log why it was not renewed'
      : isTrust
        ? 'approve the request for its serving certificate (see certificates), or give the manager one that this API server trusts'
        : 'let the API server reach the address and ports of the manager (kubelet.bindAddress, kubelet.firstPort, firewalls)';
    return [
      { check, verdict: 'failed', says: `the API server does not reach ${node}: ${error}`, fix, page: 'security.md' },
    ];
  });
  return findings.length > 0 || answers.length === 0
    ? findings
    : [ok(check, 'the API server reaches every virtual node')];
}
