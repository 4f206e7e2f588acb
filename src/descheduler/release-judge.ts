import { asOwned, releasedFrom } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { SinceWhen } from '../kube/since-when.ts';
import { lostMembers } from '../placement/lost-members.ts';
import type { MoveRules, PlacedMember, PlacedPods } from '../placement/placed-pods.ts';
import { healStep, isHealed, strandedStep } from './heal-step.ts';
import type { LossAges } from './loss-ages.ts';
import { replacedAfterMs, whyItStaysLost } from './member-lost.ts';
import { withWordsThatCount } from './out-of-service.ts';
import { onHealOf, purgeRules } from './purge-mode.ts';
import { releaseSteps } from './release-rules.ts';
import { missingOf, type ReleaseStep, type ReplicaSetFacts } from './release-step.ts';
import type { Releases } from './releases.ts';
import type { RoomForOthers } from './room-for-others.ts';
import type { Room } from './room-left.ts';

export interface ReleaseJudgeOptions {
  placed: Pick<PlacedPods, 'members' | 'clusterOf' | 'ofController' | 'rulesOf' | 'hasRules' | 'whyRulesNotYet'>;
  releases: Pick<Releases, 'of' | 'givenBack' | 'passedMs' | 'countAnew'>;
  room: Pick<RoomForOthers, 'look' | 'tryAnew'>;
  losses: Pick<LossAges, 'lostForMs' | 'countedMs'>;
  /** In ms. */
  monotonic: () => number;
}

/** Retry delay while the rules are not known (ms). */
const NO_RULES_YET_MS = 5_000;
/** None may go so that a ReplicaSet can make others. */
const NO_ROOM: Room = { open: 0, mayGo: 0 };

/** Says what is to become of the released pods of a ReplicaSet, by what caches show of them at each look, and by how long that has been so. */
export class ReleaseJudge {
  readonly #o: ReleaseJudgeOptions;
  /** By key, that a ReplicaSet has fewer pods than it wants. */
  readonly #short = new SinceWhen();
  /** By key of a ReplicaSet, that its rules say KeepReplacement. */
  readonly #keeps = new SinceWhen();
  /** By UID of a pod, that its member is none any more. */
  readonly #gone = new SinceWhen();

  constructor(options: ReleaseJudgeOptions) {
    this.#o = options;
  }

  /** Its released pods and what becomes of them. `set`: what is known of it; undefined: it is gone. */
  steps(setKey: string, set: ReplicaSetFacts | undefined): { steps: ReleaseStep[]; room: Room } {
    const { placed, releases, losses, monotonic } = this.#o;
    const released = releases.of(setKey);
    const all = placed.members();
    const members = new Map(all.map((one) => [one.name, withWordsThatCount(one, losses.lostForMs(one.name))]));
    const memberOf = ({ spec }: Pod): PlacedMember | undefined => members.get(placed.clusterOf(spec.nodeName ?? ''));
    // Not Ready may only mean that its member does not answer, or did not until a moment ago.
    for (const pod of released) if (isUnanswered(pod, memberOf(pod))) releases.countAnew(pod);
    const givenBack = releases.givenBack(setKey);
    const out = new Set([...released, ...givenBack].map(({ metadata }) => metadata.uid));
    const owned = [...placed.ofController(setKey).filter(({ metadata }) => !out.has(metadata.uid)), ...givenBack];
    const [first] = released;
    const found = first === undefined ? undefined : placed.rulesOf(asOwned(first));
    const failover = found?.failover;
    const staysForMs = found === undefined ? Infinity : replacedAfterMs(found);
    const isPaused = lostMembers(all).paused !== undefined;
    const lossCounts = (pod: Pod): boolean => !isPaused && losses.countedMs(memberOf(pod)?.name ?? '') >= staysForMs;
    const rules = purgeRules(failover);
    const { gracePeriodSeconds } = rules;
    const onHeal = onHealOf(failover);
    const rulesFound = {
      onHeal,
      keepsForMs: this.#keeps.lasting(setKey, onHeal === 'KeepReplacement', monotonic()),
      hasRules: first !== undefined && placed.hasRules(asOwned(first)),
    };
    const passedMs = (pod: Pod): number => releases.passedMs(pod);
    const missing = missingOf(set, owned);
    const room = set === undefined ? NO_ROOM : this.#o.room.look(setKey, { released, owned, missing });
    const steps = releaseSteps({
      set,
      released,
      owned,
      rules,
      passedMs,
      lossCounts,
      whyItStaysLost: (pod) => found && this.whyItStaysLost(pod, found),
      mayMakeRoom: room.mayGo > 0,
      shortForMs: this.#short.lasting(setKey, missing > 0, monotonic()),
      heal: (pod) => {
        const member = memberOf(pod);
        const goneForMs = this.#gone.lasting(pod.metadata.uid ?? '', member === undefined, monotonic());
        return healStep(pod, { ...rulesFound, member, goneForMs, answersForMs: passedMs(pod), gracePeriodSeconds });
      },
      stranded: (pod) => strandedStep(pod, memberOf(pod), failover, lossCounts(pod)),
      clusterOf: (nodeName) => placed.clusterOf(nodeName),
    });
    // Its rules may keep them: an end cannot be taken back. Those of a ReplicaSet that is gone go whatever was said of it.
    const notYet = first === undefined || set === undefined ? undefined : placed.whyRulesNotYet(asOwned(first));
    return { steps: notYet === undefined ? steps : steps.map((step) => heldFor(notYet, step)), room };
  }

  /** Nobody looks at them now, so nothing lasts. */
  forgetTimes(setKey: string): void {
    this.#short.forget(setKey);
    this.#keeps.forget(setKey);
    this.#o.room.tryAnew(setKey);
    for (const { metadata } of this.#o.releases.of(setKey)) this.#gone.forget(metadata.uid ?? '');
  }

  /** Why it stays, as any other pod of a lost member does for now, in words: of a released pod caches keep all that says so. */
  whyItStaysLost(pod: Pod, rules: MoveRules): string | undefined {
    const { placed, losses } = this.#o;
    const lostMs = losses.countedMs(placed.clusterOf(pod.spec.nodeName ?? ''));
    return whyItStaysLost(asOwned(pod), rules, lostMs)?.why;
  }

  /** A ReplicaSet that has fewer pods than it wants has its time to make one anew. */
  madeRoom(setKey: string): void {
    this.#short.countAnew(setKey, this.#o.monotonic());
  }

  /** A pod is gone. */
  gone(pod: Pod): void {
    this.#gone.forget(pod.metadata.uid ?? '');
  }
}

function heldFor(why: string, step: ReleaseStep): ReleaseStep {
  if (step.kind === 'wait') return step;
  const wait = { pod: step.pod, kind: 'wait', forMs: NO_RULES_YET_MS } as const;
  return step.kind === 'evict' ? { ...wait, keeps: { from: step.why, why } } : wait;
}

/** What is said of the pod may be old. One that waits for its member needs to know that all of it can be relied on. */
function isUnanswered(pod: Pod, member: PlacedMember | undefined): boolean {
  if (member === undefined) return false;
  return member.reachable === false || (releasedFrom(pod)?.lost === true && !isHealed(member));
}
