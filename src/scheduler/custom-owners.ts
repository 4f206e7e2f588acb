import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { customKindKey, customKindOf } from '../api/custom-kinds.ts';
import { ownersMayNotBeRead } from '../api/owner-rights.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import { cleanText } from '../kube/clean-text.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isForbidden } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { KindDirectory } from '../kube/kind-directory.ts';
import { atMost } from '../kube/lru-limit.ts';
import type { OwnerReference } from '../kube/object.ts';
import { mayI } from '../kube/own-rights.ts';
import type { Resource } from '../kube/resource.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import { FollowedKind } from './followed-kind.ts';
import { IDLE_MS, kindsToFollow, MOST_KINDS } from './kinds-to-follow.ts';
import { OwnerRoom } from './owner-room.ts';

export interface CustomOwnersOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  /** In ms. */
  monotonic: () => number;
  /** Whether all is known that may name kinds. */
  isComplete: () => boolean;
  /** Kinds, by their keys, that pods and their owners name now. Anybody can make them up. */
  named: () => Iterable<string>;
  /** The same for what policies choose by. */
  chosen: () => Iterable<string>;
  /** Of these the ones that policies of the whole cluster choose by. */
  chosenForAll: () => ReadonlySet<string>;
  changed: (object: TypedObject, old: TypedObject | undefined) => void;
  /** Between two looks, as long as there is anything to look at, in ms; 5,000. */
  lookMs?: number | undefined;
}

/**
 * What is known of a kind. `pending`: it is being found out, or read; soon it is something else. `none`: there is no such kind.
 * `unread`: there is, but its objects are not known, and why not; `isPassedOver`: as rights are missing, which nobody may ever grant.
 */
export type KindState =
  | { readonly is: 'followed' | 'pending' | 'none' }
  | {
      readonly is: 'unread';
      readonly resource: Resource | undefined;
      readonly why: string;
      readonly isPassedOver: boolean;
    };

interface Kind {
  readonly resource: Resource;
  wantedAt: number;
  /** When a pod or an owner last named it, in monotonic ms. */
  ownsAt: number;
  byPolicy: boolean;
  /** When rights were asked for last, in monotonic ms; undefined: not yet. */
  reviewedAt: number | undefined;
  isAllowed: boolean;
  /** Times in a row that it was not. */
  denials: number;
  isFirst: boolean;
  follower: FollowedKind | undefined;
  startedAt: number;
  /** When it was last looked whether owners have room again, in monotonic ms. */
  renewedAt: number;
  /** Since when it cannot be read as a whole, in monotonic ms. */
  illSince: number | undefined;
}

/** After that a kind that cannot be listed is waited for no longer, in ms. */
const SYNC_MS = 10_000;
/** Between two questions for the rights on a kind, in ms; for one that a policy chooses by, whose condition people watch. */
const REVIEW_MS = 30_000;
const POLICY_REVIEW_MS = 10_000;
const LOOK_MS = 5_000;
/** The process answers after that, whatever is not known of kinds, in ms. */
const START_MS = 15_000;
/** Between two looks whether owners that had no room in memory have it by now, in ms. */
const RENEW_MS = 60_000;
const POLL_MS = 100;
/** One that was read is given up when rights are denied so often in a row: an API server that starts denies what it will not soon after. */
const LAST_DENIAL = 3;
const LONGEST_WORDS = 300;

/**
 * Owners of pods of kinds that are not Kubernetes' own (a Rollout, a CloneSet), by their metadata. A kind is followed when pods, their owners
 * or policies name it, the host has it, and its administrator gave the right to list and watch it everywhere; a bounded number of them, in
 * bounded memory. Names that anybody made up cost no more than a look into what the host serves, which is kept.
 */
export class CustomOwners {
  readonly #o: CustomOwnersOptions;
  readonly #directory: KindDirectory;
  readonly #room = new OwnerRoom();
  /** By key; only kinds that the host has. */
  readonly #kinds = new Map<string, Kind>();
  /** Named by pods that no cache may show yet. */
  readonly #asked: LRUCache<string, true>;
  readonly #wake = new AutoResetEvent();
  /** By key, who waits until it is known what there is to know of it. */
  readonly #waiters = new Map<string, Set<() => void>>();
  readonly #handlers = new Set<() => void>();
  /** By apiVersion: what the host serves of it cannot be read, or may not, why, and since when (monotonic ms). The empty one: of all. */
  readonly #failures = new Map<string, { readonly at: number; readonly why: string; readonly isDenied: boolean }>();
  #told = '';
  #chosen: ReadonlySet<string> = new Set();
  #beganAt: number | undefined;
  #hasSettled = false;

  constructor(options: CustomOwnersOptions) {
    this.#o = options;
    this.#directory = new KindDirectory(options.host, options.monotonic);
    this.#asked = new LRUCache({
      ...atMost(1_000),
      ttl: LOOK_MS,
      ttlResolution: 0,
      perf: { now: options.monotonic },
    });
  }

  /** Follows until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#o.isComplete()) await this.#look(signal);
      await this.#wake.wait(signal, this.#restMs());
    }
    await Promise.all([...this.#kinds.values()].map(async ({ follower }) => await follower?.stop()));
  }

  /** Of all kinds that are named it is known what there is to know, or that took too long. Stays true. */
  get hasSettled(): boolean {
    return this.#hasSettled || this.#o.monotonic() - (this.#beganAt ?? Infinity) > START_MS;
  }

  /** Calls the handler whenever more or less is known of a kind than before. Returns what ends that. */
  on(handler: () => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** A pod, an owner or a policy names that kind: looks soon, if that may bring anything. `asked`: no cache may show who it was. */
  noticed(key: string, asked = false): void {
    if (asked) this.#asked.set(key, true);
    if (this.stateOf(key).is === 'pending') this.#wake.set();
  }

  isFollowed(key: string): boolean {
    return this.stateOf(key).is === 'followed';
  }

  /** Looks at once for that kind, too; the listener is called once it is not pending any more. Returns what takes it back. */
  want(key: string, settled: () => void): () => void {
    const waiters = this.#waiters.get(key) ?? new Set();
    this.#waiters.set(key, waiters.add(settled));
    this.noticed(key, true);
    return () => {
      waiters.delete(settled);
      if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
    };
  }

  stateOf(key: string): KindState {
    const { apiVersion, kind } = customKindOf(key);
    const known = this.#kinds.get(key);
    if (known?.follower?.hasSynced === true) return { is: 'followed' };
    if (known?.reviewedAt === undefined) {
      if (known === undefined && this.#directory.known(apiVersion, kind) === null) return { is: 'none' };
      const failure = this.#failures.get('') ?? this.#failures.get(apiVersion);
      if (failure === undefined) return { is: 'pending' };
      return unread(known?.resource, failing(failure.why), failure.isDenied);
    }
    const { resource, isAllowed, isFirst, follower, startedAt } = known;
    if (!isAllowed) return unread(resource, ownersMayNotBeRead(resource), true);
    if (!isFirst)
      return unread(resource, `no more than ${String(MOST_KINDS)} kinds are followed, and others come first`);
    if (follower === undefined || this.#o.monotonic() - startedAt < SYNC_MS) return { is: 'pending' };
    return unread(resource, failing(follower.problem ?? 'no answer'));
  }

  /** Why objects of a kind are not known, in words; undefined while they are, or that is being found out. */
  whyUnread(key: string): string | undefined {
    const state = this.stateOf(key);
    if (state.is === 'unread') return state.why;
    if (state.is === 'followed') return this.problemOf(key);
    return this.isAbsent(key) ? 'the host has no such kind' : undefined;
  }

  /** Whether pods of objects of the kind that are not known wait until they can be read: it is not for a missing right that they cannot. */
  holds(key: string): boolean {
    const state = this.stateOf(key);
    return state.is === 'unread' ? !state.isPassedOver : this.problemOf(key) !== undefined;
  }

  /** Whether the host did not have the kind when that was last looked at. */
  isAbsent(key: string): boolean {
    const { apiVersion, kind } = customKindOf(key);
    return !this.#kinds.has(key) && this.#directory.wasAbsent(apiVersion, kind);
  }

  /** Why objects of a kind that is followed may be missing for longer than a moment, in words. */
  problemOf(key: string): string | undefined {
    const { follower, illSince } = this.#kinds.get(key) ?? {};
    if (follower?.problem === undefined || illSince === undefined) return undefined;
    return this.#o.monotonic() - illSince < SYNC_MS ? undefined : failing(follower.problem);
  }

  /** How a kind that is followed is addressed. */
  resourceOf(owner: Pick<OwnerReference, 'apiVersion' | 'kind'>): Resource | undefined {
    const known = this.#kinds.get(customKindKey(owner) ?? '');
    return known?.follower === undefined ? undefined : known.resource;
  }

  find({ apiVersion, kind, name }: OwnerReference, namespace: string | undefined): TypedObject | undefined {
    const key = customKindKey({ apiVersion, kind });
    return key === undefined ? undefined : this.#kinds.get(key)?.follower?.named(namespace, name);
  }

  #restMs(): number | undefined {
    if (!this.#hasSettled) return POLL_MS;
    return this.#kinds.size + this.#chosen.size + this.#failures.size === 0 ? undefined : (this.#o.lookMs ?? LOOK_MS);
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { monotonic, named, chosen, logger } = this.#o;
    const now = monotonic();
    this.#beganAt ??= now;
    this.#chosen = new Set(chosen());
    const owning = new Set([...this.#asked.keys(), ...named()]);
    for (const { follower } of this.#kinds.values()) for (const key of follower?.kindsAbove() ?? []) owning.add(key);
    const wanted = new Set([...this.#chosen, ...owning]);
    for (const [key, known] of this.#kinds) {
      known.byPolicy = this.#chosen.has(key);
      known.illSince = known.follower?.problem === undefined ? undefined : (known.illSince ?? now);
      if (now - known.renewedAt >= RENEW_MS) {
        known.renewedAt = now;
        if (known.follower?.renew() === true)
          logger.info({ kind: key }, `${known.resource.plural} are read anew, as there is room for more of them`);
      }
      if (wanted.has(key)) known.wantedAt = now;
      else if (known.follower === undefined) this.#kinds.delete(key);
    }
    for (const [what, { at }] of this.#failures) if (now - at > IDLE_MS) this.#failures.delete(what);
    await this.#lookAtGroups(wanted, signal);
    for (const key of wanted) {
      if (signal.aborted) return;
      if (this.#isDue(key)) await this.#review(key, signal);
    }
    for (const [key, known] of this.#kinds) if (owning.has(key)) known.ownsAt = now;
    await this.#follow(now, signal);
    this.#hasSettled ||= ![...wanted].some((key) => this.stateOf(key).is === 'pending');
    this.#tell();
  }

  async #lookAtGroups(wanted: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const isNew = [...wanted].some((key) => {
      const { apiVersion, kind } = customKindOf(key);
      return !this.#kinds.has(key) && this.#directory.known(apiVersion, kind) === undefined;
    });
    if (isNew) await this.#trying('', async () => await this.#directory.lookAtGroups(signal), signal);
  }

  /** Whether it has to be asked (again) if the kind is there and may be read. */
  #isDue(key: string): boolean {
    const known = this.#kinds.get(key);
    const { apiVersion, kind } = customKindOf(key);
    const failedAt = this.#failures.get(apiVersion)?.at;
    const now = this.#o.monotonic();
    if (failedAt !== undefined && now - failedAt < REVIEW_MS) return false;
    if (known?.reviewedAt === undefined) {
      return this.#directory.hasGroup(apiVersion) && this.#directory.known(apiVersion, kind) !== null;
    }
    const isWell = known.follower !== undefined && known.follower.problem === undefined;
    return !isWell && now - known.reviewedAt >= (known.byPolicy ? POLICY_REVIEW_MS : REVIEW_MS);
  }

  async #review(key: string, signal: AbortSignal): Promise<void> {
    const { apiVersion, kind } = customKindOf(key);
    await this.#trying(
      apiVersion,
      async () => {
        const known = this.#kinds.get(key);
        // It may not be there any more, or be another.
        if (known?.follower !== undefined) this.#directory.forget(apiVersion);
        const resource = await this.#directory.find(apiVersion, kind, signal);
        if (known !== undefined && (resource === undefined || !isSame(resource, known.resource))) {
          await known.follower?.stop();
          this.#kinds.delete(key);
        }
        if (resource === undefined) return;
        const now = this.#o.monotonic();
        const one = this.#kinds.get(key) ?? fresh(resource, this.#chosen.has(key), now);
        this.#kinds.set(key, one);
        const mayFollow = await this.#mayFollow(resource, signal);
        one.denials = mayFollow ? 0 : one.denials + 1;
        one.isAllowed = mayFollow || (one.follower?.hasSynced === true && one.denials < LAST_DENIAL);
        one.reviewedAt = now;
      },
      signal,
    );
  }

  async #trying(what: string, attempt: () => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await attempt();
      this.#failures.delete(what);
    } catch (error) {
      if (signal.aborted) return;
      const why = describeError(error);
      if (this.#failures.get(what)?.why !== why) {
        this.#o.logger.warn({ err: error, apiVersion: what }, `kinds that own pods cannot be looked up: ${why}`);
      }
      this.#failures.set(what, { at: this.#o.monotonic(), why, isDenied: isForbidden(error) });
    }
  }

  async #mayFollow({ group, plural: resource }: Resource, signal: AbortSignal): Promise<boolean> {
    const { host } = this.#o;
    return (
      (await mayI(host, { verb: 'list', group, resource }, signal)) &&
      (await mayI(host, { verb: 'watch', group, resource }, signal))
    );
  }

  /** Begins to follow what comes first, and ends what does not. */
  async #follow(now: number, signal: AbortSignal): Promise<void> {
    const { host, logger, metrics, changed, chosenForAll, monotonic } = this.#o;
    const allowed = [...this.#kinds].filter(([, { isAllowed }]) => isAllowed);
    const forAll = chosenForAll();
    const first = kindsToFollow(
      allowed.map(([key, { follower, ...rest }]) => {
        return { key, ...rest, isForAll: forAll.has(key), isFollowed: follower !== undefined };
      }),
      now,
    );
    for (const [key, known] of this.#kinds) {
      known.isFirst = first.has(key);
      if (known.isFirst || known.follower === undefined) continue;
      logger.info({ kind: key }, `${known.resource.plural} are not followed any more`);
      await known.follower.stop();
      known.follower = undefined;
    }
    if (signal.aborted) return;
    for (const [key, known] of this.#kinds) {
      if (!known.isFirst || known.follower !== undefined) continue;
      const { resource } = known;
      logger.info({ kind: key }, `${resource.plural} are followed by their metadata, as they own pods`);
      known.follower = new FollowedKind({ host, resource, room: this.#room, logger, metrics, changed });
      known.startedAt = monotonic();
      known.follower.start(() => this.#wake.set());
    }
  }

  #tell(): void {
    for (const [key, waiters] of this.#waiters) {
      if (this.stateOf(key).is === 'pending') continue;
      this.#waiters.delete(key);
      for (const settled of waiters) settled();
    }
    const all = new Set([...this.#kinds.keys(), ...this.#chosen]);
    const told = JSON.stringify([...all].toSorted().map((key) => [key, this.stateOf(key), this.problemOf(key)]));
    if (told === this.#told) return;
    this.#told = told;
    for (const handler of this.#handlers) handler();
  }
}

function fresh(resource: Resource, byPolicy: boolean, now: number): Kind {
  return {
    resource,
    byPolicy,
    wantedAt: now,
    ownsAt: Number.NEGATIVE_INFINITY,
    reviewedAt: undefined,
    isAllowed: false,
    denials: 0,
    isFirst: false,
    follower: undefined,
    startedAt: now,
    renewedAt: now,
    illSince: undefined,
  };
}

function isSame(a: Resource, b: Resource): boolean {
  return a.plural === b.plural && a.namespaced === b.namespaced;
}

function unread(resource: Resource | undefined, why: string, isPassedOver = false): KindState {
  return { is: 'unread', resource, why, isPassedOver };
}

function failing(problem: string): string {
  return `it is tried again: ${cleanText(problem, LONGEST_WORDS)}`;
}
