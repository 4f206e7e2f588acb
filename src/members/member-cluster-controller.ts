import type { Logger } from 'pino';
import { isLeaving, MEMBER_CLUSTERS, type MemberCluster, parseMemberCluster } from '../api/member-cluster.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { Informer } from '../kube/informer.ts';
import type { KubeObject } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import { get } from '../kube/verbs.ts';
import { childSignal } from '../kube/child-signal.ts';
import type { ChildSignal } from '../kube/child-signal.ts';
import type { MemberConnectionOptions } from './connection.ts';
import { MemberRunner } from './member-runner.ts';
import type { MemberLease, StartObserved, StartScope } from './member-scope.ts';

/** Between two looks at whether a MemberCluster is really gone, and after a failure of its runner, in ms. */
const AGAIN_MS = 5_000;

export interface MemberClusterControllerOptions extends Pick<
  MemberConnectionOptions,
  'hostId' | 'podIndexes' | 'clientMetrics' | 'informerMetrics' | 'metrics' | 'invariants' | 'hostProblem'
> {
  host: KubeClient;
  /**
   * The lease that guards the member of that name. Called once for each life of a MemberCluster. Default: this process
   * acts for no member.
   */
  leaseFor?: (member: string) => MemberLease;
  startScope: StartScope;
  /** A MemberCluster is gone, and nothing runs for it any more. */
  forgotten?: (member: string) => Promise<void>;
  events?: Pick<EventRecorder, 'record'>;
  /** Why pods of a member are not moved although it is lost, in words, by what all MemberClusters say. Default: they are. */
  whyMovesPaused?: (member: MemberCluster, all: () => readonly MemberCluster[]) => string | undefined;
  /** What runs for members that this process does not act for. Default: nothing; there is no connection to them. */
  startObserved?: StartObserved;
  logger: Logger;
}

interface Life {
  uid: string | undefined;
  runner: MemberRunner;
  lease: MemberLease | undefined;
  child: ChildSignal;
  ended: Promise<void>;
}

/**
 * Runs every MemberCluster of the host, each by itself: added, edited and removed while the program runs. Removing one
 * ends what runs for it; its Node and pods stay as they are (invariant I17).
 */
export class MemberClusterController {
  readonly #o: MemberClusterControllerOptions;
  readonly #informer: Informer<KubeObject>;
  readonly #lives = new Map<string, Life>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: MemberClusterControllerOptions) {
    this.#o = options;
    this.#informer = new Informer({
      client: options.host,
      resource: MEMBER_CLUSTERS,
      logger: options.logger,
      metrics: options.informerMetrics,
    });
  }

  /** Whether all MemberClusters are known. */
  get synced(): boolean {
    return this.#informer.hasSynced;
  }

  /** Why they cannot be read, in words; undefined while they can. */
  get problem(): string | undefined {
    return this.#informer.problem;
  }

  /**
   * Whether there is a MemberCluster of that name that stands for the cluster with that identity, or may turn out to. One
   * that is gone is one that was read to be gone.
   */
  mayStandFor(name: string, identity: string): boolean {
    const life = this.#lives.get(name);
    if (life === undefined) return !this.#informer.hasSynced || this.#informer.get(name) !== undefined;
    return (life.runner.pinned ?? identity) === identity;
  }

  /** Whether any MemberCluster but that one, and none that leaves, stands for the cluster with that identity, or may turn out to. */
  isShared(identity: string, except: string): boolean {
    return this.#stayingBut(except).some((name) => this.mayStandFor(name, identity));
  }

  /** The same of those that are known to stand for it. */
  isKnownToBeShared(identity: string, except: string): boolean {
    return this.#stayingBut(except).some((name) => this.#lives.get(name)?.runner.pinned === identity);
  }

  #stayingBut(except: string): string[] {
    const all = [...this.#informer.values()].filter((one) => !isLeaving(one)).map(({ metadata }) => metadata.name);
    return all.filter((name) => name !== except);
  }

  /** All that can be read; undefined while they are not known. */
  get members(): MemberCluster[] | undefined {
    if (!this.#informer.hasSynced) return undefined;
    return [...this.#informer.values()].flatMap((raw) => this.#memberOf(raw) ?? []);
  }

  /** The one of that name, where it can be read. */
  named(name: string): MemberCluster | undefined {
    const raw = this.#informer.get(name);
    return raw === undefined ? undefined : this.#memberOf(raw);
  }

  #memberOf(raw: KubeObject): MemberCluster | undefined {
    const parsed = parseMemberCluster(raw);
    return 'member' in parsed ? parsed.member : undefined;
  }

  #othersOf(identity: string, except: string): string[] {
    const others = [...this.#lives].filter(([name, { runner }]) => name !== except && runner.pinned === identity);
    return others.map(([name]) => name).toSorted();
  }

  #movesPaused(name: string): { why: string | undefined } | undefined {
    if (!this.#informer.hasSynced) return undefined;
    const member = this.named(name);
    return { why: member && this.#o.whyMovesPaused?.(member, () => this.members ?? []) };
  }

  /** Whether there is a MemberCluster of that name, as far as is known. */
  knows(name: string): boolean {
    return this.#lives.has(name) || !this.#informer.hasSynced || this.#informer.get(name) !== undefined;
  }

  /** Whether a MemberCluster other than that one wants a virtual node of that name. */
  wantsNode(nodeName: string, other: string): boolean {
    for (const [name, { runner }] of this.#lives) if (name !== other && runner.wantsNode(nodeName)) return true;
    return false;
  }

  /** Works until the signal aborts, then lets every member end. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const off = this.#informer.on({
      added: (raw) => {
        this.#start(raw, signal);
      },
      updated: (raw) => {
        this.#lives.get(raw.metadata.name)?.runner.update(raw);
      },
      deleted: (raw, evidence) => {
        this.#track(this.#gone(raw, evidence === 'watched'));
      },
    });
    await this.#informer.run(signal);
    off();
    await Promise.all([...this.#lives.values()].map(({ ended }) => ended));
    await Promise.all(this.#ending);
  }

  #start(raw: KubeObject, signal: AbortSignal): void {
    const { name, uid } = raw.metadata;
    const former = this.#lives.get(name);
    if (former !== undefined && former.uid === uid) {
      former.runner.update(raw);
      return;
    }
    former?.child.abort();
    const { leaseFor, startObserved, metrics } = this.#o;
    const logger = this.#o.logger.child({ member: name });
    const lease = leaseFor?.(name);
    const runner = new MemberRunner(raw, {
      ...this.#o,
      lease,
      startObserved,
      othersOf: (identity) => this.#othersOf(identity, name),
      movesPaused: (member) => this.#movesPaused(member),
      logger,
    });
    const child = childSignal(signal);
    const run = async (): Promise<void> => {
      await former?.ended;
      logger.info('following the member');
      while (!child.signal.aborted) {
        try {
          await runner.run(child.signal);
        } catch (error) {
          logger.error({ err: error }, 'following the member failed');
        }
        await pause(AGAIN_MS, child.signal);
      }
      child.release();
      if (this.#lives.get(name)?.runner === runner) {
        this.#lives.delete(name);
        metrics?.forget(name);
        this.#o.clientMetrics?.forget(name);
      }
      logger.info('the member is not followed any more; its nodes and pods stay as they are');
    };
    this.#lives.set(name, { uid, runner, lease, child, ended: run() });
  }

  /** A list that lacks the object may be wrong (I7); only a read that says so too ends the member. */
  async #gone(raw: KubeObject, certain: boolean): Promise<void> {
    const { name, uid } = raw.metadata;
    const life = this.#lives.get(name);
    if (life === undefined || life.uid !== uid) return;
    if (certain || (await this.#confirmGone(name, uid, life.child.signal))) {
      life.child.abort();
      await life.ended;
      if (this.#lives.has(name)) return;
      await life.lease?.discard?.();
      await this.#o.forgotten?.(name);
    }
  }

  async #confirmGone(name: string, uid: string | undefined, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      try {
        const found = await get(this.#o.host, MEMBER_CLUSTERS, { name }, { signal });
        return found.metadata.uid !== uid;
      } catch (error) {
        if (isNotFound(error)) return true;
        this.#o.logger.warn(
          { member: name },
          `whether the MemberCluster is gone cannot be told: ${describeError(error)}`,
        );
        await pause(AGAIN_MS, signal);
      }
    }
    return false;
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#ending.delete(tracked));
    this.#ending.add(tracked);
  }
}
