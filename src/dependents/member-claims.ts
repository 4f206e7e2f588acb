import type { Logger } from 'pino';
import { hostKeyOf } from '../api/host-key.ts';
import { isActive } from '../api/pod-phase.ts';
import { HOST_UID_ANNOTATION } from '../api/marks.ts';
import type { PersistentVolumeClaim } from '../kube/volumes.ts';
import type { Pod } from '../kube/core-v1.ts';
import { describeError } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { keyFor, keyOf, splitKey } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import { claimsOfPod, type PodClaim } from '../pods/translate-claims.ts';
import { type ClaimAnswer, type ClaimFacts, decideClaim, isIn, claimState } from './claim-decision.ts';
import type { ClaimMetrics } from './claim-metrics.ts';
import { ClaimReclaimer } from './claim-reclaimer.ts';
import { BEHIND_RETRY_MS, FROZEN_RETRY_MS, UNKNOWN_RETRY_MS } from './claim-retries.ts';
import { ClaimTopology } from './claim-topology.ts';
import type { ClaimHome } from './claim-refusal.ts';
import { type ClaimFailure, claimNotFound, claimNotOwned, claimPending, claimReadiness } from './claim-readiness.ts';
import { type ClaimOverridesPort, type ClaimPlan, planClaim } from './claim-overrides.ts';
import { ClaimWriter, type ClaimWriterOptions } from './claim-writer.ts';
import type { CopyRecord } from './copy.ts';
import type { Knowledge } from './copy-informers.ts';
import type { HostClaims } from './host-claims.ts';
import { volumeNameOf } from './member-volume.ts';
import type { Readiness } from './readiness.ts';
import type { VolumePlaces } from './volume-places.ts';

export interface MemberClaimsOptions extends ClaimWriterOptions {
  hostClaims: HostClaims;
  home: () => ClaimHome;
  /** The pod of the host on a virtual node of the member; undefined: there is none any more. */
  hostPod: (podKey: string) => Pod | undefined;
  /** A pod that was not ready may be so now, or for another reason. */
  onReady: (podKey: string) => void;
  mayWrite: () => boolean;
  /** How long a creation that nobody has seen the outcome of may be carried out yet, in ms. */
  openCreationMs: number;
  /** Default: there are no override policies. */
  overrides?: ClaimOverridesPort;
  /** Where the member's volumes can be used. Default: everywhere. */
  places?: Pick<VolumePlaces, 'want' | 'forget' | 'of'>;
  events: Pick<EventRecorder, 'record'>;
  metrics?: ClaimMetrics;
  logger: Logger;
  queueMetrics?: WorkQueueMetrics | undefined;
}

/** Namespaces have no colon. */
const VOLUME = 'volume:';
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 60_000;
/** A name that a stranger has in the member is looked at again after so long. */
const TAKEN_RETRY_MS = 15_000;
/** How many claims tell of an outage. */
const MOST_TOLD = 100;

type Again = undefined | { requeueAfterMs: number };

/**
 * Claims of the host in one member: binds them to it by volumes of the host, makes each in the member when the first pod
 * uses it, shows what the member says of it, and lets its data go with it. Level-triggered, one key per claim and volume.
 */
export class MemberClaims {
  /** What claims mean for where pods can run. */
  readonly places: ClaimTopology;
  /** What becomes of data whose claim is gone. */
  readonly reclaimer: ClaimReclaimer;
  readonly #o: MemberClaimsOptions;
  readonly #queue: WorkQueue;
  readonly #writer: ClaimWriter;
  /** Keys of pods on the member's virtual nodes, by the key of a claim that they use. */
  readonly #users = new Map<string, Set<string>>();
  /** What each of them uses. Another pod of the same name may use others. */
  readonly #used = new Map<string, { uid: string | undefined; claims: readonly string[] }>();
  /** What keeps a claim from being made in the member. */
  readonly #failures = new Map<string, ClaimFailure>();
  /** What the member said, when asked, of a claim of its own, by its UID. */
  readonly #answers = new Map<string, { uid: string | undefined; answer: ClaimAnswer }>();
  /** What pods were told of a claim last. */
  readonly #told = new Map<string, string>();

  constructor(options: MemberClaimsOptions) {
    this.#o = options;
    this.places = new ClaimTopology(options);
    this.#writer = new ClaimWriter(options);
    this.reclaimer = new ClaimReclaimer({ ...options, places: this.places, writer: this.#writer });
    this.#queue = new WorkQueue({
      name: `claims-${options.home().member}`,
      concurrency: 8,
      handler: async (key, signal) => await this.#handle(key, signal),
      backoff: { baseMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS },
      logger: options.logger,
      metrics: options.queueMetrics,
    });
    options.copies.on(
      (copy) => this.#copySeen(copy),
      (kind, namespace) => {
        if (kind === 'PersistentVolumeClaim') this.#placeKnown(namespace);
      },
    );
  }

  /** Works until the signal aborts. What is in the clusters stays. */
  async run(signal: AbortSignal): Promise<void> {
    const off = this.#o.hostClaims.on({
      claim: (key) => this.#queue.add(key),
      volume: (name) => this.#queue.add(VOLUME + name),
      everything: () => this.resync(),
    });
    this.resync();
    await this.#queue.run(signal);
    off();
  }

  /** The MemberCluster, the cluster behind it, or override policies changed. */
  resync(): void {
    const { hostClaims } = this.#o;
    for (const claim of hostClaims.claims()) this.#queue.add(keyOf(claim));
    for (const { metadata } of hostClaims.volumes()) this.#queue.add(VOLUME + metadata.name);
    for (const key of this.#users.keys()) this.#queue.add(key);
  }

  /** The member has stopped answering. Schedulers do not name the taint that keeps pods of these claims waiting. */
  recordOutage(): void {
    const { hostClaims, home, events } = this.#o;
    const { member } = home();
    let told = 0;
    for (const { metadata } of hostClaims.volumes()) {
      const volume = hostClaims.volume(metadata.name);
      if (volume?.member !== member) continue;
      const { namespace, name, uid } = volume.for;
      if (hostClaims.get(keyFor(namespace, name))?.claim.metadata.uid !== uid) continue;
      if (told === MOST_TOLD) return;
      told += 1;
      const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid };
      const message = `Cluster "${member}", where the data of the claim are, does not answer. Pods that use it wait and start by themselves when it does; nothing is deleted.`;
      events.record(object, 'Warning', 'MemberUnreachable', message);
    }
  }

  /** Notes which claims a pod uses that is bound to a virtual node of the member. */
  track(pod: Pod): void {
    const podKey = keyOf(pod);
    const { uid } = pod.metadata;
    const known = this.#used.get(podKey);
    // Which volumes a pod has does not change.
    if (known !== undefined && known.uid === uid) return;
    this.release(podKey);
    const keys = claimsOfPod(pod).map(({ claim }) => keyFor(pod.metadata.namespace, claim));
    if (keys.length === 0) return;
    this.#used.set(podKey, { uid, claims: keys });
    for (const key of keys) {
      this.#users.set(key, (this.#users.get(key) ?? new Set()).add(podKey));
      this.#queue.add(key);
    }
  }

  /** The pod is gone. Its claims stay. */
  release(podKey: string): void {
    for (const key of this.#used.get(podKey)?.claims ?? []) {
      const users = this.#users.get(key);
      users?.delete(podKey);
      if (users?.size === 0) this.#users.delete(key);
    }
    this.#used.delete(podKey);
  }

  /**
   * The claim of the host that a claim of the member was made for, and keys of the pods that use it. The marks there are
   * the member's to change: only what the host itself binds to that claim counts.
   */
  madeFor(
    namespace: string,
    name: string,
    uid: string,
  ): { claim: PersistentVolumeClaim; users: readonly string[] } | undefined {
    const copy = this.places.copyAt(namespace, name);
    if (copy?.metadata.uid !== uid) return undefined;
    const key = hostKeyOf(copy);
    if (key === undefined) return undefined;
    const facts = this.#factsOf(key);
    if (facts === undefined || facts.copy?.metadata.uid !== uid || !isIn(facts)) return undefined;
    return { claim: facts.claim, users: [...(this.#users.get(key) ?? [])] };
  }

  /** Whether all claims of the pod are in the member, and in that namespace of it, where the pod is or is to be. */
  require(pod: Pod, place: string): Readiness {
    this.track(pod);
    let answer: Readiness = { ready: true };
    for (const claim of claimsOfPod(pod)) {
      const one = this.#requireOne(pod, claim, place);
      if (one.ready) continue;
      // What users can do something about comes first.
      if (answer.ready || (answer.pending && !one.pending)) answer = one;
    }
    return answer;
  }

  #requireOne(pod: Pod, { claim: name, ephemeral }: PodClaim, place: string): Readiness {
    const { hostClaims } = this.#o;
    const { namespace = '' } = pod.metadata;
    const unknown = hostClaims.unknown();
    if (unknown !== undefined) return claimPending(name, unknown.problem);
    const key = keyFor(namespace, name);
    const host = hostClaims.get(key);
    // The host's controller makes it from the pod, and may be a moment behind it.
    if (host === undefined) return claimNotFound(name, namespace, ephemeral);
    if (ephemeral && !host.claim.metadata.ownerReferences?.some(({ uid }) => uid === pod.metadata.uid)) {
      return claimNotOwned(name);
    }
    return this.#readiness(key, this.#factsOf(key, place));
  }

  /** What pods that use the claim are told. */
  #readiness(key: string, facts: ClaimFacts | undefined): Readiness {
    const { member } = this.#o.home();
    const { namespace = '', name } = splitKey(key);
    if (facts === undefined) return claimNotFound(name, namespace, false);
    const { volume } = facts;
    const place = { name, member, namespace: volume?.namespace ?? '' };
    return claimReadiness(claimState(facts), place, volume?.name ?? '', this.#failures.get(key));
  }

  #factsOf(key: string, where?: string): ClaimFacts | undefined {
    const host = this.#o.hostClaims.get(key);
    if (host === undefined) return undefined;
    const place = where ?? this.#o.memberNamespaceOf(host.claim.metadata.namespace ?? '');
    const { volume } = host;
    const home = this.#o.home();
    const isHere = volume?.member === home.member;
    const said = this.#answers.get(key);
    return {
      ...host,
      home,
      copy: volume === undefined ? undefined : this.places.copyAt(volume.namespace, volume.claim),
      knowledge: isHere ? this.#knowledge(volume.namespace) : { known: true },
      answer: said !== undefined && said.uid === volume?.claimUid ? said.answer : undefined,
      place,
      wanted: this.#isWanted(key),
      plan: (): ClaimPlan => planClaim(host.claim, this.#o.overrides),
    };
  }

  /** One whose pod is gone or has ended, while its copy may still be in the member, needs no claim that was made since. */
  #isWanted(key: string): boolean {
    const pods = [...(this.#users.get(key) ?? [])].map((podKey) => this.#o.hostPod(podKey));
    return pods.some((pod) => pod !== undefined && isActive(pod));
  }

  #copySeen(copy: CopyRecord): void {
    if (copy.kind !== 'PersistentVolumeClaim') return;
    this.places.copySeen(copy);
    const key = hostKeyOf(copy);
    if (key !== undefined) this.#queue.add(key);
    const uid = copy.metadata.annotations?.[HOST_UID_ANNOTATION];
    if (uid !== undefined) this.#queue.add(VOLUME + volumeNameOf({ uid }));
  }

  #placeKnown(namespace: string): void {
    const { hostClaims, home } = this.#o;
    const { member } = home();
    for (const { metadata } of hostClaims.volumes()) {
      const volume = hostClaims.volume(metadata.name);
      if (volume?.member !== member || volume.namespace !== namespace) continue;
      this.#queue.add(VOLUME + volume.name);
      this.#queue.add(keyFor(volume.for.namespace, volume.for.name));
    }
  }

  async #handle(key: string, signal: AbortSignal): Promise<Again> {
    if (this.#o.hostClaims.unknown() !== undefined) return undefined;
    if (key.startsWith(VOLUME)) return await this.reclaimer.handle(key.slice(VOLUME.length), signal);
    try {
      const facts = this.#factsOf(key);
      if (facts !== undefined) return await this.#step(key, facts, signal);
      this.#failures.delete(key);
      this.#answers.delete(key);
      return undefined;
    } finally {
      this.#wake(key, this.#factsOf(key));
    }
  }

  /** Whether all our claims in that namespace of the member are known; from the first question on they are followed. */
  #knowledge(namespace: string): Knowledge {
    return this.#o.copies.knowledge('PersistentVolumeClaim', namespace);
  }

  async #step(key: string, facts: ClaimFacts, signal: AbortSignal): Promise<Again> {
    const { metrics, events, logger, mayWrite } = this.#o;
    const { volume, home } = facts;
    const { member } = home;
    const action = decideClaim(facts);
    if (action.do === 'nothing') {
      this.#failures.delete(key);
      return undefined;
    }
    if (action.do === 'wait') return { requeueAfterMs: UNKNOWN_RETRY_MS };
    if (!mayWrite()) return { requeueAfterMs: FROZEN_RETRY_MS };
    const { namespace = '', name, uid = '' } = facts.claim.metadata;
    const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid };
    if (action.do === 'refuse') events.record(object, 'Warning', action.refusal.reason, action.refusal.message);
    try {
      const outcome = await this.#writer.perform(facts, action, signal);
      if (outcome === 'taken') {
        this.#failures.set(key, { taken: true });
        return { requeueAfterMs: TAKEN_RETRY_MS };
      }
      if (outcome === 'again') return { requeueAfterMs: BEHIND_RETRY_MS };
      if (outcome !== 'done') this.#answers.set(key, { uid: volume?.claimUid, answer: outcome });
      metrics?.steps.inc({ member, step: action.do, outcome: 'done' });
      this.#failures.delete(key);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      metrics?.steps.inc({ member, step: action.do, outcome: 'failed' });
      const problem = describeError(error).replace(/\.$/, '');
      logger.warn({ claim: key, step: action.do }, `a step for a claim failed: ${problem}`);
      if (action.do === 'resize') {
        const message = `Cluster "${member}" did not take the new size of the claim: ${problem}. It is tried again by itself.`;
        events.record(object, 'Warning', 'ClaimNotResized', message);
      } else this.#failures.set(key, { problem });
      // With backoff.
      throw error;
    }
  }

  /** Wakes the pods that use the claim if there is news for them. */
  #wake(key: string, facts: ClaimFacts | undefined): void {
    const users = this.#users.get(key);
    if (users === undefined) {
      this.#told.delete(key);
      return;
    }
    // Pods that were there before the mapping of namespaces was edited are told something else than those that come.
    const places = facts === undefined ? [facts] : [facts, { ...facts, place: facts.volume?.namespace }];
    const readiness = JSON.stringify(places.map((one) => this.#readiness(key, one)));
    if (this.#told.get(key) === readiness) return;
    this.#told.set(key, readiness);
    for (const podKey of users) this.#o.onReady(podKey);
  }
}
