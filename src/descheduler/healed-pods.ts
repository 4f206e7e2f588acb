import { isActive } from '../api/pod-phase.ts';
import { asOwned, type Released } from '../api/released.ts';
import type { KubeClient } from '../kube/client.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { PODS } from '../kube/resource.ts';
import { get, patch } from '../kube/verbs.ts';
import { keyFor } from '../kube/object.ts';
import type { PlacedMember, PlacedPods } from '../placement/placed-pods.ts';
import { whyItStaysDrained } from './drain.ts';
import { healCosts, originalStays } from './heal-choice.ts';
import { isHealed } from './heal-step.ts';
import { onHealOf, purgeRules } from './purge-mode.ts';
import { costPatch, giveBackPatch } from './release-patches.ts';
import type { ChooseStep } from './release-step.ts';
import { whyItStaysTainted } from './taint-no-execute.ts';

export interface HealedPodsOptions {
  host: KubeClient;
  placed: Pick<PlacedPods, 'rulesOf' | 'member' | 'clusterOf' | 'ofController' | 'wayOf'>;
}

/** Why an original goes that is well again. */
export type ChosenReason = 'HasToLeave' | 'RanShorter' | 'ForeignCost';

/** Chooses between a pod whose member was lost and the one that came in its place: all is read live right before. */
export class HealedPods {
  readonly #o: HealedPodsOptions;

  constructor(options: HealedPodsOptions) {
    this.#o = options;
  }

  /**
   * Gives it back so that its ReplicaSet, which has one pod too many then, ends the other one; or says why it goes. The costs say which one
   * goes, as its member's outage makes the original look like the one that has been Ready for the shortest time. Undefined: to be looked at again.
   * `begins` is called before anything is written.
   */
  async choose(
    { instead, mayGo: enough }: ChooseStep,
    live: Pod,
    released: Released,
    begins: () => void,
    signal: AbortSignal,
  ): Promise<'stays' | ChosenReason | undefined> {
    const { host, placed } = this.#o;
    const { namespace, name } = live.metadata;
    if (!isReady(live)) return undefined;
    const { failover } = placed.rulesOf(asOwned(live));
    const onHeal = onHealOf(failover);
    // Never: its ReplicaSet may have it again, and that is all.
    const mayGo = enough && purgeRules(failover).purgeMode !== 'Never';
    // It was another one a moment ago: how long this one lasts is to be seen.
    if (onHeal === 'KeepReplacement') return undefined;
    const member = placed.member(placed.clusterOf(live.spec.nodeName ?? ''));
    if (member === undefined || !isHealed(member)) return undefined;
    if (mayGo && this.#isToLeave(live, member)) return 'HasToLeave';
    const other = instead === undefined ? undefined : await this.#readOther(instead, signal);
    if (instead !== undefined && other === undefined) return undefined;
    if (mayGo && !originalStays(onHeal, live, other)) return 'RanShorter';
    const owned = placed.ofController(keyFor(namespace, released.uid)).filter(isActive);
    const costs = healCosts(
      live,
      other,
      owned.filter(({ metadata }) => metadata.uid !== other?.metadata.uid),
    );
    if (costs === undefined && mayGo) return 'ForeignCost';
    begins();
    if (other !== undefined && costs?.replacement !== undefined) {
      const body = costPatch(other, costs.replacement);
      await patch(host, PODS, { namespace, name: other.metadata.name }, body, { type: 'merge' }, { signal });
    }
    const body = giveBackPatch(live, released, costs?.original);
    await patch(host, PODS, { namespace, name }, body, { type: 'merge' }, { signal });
    return 'stays';
  }

  /** Whether it would have to leave its member again, for a taint, a drain, or a WorkloadMigration that is under way. */
  #isToLeave(live: Pod, member: PlacedMember): boolean {
    const { placed } = this.#o;
    const own = asOwned(live);
    const rules = placed.rulesOf(own);
    return (
      placed.wayOf(rules.workload)?.from === member.name ||
      whyItStaysTainted(own, rules, member, () => 0) !== 'notWanted' ||
      whyItStaysDrained(own, rules, member) === undefined
    );
  }

  /** The pod that came in its place, whole; undefined when it is gone or on its way out. */
  async #readOther({ metadata }: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    const { namespace, name, uid } = metadata;
    const live = await get<Pod>(this.#o.host, PODS, { namespace, name }, { signal });
    return live.metadata.uid === uid && isActive(live) ? live : undefined;
  }
}
