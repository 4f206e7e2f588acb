import { GANG_PLACED_ANNOTATION, MEMBER_LABEL } from '../../../src/api/marks.ts';
import { controllerOf } from '../../../src/kube/owner-references.ts';
import { asPod, isFinal } from '../pod-shapes.ts';
import { LIMITED, RESERVED, RESIDENCE } from '../residence.ts';
import type { SimObject } from '../sim-cluster.ts';
import type { SimProcess } from '../sim-process.ts';
import { WORKLOADS } from '../workload-controllers.ts';
import { PATHS, type World } from '../world.ts';
import type { Report } from './report.ts';

/** What was so a moment ago may be so still in the caches of those who watch late, in ms. */
const LATE_MS = 90_000;
/** Who names owners that do not exist keeps the scheduler waiting no longer than that, all of them together, in so much time. */
const OF_MS = 60_000;
const MOST_WAITED_MS = 8_000;
/** Answers come within that, in ms. */
const PROMPT_MS = 50;

/** Pods are where policies say, whatever tenants write into them, and nobody waits long for those who cheat. */
export class ResidenceOracle {
  readonly #world: World;
  readonly #report: Report;
  /** When the scheduler waited for an answer about such a pod, and for how long, in ms. */
  #waits: { at: number; ms: number }[] = [];
  /** On whose word pods were bound, by UID. */
  readonly #chosenBy = new Map<string, SimProcess>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  /** The extender was asked about a pod at that moment (ms), and allows these nodes. */
  allowed(pod: SimObject, nodes: readonly string[], askedAt: number): void {
    const residence = this.#labelOf(pod, RESIDENCE);
    for (const node of nodes) {
      const member = this.#memberOf(node);
      // It was deleted a moment ago.
      if (member === undefined) continue;
      if (residence !== undefined && member !== residence)
        this.#report('residence', `${pod.metadata.name} has to be in ${residence}, and may go to ${node}${lieOf(pod)}`);
      if (residence === undefined && this.#labelOf(pod, LIMITED) === undefined && this.#isReserved(member))
        this.#report('residence', `${pod.metadata.name} may go to ${node}, whose member is reserved for others`);
    }
    if (controllerOf(asPod(pod))?.name === 'made-up') this.#waited(pod, this.#world.loop.now - askedAt);
  }

  #waited(pod: SimObject, ms: number): void {
    const { now } = this.#world.loop;
    this.#waits = this.#waits.filter(({ at }) => now - at < OF_MS);
    if (ms > PROMPT_MS) this.#waits.push({ at: now, ms });
    const all = this.#waits.reduce((sum, one) => sum + one.ms, 0);
    if (all <= MOST_WAITED_MS) return;
    const seconds = Math.round(all / 1_000);
    this.#report('waiting', `all wait for ${seconds} s of a minute for pods like ${pod.metadata.name}, of no owner`);
  }

  /**
   * The scheduler has bound a pod where that process said. What is bound without an answer, as `ignorable` has it, follows no
   * rules; and a place between the answer and the bind only that process knows of which gave it.
   */
  bound(pod: SimObject, by: SimProcess): void {
    this.#chosenBy.set(pod.metadata.uid, by);
    const owner = controllerOf(asPod(pod))?.uid;
    if (owner === undefined || this.#labelOf(pod, LIMITED) === undefined) return;
    const [first] = this.#world.members.keys();
    const there = [...this.#world.host.list(PATHS.pods(pod.metadata.namespace ?? ''))].filter(
      (one) =>
        controllerOf(asPod(one))?.uid === owner &&
        this.#chosenBy.get(one.metadata.uid) === by &&
        one.metadata.deletionTimestamp === undefined &&
        !isFinal(one) &&
        this.#memberOf(asPod(one).spec.nodeName ?? '') === first,
    );
    if (there.length <= 1) return;
    const names = there.map(({ metadata: { name } }) => name).join(' and ');
    this.#report('residence', `${names} are in ${first}, where one of them may be`);
  }

  /** Of the pod itself, or of the ReplicaSet that made it. */
  #labelOf(pod: SimObject, label: string): string | undefined {
    const { metadata } = pod;
    const own = metadata.labels?.[label];
    const owner = controllerOf(asPod(pod));
    if (own !== undefined || owner?.kind !== 'ReplicaSet') return own;
    const at = WORKLOADS.ReplicaSet.lastIndexOf('/');
    const path = `${WORKLOADS.ReplicaSet.slice(0, at)}/namespaces/${metadata.namespace ?? ''}/replicasets/${owner.name}`;
    return this.#world.host.get(path)?.metadata.labels?.[label];
  }

  #memberOf(node: string): string | undefined {
    return this.#world.host.get(`${PATHS.nodes}/${node}`)?.metadata.labels?.[MEMBER_LABEL];
  }

  /** For so long that all know it. */
  #isReserved(member: string): boolean {
    const object = this.#world.host.get(`${PATHS.members}/${member}`);
    const { clusterTaints = [] } = (object?.['spec'] ?? {}) as { clusterTaints?: { key: string }[] };
    const since = Number(object?.metadata.annotations?.[RESERVED.key] ?? Number.POSITIVE_INFINITY);
    return clusterTaints.some(({ key }) => key === RESERVED.key) && this.#world.loop.now - since > LATE_MS;
  }
}

function lieOf(pod: SimObject): string {
  const { apiVersion, kind } = controllerOf(asPod(pod)) ?? {};
  const marks = pod.metadata.annotations?.[GANG_PLACED_ANNOTATION] === undefined ? '' : ', as its gang had a place';
  return `${marks}${kind === undefined ? '' : `, as of ${apiVersion ?? ''} ${kind}`}`;
}
