import { WORKLOAD_PLACEMENTS, workloadPlacementName } from '../api/workload-placement.ts';
import type { WorkloadPlacement, WorkloadPlacementStatus } from '../api/workload-placement.ts';
import type { KubeClient } from '../kube/client.ts';
import { isAlreadyExists, isConflict } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { apiVersionOf } from '../kube/resource.ts';
import { timestamp } from '../kube/timestamps.ts';
import { create, patch, remove } from '../kube/verbs.ts';
import type { CompiledPlacement } from '../placement/compiled-placement.ts';
import { fewEnoughInMs, HOUR_MS, storedMoves } from '../placement/moves.ts';
import { replicasOf, type TypedObject } from '../placement/owner-chain.ts';
import { placementStatus, remembered } from '../placement/placement-report.ts';
import type { HostView } from './host-view.ts';
import type { PlacementQuestions } from './placement-questions.ts';
import type { PlacementStore } from './placement-store.ts';
import { PlanRefresh } from './plan-refresh.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import type { RuledWorkload } from './workload-view.ts';
import { controllersOf, ruledWorkload } from './workload-view.ts';
import type { WorkloadState } from './workload-state.ts';

/** Between two writes of one object, in ms. */
const PACE_MS = 10_000;
/**
 * How long clusters must be others before a plan that follows them is written while no pod comes or goes, in ms: each loss of a
 * member would be two writes for every workload with a share in it, though most are back by then.
 */
const PLAN_ALONE_MS = 60_000;
/** Until the caches show what another one wrote, in ms. */
const AGAIN_MS = 2_000;
/** What who moves pods writes. */
const OF_OTHERS: ReadonlySet<string> = new Set(['moves', 'preserved']);
/** Times in objects are in whole seconds. */
const ROUNDED_OFF_MS = 999;

export interface PlacementWriterOptions {
  host: KubeClient;
  view: HostView;
  workloads: WorkloadState;
  store: PlacementStore;
  questions: PlacementQuestions;
  metrics: SchedulerMetrics;
  /** Wall clock in ms. */
  clock: () => number;
}

/**
 * Keeps the WorkloadPlacement of each workload under rules: at most one write in ten seconds, none without news. Plans are
 * brought up to date with it, so that they follow members and policies without a pod that asks; what is written of a plan alone
 * may be a minute old, as it follows from the plan before and from the clusters.
 */
export class PlacementWriter {
  readonly #o: PlacementWriterOptions;
  readonly #plans: PlanRefresh;
  /** By UID of the workload, when its object was written last; before the life of this process as the object says. */
  readonly #written = new Map<string, number>();
  /** By UID of the workload. */
  readonly #looks = new Map<string, Look>();

  constructor(options: PlacementWriterOptions) {
    this.#o = options;
    this.#plans = new PlanRefresh(options);
  }

  /** Returns when to come back: when it is too early for another write, when a member is avoided no longer, or when a pod that was told a place is not bound by then. */
  async bringUpToDate(workloadUid: string, signal: AbortSignal): Promise<void | { requeueAfterMs: number }> {
    const { view, workloads, clock } = this.#o;
    const workload = view.owners.byUid(workloadUid);
    // Kubernetes collects the object of a workload that is gone: it owns it.
    if (workload === undefined) {
      this.#written.delete(workloadUid);
      this.#looks.delete(workloadUid);
      this.#plans.forget(workloadUid);
      return undefined;
    }
    const controllers = controllersOf(workload, view);
    const ruled = controllers
      .map((controller) => ruledWorkload(controller, view))
      .find((one) => one?.object.metadata.uid === workloadUid);
    const before = this.#o.store.get(workload);
    // The object may be that of a former workload of this name.
    const own = before?.spec.workload.uid === workloadUid ? before.status : undefined;
    // Without pods nothing says that the rules are gone, if they were not before.
    const hasPods = (): boolean => controllers.some((controller) => view.podsOf(controller).length > 0);
    if (ruled === undefined && (isOfOthersAlone(own) || hasPods())) {
      this.#looks.delete(workloadUid);
      return before === undefined ? undefined : await this.#withoutRules(before, own, signal);
    }
    const status =
      ruled === undefined ? this.#withoutPods(workload, own) : await this.#status(ruled, controllers, own, signal);
    if (status === undefined) {
      this.#looks.delete(workloadUid);
      return undefined;
    }
    const now = clock();
    const ends = workloads.avoided(workload).map(({ until }) => until - now);
    // Nothing happens by which another look would come.
    const lapse = view.seats.lapsesInMs(view.seatGroupsOf(workload));
    if (lapse !== undefined) ends.push(lapse);
    const next = ends.length === 0 ? undefined : { requeueAfterMs: Math.min(...ends) };
    if (own !== undefined && jsonEqual(ownPart(own), status)) {
      this.#noteWritten(workloadUid, ruled);
      return next;
    }
    const paced = this.#lastWrite(workloadUid, own) + PACE_MS - now;
    const rest = ruled === undefined ? paced : Math.max(paced, this.#untilPlanCounts(ruled, own, status));
    if (rest > 0) return { requeueAfterMs: Math.min(rest, next?.requeueAfterMs ?? rest) };
    this.#written.set(workloadUid, now);
    await this.#write(workload, before, { ...status, updatedAt: timestamp(now) }, signal);
    this.#noteWritten(workloadUid, ruled);
    return next;
  }

  #noteWritten(workloadUid: string, ruled: RuledWorkload | undefined): void {
    if (ruled === undefined) this.#looks.delete(workloadUid);
    else this.#looks.set(workloadUid, { rules: ruled.rules.placement, waits: undefined });
  }

  /** How long to wait, in ms, as the plan may soon be again what it was. */
  #untilPlanCounts(
    { object, rules: { placement } }: RuledWorkload,
    own: WorkloadPlacementStatus | undefined,
    status: WorkloadPlacementStatus,
  ): number {
    const { uid = '' } = object.metadata;
    const { rules = placement, waits } = this.#looks.get(uid) ?? {};
    if (own === undefined || rules !== placement || !jsonEqual(aboutPods(own), aboutPods(status))) {
      this.#looks.set(uid, { rules, waits: undefined });
      return 0;
    }
    const now = this.#o.clock();
    // Who has not looked for longer had nothing to write meanwhile, and a clock that was set back begins anew.
    const isTheSame = waits !== undefined && waits.at <= now && now - waits.at <= PLAN_ALONE_MS + PACE_MS;
    const since = isTheSame ? waits.since : now;
    this.#looks.set(uid, { rules, waits: { since, at: now } });
    const rest = since + PLAN_ALONE_MS - now;
    this.#o.workloads.notStoredYet(object, rest + PACE_MS);
    return rest;
  }

  /** Wall clock in ms; by another process too. Its clock may be ahead: that only says that there was a write. */
  #lastWrite(workloadUid: string, status: WorkloadPlacementStatus | undefined): number {
    const now = this.#o.clock();
    const known = this.#written.get(workloadUid);
    const stored = status?.updatedAt === undefined ? 0 : Date.parse(status.updatedAt);
    const latest = known !== undefined && (known >= stored || stored > now) ? known : stored + ROUNDED_OFF_MS;
    // Nor may a clock that was set back keep it from being written until that time has come again.
    const last = Math.min(latest, now);
    this.#written.set(workloadUid, last);
    return last;
  }

  async #status(
    ruled: RuledWorkload,
    controllers: readonly TypedObject[],
    before: WorkloadPlacementStatus | undefined,
    signal: AbortSignal,
  ): Promise<WorkloadPlacementStatus> {
    const { view, workloads, clock } = this.#o;
    const { object, rules, replicas } = ruled;
    const { plan, revision } = await this.#plans.refresh(ruled, controllers, signal);
    const memory = workloads.memory(object);
    const groups = view.seatGroupsOf(object);
    const status = placementStatus({
      source: rules.source,
      workload: { uid: object.metadata.uid, replicas, pods: view.seats.counts(groups) },
      revision,
      waiting: view.seats.waiting(groups),
      plan,
      plannedAt: memory.plannedAt ?? clock(),
      avoided: memory.avoided,
      last: memory.last === undefined ? undefined : { decision: memory.last.made.decision, at: memory.last.at },
      before,
      now: clock(),
    });
    return keepTimes(status, before);
  }

  /**
   * Rules may be made anew in a moment (`kubectl replace --force`, a tool that syncs): moves that count against the next ones, and what pods
   * left, stay for the hour that those count, and nothing else.
   */
  async #withoutRules(
    before: WorkloadPlacement,
    own: WorkloadPlacementStatus | undefined,
    signal: AbortSignal,
  ): Promise<void | { requeueAfterMs: number }> {
    const { host, metrics, clock } = this.#o;
    const now = clock();
    const restMs = countsForMs(own, now);
    const { name, namespace, uid, resourceVersion } = before.metadata;
    const ref = { name, namespace };
    if (restMs > 0) {
      if (isOfOthersAlone(own)) return { requeueAfterMs: restMs };
      const body = statusPatch(own, { updatedAt: timestamp(now) });
      await ifThere(patch(host, WORKLOAD_PLACEMENTS, ref, body, { type: 'merge', subresource: 'status' }, { signal }));
      metrics.placementWrites.inc();
      return { requeueAfterMs: restMs };
    }
    try {
      // Not one that was given a move meanwhile.
      await ifThere(remove(host, WORKLOAD_PLACEMENTS, ref, { uid, resourceVersion }, { signal }));
      return undefined;
    } catch (error) {
      if (!isConflict(error)) throw error;
      return { requeueAfterMs: AGAIN_MS };
    }
  }

  /** By the rules that its last pods were under. What it was to have where, a workload of none has not any more. */
  #withoutPods(workload: TypedObject, own: WorkloadPlacementStatus | undefined): WorkloadPlacementStatus | undefined {
    if (own?.policy === undefined || own.plannedAt === undefined) return undefined;
    const { policy, revision, plannedAt } = own;
    const replicas = replicasOf(workload);
    const { plan } = remembered(own);
    const status = placementStatus({
      source: policy,
      workload: { uid: workload.metadata.uid ?? '', replicas, pods: new Map() },
      revision,
      waiting: 0,
      plan: replicas === 0 ? { ...plan, targets: undefined, shares: new Map() } : plan,
      plannedAt: Date.parse(plannedAt),
      // Its last pod may have been refused after that was written.
      avoided: this.#o.workloads.avoided(workload),
      last: undefined,
      before: own,
      now: this.#o.clock(),
    });
    return keepTimes(status, own);
  }

  async #write(
    workload: TypedObject,
    before: WorkloadPlacement | undefined,
    status: WorkloadPlacementStatus,
    signal: AbortSignal,
  ): Promise<void> {
    const { host, metrics } = this.#o;
    const { namespace, name: workloadName, uid = '' } = workload.metadata;
    const { apiVersion, kind } = workload;
    const name = before?.metadata.name ?? workloadPlacementName({ apiVersion, kind, name: workloadName });
    const ref = { namespace, name };
    if (before !== undefined && before.spec.workload.uid !== uid) {
      // It speaks of a former workload of that name, which Kubernetes has not collected yet.
      await this.#remove(before, signal);
    }
    if (before === undefined || before.spec.workload.uid !== uid) {
      const object: WorkloadPlacement = {
        apiVersion: apiVersionOf(WORKLOAD_PLACEMENTS),
        kind: WORKLOAD_PLACEMENTS.kind,
        metadata: {
          name,
          ...(namespace === undefined ? {} : { namespace }),
          ownerReferences: [{ apiVersion, kind, name: workloadName, uid }],
        },
        spec: { workload: { apiVersion, kind, name: workloadName, uid } },
      };
      try {
        await create(host, WORKLOAD_PLACEMENTS, object, { signal });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
    }
    const body = statusPatch(before?.status, status);
    await patch(host, WORKLOAD_PLACEMENTS, ref, body, { type: 'merge', subresource: 'status' }, { signal });
    metrics.placementWrites.inc();
  }

  async #remove({ metadata }: WorkloadPlacement, signal: AbortSignal): Promise<void> {
    const { name, namespace, uid } = metadata;
    await ifThere(remove(this.#o.host, WORKLOAD_PLACEMENTS, { namespace, name }, { uid }, { signal }));
  }
}

/** Fields that are not there any more have to be named to be removed, but what others write there is theirs. */
function statusPatch(before: WorkloadPlacementStatus = {}, after: WorkloadPlacementStatus): object {
  const gone = Object.keys(before).filter((field) => !(field in after) && !OF_OTHERS.has(field));
  return { status: { ...Object.fromEntries(gone.map((field) => [field, null])), ...after } };
}

/** It says only what who moves pods wrote, as no rules speak of its workload. */
function isOfOthersAlone(status: WorkloadPlacementStatus | undefined): boolean {
  if (status?.moves === undefined && status?.preserved === undefined) return false;
  return Object.keys(ownPart(status)).length === 0;
}

/** In how many ms nothing of it will have been written within the hour: the move of a pod is told a moment after what that pod leaves. */
function countsForMs(status: WorkloadPlacementStatus | undefined, now: number): number {
  const moves = fewEnoughInMs(storedMoves(status), HOUR_MS, now, 0);
  const ages = (status?.preserved ?? []).map(({ time }) => Math.max(0, now - Date.parse(time)));
  return Math.max(moves, HOUR_MS - Math.min(HOUR_MS, ...ages));
}

/** Without when it was written, and without what who moves pods writes. */
function ownPart(status: WorkloadPlacementStatus): WorkloadPlacementStatus {
  const { updatedAt: _, moves: _moves, preserved: _preserved, ...rest } = status;
  return rest;
}

/** What a workload was when it was looked at last. */
interface Look {
  /** Those by which what is written was worked out, as far as this process knows. */
  readonly rules: CompiledPlacement;
  /** Since when nothing but its plan is other than what is written, and when that was seen last; wall clock in ms. */
  readonly waits: { readonly since: number; readonly at: number } | undefined;
}

/** What changes with pods, rules and refusals, and not with the clusters alone. */
function aboutPods({
  policy,
  revision,
  replicas,
  placed,
  waiting,
  where,
  avoided,
  lastDecision,
}: WorkloadPlacementStatus): object {
  return { policy, revision, replicas, placed, waiting, where, avoided, lastDecision };
}

/** A decision that says the same as the one before is no news, and neither is a plan that is still the same. */
function keepTimes(
  status: WorkloadPlacementStatus,
  before: WorkloadPlacementStatus | undefined,
): WorkloadPlacementStatus {
  if (before === undefined) return status;
  const { lastDecision: last, plannedAt, ...rest } = status;
  const { lastDecision: old, plannedAt: oldPlan } = before;
  const lastDecision =
    last === undefined || (last.message === old?.message && last.cluster === old.cluster) ? old : last;
  const targets = ({ clusters = [] }: WorkloadPlacementStatus): unknown =>
    clusters.map(({ name, target }) => [name, target ?? null]);
  const samePlan = oldPlan !== undefined && jsonEqual(targets(status), targets(before));
  const planned = samePlan ? oldPlan : plannedAt;
  return {
    ...rest,
    ...(lastDecision === undefined ? {} : { lastDecision }),
    ...(planned === undefined ? {} : { plannedAt: planned }),
  };
}
