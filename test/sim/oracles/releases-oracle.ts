import { releasedFrom, TEMPLATE_HASH } from '../../../src/api/released.ts';
import { asPod, isFinal, isReady } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import { PATHS, type World } from '../world.ts';
import { WORKLOADS } from '../workload-controllers.ts';
import type { Report } from './report.ts';

/** What was so a moment ago may be so still in the caches of those who watch late, in ms. */
const LATE_MS = 90_000;

/**
 * I11: a pod is let go of as it is, with one label less, by which it can be given back; one that is Ready ends only when as many
 * are Ready without it as are wanted, or were. What is shown as Ready on a Node that is out of service counts for nothing: pods of
 * a silent member are shown so for a minute yet (`podsUnreadyAfterSeconds`), and by the word of an administrator it does not run.
 */
export class ReleasesOracle {
  readonly #world: World;
  readonly #report: Report;
  readonly #isOutOfService: (nodeName: string) => boolean;
  /** By UID of the ReplicaSet, when it last wanted more, or had fewer pods that are Ready. */
  readonly #changed = new Map<string, number>();

  /** `isOutOfService`: by the word of an administrator nothing runs on that Node, and its member does not answer. */
  constructor(world: World, report: Report, isOutOfService: (nodeName: string) => boolean) {
    this.#world = world;
    this.#report = report;
    this.#isOutOfService = isOutOfService;
  }

  changed(change: Change): void {
    const { cluster, object, previous, by } = change;
    if (cluster !== this.#world.host) return;
    if (object['kind'] === 'Pod' && previous !== undefined && isOfProgram(by)) this.#judge(change, previous);
    this.#note(change);
  }

  #judge(change: Change, previous: SimObject): void {
    const { object } = change;
    const [hash, before] = [object.metadata.labels?.[TEMPLATE_HASH], previous.metadata.labels?.[TEMPLATE_HASH]];
    if (before !== undefined && hash === undefined) this.#released(change, before);
    const isEnding =
      object.metadata.deletionTimestamp !== undefined && previous.metadata.deletionTimestamp === undefined;
    if (isEnding && releasedFrom(asPod(previous)) !== undefined) this.#ended(change, previous);
  }

  #note({ object, previous, at }: Change): void {
    if (object['kind'] === 'ReplicaSet') {
      if (replicasOf(object) > replicasOf(previous)) this.#changed.set(object.metadata.uid, at);
      return;
    }
    if (object['kind'] !== 'Pod' || previous === undefined || !isServing(previous) || isServing(object)) return;
    const owner = releasedFrom(asPod(previous))?.uid ?? previous.metadata.ownerReferences?.[0]?.uid;
    if (owner !== undefined) this.#changed.set(owner, at);
  }

  #released({ object, previous, by }: Change, before: string): void {
    const mark = releasedFrom(asPod(object));
    const owner = previous?.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (mark?.hash === before && mark.uid === owner?.uid) return;
    this.#report('I11', `${by} lets go of ${object.metadata.name}, which does not say whose it was`);
  }

  #ended({ object, by, at }: Change, previous: SimObject): void {
    const mark = releasedFrom(asPod(previous));
    const { namespace = '', uid, name } = object.metadata;
    const set = [...this.#world.host.list(WORKLOADS.ReplicaSet)].find((one) => one.metadata.uid === mark?.uid);
    if (mark === undefined || set === undefined || !isServing(previous)) return;
    if (this.#isOutOfService(asPod(previous).spec.nodeName ?? '')) return;
    const others = [...this.#world.host.list(PATHS.pods(namespace))].filter((pod) => {
      const isOwn = pod.metadata.ownerReferences?.some((one) => one.uid === mark.uid) === true;
      return pod.metadata.uid !== uid && isServing(pod) && (isOwn || releasedFrom(asPod(pod))?.uid === mark.uid);
    });
    const wanted = Math.min(replicasOf(set), mark.ready);
    const isNew = at - (this.#changed.get(mark.uid) ?? -LATE_MS) < LATE_MS;
    if (others.length < wanted && !isNew)
      this.#report('I11', `${by} ends ${name} while only ${others.length} others of ${wanted} are Ready`);
  }
}

function isServing(pod: SimObject): boolean {
  return isReady(pod) && !isFinal(pod) && pod.metadata.deletionTimestamp === undefined;
}

function replicasOf(set: SimObject | undefined): number {
  return (set?.['spec'] as { replicas?: number } | undefined)?.replicas ?? 0;
}
