import { LRUCache } from 'lru-cache';
import { isActive, isFinished } from '../api/pod-phase.ts';
import { asOwned } from '../api/released.ts';
import type { MigratedReference, WorkloadMigration } from '../api/workload-migration.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { controllerOf, controllerOrOwnKeyOf, ownerKeyOf } from '../kube/owner-references.ts';
import { migratedKey } from '../placement/migrating.ts';
import { replicasOf, type TypedObject } from '../placement/owner-chain.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { type MigratedPod, mayGoAlone, migrationStep } from './migration.ts';
import type { Mover } from './mover.ts';
import { goesGracefully, staysByPolicy } from './purge-mode.ts';
import { whyNotMovedAtWill } from './replaceable.ts';

/** One of the workloads that are named, or all that have pods in the member. */
export interface NamedWorkload {
  readonly reference: MigratedReference;
  /** Undefined: there is none of that name, or none whose pods go where policies say. */
  readonly workload: TypedObject | undefined;
  /** Its active pods in the member, released ones included. */
  readonly there: readonly Pod[];
  /** Its pods in the member that are being deleted, and have yet to end. */
  readonly ending: readonly Pod[];
}

interface FoundThere {
  readonly reference: MigratedReference;
  readonly workload: TypedObject;
  readonly there: Pod[];
  readonly ending: Pod[];
}

export interface MigratedPodsOptions {
  placed: Pick<
    PlacedPods,
    'inMember' | 'ofWorkload' | 'workloadNamed' | 'workloadByKey' | 'rulesOf' | 'clusterOf' | 'surgingSetOf'
  >;
  mover: Pick<Mover, 'read' | 'wasSent' | 'isGoing' | 'turnOf'>;
}

/** Controllers of which a pod is remembered. */
const REMEMBERED = 1_000;
/** Pods of a controller that are read in vain before the next look: each may take as long as the host is waited for. */
const MOST_UNREAD = 3;

/** What is there of the workloads of migrations: from caches, and one pod of each controller as it is in the host. */
export class MigratedPods {
  readonly #o: MigratedPodsOptions;
  /** One pod of each controller as it was read last, by the UID of that: the last one on its way out cannot be read any more. */
  readonly #read = new LRUCache<string, Pod>(atMost(REMEMBERED));

  constructor(options: MigratedPodsOptions) {
    this.#o = options;
  }

  /** In the order of the spec; those of a whole namespace by kind and name. Pods of DaemonSets belong to their nodes and are none of them. */
  workloadsOf({ metadata, spec }: WorkloadMigration): NamedWorkload[] {
    const { placed } = this.#o;
    const { namespace = '' } = metadata;
    const byKey = this.#inMember(namespace, spec.from);
    if (spec.workloads === undefined) {
      const all = [...byKey.values()].filter(({ there }) => there.length > 0);
      return all.toSorted((a, b) => (inOrder(a.reference) < inOrder(b.reference) ? -1 : 1));
    }
    return spec.workloads.map((reference) => {
      const workload = placed.workloadNamed({ ...reference, namespace });
      const { there = [], ending = [] } = byKey.get(migratedKey(namespace, reference)) ?? {};
      return { reference, workload, there, ending };
    });
  }

  /** Those that the report of a migration under way is about, without those that are left behind: one that came later, to the namespace, is not of them. */
  movedBy({ metadata, spec, status }: WorkloadMigration): NamedWorkload[] {
    const judged = (status?.workloads ?? []).filter(({ reason }) => reason !== 'LeftBehind');
    return this.workloadsOf({ metadata, spec: { ...spec, workloads: judged.map(({ workload }) => workload) } });
  }

  #inMember(namespace: string, member: string): Map<string, FoundThere> {
    const { placed } = this.#o;
    const found = new Map<string, FoundThere>();
    const workloadOf = perController((pod) => placed.rulesOf(pod).workload);
    for (const one of placed.inMember(member)) {
      if (one.metadata.namespace !== namespace || isFinished(one)) continue;
      const owned = asOwned(one);
      if (controllerOf(owned)?.kind === 'DaemonSet') continue;
      const workload = workloadOf(owned);
      const reference = { apiVersion: workload.apiVersion, kind: workload.kind, name: workload.metadata.name };
      const key = migratedKey(namespace, reference);
      const known = found.get(key) ?? { reference, workload, there: [], ending: [] };
      (isActive(one) ? known.there : known.ending).push(one);
      found.set(key, known);
    }
    return found;
  }

  /**
   * The active pods of a workload, wherever they are, and those that have yet to end in the member; for why they stay one of each controller in the member is read, as those are alike.
   * Undefined: one could not be read.
   */
  async of(
    { workload, there, ending }: NamedWorkload,
    from: string,
    signal: AbortSignal,
  ): Promise<MigratedPod[] | undefined> {
    const { placed, mover } = this.#o;
    const whole = await this.wholePods(there, signal);
    if (whole === undefined) return undefined;
    const whyStays = perController((live) => this.whyStays(live));
    const wouldSurge = perController((owned) => this.#surges(owned));
    const surges = (pod: Pod): boolean => isReady(pod) && wouldSurge(asOwned(pod));
    const all = new Map<string, Pod>();
    for (const pod of this.#podsOf(workload)) all.set(pod.metadata.uid ?? '', pod);
    for (const pod of there) all.set(pod.metadata.uid ?? '', pod);
    const gone = ending.map((pod): MigratedPod => {
      const isLeaving = { isLeaving: true, surges: surges(pod), turn: 0, whyStays: undefined };
      return { pod, cluster: from, isReady: isReady(pod), ...isLeaving };
    });
    const active = [...all.values()].filter(isActive).map((pod): MigratedPod => {
      const { nodeName } = pod.spec;
      const cluster = nodeName === undefined || nodeName === '' ? undefined : placed.clusterOf(nodeName);
      const live = whole.get(pod.metadata.uid ?? '');
      return {
        pod,
        cluster,
        isReady: isReady(pod),
        isLeaving: mover.wasSent(pod),
        surges: surges(pod),
        turn: mover.turnOf(pod),
        whyStays: cluster === from && live !== undefined ? whyStays(live) : undefined,
      };
    });
    return [...active, ...gone];
  }

  /**
   * Pods of a workload under way that have yet to find their places, whole: those in the member that may leave it, new ones without a
   * place, and those on their way out that nothing was made for yet. Without those of a controller of which none was ever read.
   */
  async yetToPlace(one: NamedWorkload, from: string, signal: AbortSignal): Promise<readonly Pod[]> {
    const pods = await this.of(one, from, signal);
    if (pods === undefined) return [];
    const still = pods.filter(
      ({ cluster, isLeaving, whyStays }) => cluster === from && !isLeaving && whyStays === undefined,
    );
    const unplaced = pods.filter(({ cluster }) => cluster === undefined);
    const { missing } = migrationStep(pods, from, this.wantedOf(one));
    const leaving = pods.filter(({ isLeaving }) => isLeaving).slice(0, missing);
    const all = [...still, ...unplaced, ...leaving].map(({ pod }) => pod);
    const samples = await this.#samples(all, signal);
    return all.flatMap((pod) => {
      const controller = ownedKeyOf(pod);
      const sample = samples.get(controller) ?? this.#read.get(controller);
      return sample === undefined ? [] : [alike(sample, pod)];
    });
  }

  /** As they are in the host but for what differs from pod to pod; undefined when none of a controller could be read. By UID. */
  async wholePods(pods: readonly Pod[], signal: AbortSignal): Promise<ReadonlyMap<string, Pod> | undefined> {
    const samples = await this.#samples(pods, signal);
    const whole = new Map<string, Pod>();
    for (const pod of pods) {
      const sample = samples.get(ownedKeyOf(pod));
      if (sample === undefined) return undefined;
      whole.set(pod.metadata.uid ?? '', alike(sample, pod));
    }
    return whole;
  }

  /** One of each controller as it is in the host, by the UID of the controller; of some there may be none. Those that could not be read come after the others. */
  async #samples(pods: readonly Pod[], signal: AbortSignal): Promise<ReadonlyMap<string, Pod>> {
    const { mover } = this.#o;
    const samples = new Map<string, Pod>();
    const unread = new Map<string, number>();
    for (const pod of pods.toSorted((a, b) => mover.turnOf(a) - mover.turnOf(b))) {
      const controller = ownedKeyOf(pod);
      const inVain = unread.get(controller) ?? 0;
      if (samples.has(controller) || inVain >= MOST_UNREAD) continue;
      const live = await mover.read(pod, signal);
      if (live === undefined) {
        unread.set(controller, inVain + 1);
        continue;
      }
      samples.set(controller, asOwned(live));
      this.#read.set(controller, asOwned(live));
    }
    return samples;
  }

  /** Why a pod, whole, is never moved; undefined when it may be. */
  whyStays(live: Pod): string | undefined {
    if (staysByPolicy('Migrate', this.#o.placed.rulesOf(live).failover)) return 'its policy says purgeMode: Never';
    return whyNotMovedAtWill(live);
  }

  /** Whether a pod, which goes before another one is Ready, takes nothing away from its workload that is missed now. */
  mayGoNow(live: Pod, one: NamedWorkload): boolean {
    if (this.#surges(live)) return true;
    const { mover } = this.#o;
    const pods = this.#podsOf(one.workload).filter(isActive);
    if (pods.some((pod) => mover.isGoing(pod))) return false;
    const all = pods.map((pod) => ({ pod, cluster: pod.spec.nodeName, isReady: isReady(pod) }));
    return mayGoAlone({ pod: live, isReady: isReady(live) }, all, this.wantedOf(one));
  }

  /** Pods that the workload asks for, as it is by now; undefined: it is gone, or does not say. */
  wantedOf({ workload }: NamedWorkload): number | undefined {
    if (workload === undefined) return undefined;
    return replicasOf(this.#o.placed.workloadByKey(ownerKeyOf(workload)) ?? workload);
  }

  #podsOf(workload: TypedObject | undefined): readonly Pod[] {
    return workload === undefined ? [] : this.#o.placed.ofWorkload(ownerKeyOf(workload));
  }

  #surges(pod: Pod): boolean {
    const { placed } = this.#o;
    return goesGracefully(pod, 'Migrate', placed.rulesOf(pod).failover) && placed.surgingSetOf(pod) !== undefined;
  }
}

/** Asks about one pod of each controller what is alike in all of them: there may be thousands. */
export function perController<T>(ask: (pod: Pod) => T): (pod: Pod) => T {
  const known = new Map<string, { readonly answer: T }>();
  return (pod) => {
    const controller = ownedKeyOf(pod);
    const found = known.get(controller) ?? { answer: ask(pod) };
    known.set(controller, found);
    return found.answer;
  };
}

function alike(sample: Pod, { metadata: { name, uid = '' } }: Pod): Pod {
  return { ...sample, metadata: { ...sample.metadata, name, uid } };
}

function ownedKeyOf(pod: Pod): string {
  return controllerOrOwnKeyOf(asOwned(pod));
}

function inOrder({ kind, name }: MigratedReference): string {
  return `${kind}/${name}`;
}
