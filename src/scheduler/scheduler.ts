import type { Logger } from 'pino';
import { LOCAL } from '../api/cluster-tiers.ts';
import type { Scoring } from '../api/scoring.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { subjectOf } from '../kube/event-subject.ts';
import { podSubject } from '../api/pod-subject.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import { pause } from '../kube/timers.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { DeletionCostWriter } from './deletion-cost-writer.ts';
import { ExtenderServer } from './extender-server.ts';
import { Extender } from './extender.ts';
import type { ExtenderArgs } from './extender-wire.ts';
import { GangHolds } from './gangs/gang-holds.ts';
import { GangPlacer } from './gangs/gang-placer.ts';
import { ComingPods } from './coming-pods.ts';
import { HostCapacity } from './host-capacity.ts';
import { HostPlacedPods } from './host-placed-pods.ts';
import { HostView } from './host-view.ts';
import { Nominees } from './nominees.ts';
import { type BudgetsPort, Preemption } from './preemption.ts';
import { isUnschedulable } from '../capacity/pod-requests.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { CapacityOf } from './member-fit.ts';
import { MigrationCache } from './migration-cache.ts';
import { MigrationFit } from './migration-fit.ts';
import { PlacementQuestions } from './placement-questions.ts';
import { PlacementStore } from './placement-store.ts';
import { PlacementWriter } from './placement-writer.ts';
import { PolicyStatusWriter } from './policy-status-writer.ts';
import { HeldRooms } from './held-rooms.ts';
import { RefusalWatch } from './refusal-watch.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import { SchedulerContact } from './scheduler-contact.ts';
import { RoomBeside } from './room-beside.ts';
import { ScoreCache } from './score-cache.ts';
import { StateGiver } from './state-giver.ts';
import type { FilterVerb } from './second-question.ts';
import { WaitingPods } from './waiting-pods.ts';
import { WorkloadState } from './workload-state.ts';
import { Writers } from './writers.ts';
import type { WritersLease } from './writers.ts';

export interface SchedulerOptions {
  host: KubeClient;
  /** Where replicas tell each other. */
  namespace: string;
  /** Capacity of a virtual node that stands for that member; undefined: this process knows nothing of it (yet). */
  capacityOf: (nodeName: string, member: string | undefined) => VirtualNodeCapacity | undefined;
  budgets: BudgetsPort;
  /** How clusters are compared where no policy says otherwise. */
  scoring: Scoring;
  /** The right to write. */
  lease: WritersLease;
  server: {
    address: string;
    /** 0: any free port. */
    port: number;
    certificate: () => KeyedCertificate;
    clientCa: () => string | undefined;
    clientNames: readonly string[];
  };
  /** How long answers may take at the end, in ms. */
  graceMs: number;
  events: Pick<EventRecorder, 'record'>;
  metrics: SchedulerMetrics;
  informerMetrics?: InformerMetrics | undefined;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
}

/** Poll interval until questions can be answered, in ms. */
const READY_POLL_MS = 100;

/**
 * Answers schedulers where pods may go, by policies and by what members can really take, and keeps what follows from the
 * answers. Every replica answers; one of them writes.
 */
export class Scheduler {
  /** Places for pods that have to be together. */
  readonly gangRooms: GangPlacer;
  readonly placedPods: HostPlacedPods;
  readonly #gangHolds: GangHolds;
  readonly #o: SchedulerOptions;
  readonly #view: HostView;
  readonly #store: PlacementStore;
  readonly #extender: Extender;
  readonly #preemption: Preemption;
  readonly #waiting: WaitingPods;
  readonly #scores: ScoreCache;
  readonly #migrations: MigrationCache;
  readonly #writers: Writers;
  readonly #refusals: RefusalWatch;
  readonly #contact: SchedulerContact;

  constructor(options: SchedulerOptions) {
    this.#o = options;
    const { host, metrics, logger, lease, queueMetrics } = options;
    const clock = Date.now;
    const view = new HostView({ host, logger, metrics: options.informerMetrics, monotonic });
    const own = new HostCapacity(view, clock);
    const capacityOf: CapacityOf = (name) =>
      name === LOCAL ? own : options.capacityOf(name, view.nodes.memberOf(name));
    const store = new PlacementStore({ host, logger, metrics: options.informerMetrics });
    const workloads = new WorkloadState({ stored: (workload) => store.statusOf(workload), clock, monotonic });
    const scores = new ScoreCache({ host, logger, metrics: options.informerMetrics, clock });
    this.#scores = scores;
    const migrations = new MigrationCache({ host, logger, metrics: options.informerMetrics });
    this.#migrations = migrations;
    // Room that is kept for pods of gangs until they have been tried there is as good as not known to others.
    const openCapacityOf: CapacityOf = (name) => (this.#gangHolds.isPending(name) ? undefined : capacityOf(name));
    const asking = {
      view,
      workloads,
      signals: () => scores.signals(),
      scoring: options.scoring,
      wayOf: migrations.wayOf.bind(migrations),
      clock,
    };
    const questions = new PlacementQuestions({ ...asking, capacityOf: openCapacityOf });
    const ownQuestions = new PlacementQuestions({ ...asking, capacityOf });
    const virtualNode = (): string | undefined => view.nodes.anyVirtualNode();
    this.#waiting = new WaitingPods({ host, virtualNode, logger, clock, monotonic });
    this.#view = view;
    this.#store = store;
    const heldRooms = new HeldRooms(capacityOf, monotonic);
    const nominees = new Nominees({
      capacityOf,
      heldRooms,
      isVirtual: (node) => view.nodes.memberOf(node) !== undefined,
      podsOn: (node) => view.podsOn(node),
      nominationOf: (pod) => view.nominationOf(pod),
      monotonic,
    });
    const freed = (): void => this.#waiting.resyncIn(0);
    const migrationFit = new MigrationFit({ view, questions, capacityOf: openCapacityOf, freed, clock });
    const state = new StateGiver({ host, view, events: options.events, given: freed, monotonic });
    this.#preemption = new Preemption({
      view,
      questions,
      capacityOf: openCapacityOf,
      budgets: options.budgets,
      nominees,
      migrationFit,
      state,
    });
    const coming = new ComingPods({ view, clock, monotonic });
    this.placedPods = new HostPlacedPods({
      view,
      workloads,
      questions,
      migrations,
      migrationFit,
      beside: new RoomBeside({ view, questions, coming, capacityOf: openCapacityOf, clock, monotonic }),
      store,
      clock,
    });
    this.gangRooms = new GangPlacer({ view, questions, ownQuestions, heldRooms, capacityOf, clock });
    this.#gangHolds = new GangHolds({ view, places: this.gangRooms, opened: freed, logger, clock });
    this.#extender = new Extender({
      view,
      workloads,
      questions,
      waiting: this.#waiting,
      annotationProblem: (chain, problem) => this.#tell(chain, problem),
      unread: (pod, problem) => this.#o.events.record(podSubject(pod), 'Warning', 'OwnerNotReadable', problem),
      heldRooms,
      nominees,
      migrationFit,
      state,
      metrics,
      monotonic,
    });
    const { namespace, events } = options;
    const contact = new SchedulerContact({ host, namespace, logger, clock });
    this.#contact = contact;
    this.#refusals = new RefusalWatch({ view, workloads, queueMetrics, logger, clock });
    this.#writers = new Writers({
      lease,
      view,
      workloads,
      store,
      costs: new DeletionCostWriter({ host, view, workloads, metrics }),
      placements: new PlacementWriter({ host, view, workloads, store, questions, metrics, clock }),
      policies: new PolicyStatusWriter({ host, view, asked: () => contact.ever, events, clock }),
      onWays: (listener) => migrations.onWays(listener),
      onAsked: (listener) => contact.on(listener),
      queueMetrics,
      logger,
    });
  }

  /** Why questions cannot be answered yet, in words; undefined when they can. */
  get problem(): string | undefined {
    if (!this.#store.informer.hasSynced) return this.#store.informer.problem ?? 'the caches are not complete yet';
    return this.#extender.notReady() ?? this.#gangHolds.problem;
  }

  /** Answers until the signal aborts. Rejects when the port cannot be had. */
  async run(signal: AbortSignal): Promise<void> {
    const { server, graceMs, metrics, logger } = this.#o;
    const extender = {
      notReady: () => this.problem,
      filter: (args: ExtenderArgs, verb: FilterVerb) => {
        this.#contact.heard();
        return this.#extender.filter(args, verb);
      },
      prioritize: this.#extender.prioritize.bind(this.#extender),
      preempt: this.#preemption.preempt.bind(this.#preemption),
    };
    const port = new ExtenderServer({ ...server, extender, metrics, logger, clock: Date.now });
    await port.listen();
    const resync = (): void => this.#waiting.resyncIn(0);
    const settled = (pod: Pod): void => {
      if (pod.spec.nodeName !== undefined) this.#waiting.settled(pod);
    };
    const off = [
      this.#view.policies.on(resync),
      this.#view.onNamespaceLabels(resync),
      this.#view.owners.onKinds(resync),
      this.#view.onClusters(resync),
      this.#scores.on(resync),
      this.#migrations.onWays(resync),
      this.#view.onPod({ changed: settled, gone: (pod) => this.#waiting.settled(pod) }),
    ];
    await Promise.all([
      this.#view.run(signal),
      this.#gangHolds.run(signal),
      this.#store.informer.run(signal),
      this.#scores.run(signal),
      this.#migrations.run(signal),
      this.#waiting.run(signal),
      this.#writers.run(signal),
      this.#refusals.run(signal),
      this.#contact.run(signal),
      this.#takeOver(signal),
    ]);
    for (const unsubscribe of off) unsubscribe();
    await port.close(graceMs);
  }

  /** Of pods that were refused before this process could answer, nobody tells schedulers to look again. */
  async #takeOver(signal: AbortSignal): Promise<void> {
    while (this.problem !== undefined && !signal.aborted) await pause(READY_POLL_MS, signal);
    const pods = [...this.#view.pods.values()];
    if (pods.some((pod) => pod.spec.nodeName === undefined && isUnschedulable(pod))) this.#waiting.takeOver();
  }

  #tell([pod, ...owners]: OwnerChain, problem: string): void {
    this.#o.events.record(subjectOf(owners.at(-1) ?? pod), 'Warning', 'InvalidFederationPreferences', problem);
  }
}
