import { isLeaving } from '../api/member-cluster.ts';
import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import type { MemberCapacity } from '../capacity/member-capacity.ts';
import { addTo, formatAmounts, NOTHING, parseAmounts } from '../kube/amounts.ts';
import type { MemberScope } from '../members/member-scope.ts';
import type { ActingMember } from './acting-member.ts';
import type { NodeIdentities } from './node-identities.ts';
import type { VirtualNodes } from './virtual-nodes.ts';

/** What the status of a MemberCluster tells of its virtual nodes together. */
export class MemberReport {
  readonly #acting: ActingMember;
  readonly #nodes: VirtualNodes;
  readonly #identities: NodeIdentities;
  readonly #capacity: MemberCapacity;

  constructor(acting: ActingMember, nodes: VirtualNodes, identities: NodeIdentities, capacity: MemberCapacity) {
    this.#acting = acting;
    this.#nodes = nodes;
    this.#identities = identities;
    this.#capacity = capacity;
  }

  podCounts(): MemberClusterStatus['pods'] {
    const counts = { running: 0, pending: 0, total: 0 };
    for (const scope of this.#nodes.scopes()) {
      const { running, pending, total } = scope.bound.counts();
      counts.running += running;
      counts.pending += pending;
      counts.total += total;
    }
    return counts;
  }

  takenNames(): string[] {
    const isTaken = (name: string): boolean => this.#identities.get(name)?.standing.refusal?.isVirtual === false;
    return this.#nodes
      .all()
      .map(([name]) => name)
      .filter((name) => this.#acting.wantsNode(name) && isTaken(name))
      .toSorted();
  }

  problem(): ReturnType<MemberScope['problem']> {
    for (const [name, scope] of this.#nodes.all()) {
      if (!this.#acting.wantsNode(name)) continue;
      const { identity, standing } = this.#identities.get(name) ?? {};
      if (standing?.refusal !== undefined) return { reason: 'NodeNameTaken', message: standing.refusal.message };
      const message = identity?.problem ?? scope?.problem;
      if (message !== undefined) return { reason: 'NodeNotKept', message, open: identity?.asking === true };
    }
    return undefined;
  }

  allocatable(): MemberClusterStatus['allocatable'] | undefined {
    if (!this.#acting.connection.synced()) return undefined;
    const sum = new Map<string, bigint>();
    for (const [name] of this.#nodes.all()) addTo(sum, parseAmounts(this.#capacity.offer(name)?.allocatable));
    return formatAmounts(sum);
  }

  room(): ReturnType<MemberScope['room']> {
    if (!this.#acting.connection.synced()) return undefined;
    const largest = this.#capacity.largestFreeSlot();
    return { largestFreeSlot: formatAmounts(largest ?? NOTHING), fits: this.#capacity.roomForShapes() };
  }

  roomsKnown(): boolean {
    if (isLeaving(this.#acting.member())) return true;
    const all = this.#nodes.all();
    const wanted = all.filter(([name]) => this.#acting.wantsNode(name) && !this.#identities.isOthers(name));
    return all.length > 0 && wanted.every(([, scope]) => scope?.roomKnown === true);
  }
}
