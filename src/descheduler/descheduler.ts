import { parseWorkloadRebalancer, WORKLOAD_REBALANCERS, type WorkloadRebalancer } from '../api/workload-rebalancer.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerKeyOf } from '../kube/owner-references.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { identifying } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { DisplacedPods } from './displaced-pods.ts';
import { HealthAges } from './health-ages.ts';
import { IllPods } from './ill-pods.ts';
import { LossAges } from './loss-ages.ts';
import { MemberPods } from './member-pods.ts';
import { Migrations } from './migrations.ts';
import { MoveRecords, RECORD_MS } from './move-records.ts';
import { Mover } from './mover.ts';
import type { MovesStop } from './moves-stop.ts';
import type { MovingOptions } from './moving-options.ts';
import { membersAtOnce, Pacer } from './pacer.ts';
import type { MoveRates } from './pacer.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { Rebalancers } from './rebalancers.ts';
import { RefusedInMember } from './refused-in-member.ts';
import { ReleasedPods } from './released-pods.ts';
import { Releases } from './releases.ts';
import { TaintAges } from './taint-ages.ts';
import { ToldHalts } from './told-halts.ts';
import { UnhealthyPods } from './unhealthy-pods.ts';

export interface DeschedulerOptions extends MovingOptions {
  /** The same, which writes nothing while the Lease is not held: for all that moves pods. */
  underLease: KubeClient;
  placed: PlacedPods;
  stop: Pick<MovesStop, 'why' | 'said' | 'uid' | 'on'>;
  /** Of the Lease. */
  namespace: string;
  rates: MoveRates;
  informerMetrics?: InformerMetrics | undefined;
  queueMetrics?: WorkQueueMetrics | undefined;
}

/** Delay before a changed workload is checked, so that many pod events cause one check (ms). */
const SETTLE_MS = 300;
/** The same for ReplicaSets with released pods (ms). */
const SOON_MS = 50;

/** The same where latency does not matter (ms). */
const UNHURRIED_MS = 2_000;
/** Keys of one queue that are worked on at the same time. */
const CONCURRENCY = 4;
/** The only key of a queue: what holds up all moves. */
const HALTS = 'halts';

/** Finds pods that are to be elsewhere and moves them: signals -> strategies -> wanted moves -> pacer -> mover -> host. */
export class Descheduler {
  /** The only one that evicts pods, for whoever else has a reason to. */
  readonly mover: Mover;
  readonly #o: DeschedulerOptions;
  readonly #taints: TaintAges;
  readonly #losses: LossAges;
  readonly #records: MoveRecords;
  readonly #releases: Releases;
  readonly #health: HealthAges;
  readonly #ill: IllPods;
  readonly #halts: ToldHalts;

  constructor(options: DeschedulerOptions) {
    const { rates, monotonic } = options;
    this.#o = options;
    this.#records = new MoveRecords(options);
    this.#releases = new Releases(monotonic);
    const pacer = new Pacer(rates, monotonic);
    this.mover = new Mover({
      ...options,
      host: options.underLease,
      records: this.#records,
      pacer,
      releases: this.#releases,
    });
    this.#taints = new TaintAges(monotonic);
    this.#halts = new ToldHalts(options);
    this.#losses = new LossAges(monotonic);
    this.#health = new HealthAges(monotonic);
    this.#ill = new IllPods({ ...options, ages: this.#health, mover: this.mover, records: this.#records });
  }

  /**
   * Follows since when members are lost and tainted and pods ill, and writes down what is moved here, until the signal aborts; to be
   * run in every replica, so that the one that takes over knows it from what it has seen itself, and its metric tells of a stop of all moves, whoever
   * has the Lease. Never rejects.
   */
  async watch(signal: AbortSignal): Promise<void> {
    const { placed, stop, metrics } = this.#o;
    const tellOfStop = (): void => metrics.stopped.set(stop.said === undefined ? 0 : 1);
    const offStop = stop.on(tellOfStop);
    tellOfStop();
    await placed.whenSynced(signal);
    if (!signal.aborted) await this.#watchPods(signal);
    offStop();
  }

  async #watchPods(signal: AbortSignal): Promise<void> {
    const { placed } = this.#o;
    // What was moved is written down by whoever moved it, also when another replica has the Lease by then.
    const records = this.#queue('records', (key, ended) => this.#records.bringUpToDate(key, ended));
    const ill = this.#queue('ill', async (uid) => {
      const found = this.#ill.look(uid);
      return await Promise.resolve(found === undefined || found.isCalm ? undefined : { requeueAfterMs: UNHURRIED_MS });
    });
    const off = [
      this.#followHealth(ill),
      this.#followTainted(),
      placed.followMembers(() => this.#observe()),
      this.#records.on((workloadKey) => records.addAfter(workloadKey, RECORD_MS)),
    ];
    this.#observe();
    await Promise.all([records.run(signal), ill.run(signal)]);
    for (const unsubscribe of off) unsubscribe();
  }

  /** Works until the signal aborts; to be run in one replica at a time. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { placed, stop, metrics, rates, clock, monotonic } = this.#o;
    const { mover } = this;
    const own = { ...this.#o, host: this.#o.underLease };
    await placed.whenSynced(signal);
    if (signal.aborted) return;
    const losses = this.#losses;
    const members = new MemberPods({ placed, mover, stop, taints: this.#taints, losses });
    const refused = new RefusedInMember({ placed, mover, clock });
    const releases = this.#releases;
    // Events that came while another replica held the Lease were not queued here: check everything once.
    releases.clear();
    const gaveBack = mover.gaveBack.bind(mover);
    const { underWay, rightsToEnd } = mover;
    const released = new ReleasedPods({ ...own, releases, underWay, rightsToEnd, gaveBack, losses });
    const displaced = new DisplacedPods({ placed, mover, records: this.#records, monotonic });
    const unhealthy = new UnhealthyPods({
      ...this.#o,
      mover,
      records: this.#records,
      ill: this.#ill,
      ages: this.#health,
    });
    const wanted = this.#rebalancers();
    const rebalancers = new Rebalancers({ ...own, mover, rebalancers: wanted });
    const migrations = new Migrations({ ...own, mover });
    const queues = {
      members: this.#queue('members', (key, ended) => members.bringUpToDate(key, ended), membersAtOnce(rates)),
      pause: this.#queue('pause', async () => await Promise.resolve(this.#halts.look())),
      refused: this.#queue('refused', (key, ended) => refused.bringUpToDate(key, ended)),
      displaced: this.#queue('displaced', (key, ended) => displaced.bringUpToDate(key, ended)),
      unhealthy: this.#queue('unhealthy', (key, ended) => unhealthy.bringUpToDate(key, ended)),
      released: this.#queue('released', (key, ended) => released.bringUpToDate(key, ended)),
      rebalancers: this.#queue('rebalancers', (key, ended) => rebalancers.bringUpToDate(key, ended)),
      migrations: this.#queue('migrations', (key, ended) => migrations.bringUpToDate(key, ended)),
    };
    const look = ({ metadata: { name } }: WorkloadRebalancer): void => queues.rebalancers.add(name);
    const off = [
      wanted.on({ added: look, updated: look, deleted: look }),
      placed.followMigrations((key) => queues.migrations.add(key)),
      this.#followReleases(queues, released),
      this.#followHealth(queues.unhealthy),
      this.#follow(queues),
      stop.on(() => queues.pause.add(HALTS)),
    ];
    for (const key of placed.migrationKeys()) queues.migrations.add(key);
    await Promise.all([
      wanted.run(signal),
      ...Object.values(queues).map(async (queue: WorkQueue) => await queue.run(signal)),
    ]);
    for (const unsubscribe of off) unsubscribe();
    this.#halts.end();
    metrics.released.set(0);
  }

  #observe(): void {
    const all = this.#o.placed.members();
    this.#taints.observe(all);
    this.#losses.observe(all);
  }

  /** When pods come to members with taints: these count for them from then on. */
  #followTainted(): () => void {
    const { placed } = this.#o;
    const came = (pod: Pod): void => {
      const { nodeName } = pod.spec;
      if (nodeName !== undefined) this.#taints.podCame(pod, placed.clusterOf(nodeName));
    };
    return placed.follow({
      podCame: came,
      podChanged: (pod, before) => {
        if (before.spec.nodeName === undefined) came(pod);
      },
      podGone: (pod) => this.#taints.podGone(pod),
      membersChanged: () => undefined,
      rulesChanged: () => undefined,
    });
  }

  /** What people want rebalanced. */
  #rebalancers(): Informer<WorkloadRebalancer> {
    const { host, logger, informerMetrics } = this.#o;
    return new Informer<WorkloadRebalancer>({
      client: host,
      resource: WORKLOAD_REBALANCERS,
      transform: (raw) => {
        const parsed = parseWorkloadRebalancer({ ...raw, metadata: identifying(raw.metadata) });
        if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
        return parsed.rebalancer;
      },
      logger,
      metrics: informerMetrics,
    });
  }

  #queue(
    name: string,
    handler: (key: string, signal: AbortSignal) => Promise<HandlerResult>,
    concurrency = CONCURRENCY,
  ): WorkQueue {
    const { queueMetrics, logger } = this.#o;
    return new WorkQueue({
      name: `descheduler-${name}`,
      concurrency,
      handler,
      backoff: { baseMs: 250, maxMs: 60_000 },
      logger,
      metrics: queueMetrics,
    });
  }

  #follow({
    members,
    pause,
    refused,
    displaced,
  }: Record<'members' | 'pause' | 'refused' | 'displaced', WorkQueue>): () => void {
    const { placed } = this.#o;
    const { underWay } = this.mover;
    const podSeen = (pod: Pod): void => {
      underWay.seen(pod);
      const workload = placed.workloadKeyOf(pod);
      displaced.addAfter(workload, UNHURRIED_MS);
      if (placed.showsRefusal(pod)) refused.addAfter(workload, SETTLE_MS);
    };
    // A member that has been emptied is not looked at again by itself.
    const bound = ({ spec: { nodeName } }: Pod): void => {
      if (nodeName !== undefined) members.addAfter(placed.clusterOf(nodeName), SETTLE_MS);
    };
    const membersChanged = (): void => {
      const all = placed.members();
      this.#observe();
      pause.add(HALTS);
      for (const { name } of all) members.add(name);
    };
    const rulesChanged = (): void => {
      membersChanged();
      for (const workload of placed.workloadKeys()) {
        refused.addAfter(workload, SETTLE_MS);
        displaced.addAfter(workload, SETTLE_MS);
      }
    };
    rulesChanged();
    return placed.follow({
      podCame: (pod) => {
        underWay.came(pod);
        podSeen(pod);
        bound(pod);
      },
      podChanged: (pod, before) => {
        podSeen(pod);
        if (before.spec.nodeName === undefined) bound(pod);
      },
      podGone: (pod) => underWay.gone(pod),
      membersChanged,
      rulesChanged,
    });
  }

  /** What may say that pods are ill, or are not to be moved for that any more. */
  #followHealth(queue: WorkQueue): () => void {
    const { placed } = this.#o;
    const seen = (pod: Pod): void => {
      queue.addAfter(placed.workloadKeyOf(pod), UNHURRIED_MS);
    };
    const rulesChanged = (): void => {
      for (const workload of placed.workloadKeys()) queue.addAfter(workload, UNHURRIED_MS);
    };
    rulesChanged();
    return placed.follow({
      podCame: seen,
      podChanged: seen,
      podGone: seen,
      membersChanged: () => undefined,
      rulesChanged,
    });
  }

  /** Pods that are out of their ReplicaSets, and those that come up in their places. */
  #followReleases(queues: { members: WorkQueue; released: WorkQueue }, ends: ReleasedPods): () => void {
    const { placed, metrics } = this.#o;
    const releases = this.#releases;
    const look = (setKey: string): void => queues.released.addAfter(setKey, SOON_MS);
    const seen = (pod: Pod): void => {
      const setKey = releases.seen(pod) ?? controllerKeyOf(pod);
      if (setKey !== undefined && releases.has(setKey)) look(setKey);
      metrics.released.set(releases.total);
    };
    const changed = (pod: Pod): void => {
      const before = releases.total;
      seen(pod);
      // Its ReplicaSet adopted it again: check whether it still has to move.
      if (releases.total < before) queues.members.add(placed.clusterOf(pod.spec.nodeName ?? ''));
    };
    return placed.follow({
      podCame: seen,
      podChanged: changed,
      podGone: (pod) => {
        const setKey = releases.forget(pod) ?? controllerKeyOf(pod);
        ends.gone(pod);
        if (setKey !== undefined && releases.has(setKey)) look(setKey);
        metrics.released.set(releases.total);
      },
      membersChanged: () => undefined,
      rulesChanged: () => undefined,
    });
  }
}
