import { Gauge, type Registry } from 'prom-client';
import { UNIT } from '../kube/amounts.ts';
import { textOf } from '../capacity/asked-shapes.ts';
import type { MemberCapacity } from '../capacity/member-capacity.ts';

type Source = Pick<MemberCapacity, 'largestFreeSlot' | 'roomForShapes' | 'size'>;

/** What the members can take, worked out when somebody reads the metrics. One instance a registry. */
export class CapacityMetrics {
  readonly #sources = new Map<string, Source>();
  readonly #observed = new Map<string, () => boolean>();

  constructor(registry: Registry) {
    const registers = [registry];
    const sources = this.#sources;
    const gauge = <L extends string>(
      name: string,
      help: string,
      labelNames: L[],
      fill: (gauge: Gauge<L>, member: string, source: Source) => void,
    ): Gauge<L> =>
      new Gauge<L>({
        name,
        help,
        labelNames,
        registers,
        collect() {
          this.reset();
          for (const [member, source] of sources) fill(this, member, source);
        },
      });
    gauge(
      'spillway_member_largest_free_slot',
      'The most that one node of the member has free for ordinary pods, each resource by itself: cores, bytes, or pieces.',
      ['member', 'resource'],
      (own, member, source) => {
        for (const [resource, nanos] of source.largestFreeSlot() ?? []) {
          own.set({ member, resource }, Number(nanos) / Number(UNIT));
        }
      },
    );
    gauge(
      'spillway_member_shape_slots',
      'How many more pods fit, for the (at most 8) shapes of pods that were asked about last. Rounded down to two digits.',
      ['member', 'shape'],
      (own, member, source) => {
        for (const room of source.roomForShapes()) own.set({ member, shape: textOf(room) }, room.slots);
      },
    );
    gauge(
      'spillway_member_reserved_pods',
      'Pods that are on their way to the member and have room set aside there.',
      ['member'],
      (own, member, source) => own.set({ member }, source.size.reservations),
    );
    const observed = this.#observed;
    const known = new Gauge({
      name: 'spillway_member_observed',
      help: 'Of members that another replica acts for, where this one answers schedulers: 1 while the room behind all their virtual nodes is known here, else 0.',
      labelNames: ['member'],
      registers,
      collect() {
        known.reset();
        for (const [member, isKnown] of observed) known.set({ member }, isKnown() ? 1 : 0);
      },
    });
  }

  /** Shows whether the rooms of a member that is only observed are known, until the function that is returned is called. */
  observe(member: string, known: () => boolean): () => void {
    this.#observed.set(member, known);
    return () => {
      if (this.#observed.get(member) === known) this.#observed.delete(member);
    };
  }

  /** Shows a member until the function that is returned is called. */
  watch(member: string, source: Source): () => void {
    this.#sources.set(member, source);
    return () => {
      if (this.#sources.get(member) === source) this.#sources.delete(member);
    };
  }
}
