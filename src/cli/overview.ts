import { parseMemberCluster } from '../api/member-cluster.ts';
import { DESCHEDULER_LEASE, movesStopped } from '../api/moves-stopped.ts';
import { isActive } from '../api/pod-phase.ts';
import { memberOfNode } from '../api/provider-id.ts';
import { releasedFrom } from '../api/released.ts';
import { cleanText } from '../kube/clean-text.ts';
import { isTrue } from '../kube/conditions.ts';
import type { Condition, Event, Pod } from '../kube/core-v1.ts';
import type { Lease } from '../kube/lease.ts';
import type { KubeObject } from '../kube/object.ts';
import { clusterSummaries, nodeNamesOf, type ClusterSummary, type FleetFacts } from './cluster-summary.ts';
import { eventsByPod, heldGroups, stayReasons, type HeldGroup } from './held-pods.ts';
import { keyOf } from '../kube/object.ts';
import {
  migrationsUnderWay,
  rebalancersUnderWay,
  type MigrationSummary,
  type RebalancerSummary,
} from './move-orders.ts';
import { refusedEnd, type RefusedEnd } from './why/refused-end.ts';

/** Names of the Leases that managers share their work by (docs/design.md, section 4). */
const MEMBER_LEASE = 'spillway-member-';
export const SCHEDULER_LEASE = 'spillway-scheduler';
const COMPONENT_LEASES = new Map([
  [SCHEDULER_LEASE, 'scheduler'],
  [DESCHEDULER_LEASE, 'descheduler'],
]);
/** A Lease that was not renewed for this many times its duration is nobody's, whatever the clocks say. */
const STALE_TIMES = 3;
const FALLBACK_SECONDS = 15;
/** Of a message of a pod, in bytes. */
const LONGEST_MESSAGE = 300;

/** A manager that holds something. */
export interface ManagerSummary {
  /** Its pod, or the machine it runs on: a process has an identity of its own for each Lease, and they begin with that. */
  name: string;
  /** Of the Lease it renewed last. */
  renewed: string;
  members: string[];
  /** What else it does alone: `scheduler`, `descheduler`. */
  components: string[];
}

export interface PolicySummary {
  /** `placementpolicies/shop/web` */
  policy: string;
  reason: string;
  message: string;
}

/** All that `status` shows; `null` where the viewer may not know. */
export interface Overview {
  managers: ManagerSummary[] | null;
  clusters: ClusterSummary[];
  /** Pods on virtual nodes. */
  pods: {
    running: number;
    pending: number;
    /** Bound to a virtual node, and not created in the member; or to be moved out of it, and kept there. */
    held: HeldGroup[];
    /** Being evicted: by the descheduler, a drain, or somebody. */
    leaving: { cluster: string; pods: number }[];
    /** Released from their ReplicaSets, and there still: until another one is Ready in their place, or, where `lost`, until their member answers. */
    released: { cluster: string; lost: boolean; pods: number }[];
    /** Those of the released that can be neither ended nor given back, why, and since when; the longest first. They are counted here alone. */
    refused: { pod: string; cluster: string; since: string; message: string }[];
  } | null;
  /** Pods of the host without a node, and those of them behind scheduling gates. */
  waiting: { pods: number; gated: number } | null;
  /** Members in which deletions are held back, with the command that confirms them. */
  deletionsHeld: { cluster: string; message: string }[];
  /** Lost members of which no pods are moved, as most members are, with what moves them all the same. */
  movesPaused: { cluster: string; message: string }[];
  /** What people said when they stopped all moves, perhaps ''; `null` as well: they did not. */
  movesStopped: string | null;
  /** What people ordered to be moved, as long as it is not over. */
  migrations: MigrationSummary[] | null;
  rebalancers: RebalancerSummary[] | null;
  policies: { total: number; withoutEffect: PolicySummary[] } | null;
}

/** What the viewer could read; undefined: not allowed. */
export interface OverviewFacts {
  fleet: FleetFacts;
  leases: readonly Lease[] | undefined;
  unbound: readonly Pod[] | undefined;
  policies: readonly { resource: string; object: KubeObject }[] | undefined;
  migrations: readonly KubeObject[] | undefined;
  rebalancers: readonly KubeObject[] | undefined;
  /** Events that say why pods stay that are to go; asked only if there are such pods. */
  stays: readonly Event[] | undefined;
}

/** @param now wall clock in ms. */
export function overview(facts: OverviewFacts, now: number): Overview {
  const { fleet, leases, unbound, policies, migrations, rebalancers, stays = [] } = facts;
  const alive = leases?.filter((lease) => isHeld(lease, now));
  return {
    managers: alive === undefined ? null : managers(alive),
    clusters: clusterSummaries(fleet),
    pods: fleet.pods === undefined ? null : podsInMembers(fleet, fleet.pods, stays, now),
    waiting:
      unbound === undefined
        ? null
        : { pods: unbound.length, gated: unbound.filter(({ spec }) => (spec.schedulingGates ?? []).length > 0).length },
    deletionsHeld: withoutLeave(fleet.members, 'DeletionsAllowed'),
    movesPaused: withoutLeave(fleet.members, 'MovesAllowed'),
    movesStopped: stopOf(leases) ?? null,
    migrations: migrations === undefined ? null : migrationsUnderWay(migrations),
    rebalancers: rebalancers === undefined ? null : rebalancersUnderWay(rebalancers),
    policies: policies === undefined ? null : policySummary(policies, alive),
  };
}

/** What people said when they stopped all moves, whether a manager runs or not; undefined: they did not, or the viewer may not know. */
export function stopOf(leases: readonly Lease[] | undefined): string | undefined {
  const lease = leases?.find(({ metadata }) => metadata.name === DESCHEDULER_LEASE);
  return lease === undefined ? undefined : movesStopped(lease);
}

/** Name of the Lease that the manager holds that works for a member. */
export function memberLease(member: string): string {
  return `${MEMBER_LEASE}${member}`;
}

/** Whether somebody holds a Lease, as far as the clock here can tell. @param now wall clock in ms. */
export function isHeld({ spec }: Lease, now: number): boolean {
  const { holderIdentity = '', renewTime = '', leaseDurationSeconds = FALLBACK_SECONDS } = spec ?? {};
  const renewed = Date.parse(renewTime);
  return holderIdentity !== '' && now - renewed < leaseDurationSeconds * STALE_TIMES * 1000;
}

function managers(leases: readonly Lease[]): ManagerSummary[] {
  const byName = new Map<string, ManagerSummary>();
  for (const { metadata, spec } of leases) {
    const component = COMPONENT_LEASES.get(metadata.name);
    if (component === undefined && !metadata.name.startsWith(MEMBER_LEASE)) continue;
    const { holderIdentity = '', renewTime: renewed = '' } = spec ?? {};
    const name = holderIdentity.split('_')[0] ?? '';
    const one = byName.get(name) ?? { name, renewed: '', members: [], components: [] };
    byName.set(name, one);
    if (renewed > one.renewed) one.renewed = renewed;
    if (component === undefined) one.members.push(metadata.name.slice(MEMBER_LEASE.length));
    else one.components.push(component);
  }
  return [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function podsInMembers(
  fleet: FleetFacts,
  pods: readonly Pod[],
  stays: readonly Event[],
  now: number,
): NonNullable<Overview['pods']> {
  const { members, nodes } = fleet;
  const events = eventsByPod(stays);
  const memberByNode = new Map<string, string>();
  for (const raw of members) for (const node of nodeNamesOf(raw, nodes)) memberByNode.set(node, raw.metadata.name);
  for (const node of nodes ?? []) {
    const member = memberOfNode(node);
    if (member !== undefined) memberByNode.set(node.metadata.name, member);
  }
  const leaving = new Map<string, number>();
  const released = { replaced: new Map<string, number>(), lost: new Map<string, number>() };
  const refused: NonNullable<Overview['pods']>['refused'] = [];
  const against = ({ metadata: { uid = '' } }: Pod): RefusedEnd | undefined => refusedEnd(events.get(uid), now);
  for (const pod of pods) {
    const from = isActive(pod) ? releasedFrom(pod) : undefined;
    const ofRelease = from === undefined ? undefined : released[from.lost === true ? 'lost' : 'replaced'];
    const cluster = memberByNode.get(pod.spec.nodeName ?? '') ?? '';
    const found = ofRelease === undefined ? undefined : against(pod);
    if (found !== undefined) {
      const { since, message } = found;
      refused.push({ pod: keyOf(pod), cluster, since, message: cleanText(message, LONGEST_MESSAGE) });
      continue;
    }
    const counts = isEvicted(pod) ? leaving : ofRelease;
    counts?.set(cluster, (counts.get(cluster) ?? 0) + 1);
  }
  return {
    running: pods.filter(({ status }) => status?.phase === 'Running').length,
    pending: pods.filter(({ status }) => (status?.phase ?? 'Pending') === 'Pending').length,
    held: heldGroups(pods, { reasons: stayReasons(fleet), events }, now),
    leaving: [...leaving].map(([cluster, count]) => ({ cluster, pods: count })),
    released: [
      ...[...released.replaced].map(([cluster, count]) => ({ cluster, lost: false, pods: count })),
      ...[...released.lost].map(([cluster, count]) => ({ cluster, lost: true, pods: count })),
    ],
    refused: refused.toSorted((a, b) => (a.since < b.since ? -1 : 1)),
  };
}

function isEvicted(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined && isTrue(pod, 'DisruptionTarget');
}

/** Members of which a condition says that something is held back. */
function withoutLeave(members: readonly KubeObject[], condition: string): Overview['deletionsHeld'] {
  return members.flatMap((raw) => {
    const parsed = parseMemberCluster(raw);
    const conditions = 'member' in parsed ? (parsed.member.status?.conditions ?? []) : [];
    const found = conditions.find(({ type, status }) => type === condition && status === 'False');
    return found === undefined ? [] : [{ cluster: raw.metadata.name, message: found.message }];
  });
}

type StatusOf = KubeObject & { status?: { conditions?: Condition[] } };

/** Policies that are not used, or only in part; all of them where nobody answers schedulers. */
function policySummary(
  policies: readonly { resource: string; object: KubeObject }[],
  leases: readonly Lease[] | undefined,
): NonNullable<Overview['policies']> {
  const nobodyAnswers = leases !== undefined && !leases.some(({ metadata }) => metadata.name === SCHEDULER_LEASE);
  const withoutEffect = policies.flatMap(({ resource, object }): PolicySummary[] => {
    const policy = `${resource}/${keyOf(object)}`;
    if (nobodyAnswers) {
      return [
        {
          policy,
          reason: 'NoScheduler',
          message:
            'no manager with component scheduler runs, so nobody tells schedulers what it says (docs/guides/scheduling.md)',
        },
      ];
    }
    const { conditions = [] } = (object as StatusOf).status ?? {};
    const bad = conditions.find(({ status }) => status === 'False');
    return bad === undefined ? [] : [{ policy, reason: bad.reason ?? bad.type, message: bad.message ?? '' }];
  });
  return { total: policies.length, withoutEffect };
}
