import { type Released, releasedFrom } from '../../../src/api/released.ts';
import { asPod, isFinal, isReady } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import { WORKLOADS } from '../workload-controllers.ts';
import { PATHS, type World } from '../world.ts';
import type { Report } from './report.ts';

/** What was so a moment ago may be so still in the caches of those who watch late, in ms. */
const LATE_MS = 90_000;
/** A ReplicaSet that has a pod too many ends one by then, in ms. */
const ENDED_MS = 5_000;
const POLICIES = '/apis/spillway.dev/v1alpha1';

interface GivenBack {
  readonly at: number;
  readonly set: string;
  readonly replicas: number;
}

/** I11: of a pod whose member was lost, and the one that came in its place, the one goes that the policy does not name. */
export class HealOracle {
  readonly #world: World;
  readonly #report: Report;
  /** By UID of the pod, when it was given back last. */
  readonly #givenBack = new Map<string, GivenBack>();
  /** By UID of the pod, since when it has been Ready. */
  readonly #ready = new Map<string, number>();
  /** By name of the member, until when it had a taint. */
  readonly #tainted = new Map<string, number>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  changed(change: Change): void {
    const { cluster, object, previous, by, at } = change;
    if (cluster !== this.#world.host) return;
    if (object['kind'] === 'MemberCluster') this.#member(object, at);
    if (object['kind'] !== 'Pod' || previous === undefined) return;
    const mark = releasedFrom(asPod(previous));
    const isEnding =
      object.metadata.deletionTimestamp !== undefined && previous.metadata.deletionTimestamp === undefined;
    if (mark?.lost === true && isOfProgram(by)) {
      if (isEnding) this.#ended(change, previous, mark);
      else if (releasedFrom(asPod(object)) === undefined) this.#wasGivenBack(object, mark, at);
    }
    if (isEnding && by === 'workload-controller') this.#removed(previous, at);
    this.#health(object, at);
  }

  #member(object: SimObject, at: number): void {
    type Taints = { effect: string }[];
    const { clusterTaints = [] } = (object['spec'] ?? {}) as { clusterTaints?: Taints };
    const { taints = [] } = (object['status'] ?? {}) as { taints?: Taints };
    const { name } = object.metadata;
    if ([...clusterTaints, ...taints].some(({ effect }) => effect === 'NoExecute'))
      this.#tainted.set(name, Number.POSITIVE_INFINITY);
    else if (this.#tainted.get(name) === Number.POSITIVE_INFINITY) this.#tainted.set(name, at);
  }

  #health(object: SimObject, at: number): void {
    const { uid } = object.metadata;
    if (!isReady(object)) this.#ready.delete(uid);
    else if (!this.#ready.has(uid)) this.#ready.set(uid, at);
  }

  #wasGivenBack({ metadata: { uid } }: SimObject, mark: Released, at: number): void {
    const set = this.#set(mark.uid);
    if (set !== undefined) this.#givenBack.set(uid, { at, set: mark.uid, replicas: replicasOf(set) });
  }

  /** The ReplicaSet has one pod too many, and takes away one that is Ready. */
  #removed(pod: SimObject, at: number): void {
    const found = this.#givenBack.get(pod.metadata.uid);
    if (found === undefined || found.replicas === 0 || at - found.at > ENDED_MS || !isReady(pod)) return;
    const set = this.#set(found.set);
    if (set === undefined || replicasOf(set) < found.replicas) return;
    this.#report('I11', `${pod.metadata.name} was given back to its ReplicaSet, which ends it, and not the other one`);
  }

  /** Only a pod that did not get well, or has to leave, goes where the policy says that it stays. */
  #ended({ object, by, at }: Change, previous: SimObject, mark: Released): void {
    const { uid, name, namespace = '' } = object.metadata;
    const since = this.#ready.get(uid);
    const set = this.#set(mark.uid);
    if (set === undefined || replicasOf(set) === 0 || isFinal(previous)) return;
    if (since === undefined || at - since < LATE_MS || this.#onHealIn(namespace) !== 'KeepOriginal') return;
    const member = this.#memberOf(previous);
    if (at - (this.#tainted.get(member) ?? -LATE_MS) < LATE_MS) return;
    const instead = [...this.#world.host.list(PATHS.pods(namespace))].find(
      (pod) =>
        pod.metadata.ownerReferences?.some((one) => one.uid === mark.uid) === true &&
        pod.metadata.deletionTimestamp === undefined &&
        !isFinal(pod) &&
        (pod.metadata.creationTimestamp ?? '') > (previous.metadata.creationTimestamp ?? '') &&
        (this.#memberOf(pod) !== member || (pod.metadata.creationTimestamp ?? '') >= mark.at),
    );
    if (instead !== undefined)
      this.#report('I11', `${by} ends ${name}, which is well again in ${member}, and not ${instead.metadata.name}`);
  }

  #memberOf(pod: SimObject): string {
    const { nodeName = '' } = asPod(pod).spec;
    return [...this.#world.members.keys()].find((name) => nodeName === name || nodeName.startsWith(`${name}-`)) ?? '';
  }

  #set(uid: string): SimObject | undefined {
    return [...this.#world.host.list(WORKLOADS.ReplicaSet)].find((one) => one.metadata.uid === uid);
  }

  /** The policy of a namespace comes before that of the cluster. */
  #onHealIn(namespace: string): string | undefined {
    const [own] = this.#world.host.list(`${POLICIES}/namespaces/${namespace}/placementpolicies`);
    const [all] = this.#world.host.list(`${POLICIES}/clusterplacementpolicies`);
    const spec = (own ?? all)?.['spec'] as { failover?: { onMemberLost?: { onHeal?: string } } } | undefined;
    return spec?.failover?.onMemberLost?.onHeal;
  }
}

function replicasOf(set: SimObject): number {
  return (set['spec'] as { replicas?: number } | undefined)?.replicas ?? 0;
}
