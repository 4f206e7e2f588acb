import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/object.ts';
import type { PlacementFacts, Plan } from '../placement/decision.ts';
import { placementFor } from '../placement/gang-order.ts';
import { sum } from '../placement/highest-averages.ts';
import { plansAlike } from '../placement/plans-alike.ts';
import { refreshPlan } from '../placement/next-place.ts';
import { revisionOf, rolloutOf } from '../placement/owner-chain.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import { templateOf } from '../placement/pod-template.ts';
import { ofRevision } from '../placement/workload.ts';
import type { HostView } from './host-view.ts';
import type { PlacementQuestions } from './placement-questions.ts';
import { PodSamples } from './pod-samples.ts';
import type { WorkloadState } from './workload-state.ts';
import type { RuledWorkload } from './workload-view.ts';

export interface PlanRefreshOptions {
  host: KubeClient;
  view: HostView;
  workloads: WorkloadState;
  questions: PlacementQuestions;
}

/**
 * Keeps plans as they should be while no pod asks: members come and go, policies are edited, workloads shrink. Of a workload
 * that this process was not asked about one pod is read, and only where its plan seems to be another.
 */
export class PlanRefresh {
  readonly #o: PlanRefreshOptions;
  readonly #samples: PodSamples;

  constructor(options: PlanRefreshOptions) {
    this.#o = options;
    this.#samples = new PodSamples(options.host);
  }

  /** The plan as it should be now, remembered if it is another one, and the revision that it counts. */
  async refresh(
    ruled: RuledWorkload,
    controllers: readonly TypedObject[],
    signal: AbortSignal,
  ): Promise<{ plan: Plan; revision: string | undefined }> {
    const { view, workloads } = this.#o;
    const { object } = ruled;
    const { uid = '' } = object.metadata;
    const { last } = workloads.memory(object);
    const revision = newestRevision(controllers, view) ?? last?.made.identity.revision;
    // Schedulers may ask another replica by now: what this one was asked about may be of a former revision.
    const isOfLast = last !== undefined && last.made.identity.revision === revision;
    if (isOfLast) this.#samples.forget(uid);
    let pod = isOfLast ? templateOf(last.made.pod) : this.#samples.get(uid, revision);
    let plan = refreshPlan(this.#facts(ruled, revision, pod));
    if (pod === undefined && !plansAlike(workloads.plan(object), plan)) {
      // Perhaps only because nothing is known of its pods.
      const all = controllers.flatMap((controller) => view.podsOf(controller));
      const one = all.find((candidate) => revisionOf(candidate) === revision);
      if (one !== undefined) pod = await this.#samples.read(uid, one, signal);
      // A scheduler may have asked about one meanwhile.
      if (workloads.memory(object).last !== last) return await this.refresh(ruled, controllers, signal);
      plan = refreshPlan(this.#facts(ruled, revision, pod), pod !== undefined);
    }
    const known = workloads.plan(object);
    if (known !== undefined && plansAlike(known, plan)) return { plan: { ...known, tiers: plan.tiers }, revision };
    workloads.refreshed(object, plan);
    return { plan, revision };
  }

  /** The workload is gone. */
  forget(workloadUid: string): void {
    this.#samples.forget(workloadUid);
  }

  /**
   * As for a pod of the workload that is known as a whole: the last one asked about, or one that was read. Of any other it is
   * not known what it asks for and tolerates, so nothing is in its way.
   */
  #facts(
    { chain, rules, replicas }: RuledWorkload,
    revision: string | undefined,
    known: Pod | undefined,
  ): PlacementFacts {
    const { questions, view } = this.#o;
    const pod = known ?? { ...chain[0], spec: { containers: [], tolerations: [{ operator: 'Exists' }] } };
    const split = known === undefined ? questions.everyNode() : questions.everyOpenNode(known);
    const { facts, identity } = questions.ask(pod, chain, rules, split);
    const placed = sum(ofRevision(facts.workload.pods, revision));
    const asked = replicas ?? placed + view.seats.waiting(view.seatGroupsOf(identity.object));
    return {
      ...facts,
      placement: placementFor(pod, facts),
      workload: { ...facts.workload, replicas: asked },
      pod: { ...facts.pod, revision },
      ...(known === undefined ? { rooms: new Map() } : {}),
    };
  }
}

/** The revision that the workload makes pods of: of its ReplicaSets that of the last roll-out, else that of its newest pod. */
function newestRevision(controllers: readonly TypedObject[], view: HostView): string | undefined {
  const [newest] = controllers.toSorted((a, b) => rolloutOf(b) - rolloutOf(a) || newestFirst(a, b));
  if (newest === undefined) return undefined;
  if (newest.kind === 'ReplicaSet') return revisionOf(newest);
  const [pod] = view.podsOf(newest).toSorted(newestFirst);
  return pod === undefined ? undefined : revisionOf(pod);
}

function newestFirst({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  return (b.creationTimestamp ?? '').localeCompare(a.creationTimestamp ?? '');
}
