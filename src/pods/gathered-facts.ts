import { LRUCache } from 'lru-cache';
import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Informer } from '../kube/informer.ts';
import { atMost } from '../kube/lru-limit.ts';
import { timestamp } from '../kube/timestamps.ts';
import { isOverdue } from './catch-up.ts';
import { ignoresPod } from './daemon-pod.ts';
import type { PodFacts } from './decide.ts';
import { hostAnnotations, hostStatus } from './host-status.ts';
import type { PodMemory } from './pod-memory.ts';
import type { PodOverrides } from './pod-overrides.ts';
import type { FencingPort, MemberPort, NamespacesPort } from './pod-ports.ts';
import type { Next } from './retry-later.ts';
import type { ReturnedCopies } from './returned-copies.ts';

/** So many deletions of host pods are remembered after they are done, about 1 MB: copies may come to life late. */
const REMEMBERED_DELETIONS = 10_000;

export interface GatheredFactsOptions {
  hostPods: Informer<Pod>;
  member: MemberPort;
  hostId: string;
  nodeName: string;
  network: () => 'Flat' | 'Isolated';
  /** What becomes of pods of DaemonSets. */
  daemonSets: () => 'Ignore' | 'Run';
  /** How long a member may be silent before its pods are shown as not ready, in ms. */
  podsUnreadyAfterMs: () => number;
  /** When the outage of the member began, as its condition says: the same for all who tell of it, and over a takeover. */
  outageBegan: () => string | undefined;
  /** Why nothing may be written at the moment (lease, identity), or undefined. */
  frozen: () => string | undefined;
  fencing: FencingPort;
  namespaces: NamespacesPort;
  overrides: Pick<PodOverrides, 'isOutdated' | 'isInSync'>;
  returned: Pick<ReturnedCopies, 'comeFirst'>;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/** What is known besides the two pods when it is decided what becomes of them. */
export class GatheredFacts {
  readonly #o: GatheredFactsOptions;
  /** UIDs of host pods whose deletion was watched to its end: a copy that comes to life after that has no host pod. */
  readonly #goneHostPods = new LRUCache<string, true>(atMost(REMEMBERED_DELETIONS));

  constructor(options: GatheredFactsOptions) {
    this.#o = options;
  }

  /** The deletions of these host pods were watched to their ends, and nothing else is remembered of them any more. */
  hostPodsGone(uids: Iterable<string>): void {
    for (const uid of uids) this.#goneHostPods.set(uid, true);
  }

  whyFrozen(): string | undefined {
    const { hostPods, member, frozen, fencing } = this.#o;
    const why = frozen();
    if (why !== undefined) return why;
    if (!hostPods.hasSynced || !member.pods.hasSynced) return 'the caches are not complete yet';
    return fencing.isRead ? undefined : 'it is not known yet what was ended while the member was out of service';
  }

  /** While a member is silent, but not yet for so long that its pods count as not ready: when that will be. */
  untilUnready(): Next {
    const since = this.#o.member.unreachableSince();
    if (since === undefined) return undefined;
    const rest = since.monotonic + this.#o.podsUnreadyAfterMs() - this.#o.monotonic();
    return rest > 0 ? { requeueAfterMs: rest } : undefined;
  }

  of(memory: PodMemory, hostPod: Pod | undefined, second: Pod | undefined): PodFacts {
    const { member, hostPods, hostId, nodeName, network, fencing, overrides, returned } = this.#o;
    const now = this.#o.monotonic();
    const nowText = timestamp(this.#o.clock());
    const since = member.unreachableSince();
    const lost = since !== undefined && this.untilUnready() === undefined;
    const frozen = this.whyFrozen();
    return {
      member: member.name,
      hostId,
      nodeName,
      ...(frozen === undefined ? {} : { frozen }),
      fenced: hostPods.hasSynced && fencing.isFenced(),
      endsFirst: () => returned.comeFirst,
      reachable: member.reachable(),
      unreachableBecause: member.unreachableBecause(),
      ...(memory.created === undefined ? {} : { created: { overdue: isOverdue(memory, now) } }),
      ...(memory.departed === undefined ? {} : { departed: memory.departed }),
      ...(memory.unanswered === undefined ? {} : { unansweredMs: memory.unanswered.until - now }),
      unansweredElsewhere: memory.unanswered !== undefined && this.#isElsewhere(memory, hostPod),
      ...(second === undefined ? {} : { second }),
      intentSettled: memory.intent?.open === false,
      hostDeletionSeen: (uid) =>
        memory.hostDeletions?.has(uid) === true || this.#goneHostPods.has(uid) || fencing.isTold(uid),
      outdated: (hostPod, memberPod) => overrides.isOutdated(hostPod, memberPod),
      hostStatus: (hostPod, memberPod) =>
        hostStatus(
          hostPod,
          memberPod,
          {
            member: member.name,
            network: network(),
            inSync: overrides.isInSync(hostPod, memberPod),
            ...(lost && !isFinished(memberPod) ? { memberLost: { began: this.#o.outageBegan() } } : {}),
          },
          nowText,
        ),
      ignored: (hostPod) => ignoresPod(hostPod, this.#o.daemonSets()),
      hostAnnotations: (memberPod) => hostAnnotations(memberPod, { network: network() }),
      now: nowText,
    };
  }

  /** Creations without an answer are for another namespace than the one in which the pod would be made now. */
  #isElsewhere({ place }: PodMemory, hostPod: Pod | undefined): boolean {
    const now = this.#o.namespaces.memberNamespaceOf(hostPod?.metadata.namespace ?? '');
    return place !== undefined && place.namespace !== now;
  }
}
