import { BurstHistory, type Moment } from '../../hack/burst-history.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { placementOf } from '../fixtures/scheduling.ts';
import { PodSlots, type Return } from './pod-slots.ts';
import { ToldMoves } from './told-moves.ts';

const ALL = [
  ['/apis/apps/v1', 'deployments'],
  ['/api/v1', 'pods'],
  ['/api/v1', 'events'],
] as const;

/** A Deployment that is alone in its namespace, from watches: where its pods were at each moment, and which of them were moved. */
export class WatchedWorkload {
  readonly history = new BurstHistory();
  readonly told = new ToldMoves();
  readonly #slots = new PodSlots();
  readonly #host: Cluster;
  readonly #namespace: string;
  readonly #name: string;

  constructor(host: Cluster, namespace: string, name: string) {
    this.#host = host;
    this.#namespace = namespace;
    this.#name = name;
  }

  /** Until the signal aborts. */
  follow(signal: AbortSignal): Promise<void>[] {
    return ALL.map(async ([api, resource]) => {
      const path = `${api}/namespaces/${this.#namespace}/${resource}`;
      await this.#host.api.follow(path, signal, (event) => {
        if (resource === 'deployments') this.history.deployment(event);
        else if (resource === 'events') this.told.event(event);
        else {
          this.history.pod(event);
          this.#slots.pod(event);
        }
      });
    });
  }

  /** By strategy, how many pods `status.moves` of its WorkloadPlacement tells of. */
  async moves(): Promise<Record<string, number>> {
    const { status } = (await placementOf(this.#host, this.#namespace, this.#name)) ?? {};
    const counts: Record<string, number> = {};
    for (const { strategy, count } of status?.moves ?? []) counts[strategy] = (counts[strategy] ?? 0) + count;
    return counts;
  }

  /** Pods where one before them was, of those in whose place they are. */
  returns(): Return[] {
    return this.#slots.returns(this.told.all.map(({ pod }) => pod));
  }

  /** Those of them that only had to leave where they were: no rule had brought the one before them, or any since. */
  returnsWithoutRule(): Return[] {
    const ruled = new Set(this.told.byRules.map(({ pod }) => pod));
    return this.returns().filter(({ moved }) => !moved.some((pod) => ruled.has(pod)));
  }
}

export const podsAt = ({ local, a, b, waiting }: Moment): number => local + a + b + waiting;

/** The most that there were of something, from then (wall clock in ms) until then. */
export function mostOf(
  moments: readonly Moment[],
  from: number,
  until: number,
  of: (moment: Moment) => number,
): number {
  const at = moments.findLast((one) => one.at <= from);
  const later = moments.filter((one) => one.at > from && one.at <= until);
  return Math.max(0, ...[...(at === undefined ? [] : [at]), ...later].map(of));
}
