import { controllerOf } from '../../../src/kube/owner-references.ts';
import { BY_ROOM } from '../crowded.ts';
import { asPod } from '../pod-shapes.ts';
import { fitsBehind, memberOf, ruleOf, slotsIn } from '../room.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { WORKLOADS, pathOf } from '../workload-controllers.ts';
import type { World } from '../world.ts';
import type { Report } from './report.ts';

/** So many more pods have to fit elsewhere: what is almost alike may be counted otherwise. */
const CLEARLY = 2;

/**
 * Of a workload that is divided by room its only pod goes where most room is, whichever node a scheduler asks about first. The first
 * one only: those after it keep to the division that was made for it.
 */
export class DivisionOracle {
  readonly #world: World;
  readonly #report: Report;
  /** UIDs of workloads that are divided already, or may be. */
  readonly #divided = new Set<string>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  /** In the host. */
  changed({ object }: Change): void {
    if (object['kind'] === 'Pod' && asPod(object).spec.nodeName !== undefined) this.unanswered(object);
  }

  unanswered(pod: SimObject): void {
    const owner = controllerOf(asPod(pod))?.uid;
    if (owner !== undefined) this.#divided.add(owner);
  }

  /** `isKnown`: whoever answers knows all that is in the member. */
  placed(
    pod: SimObject,
    nodes: readonly string[],
    passing: readonly string[],
    isKnown: (member: string) => boolean,
  ): void {
    if (ruleOf(this.#world, pod) !== BY_ROOM || !this.#isAlone(pod)) return;
    const member = memberOf(this.#world, nodes[0] ?? '');
    const better = passing.find((node) => {
      const other = memberOf(this.#world, node);
      return (
        member !== undefined &&
        other !== undefined &&
        isKnown(member) &&
        isKnown(other) &&
        fitsBehind(this.#world, pod, node) &&
        slotsIn(this.#world, pod, other) >= slotsIn(this.#world, pod, member) + CLEARLY
      );
    });
    if (better === undefined) return;
    const { name } = pod.metadata;
    this.#report('division', `${name} is divided by room, and may go to ${nodes.join()}, though ${better} has more`);
  }

  #isAlone(pod: SimObject): boolean {
    const owner = controllerOf(asPod(pod));
    if (owner === undefined || this.#divided.has(owner.uid)) return false;
    const path = pathOf({ ...pod, metadata: { ...pod.metadata, name: owner.name } }, WORKLOADS.ReplicaSet);
    return (this.#world.host.get(path)?.['spec'] as { replicas?: number } | undefined)?.replicas === 1;
  }
}
