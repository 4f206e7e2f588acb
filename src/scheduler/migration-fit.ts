import { Breath } from '../kube/breath.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ownerKeyOf } from '../kube/owner-references.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { Decision, PlacementFacts, Plan } from '../placement/decision.ts';
import { clusterInWords, NOT_CONTACTED } from '../api/cluster.ts';
import type { Migrating } from '../placement/migrating.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import type { GoingTogether, NoPlaceTogether } from '../placement/placed-pods.ts';
import { type Refusal, type RefusalReason, refusalInWords } from '../placement/placement-refusal.ts';
import { type PodCounts, withMore } from '../placement/workload.ts';
import type { HostView } from './host-view.ts';
import type { CapacityOf } from './member-fit.ts';
import { nextPod } from './next-of-set.ts';
import type { PlacementQuestions } from './placement-questions.ts';
import { askAboutSuccessor } from './successor-question.ts';

export interface MigrationFitOptions {
  view: HostView;
  questions: PlacementQuestions;
  /** Also for `local`, the host's own nodes. */
  capacityOf: CapacityOf;
  /** Room that was set aside while others were asked about is free again: pods that were refused for it are worth another look. */
  freed: () => void;
  /** Wall clock in ms. */
  clock: () => number;
  /** Lets others have their turn between two pods. */
  breath?: () => Pick<Breath, 'take'>;
}

/** A workload in the course of the question: as if the pods before had moved. */
interface Course {
  pods: PodCounts;
  plan: Plan | undefined;
}

/** Marks what is set aside for the time of the question. */
const ASIDE = 'migration/';

/**
 * Whether pods fit, all together, where a migration would have them: the scheduler's own question about the pod that comes
 * instead of each, one after the other, with the room and the seats of those before it set aside. Thousands of them take
 * seconds, so others have their turn in between; for these the room that is set aside is taken until the question ends, however
 * it ends. One question at a time.
 */
export class MigrationFit {
  readonly #o: MigrationFitOptions;
  #isAsking = false;

  constructor(options: MigrationFitOptions) {
    this.#o = options;
  }

  /** Room is set aside for a question, and free again in a moment: what follows from the lack of it is not to last. */
  get isAsking(): boolean {
    return this.#isAsking;
  }

  /**
   * Why pods do not fit, by UID; those that fit are not there. Sets one after the other, each with its own way. Rejects when the
   * signal aborts.
   */
  async whyNot(sets: readonly GoingTogether[], signal: AbortSignal): Promise<ReadonlyMap<string, NoPlaceTogether>> {
    const { breath: newBreath = () => new Breath(), freed } = this.#o;
    const whys = new Map<string, NoPlaceTogether>();
    const aside: (readonly [VirtualNodeCapacity, string])[] = [];
    const courses = new Map<string, Course>();
    const breath = newBreath();
    try {
      for (const { pods, way } of sets) {
        for (const pod of pods) {
          await breath.take();
          signal.throwIfAborted();
          const why = this.#take(pod, way, courses, aside);
          if (why !== undefined) whys.set(pod.metadata.uid ?? '', why);
        }
      }
    } finally {
      for (const [capacity, key] of aside) capacity.release(key);
      this.#isAsking = false;
      if (aside.length > 0) freed();
    }
    return whys;
  }

  #take(
    live: Pod,
    way: Migrating,
    courses: Map<string, Course>,
    aside: (readonly [VirtualNodeCapacity, string])[],
  ): NoPlaceTogether | undefined {
    const { view, capacityOf } = this.#o;
    const next = nextPod(live, view);
    if ('unknown' in next) return { why: next.unknown, isKnown: false };
    const { chain, chosen } = view.selectionOf(next);
    if (chosen === undefined) return { why: 'no policy and no label of its namespace speaks about it', isKnown: true };
    const key = ownerKeyOf(workloadOf(chain).object);
    const course = courses.get(key);
    const { facts, members, decision } = askAboutSuccessor(
      this.#o,
      { next, formerUid: live.metadata.uid ?? '', chain, rules: chosen },
      { migrating: way, ...(course && { pods: course.pods, remembered: course.plan }) },
    );
    const place = decision.allowed.find(({ cluster }) => (facts.rooms.get(cluster)?.fits ?? 0) > 0);
    if (place === undefined) return whyNowhere(decision, way, facts.rooms);
    const [best] = members.get(place.cluster)?.nodes ?? [];
    const capacity = best === undefined ? undefined : capacityOf(best.name);
    // A pod that was told its place a moment ago has it already.
    if (best !== undefined && capacity !== undefined && !capacity.holds(live.metadata.uid ?? '')) {
      const key = `${ASIDE}${live.metadata.uid ?? ''}`;
      this.#isAsking = true;
      capacity.reserve(key, best.request);
      aside.push([capacity, key]);
    }
    courses.set(key, {
      pods: withMore(facts.workload.pods, facts.pod.revision, place.cluster, 1),
      plan: decision.plan,
    });
    return undefined;
  }
}

/** Of the cluster that it is to go to; without one, of all others. Room there that is not known yet makes it no more than that. */
function whyNowhere(
  { allowed, refusals }: Decision,
  { from, to }: Migrating,
  rooms: PlacementFacts['rooms'],
): NoPlaceTogether {
  const told = refusals.filter(({ cluster }) => (to === undefined ? cluster !== from : cluster === to));
  const isKnown = allowed.length === 0 && !told.some((refusal) => mayStillTakeIt(refusal, rooms));
  if (told.length > 0) return { why: told.map(refusalInWords).join('; '), isKnown };
  if (allowed.length > 0) return { why: 'it is not known whether there is room', isKnown };
  return { why: to === undefined ? 'no other cluster takes it' : `there is no ${clusterInWords(to)}`, isKnown };
}

/** Reasons that hold whatever room there is. */
const WHATEVER_ROOM: ReadonlySet<RefusalReason> = new Set([
  'NotSelected',
  'OtherGroup',
  'Impossible',
  'Tainted',
  'Avoided',
  'Migrating',
  'NoShare',
]);

function mayStillTakeIt({ cluster, reason, message }: Refusal, rooms: PlacementFacts['rooms']): boolean {
  if (reason === 'Unavailable') return message === NOT_CONTACTED;
  return !WHATEVER_ROOM.has(reason) && rooms.get(cluster)?.notKnown === true;
}
